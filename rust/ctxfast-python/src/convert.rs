//! A message in the other form, where a list mixes forms. Parts that both forms know stay the same objects.

use ctxfast::part::Role;
use ctxfast::validate::Form;
use pyo3::exceptions::{PyRecursionError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySet, PyString};

use crate::errors::Read;
use crate::memory::{chars, one_byte_text, view};
use crate::read::json::{self, Keys};
use crate::read::{Items, Nobody, Part, fields, listed_ids};
use crate::validate::{Forms, Inspector, is_empty};
use crate::write::as_dict;

/// The message in a form, if it has to be written anew for that: as many messages as it takes.
pub(crate) fn message<'py>(
    message: &Bound<'py, PyAny>,
    role: Role,
    forms: Forms,
    form: Form,
) -> Read<Option<Vec<Bound<'py, PyAny>>>> {
    let py = message.py();
    let is_unknown = role == Role::Other;
    let is_foreign = match form {
        Form::OpenAi => forms.anthropic,
        Form::Anthropic => forms.openai,
    };
    if !is_unknown && !is_foreign {
        return Ok(None);
    }
    let copy = as_dict(message)?;
    if !is_unknown {
        return to_form(copy, role, form).map(Some);
    }
    let name = field(message, "role")?;
    let (role, name) = match name.as_ref().and_then(one_byte_text) {
        Some(b"ai" | b"model") => (Role::Assistant, "assistant"),
        _ => (Role::User, "user"),
    };
    copy.set_item(intern!(py, "role"), name)?;
    let forms = Inspector::default().message(&copy, &mut Nobody)?;
    let is_foreign = match form {
        Form::OpenAi => forms.anthropic,
        Form::Anthropic => forms.openai,
    };
    if is_foreign {
        return to_form(copy, role, form).map(Some);
    }
    Ok(Some(vec![copy.into_any()]))
}

fn to_form(copy: Bound<'_, PyDict>, role: Role, form: Form) -> Read<Vec<Bound<'_, PyAny>>> {
    match (form, role) {
        (Form::Anthropic, Role::Result) => as_user(&copy)?,
        (Form::Anthropic, _) => with_blocks(&copy, role)?,
        (Form::OpenAi, Role::User) => return one_by_one(copy),
        (Form::OpenAi, _) => with_tool_calls(&copy)?,
    }
    Ok(vec![copy.into_any()])
}

fn field<'py>(value: &Bound<'py, PyAny>, key: &str) -> Read<Option<Bound<'py, PyAny>>> {
    fields::get(value, &PyString::intern(value.py(), key))
}

fn remove(dict: &Bound<'_, PyDict>, keys: &[&str]) -> Read<()> {
    for key in keys {
        if dict.contains(key)? {
            dict.del_item(key)?;
        }
    }
    Ok(())
}

/// Takes over a field, if it is there.
fn take<'py>(from: &Bound<'py, PyAny>, key: &str, to: &Bound<'py, PyDict>, name: &str) -> Read<()> {
    if let Some(value) = field(from, key)? {
        to.set_item(name, value)?;
    }
    Ok(())
}

/// All items of a list, or none.
pub(crate) fn items_of<'py>(value: Option<&Bound<'py, PyAny>>) -> Read<Vec<Bound<'py, PyAny>>> {
    let mut all = Vec::new();
    if let Some(items) = value.and_then(Items::of) {
        items.each(|item| {
            all.push(item);
            Ok(())
        })?;
    }
    Ok(all)
}

/// The parts of a content; a text is one, an empty one is none.
fn parts_of<'py>(content: Option<&Bound<'py, PyAny>>) -> Read<Vec<Bound<'py, PyAny>>> {
    let Some(text) = content.and_then(|content| content.cast::<PyString>().ok()) else {
        return items_of(content);
    };
    if chars(text) == 0 {
        return Ok(Vec::new());
    }
    let part = PyDict::new(text.py());
    part.set_item("type", "text")?;
    part.set_item("text", text)?;
    Ok(vec![part.into_any()])
}

/// A message that is one result as Anthropic's message of a user.
fn as_user(message: &Bound<'_, PyDict>) -> Read<()> {
    let py = message.py();
    let block = PyDict::new(py);
    block.set_item("type", "tool_result")?;
    for (key, name) in [("tool_call_id", "tool_use_id"), ("content", "content"), ("is_error", "is_error")] {
        take(message, key, &block, name)?;
    }
    remove(message, &["tool_call_id", "name", "is_error", "tool_calls", "function_call"])?;
    message.set_item("role", "user")?;
    Ok(message.set_item("content", PyList::new(py, [block])?)?)
}

/// Whether a part is a call that `tool_calls` repeats.
fn is_listed(part: &Bound<'_, PyAny>, listed: &Bound<'_, PySet>) -> Read<bool> {
    match field(part, "id")? {
        Some(id) => Ok(listed.contains(id)?),
        None => Ok(false),
    }
}

/// A message with its calls as blocks of the content. Only the model's are calls.
fn with_blocks(message: &Bound<'_, PyDict>, role: Role) -> Read<()> {
    let py = message.py();
    let tool_calls = field(message, "tool_calls")?;
    let function = field(message, "function_call")?;
    remove(message, &["tool_calls", "function_call"])?;
    if role != Role::Assistant {
        return Ok(());
    }
    let listed = match &tool_calls {
        Some(calls) => listed_ids(calls)?,
        None => PySet::empty(py)?,
    };
    let (content, theirs) = (PyList::empty(py), PyList::empty(py));
    for part in parts_of(field(message, "content")?.as_ref())? {
        if Part::of(&part)? != Part::Call {
            content.append(part)?;
        } else if !is_listed(&part, &listed)? {
            theirs.append(part)?;
        }
    }
    for call in items_of(tool_calls.as_ref())? {
        let called = match field(&call, "function")? {
            Some(function) => function,
            None => field(&call, "custom")?.unwrap_or_else(|| call.clone()),
        };
        let block = call_block(&called)?;
        take(&call, "id", &block, "id")?;
        content.append(block)?;
    }
    if let Some(function) = function {
        content.append(call_block(&function)?)?;
    }
    theirs.iter().try_for_each(|part| content.append(part))?;
    Ok(message.set_item("content", content)?)
}

fn call_block<'py>(called: &Bound<'py, PyAny>) -> Read<Bound<'py, PyDict>> {
    let block = PyDict::new(called.py());
    block.set_item("type", "tool_use")?;
    take(called, "name", &block, "name")?;
    let mut arguments = None;
    for key in ["arguments", "input", "args"] {
        if arguments.is_none() {
            arguments = field(called, key)?;
        }
    }
    block.set_item("input", as_input(called.py(), arguments)?)?;
    Ok(block)
}

/// Arguments as the object that Anthropic's form demands.
fn as_input<'py>(py: Python<'py>, arguments: Option<Bound<'py, PyAny>>) -> Read<Bound<'py, PyAny>> {
    let Some(arguments) = arguments else { return Ok(PyDict::new(py).into_any()) };
    if arguments.is_instance_of::<PyDict>() {
        return Ok(arguments);
    }
    if let Ok(text) = arguments.cast::<PyString>() {
        if view(text).is_blank() {
            return Ok(PyDict::new(py).into_any());
        }
        match py.import("json")?.call_method1(intern!(py, "loads"), (text,)) {
            Ok(value) if value.is_instance_of::<PyDict>() => return Ok(value),
            Ok(_) => {}
            Err(error) => {
                if !error.is_instance_of::<PyValueError>(py) && !error.is_instance_of::<PyRecursionError>(py)
                {
                    return Err(error.into());
                }
            }
        }
    }
    let input = PyDict::new(py);
    input.set_item("arguments", arguments)?;
    Ok(input.into_any())
}

/// Results as messages of their own, and what else there is behind them.
fn one_by_one(message: Bound<'_, PyDict>) -> Read<Vec<Bound<'_, PyAny>>> {
    let py = message.py();
    let mut made = Vec::new();
    let rest = PyList::empty(py);
    for part in parts_of(field(&message, "content")?.as_ref())? {
        if Part::of(&part)? != Part::Result {
            rest.append(part)?;
            continue;
        }
        let result = PyDict::new(py);
        result.set_item("role", "tool")?;
        take(&part, "tool_use_id", &result, "tool_call_id")?;
        match field(&part, "content")? {
            Some(content) => result.set_item("content", content)?,
            None => result.set_item("content", "")?,
        }
        made.push(result.into_any());
    }
    message.set_item("content", rest)?;
    if !is_empty(&message)? {
        made.push(message.into_any());
    }
    Ok(made)
}

/// A message with all of its calls in `tool_calls`.
fn with_tool_calls(message: &Bound<'_, PyDict>) -> Read<()> {
    let py = message.py();
    let tool_calls = field(message, "tool_calls")?;
    let listed = match &tool_calls {
        Some(calls) => listed_ids(calls)?,
        None => PySet::empty(py)?,
    };
    let calls = PyList::new(py, items_of(tool_calls.as_ref())?)?;
    if let Some(function) = field(message, "function_call")? {
        let call = PyDict::new(py);
        call.set_item("type", "function")?;
        call.set_item("function", function)?;
        calls.append(call)?;
    }
    remove(message, &["function_call"])?;
    let rest = PyList::empty(py);
    for part in parts_of(field(message, "content")?.as_ref())? {
        if Part::of(&part)? != Part::Call || is_listed(&part, &listed)? {
            rest.append(part)?;
            continue;
        }
        let function = PyDict::new(py);
        take(&part, "name", &function, "name")?;
        match field(&part, "input")? {
            None => function.set_item("arguments", "{}")?,
            Some(text) if text.is_instance_of::<PyString>() => function.set_item("arguments", text)?,
            Some(input) => function.set_item("arguments", json::text(&input, Keys::All)?.0)?,
        }
        let call = PyDict::new(py);
        take(&part, "id", &call, "id")?;
        call.set_item("type", "function")?;
        call.set_item("function", function)?;
        calls.append(call)?;
    }
    message.set_item("tool_calls", calls)?;
    let content = if rest.is_empty() { py.None().into_bound(py) } else { rest.into_any() };
    Ok(message.set_item("content", content)?)
}
