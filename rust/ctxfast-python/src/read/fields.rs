//! The fields of a message or block: of a dict in one pass, of an object as its `__dict__` holds them.
//!
//! One pass with a match on the key's characters beats a look-up for each wanted key from three keys on. Objects are not
//! asked with `getattr`: a pydantic model without the field would run Python code and raise, which costs 19 times as
//! much as reading its `__dict__`.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::errors::{Error, Read};
use crate::memory::{Slots, fill};

/// Fills in the wanted fields of a dict or an object. `None` is as good as absent.
#[inline]
pub(crate) fn read<'py>(value: &Bound<'py, PyAny>, fields: &mut impl Slots<'py>) -> Read<()> {
    match value.cast::<PyDict>() {
        Ok(dict) => fill(fields, dict),
        Err(_) => fill_from_object(fields, value),
    }
}

/// What a pydantic model was given beyond its fields comes last in [`dicts_of_object`] and counts first.
#[cold]
fn fill_from_object<'py>(fields: &mut impl Slots<'py>, object: &Bound<'py, PyAny>) -> Read<()> {
    dicts_of_object(object)?.iter().rev().try_for_each(|dict| fill(fields, dict))
}

/// What an object holds: its `__dict__`, and what a pydantic model was given beyond its fields. Something without
/// fields (a function, an exception) is no message.
pub(crate) fn dicts_of_object<'py>(object: &Bound<'py, PyAny>) -> Read<Vec<Bound<'py, PyDict>>> {
    let py = object.py();
    let mut dicts = Vec::new();
    dicts.extend(
        object.getattr_opt(intern!(py, "__dict__"))?.and_then(|dict| dict.cast_into::<PyDict>().ok()),
    );
    // asked of the type first: an object may have a `__getattr__` of its own
    let extra = intern!(py, "__pydantic_extra__");
    if object.get_type().getattr_opt(extra)?.is_some() {
        dicts.extend(object.getattr_opt(extra)?.and_then(|dict| dict.cast_into::<PyDict>().ok()));
    }
    if dicts.iter().all(PyDictMethods::is_empty) {
        return Err(Error::wrong_type("a dict or an object with attributes", object));
    }
    Ok(dicts)
}

/// One field. `None` is as good as absent.
pub(crate) fn get<'py>(
    value: &Bound<'py, PyAny>,
    key: &Bound<'py, PyString>,
) -> Read<Option<Bound<'py, PyAny>>> {
    let mut found = None;
    if let Ok(dict) = value.cast::<PyDict>() {
        found = dict.get_item(key)?;
    } else {
        for dict in dicts_of_object(value)? {
            found = dict.get_item(key)?.or(found);
        }
    }
    Ok(found.filter(|value| !value.is_none()))
}
