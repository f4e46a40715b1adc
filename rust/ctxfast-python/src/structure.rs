//! Functions that say what belongs together and where a conversation can be cut.

use ctxfast::part::Role;
use ctxfast::steps;
use ctxfast::transcript::{Kind, Transcript};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::{At, Read};
use crate::memory::view;
use crate::numbers::whole;
use crate::read::json::Keys;
use crate::read::{self, Called, Items, Shape, Visit};

/// What is kept or dropped whole, as half-open index ranges `(start, stop)` that cover the list.
///
/// An atom is a run of system (or developer) messages, a user message, or a step: an assistant message with everything
/// up to the last result of its calls, a user message that arrived in between included. Steps that overlap are one
/// atom; results whose call is nowhere go with the step before them.
///
/// Pairing is positional: a result answers the nearest earlier open call with its id; within one message equal ids match
/// in order. Ids may repeat, be blank or missing. Linear in the number of messages.
#[pyfunction]
#[pyo3(signature = (messages: "Sequence[object]"))]
pub(crate) fn atoms(messages: &Bound<'_, PyAny>) -> PyResult<Vec<(usize, usize)>> {
    let atoms = steps::atoms(&table(messages)?);
    Ok(atoms.into_iter().map(|atom| (atom.messages.start, atom.messages.end)).collect())
}

/// Indices of the user messages that open a turn.
///
/// A message that carries tool results opens none, be there text beside them, nor does a user message that arrived inside
/// a step. Each is a safe cut.
#[pyfunction]
#[pyo3(signature = (messages: "Sequence[object]"))]
pub(crate) fn turn_starts(messages: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    Ok(steps::starts(&table(messages)?, Kind::User))
}

/// Indices at which steps begin: a step is one model response with all results of its calls.
///
/// Steps that overlap begin together, so each is a safe cut.
#[pyfunction]
#[pyo3(signature = (messages: "Sequence[object]"))]
pub(crate) fn step_starts(messages: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    Ok(steps::starts(&table(messages)?, Kind::Step))
}

/// All indices, 0 to `len(messages)`, at which no call lies before with its result at or after.
///
/// Results whose call is nowhere (duplicates, orphans) make no index unsafe; `atoms` keeps them with the step before.
///
/// The results of calls that are still running (the list ends in calls with nothing but results after them) are still to
/// come and count as standing at the end: then `len(messages)` is no safe cut, nor is any index behind such a call. A call
/// that was interrupted long ago blocks nothing.
#[pyfunction]
#[pyo3(signature = (messages: "Sequence[object]"))]
pub(crate) fn safe_cuts(messages: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    Ok(steps::safe_cuts(&table(messages)?))
}

/// Where to cut near `target`: the largest safe cut in 1 to `target`, else the next one below `len(messages)`, else 0,
/// which means: cut nothing.
///
/// `mode="role"` is PicoClaw's rule, for drop-in use: every message of role user is a cut, and `target` itself in a list
/// without any. It can part a call from its result.
#[pyfunction]
#[pyo3(signature = (messages: "Sequence[object]", target: "int", mode: "Literal['steps', 'role']" = "steps"))]
pub(crate) fn find_safe_cut(
    messages: &Bound<'_, PyAny>,
    target: &Bound<'_, PyAny>,
    mode: &str,
) -> PyResult<usize> {
    let target = usize::try_from(whole(target, "target")?).unwrap_or(0);
    match mode {
        "steps" => {
            let transcript = table(messages)?;
            if target == 0 {
                return Ok(0);
            }
            Ok(steps::nearest_cut(steps::safe_cuts(&transcript), target, transcript.entries().len()))
        }
        "role" => {
            let messages = Items::of_messages(messages)?;
            let mut users = Vec::new();
            let mut count = 0;
            let note = |message| {
                if read::role(&message)? == Role::User {
                    users.push(count);
                }
                count += 1;
                Ok(())
            };
            messages.each(note).at_key("messages")?;
            if target == 0 || target >= count || users.is_empty() {
                return Ok(target.min(count));
            }
            Ok(steps::nearest_cut(users, target, count))
        }
        other => Err(PyValueError::new_err(format!("mode: expected 'steps' or 'role', got '{other}'"))),
    }
}

/// The table of a conversation.
fn table(messages: &Bound<'_, PyAny>) -> Read<Transcript> {
    let mut transcript = Transcript::new();
    let note = |message| {
        let mut noter = Noter::open(&mut transcript);
        let shape = read::message(&message, &mut noter)?;
        noter.close(shape);
        Ok(())
    };
    Items::of_messages(messages)?.each(note).at_key("messages")?;
    Ok(transcript)
}

/// Notes the calls and results of a message; texts do not matter.
pub(crate) struct Noter<'t> {
    transcript: &'t mut Transcript,
}

impl<'t> Noter<'t> {
    /// Begins a message.
    pub(crate) fn open(transcript: &'t mut Transcript) -> Self {
        transcript.open();
        Self { transcript }
    }

    /// Says what it was.
    pub(crate) fn close(self, shape: Shape) {
        self.transcript.close(Kind::of(shape.role, shape.has_results), shape.own_text);
    }
}

impl<'py> Visit<'py> for Noter<'_> {
    fn text(&mut self, _: ctxfast::part::Kind, _: &Bound<'py, PyString>) -> Read<()> {
        Ok(())
    }

    fn json(&mut self, _: ctxfast::part::Kind, _: &Bound<'py, PyAny>, _: Keys) -> Read<()> {
        Ok(())
    }

    fn call(&mut self, id: Option<&Bound<'py, PyString>>, _: Called<'_, 'py>) {
        self.transcript.call(id.map(view));
    }

    fn result(&mut self, id: Option<&Bound<'py, PyString>>) {
        self.transcript.result(id.map(view));
    }
}
