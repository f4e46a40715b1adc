//! A list of messages as texts and facts: who says what, what is called, and what came of it. Summaries are made of it.

use std::cell::LazyCell;

use ctxfast::media::Hint;
use ctxfast::part::{Kind as Piece, Role};
use ctxfast::plan::Facts;
use ctxfast::prune::Source;
use ctxfast::tools::Lines;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::counter::TokenCounter;
use crate::errors::{At, Read};
use crate::outputs::{List, Reader};
use crate::policy::{Given, Policy};
use crate::read::json::Keys;
use crate::read::{self, Called, Items, Part, Visit, fields};

/// What the messages of a list say, a dict for each: `role`, `own_text` (a user says something), `text` (of its text
/// parts; no reasoning), `media` (how many parts beside it), `form` (the only one that it can be of), `thinking` (whether it
/// has any that must be sent back), `tokens`, `calls` (names and arguments) and `outputs`, a dict for each tool output:
/// `tool`, `kind`, `path`, `lines` (first and last; the end is `None`), `edits`, `command`, `pattern`, `other`, `details`,
/// `target` (what a later success must be about to make up for a failure), `failed`, `exit_code`, `kept` (by `policy`),
/// `text` and `attachments`.
#[pyfunction]
#[pyo3(name = "_transcribe")]
#[pyo3(signature = (
    messages: "Sequence[object]",
    policy: "PrunePolicy | None",
    counter: "TokenCounter | None"
) -> "list[dict[str, Any]]")]
pub(crate) fn transcribe<'py>(
    messages: &Bound<'py, PyAny>,
    policy: Option<&Bound<'py, PyAny>>,
    counter: Option<&Bound<'py, TokenCounter>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = messages.py();
    let policy = Policy::new(policy, &Given::default())?;
    let default = LazyCell::new(TokenCounter::default);
    let counter = counter.map_or_else(|| &*default, |counter| counter.get());
    // a copy: nobody else changes it while counters run
    let messages = Items::of_messages(messages)?.to_list();
    let items = Items::List(&messages);
    let (list, outputs, tokens) = List::read(&items, counter)?;
    let mut reader = Reader::new(&list, &items, counter, &policy, outputs.len());
    let transcribed = PyList::empty(py);
    for ((index, message), (entry, tokens)) in
        messages.iter().enumerate().zip(list.transcript.entries().iter().zip(tokens))
    {
        let told = told(&message).at_index(index).at_key("messages")?;
        told.set_item("own_text", entry.own_text)?;
        told.set_item("tokens", tokens)?;
        let of_message = PyList::empty(py);
        for output in list.transcript.results_of(entry) {
            let facts = reader.facts(output)?;
            let fields = facts_of(py, &facts)?;
            let (text, attachments, exit_code) = reader.said(output, &facts)?;
            fields.set_item("text", text)?;
            fields.set_item("attachments", attachments)?;
            fields.set_item("exit_code", exit_code)?;
            of_message.append(fields)?;
        }
        told.set_item("outputs", of_message)?;
        transcribed.append(told)?;
    }
    Ok(transcribed)
}

/// What a message says itself.
fn told<'py>(message: &Bound<'py, PyAny>) -> Read<Bound<'py, PyDict>> {
    let py = message.py();
    let mut noter = Noter { calls: PyList::empty(py), media: 0, openai: false, in_output: false };
    let shape = read::message(message, &mut noter)?;
    let fields = PyDict::new(py);
    let content = fields::get(message, intern!(py, "content"))?;
    let is_result = shape.role == Role::Result;
    let text = match &content {
        Some(content) if !is_result => read::text_of(content)?.0,
        _ => PyString::new(py, ""),
    };
    let mut thinking = fields::get(message, intern!(py, "thinking_blocks"))?.is_some();
    if let Some(parts) = content.as_ref().and_then(Items::of) {
        parts.each(|part| {
            thinking |= matches!(Part::of(&part)?, Part::SignedThinking | Part::Redacted);
            Ok(())
        })?;
    }
    let role = match shape.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Result => "tool",
        Role::Other => "other",
    };
    let form = match shape.role {
        _ if noter.openai || is_result => Some("openai"),
        _ if shape.blocks.anthropic => Some("anthropic"),
        _ => None,
    };
    fields.set_item("role", role)?;
    fields.set_item("text", text)?;
    fields.set_item("media", noter.media)?;
    fields.set_item("form", form)?;
    fields.set_item("thinking", thinking && shape.role == Role::Assistant)?;
    fields.set_item("calls", noter.calls)?;
    Ok(fields)
}

/// What an output is about.
fn facts_of<'py>(py: Python<'py>, facts: &Facts) -> Read<Bound<'py, PyDict>> {
    let Facts { tool, call, failed, kept, .. } = facts;
    let fields = PyDict::new(py);
    let path = call.read.as_ref().map(|(path, _)| path).or(call.path.as_ref());
    let lines = call.read.as_ref().map(|(_, lines)| {
        let last = (lines.last != Lines::END).then_some(lines.last);
        (lines.first, last)
    });
    fields.set_item("tool", tool)?;
    fields.set_item("kind", call.kind.name())?;
    fields.set_item("path", path)?;
    fields.set_item("lines", lines)?;
    fields.set_item("edits", &call.edits)?;
    fields.set_item("command", &call.command)?;
    fields.set_item("pattern", &call.pattern)?;
    fields.set_item("other", &call.other)?;
    fields.set_item("details", &call.details)?;
    fields.set_item("target", call.target())?;
    fields.set_item("failed", failed)?;
    fields.set_item("kept", kept)?;
    Ok(fields)
}

/// Notes what a message calls, and how many parts of it are media.
struct Noter<'py> {
    calls: Bound<'py, PyList>,
    media: usize,
    openai: bool,
    in_output: bool,
}

impl<'py> Visit<'py> for Noter<'py> {
    fn text(&mut self, _: Piece, _: &Bound<'py, PyString>) -> Read<()> {
        Ok(())
    }

    fn json(&mut self, _: Piece, _: &Bound<'py, PyAny>, _: Keys) -> Read<()> {
        Ok(())
    }

    fn media(&mut self, _: Hint, _: &Bound<'py, PyAny>) {
        self.media += usize::from(!self.in_output);
    }

    fn output_begins(&mut self) {
        self.in_output = true;
    }

    fn output_ends(&mut self) {
        self.in_output = false;
    }

    fn tool_calls(&mut self) {
        self.openai = true;
    }

    fn call(&mut self, _: Option<&Bound<'py, PyString>>, called: Called<'_, 'py>) {
        // a list takes any object: this fails only where there is no memory left
        let _ = self.calls.append((called.name, called.arguments));
    }
}
