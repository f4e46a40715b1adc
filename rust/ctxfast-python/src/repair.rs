//! A list that a provider would refuse, mended: reads it, lets the core decide, writes a new one.

use std::collections::HashSet;

use ctxfast::part::Role;
use ctxfast::repair::{Action, Fix as Found, Plan, Speaker, repair as plan, sanitize};
use ctxfast::transcript::Transcript;
use ctxfast::validate::{Code, Form, Problem};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::convert;
use crate::errors::{At, Read, parameter_type_error};
use crate::memory::{one_byte_text, view};
use crate::mend::{Calls, Writer, has_own};
use crate::read::{Items, Nobody, fields};
use crate::repaired::{Fix, RepairReport, Repaired};
use crate::validate::{Forms, Inspector, rules};

/// The list as a provider accepts it: `validate` finds nothing in `repair(messages).messages`, if a user says anything
/// in it. What was done is in the report, all of it. A list without faults comes back as it is, in a new list.
///
/// | fault | what is done |
/// | --- | --- |
/// | `orphan_result`, `duplicate_result` | dropped; the first result of a call counts. Results and calls that lack each other for want of an id are put together, if they stand in one place and there are as many of both |
/// | `unanswered_call` | gets a result that says that the call was interrupted, behind the results of its message |
/// | `result_out_of_order`, `split_parallel_group` | moved to the call's message; what a user said in between comes after it, in Anthropic's form in a message of its own or behind the results of one message |
/// | `blank_name` | dropped with its result, and so is the message if it says nothing else |
/// | `blank_id`, `duplicate_call_id` | call and result get an id `call_<message>_<place>` |
/// | `empty_message`, `empty_text`, `thinking_without_signature` | dropped |
/// | `result_after_text` | results first |
/// | `first_not_user` | a user's message is put in front that says that the conversation begins |
/// | `mixed_forms`, `unknown_role` | written in the form of the list; `ai` and `model` are the assistant, whoever else is unknown a user |
/// | `no_user_message` | left: nobody can know what a user would have said |
///
/// Calls that are still running at the end stay so. What a user says is never dropped, complete rounds neither; texts,
/// arguments and outputs stay as they are. Results are paired with calls by position, as everywhere (`atoms`). The list
/// and its messages are not changed; untouched messages are the same objects, a changed one that was no dict comes back
/// as one. Mending twice changes nothing. `form` and `provider` are those of `validate`; with another form than the
/// list's this is a translation of calls and results.
///
/// `strict_predecessor=True` does what PicoClaw does instead, for drop-in use: it only drops, also complete rounds that
/// follow an assistant message, and system messages; what it gives can be refused.
///
/// Linear in the number of messages. Raises `MessageTypeError` or `MessageValueError` for what is no message at all.
#[pyfunction]
#[pyo3(signature = (
    messages: "Sequence[object]",
    form: "Literal['auto', 'openai', 'anthropic']" = "auto",
    *,
    provider: "Literal['openai', 'anthropic'] | None" = None,
    strict_predecessor: "bool" = false
))]
pub(crate) fn repair(
    messages: &Bound<'_, PyAny>,
    form: &str,
    provider: Option<&str>,
    strict_predecessor: bool,
) -> PyResult<Repaired> {
    if strict_predecessor {
        let messages = Items::of_messages(messages)?.to_list();
        let mut inspector = Inspector::default();
        read(&messages, &mut inspector)?;
        rules(form, provider, &inspector.facts)?;
        return as_picoclaw(&messages, &inspector.transcript);
    }
    mended(messages, form, provider, &Gone::default()).map(|(repaired, _)| repaired)
}

/// The list without some tool calls, by their ids: they go with their results, and so does a message that says nothing
/// else. In the report these are `removed`; what else was wrong is mended, as `repair` does it.
///
/// Everything else stays, untouched messages are the same objects. Of several calls with an id all go. An id that no call
/// has changes nothing. `form` and `provider` are those of `repair`. Raises `TypeError` if `ids` is no collection of
/// texts (one text is none), `MessageTypeError` or `MessageValueError` for what is no message at all.
#[pyfunction]
#[pyo3(signature = (
    messages: "Sequence[object]",
    ids: "Iterable[str]",
    form: "Literal['auto', 'openai', 'anthropic']" = "auto",
    *,
    provider: "Literal['openai', 'anthropic'] | None" = None
))]
pub(crate) fn remove(
    messages: &Bound<'_, PyAny>,
    ids: &Bound<'_, PyAny>,
    form: &str,
    provider: Option<&str>,
) -> PyResult<Repaired> {
    let expected = || parameter_type_error("ids", "ids of tool calls", ids);
    if ids.is_instance_of::<PyString>() {
        return Err(expected());
    }
    let mut gone = Gone::default();
    for id in ids.try_iter().map_err(|_| expected())? {
        let id = id?;
        let id = id.cast::<PyString>().map_err(|_| parameter_type_error("ids", "a text for each id", &id))?;
        gone.insert(view(id).to_well_formed());
    }
    mended(messages, form, provider, &gone).map(|(repaired, _)| repaired)
}

/// Ids of calls that are to go.
type Gone = HashSet<String>;

/// The code of what [`remove`] drops.
const REMOVED: &str = "removed";

/// A list as a provider accepts it, always a new one, and the form in which it is written.
pub(crate) fn mended(
    messages: &Bound<'_, PyAny>,
    form: &str,
    provider: Option<&str>,
    gone: &Gone,
) -> PyResult<(Repaired, Form)> {
    // a copy: nobody else changes it meanwhile
    let messages = Items::of_messages(messages)?.to_list();
    let mut inspector = Inspector::default();
    let forms = read(&messages, &mut inspector)?;
    let (form, strict) = rules(form, provider, &inspector.facts)?;
    let problems = inspector.check(form, strict);
    let is_fine = problems.iter().all(|problem| problem.code == Code::NoUserMessage);
    let repaired = if is_fine && gone.is_empty() {
        let fixes = problems.into_iter().map(left).collect();
        repaired(messages, &inspector.transcript, fixes)
    } else {
        mend(&messages, &inspector, &forms, form, strict, gone)
    };
    Ok((repaired?, form))
}

/// What the messages are, and in which forms they are written.
fn read(messages: &Bound<'_, PyList>, inspector: &mut Inspector) -> Read<Vec<Forms>> {
    let mut forms = Vec::with_capacity(messages.len());
    let inspect = |message: Bound<'_, PyAny>| {
        forms.push(inspector.message(&message, &mut Nobody)?);
        Ok(())
    };
    Items::List(messages).each(inspect).at_key("messages")?;
    Ok(forms)
}

fn left(problem: Problem) -> Found {
    let Problem { code, index, id } = problem;
    Found { code: code.name(), index, id, action: Action::Left, new_id: None }
}

fn repaired(messages: Bound<'_, PyList>, transcript: &Transcript, fixes: Vec<Found>) -> PyResult<Repaired> {
    let items = fixes.into_iter().map(|fix| Fix::new(transcript, fix)).collect();
    Ok(Repaired { report: Py::new(messages.py(), RepairReport { items })?, messages: messages.unbind() })
}

/// Three stages: one form for all, a plan, a new list.
fn mend(
    messages: &Bound<'_, PyList>,
    found: &Inspector,
    forms: &[Forms],
    form: Form,
    strict: bool,
    gone: &Gone,
) -> PyResult<Repaired> {
    let py = messages.py();
    let (uniform, mut sources, mut fixes) = (PyList::empty(py), Vec::new(), Vec::new());
    for (index, (message, (&role, &forms))) in messages.iter().zip(found.roles.iter().zip(forms)).enumerate()
    {
        let new = convert::message(&message, role, forms, form).at_index(index).at_key("messages")?;
        let Some(new) = new else {
            uniform.append(message)?;
            sources.push(index);
            continue;
        };
        let is_unknown = role == Role::Other || (role == Role::Result && form == Form::Anthropic);
        let code = if is_unknown { Code::UnknownRole } else { Code::MixedForms };
        fixes.push(Found { code: code.name(), index, id: None, action: Action::Converted, new_id: None });
        sources.extend(new.iter().map(|_| index));
        new.into_iter().try_for_each(|message| uniform.append(message))?;
    }

    let (mut inspector, mut calls, mut own) = (Inspector::default(), Calls::default(), Vec::new());
    for (message, &source) in uniform.iter().zip(&sources) {
        let inspected = inspector.message(&message, &mut calls).map(drop);
        let facts = inspector.facts.last().copied().unwrap_or_default();
        let role = inspector.roles.last().copied().unwrap_or(Role::Other);
        let entry = inspector.transcript.entries().last();
        let results = entry.map_or(0, |entry| inspector.transcript.results_of(entry).len());
        let calls_here = entry.map_or(0..0, |entry| inspector.transcript.calls_of(entry));
        let loses_call = calls.lose(calls_here, gone) || facts.nameless_call;
        let may_lose = (role == Role::User && results > 0) || loses_call || facts.unsigned_thinking;
        let owns = inspected.and_then(|()| if may_lose { has_own(&message, role) } else { Ok(false) });
        own.push(owns.at_index(source).at_key("messages")?);
    }
    let Inspector { transcript, facts, roles } = &inspector;
    let list = ctxfast::repair::List {
        transcript,
        facts,
        roles,
        own: &own,
        nameless: &calls.nameless,
        sources: &sources,
        form,
        strict,
    };
    let mut plan = plan(list);
    let is_removed = |fix: &Found| fix.id.is_some_and(|id| gone.contains(&transcript.id_text(id)));
    for fix in plan.fixes.iter_mut().filter(|fix| fix.code == Code::BlankName.name() && is_removed(fix)) {
        fix.code = REMOVED;
    }
    fixes.append(&mut plan.fixes);
    fixes.sort_by_key(|fix| fix.index);
    repaired(write(&uniform, transcript, &plan, &calls, form)?, transcript, fixes)
}

fn write<'py>(
    messages: &Bound<'py, PyList>,
    transcript: &Transcript,
    plan: &Plan,
    calls: &Calls<'py>,
    form: Form,
) -> Read<Bound<'py, PyList>> {
    let writer = Writer::new(messages, transcript, plan, calls, form)?;
    let new = PyList::empty(messages.py());
    for made in &plan.made {
        new.append(writer.message(made)?)?;
    }
    Ok(new)
}

fn as_picoclaw(messages: &Bound<'_, PyList>, transcript: &Transcript) -> PyResult<Repaired> {
    let py = messages.py();
    let mut speakers = Vec::with_capacity(messages.len());
    for message in messages.iter() {
        let role = fields::get(&message, intern!(py, "role"))?;
        speakers.push(match role.as_ref().and_then(one_byte_text) {
            Some(b"system") => Speaker::System,
            Some(b"user") => Speaker::User,
            Some(b"tool") => Speaker::Tool,
            _ => Speaker::Other,
        });
    }
    let (kept, fixes) = sanitize(transcript, &speakers);
    let new = PyList::empty(py);
    for index in kept {
        new.append(messages.get_item(index)?)?;
    }
    repaired(new, transcript, fixes)
}
