//! New messages, where an answer needs one. Callers' objects are never changed; untouched parts are the same objects.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::Read;
use crate::read::fields::{self, dicts_of_object};
use crate::read::{Items, is_tool_result};

/// A user message without its tool results: the same keys, the same remaining parts.
pub(crate) fn without_results<'py>(message: &Bound<'py, PyAny>) -> Read<Bound<'py, PyDict>> {
    let py = message.py();
    let copy = if let Ok(dict) = message.cast::<PyDict>() {
        dict.copy()?
    } else {
        let copy = PyDict::new(py);
        for dict in dicts_of_object(message)? {
            copy.update(dict.as_mapping())?;
        }
        copy
    };
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
