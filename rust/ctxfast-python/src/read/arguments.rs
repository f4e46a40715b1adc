//! What the arguments of a call say that it is about: JSON, or a dict.

use ctxfast::tools::{Arguments, KEYS, Members, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use super::{Items, json};
use crate::errors::Read;
use crate::memory::view;

/// What is wanted of arguments. What is neither JSON nor a dict has no members.
pub(crate) fn arguments(arguments: &Bound<'_, PyAny>, wanted: Members) -> Read<Arguments> {
    if let Ok(json) = arguments.cast::<PyString>() {
        return Ok(Arguments::from_json(view(json), wanted));
    }
    let mut read = Arguments::default();
    if !arguments.is_instance_of::<PyDict>() {
        return Ok(read);
    }
    for (key, value) in json::members(arguments)? {
        let key = view(&key).as_well_formed();
        match KEYS.iter().position(|&known| known == key) {
            Some(place) => read.set(place, argument(&value, 0)),
            None if wanted == Members::All => read.set_other(key.into_owned(), argument(&value, 0)),
            None => {}
        }
    }
    Ok(read)
}

fn argument(value: &Bound<'_, PyAny>, depth: usize) -> Value {
    if let Ok(text) = value.cast::<PyString>() {
        return Value::Text(view(text).to_well_formed());
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        return value.extract().map_or(Value::Other, Value::Number);
    }
    match Items::of(value) {
        Some(items) if depth == 0 => {
            let mut values = Vec::new();
            let each = items.each(|item| {
                values.push(argument(&item, 1));
                Ok(())
            });
            each.map_or(Value::Other, |()| Value::List(values))
        }
        _ => Value::Other,
    }
}
