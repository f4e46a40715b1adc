//! New messages, where an answer needs one. Callers' objects are never changed; untouched parts are the same objects.

use ctxfast::part::Role;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::errors::Read;
use crate::read::fields::{self, dicts_of_object};
use crate::read::{self, Items, is_tool_result, part_text};

/// A message or block as a dict of its own, with the same values.
pub(crate) fn as_dict<'py>(value: &Bound<'py, PyAny>) -> Read<Bound<'py, PyDict>> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(dict.copy()?);
    }
    let copy = PyDict::new(value.py());
    for dict in dicts_of_object(value)? {
        copy.update(dict.as_mapping())?;
    }
    Ok(copy)
}

/// A message with stubs in the place of its tool results, given by their places among them, ascending. Everything else is the same.
pub(crate) fn with_stubs<'py>(
    message: &Bound<'py, PyAny>,
    stubs: &[(usize, &str)],
) -> Read<Bound<'py, PyAny>> {
    let py = message.py();
    let key = intern!(py, "content");
    let copy = as_dict(message)?;
    let content = fields::get(message, key)?;
    if read::role(message)? != Role::User {
        if let (Some(content), Some((_, stub))) = (&content, stubs.first()) {
            copy.set_item(key, with_text(content, stub)?)?;
        }
        return Ok(copy.into_any());
    }
    let Some(items) = content.as_ref().and_then(Items::of) else {
        return Ok(message.clone()); // somebody has changed it meanwhile
    };
    let parts = PyList::empty(py);
    let (mut place, mut stubs) = (0, stubs.iter().peekable());
    items.each(|part| {
        if is_tool_result(&part)? {
            place += 1;
            if let Some((_, stub)) = stubs.next_if(|(at, _)| *at + 1 == place) {
                let block = as_dict(&part)?;
                if let Some(content) = fields::get(&part, key)? {
                    block.set_item(key, with_text(&content, stub)?)?;
                }
                return Ok(parts.append(block)?);
            }
        }
        Ok(parts.append(part)?)
    })?;
    copy.set_item(key, parts)?;
    Ok(copy.into_any())
}

/// Content of the same shape that holds nothing but a text; of a list the first part that is a text keeps its other keys.
fn with_text<'py>(content: &Bound<'py, PyAny>, text: &str) -> Read<Bound<'py, PyAny>> {
    let py = content.py();
    let text = PyString::new(py, text).into_any();
    let Some(parts) = Items::of(content) else { return Ok(text) };
    let mut first = None;
    parts.each(|part| {
        if first.is_none() && part_text(&part)?.is_some() {
            first = Some(part);
        }
        Ok(())
    })?;
    let part = match first {
        Some(part) if part.is_instance_of::<PyString>() => text,
        Some(part) => {
            let copy = as_dict(&part)?;
            copy.set_item(intern!(py, "text"), text)?;
            copy.into_any()
        }
        None => {
            let part = PyDict::new(py);
            part.set_item(intern!(py, "type"), intern!(py, "text"))?;
            part.set_item(intern!(py, "text"), text)?;
            part.into_any()
        }
    };
    Ok(PyList::new(py, [part])?.into_any())
}

/// Two messages of one speaker as one: the parts of the first, then those of the second; the keys of both.
pub(crate) fn as_one<'py>(first: &Bound<'py, PyAny>, second: &Bound<'py, PyAny>) -> Read<Bound<'py, PyAny>> {
    let py = first.py();
    let (one, parts) = (as_dict(second)?, PyList::empty(py));
    one.update(as_dict(first)?.as_mapping())?;
    for message in [first, second] {
        let Some(content) = fields::get(message, intern!(py, "content"))? else { continue };
        if let Some(items) = Items::of(&content) {
            items.each(|part| Ok(parts.append(part)?))?;
            continue;
        }
        let part = PyDict::new(py);
        part.set_item(intern!(py, "type"), intern!(py, "text"))?;
        part.set_item(intern!(py, "text"), content)?;
        parts.append(part)?;
    }
    one.set_item(intern!(py, "content"), parts)?;
    Ok(one.into_any())
}

/// What holds the tool results of a message: itself, or blocks of a user message.
pub(crate) fn results<'py>(message: &Bound<'py, PyAny>) -> Read<Vec<Bound<'py, PyAny>>> {
    if read::role(message)? != Role::User {
        return Ok(vec![message.clone()]);
    }
    let mut results = Vec::new();
    if let Some(content) = fields::get(message, intern!(message.py(), "content"))?
        && let Some(parts) = Items::of(&content)
    {
        parts.each(|part| {
            if is_tool_result(&part)? {
                results.push(part);
            }
            Ok(())
        })?;
    }
    Ok(results)
}

/// A user message without its tool results: the same keys, the same remaining parts.
pub(crate) fn without_results<'py>(message: &Bound<'py, PyAny>) -> Read<Bound<'py, PyDict>> {
    let py = message.py();
    let copy = as_dict(message)?;
    let rest = PyList::empty(py);
    if let Some(content) = fields::get(message, intern!(py, "content"))?
        && let Some(parts) = Items::of(&content)
    {
        parts.each(|part| {
            if !is_tool_result(&part)? {
                rest.append(part)?;
            }
            Ok(())
        })?;
    }
    copy.set_item("content", rest)?;
    Ok(copy)
}
