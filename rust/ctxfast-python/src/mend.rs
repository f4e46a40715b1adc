//! The messages of a mended list, as a plan has them. What is not touched is the same object.

use std::collections::HashSet;
use std::ops::Range;

use ctxfast::part::{Kind as Piece, Role};
use ctxfast::repair::{Made, Plan};
use ctxfast::transcript::Transcript;
use ctxfast::validate::Form;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyString};

use crate::convert::items_of;
use crate::errors::{Error, Read};
use crate::memory::view;
use crate::read::json::Keys;
use crate::read::{Called, Items, Part, Visit, fields};
use crate::validate::{is_blank_name, is_empty};
use crate::write::{self, as_dict};

/// What stands in the place of a result that never came.
const NO_RESULT: &str = "[No result: the call was interrupted]";
/// What a user says first where nobody did.
const OPENING: &str = "[The conversation begins here]";

/// Notes the calls of a list, in the order of the table.
#[derive(Default)]
pub(crate) struct Calls<'py> {
    pub(crate) ids: Vec<Option<Bound<'py, PyString>>>,
    pub(crate) nameless: Vec<bool>,
}

impl Calls<'_> {
    /// Treats those of some calls that have one of the ids as if they had no name: then they go. Says whether any has.
    pub(crate) fn lose(&mut self, calls: Range<usize>, ids: &HashSet<String>) -> bool {
        let mut any = false;
        for call in calls {
            let id = self.ids.get(call).and_then(Option::as_ref);
            if !ids.is_empty() && id.is_some_and(|id| ids.contains(&view(id).to_well_formed())) {
                any = true;
                if let Some(nameless) = self.nameless.get_mut(call) {
                    *nameless = true;
                }
            }
        }
        any
    }
}

impl<'py> Visit<'py> for Calls<'py> {
    fn text(&mut self, _: Piece, _: &Bound<'py, PyString>) -> Read<()> {
        Ok(())
    }

    fn json(&mut self, _: Piece, _: &Bound<'py, PyAny>, _: Keys) -> Read<()> {
        Ok(())
    }

    fn call(&mut self, id: Option<&Bound<'py, PyString>>, called: Called<'_, 'py>) {
        self.ids.push(id.cloned());
        self.nameless.push(is_blank_name(&called));
    }
}

/// Whether a message says something without its calls and results.
pub(crate) fn has_own(message: &Bound<'_, PyAny>, role: Role) -> Read<bool> {
    let py = message.py();
    let copy = as_dict(message)?;
    let is_model = role == Role::Assistant;
    if is_model {
        let reasoning = ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"];
        for key in reasoning.into_iter().chain(["tool_calls", "function_call"]) {
            copy.set_item(key, py.None())?;
        }
    }
    let key = intern!(py, "content");
    let content = fields::get(message, key)?;
    match content.as_ref().and_then(Items::of) {
        Some(parts) => {
            let own = PyList::empty(py);
            parts.each(|part| {
                let says = match Part::of(&part)? {
                    Part::EmptyText | Part::UnsignedThinking => false,
                    Part::SignedThinking | Part::Redacted | Part::Call => !is_model,
                    Part::Result => role != Role::User,
                    Part::Text | Part::Other => true,
                };
                if says { Ok(own.append(part)?) } else { Ok(()) }
            })?;
            copy.set_item(key, own)?;
        }
        None if content.is_none() => copy.set_item(key, "")?,
        None => {}
    }
    Ok(!is_empty(&copy)?)
}

/// Writes the messages of a plan.
pub(crate) struct Writer<'a, 'py> {
    messages: &'a Bound<'py, PyList>,
    transcript: &'a Transcript,
    plan: &'a Plan,
    calls: &'a Calls<'py>,
    form: Form,
    /// What holds each result (a message or a block), and its message.
    results: Vec<(Bound<'py, PyAny>, usize)>,
}

impl<'a, 'py> Writer<'a, 'py> {
    pub(crate) fn new(
        messages: &'a Bound<'py, PyList>,
        transcript: &'a Transcript,
        plan: &'a Plan,
        calls: &'a Calls<'py>,
        form: Form,
    ) -> Read<Self> {
        let mut results = Vec::with_capacity(plan.answered.len());
        for (index, entry) in transcript.entries().iter().enumerate() {
            if !transcript.results_of(entry).is_empty() {
                let holders = write::results(&messages.get_item(index)?)?;
                results.extend(holders.into_iter().map(|holder| (holder, index)));
            }
        }
        Ok(Self { messages, transcript, plan, calls, form, results })
    }

    /// One message of the new list.
    pub(crate) fn message(&self, made: &Made) -> Read<Bound<'py, PyAny>> {
        let py = self.messages.py();
        match made {
            Made::Keep(index) => Ok(self.messages.get_item(*index)?),
            Made::Clean(index) => self.clean(*index),
            Made::Own(index) => {
                let message = self.messages.get_item(*index)?;
                let copy = as_dict(&message)?;
                let parts = PyList::empty(py);
                self.add_own_parts(&message, &parts)?;
                copy.set_item(intern!(py, "content"), parts)?;
                Ok(copy.into_any())
            }
            Made::Result(result) => {
                let (message, _) = self.result(*result)?;
                let Some(id) = self.new_id_of_result(*result) else { return Ok(message.clone()) };
                let copy = as_dict(message)?;
                copy.set_item(intern!(py, "role"), intern!(py, "tool"))?;
                copy.set_item(intern!(py, "tool_call_id"), id)?;
                Ok(copy.into_any())
            }
            Made::Synthetic(call) => {
                let message = PyDict::new(py);
                message.set_item(intern!(py, "role"), intern!(py, "tool"))?;
                message.set_item(intern!(py, "tool_call_id"), self.id(*call))?;
                message.set_item(intern!(py, "content"), intern!(py, NO_RESULT))?;
                Ok(message.into_any())
            }
            Made::Results { results, calls, own } => self.message_of_results(results, calls, *own),
            Made::Opening => {
                let message = PyDict::new(py);
                message.set_item(intern!(py, "role"), intern!(py, "user"))?;
                message.set_item(intern!(py, "content"), intern!(py, OPENING))?;
                Ok(message.into_any())
            }
        }
    }

    fn result(&self, result: usize) -> Read<&(Bound<'py, PyAny>, usize)> {
        // somebody may have changed a message meanwhile
        let gone = || Error::from(PyRuntimeError::new_err("messages changed while they were read"));
        self.results.get(result).ok_or_else(gone)
    }

    fn new_id(&self, call: usize) -> Option<&'a str> {
        self.plan.new_ids.get(call).and_then(Option::as_deref)
    }

    /// The id of a result, if it gets another one.
    fn new_id_of_result(&self, result: usize) -> Option<Bound<'py, PyString>> {
        let call = self.plan.answered.get(result).copied().flatten()?;
        let is_same = self.transcript.results().get(result) == self.transcript.calls().get(call);
        if is_same && self.new_id(call).is_none() { None } else { self.id(call) }
    }

    /// The id of a call in the new list.
    fn id(&self, call: usize) -> Option<Bound<'py, PyString>> {
        match self.new_id(call) {
            Some(id) => Some(PyString::new(self.messages.py(), id)),
            None => self.calls.ids.get(call).cloned().flatten(),
        }
    }

    fn is_named(&self, call: usize) -> bool {
        !self.calls.nameless.get(call).copied().unwrap_or_default()
    }

    /// Whether a part is an empty text, or thinking that cannot be sent back.
    fn goes(&self, part: Part) -> bool {
        self.form == Form::Anthropic && matches!(part, Part::EmptyText | Part::UnsignedThinking)
    }

    /// Adds the parts of a user's message that are no results.
    fn add_own_parts(&self, message: &Bound<'py, PyAny>, to: &Bound<'py, PyList>) -> Read<()> {
        for part in items_of(fields::get(message, intern!(message.py(), "content"))?.as_ref())? {
            let kind = Part::of(&part)?;
            if kind != Part::Result && !self.goes(kind) {
                to.append(part)?;
            }
        }
        Ok(())
    }

    /// A message of results, and of what a user says beside them.
    fn message_of_results(
        &self,
        results: &[usize],
        calls: &[usize],
        own: Option<usize>,
    ) -> Read<Bound<'py, PyAny>> {
        let py = self.messages.py();
        let first = match results.first() {
            Some(&result) => Some(self.result(result)?.1),
            None => None,
        };
        let message = if let Some(index) = own.or(first) {
            as_dict(&self.messages.get_item(index)?)?
        } else {
            let message = PyDict::new(py);
            message.set_item(intern!(py, "role"), intern!(py, "user"))?;
            message
        };
        let content = PyList::empty(py);
        for &result in results {
            let (block, _) = self.result(result)?;
            match self.new_id_of_result(result) {
                None => content.append(block)?,
                Some(id) => {
                    let block = as_dict(block)?;
                    block.set_item(intern!(py, "tool_use_id"), id)?;
                    content.append(block)?;
                }
            }
        }
        for &call in calls {
            let block = PyDict::new(py);
            block.set_item(intern!(py, "type"), intern!(py, "tool_result"))?;
            block.set_item(intern!(py, "tool_use_id"), self.id(call))?;
            block.set_item(intern!(py, "content"), intern!(py, NO_RESULT))?;
            block.set_item(intern!(py, "is_error"), true)?;
            content.append(block)?;
        }
        if let Some(own) = own {
            self.add_own_parts(&self.messages.get_item(own)?, &content)?;
        }
        message.set_item(intern!(py, "content"), content)?;
        Ok(message.into_any())
    }

    /// A message without what must go, and with its new ids.
    fn clean(&self, index: usize) -> Read<Bound<'py, PyAny>> {
        let message = self.messages.get_item(index)?;
        let copy = as_dict(&message)?;
        let entry = self.transcript.entries().get(index);
        let calls = entry.map_or(0..0, |entry| self.transcript.calls_of(entry));
        match self.form {
            Form::OpenAi => self.clean_tool_calls(&copy, calls)?,
            Form::Anthropic => self.clean_blocks(&copy, calls)?,
        }
        Ok(copy.into_any())
    }

    fn clean_tool_calls(&self, message: &Bound<'py, PyDict>, mut calls: std::ops::Range<usize>) -> Read<()> {
        let py = message.py();
        let (key, legacy, id_key) =
            (intern!(py, "tool_calls"), intern!(py, "function_call"), intern!(py, "id"));
        let kept = PyList::empty(py);
        let (gone, stays) = (PySet::empty(py)?, PySet::empty(py)?);
        for item in items_of(fields::get(message, key)?.as_ref())? {
            let Some(call) = calls.next() else { break };
            let id = fields::get(&item, id_key)?;
            if !self.is_named(call) {
                gone.add(id)?;
                continue;
            }
            stays.add(id)?;
            match self.new_id(call) {
                None => kept.append(item)?,
                Some(id) => {
                    let item = as_dict(&item)?;
                    item.set_item(id_key, id)?;
                    kept.append(item)?;
                }
            }
        }
        if let (Some(function), Some(call)) = (fields::get(message, legacy)?, calls.next())
            && self.is_named(call)
        {
            let item = PyDict::new(py);
            item.set_item(id_key, self.new_id(call))?;
            item.set_item(intern!(py, "type"), intern!(py, "function"))?;
            item.set_item(intern!(py, "function"), function)?;
            kept.append(item)?;
        }
        for key in [key, legacy] {
            if message.contains(key)? {
                message.del_item(key)?;
            }
        }
        if !kept.is_empty() {
            message.set_item(key, kept)?;
        }
        // blocks that repeat a call go with it
        for id in stays.iter() {
            gone.discard(id)?;
        }
        let content_key = intern!(py, "content");
        let content = fields::get(message, content_key)?;
        if !gone.is_empty()
            && let Some(parts) = content.as_ref().and_then(Items::of)
        {
            let rest = PyList::empty(py);
            parts.each(|part| {
                if Part::of(&part)? == Part::Call {
                    let id = fields::get(&part, id_key)?;
                    if gone.contains(id)? {
                        return Ok(());
                    }
                }
                Ok(rest.append(part)?)
            })?;
            let rest = if rest.is_empty() { py.None().into_bound(py) } else { rest.into_any() };
            message.set_item(content_key, rest)?;
        }
        Ok(())
    }

    fn clean_blocks(&self, message: &Bound<'py, PyDict>, mut calls: std::ops::Range<usize>) -> Read<()> {
        let py = message.py();
        let key = intern!(py, "content");
        let content = fields::get(message, key)?;
        let Some(parts) = content.as_ref().and_then(Items::of) else { return Ok(()) };
        let kept = PyList::empty(py);
        parts.each(|part| {
            let kind = Part::of(&part)?;
            if kind != Part::Call {
                return if self.goes(kind) { Ok(()) } else { Ok(kept.append(part)?) };
            }
            let Some(call) = calls.next() else { return Ok(kept.append(part)?) };
            if !self.is_named(call) {
                return Ok(());
            }
            let Some(id) = self.new_id(call) else { return Ok(kept.append(part)?) };
            let block = as_dict(&part)?;
            block.set_item(intern!(py, "id"), id)?;
            Ok(kept.append(block)?)
        })?;
        Ok(message.set_item(key, kept)?)
    }
}
