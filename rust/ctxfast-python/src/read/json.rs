//! Values that are sent as JSON: how long they are, without writing them; and the text, for those who need it.

use ctxfast::json::Length;
use ctxfast::text::Escapes;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use super::fields::dicts_of_object;
use super::{Items, MAX_DEPTH};
use crate::errors::{At, Error, Read, Step};
use crate::memory::view;

/// Which keys of a value count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    All,
    /// Not those that hold no text: signatures, encrypted content, cache marks.
    NotOpaque,
}

impl Keys {
    fn skips(self, key: &Bound<'_, PyString>) -> bool {
        const OPAQUE: [&[u8]; 5] =
            [b"signature", b"thought_signature", b"encrypted_content", b"encrypted_index", b"cache_control"];
        self == Self::NotOpaque
            && matches!(view(key), ctxfast::text::Text::Ucs1(key) if OPAQUE.contains(&key))
    }
}

/// Length of a value as compact JSON, non-ASCII characters as they are, objects as their fields.
pub(crate) fn length(value: &Bound<'_, PyAny>, keys: Keys, escapes: Escapes) -> Read<Length> {
    let mut walk = Measure { escapes, length: Length::default() };
    visit(value, keys, &mut Vec::new(), &mut walk)?;
    Ok(walk.length)
}

/// The text of a value as compact JSON.
pub(crate) fn text<'py>(value: &Bound<'py, PyAny>, keys: Keys) -> Read<Bound<'py, PyString>> {
    let py = value.py();
    let plain = plain(value, keys, &mut Vec::new())?;
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("separators", (",", ":"))?;
    let text = py.import("json")?.getattr("dumps")?.call((plain,), Some(&options))?;
    Ok(text.cast_into::<PyString>().map_err(PyErr::from)?)
}

/// Adds up the length.
struct Measure {
    escapes: Escapes,
    length: Length,
}

impl Measure {
    fn int(&mut self, value: &Bound<'_, PyInt>) -> Read<()> {
        if self.escapes == Escapes::Go {
            // Go reads every number as float64
            let float = value.extract::<f64>().unwrap_or_else(|_| {
                if value.gt(0).unwrap_or(true) { f64::INFINITY } else { f64::NEG_INFINITY }
            });
            self.length.add_float(float, self.escapes);
        } else if let Ok(small) = value.extract::<i64>() {
            let digits = small.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
            self.length.add_ascii(digits + usize::from(small < 0));
        } else {
            let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (value,))?;
            self.length.add_ascii(digits.len()?);
        }
        Ok(())
    }
}

/// The way down to a value: to find cycles, and to end.
type Above = Vec<usize>;

fn enter(value: &Bound<'_, PyAny>, above: &mut Above) -> Read<()> {
    let place = value.as_ptr() as usize;
    if above.len() >= MAX_DEPTH || above.contains(&place) {
        return Err(Error::wrong_value(
            format!("JSON of at most {MAX_DEPTH} levels"),
            "a cycle or more".to_owned(),
        ));
    }
    above.push(place);
    Ok(())
}

fn visit(value: &Bound<'_, PyAny>, keys: Keys, above: &mut Above, walk: &mut Measure) -> Read<()> {
    if let Ok(text) = value.cast::<PyString>() {
        walk.length.add_string(view(text), walk.escapes);
    } else if value.is_none() {
        walk.length.add_ascii(4);
    } else if let Ok(value) = value.cast::<PyBool>() {
        walk.length.add_ascii(if value.is_true() { 4 } else { 5 });
    } else if let Ok(value) = value.cast::<PyInt>() {
        walk.int(value)?;
    } else if let Ok(value) = value.cast::<PyFloat>() {
        walk.length.add_float(value.value(), walk.escapes);
    } else if let Some(items) = Items::of(value) {
        enter(value, above)?;
        let mut count = 0;
        items.each(|item| {
            count += 1;
            visit(&item, keys, above, walk)
        })?;
        walk.length.add_ascii(2 + usize::saturating_sub(count, 1)); // brackets, commas
        above.pop();
    } else {
        enter(value, above)?;
        let mut count = 0;
        for (key, value) in members(value)? {
            if !keys.skips(&key) {
                count += 1;
                walk.length.add_string(view(&key), walk.escapes);
                visit(&value, keys, above, walk).at(|| member(&key))?;
            }
        }
        walk.length.add_ascii(2 + count + usize::saturating_sub(count, 1)); // braces, colons, commas
        above.pop();
    }
    Ok(())
}

/// The value as dicts, lists, strings, numbers, booleans and nothing else.
fn plain<'py>(value: &Bound<'py, PyAny>, keys: Keys, above: &mut Above) -> Read<Bound<'py, PyAny>> {
    let py = value.py();
    if value.is_none()
        || value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
    {
        return Ok(value.clone());
    }
    enter(value, above)?;
    let copy = if let Some(items) = Items::of(value) {
        let list = PyList::empty(py);
        items.each(|item| Ok(list.append(plain(&item, keys, above)?)?))?;
        list.into_any()
    } else {
        let dict = PyDict::new(py);
        for (key, value) in members(value)? {
            if !keys.skips(&key) {
                dict.set_item(&key, plain(&value, keys, above).at(|| member(&key))?)?;
            }
        }
        dict.into_any()
    };
    above.pop();
    Ok(copy)
}

/// Keys and values of a dict, or of an object: of equal keys the later, and no `None`, for that is what SDKs put where
/// nothing was sent.
fn members<'py>(value: &Bound<'py, PyAny>) -> Read<Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>> {
    // a copy of our own: nobody else changes it while it is read
    let (dict, is_object) = if let Ok(dict) = value.cast::<PyDict>() {
        (dict.copy()?, false)
    } else {
        let merged = PyDict::new(value.py());
        for dict in dicts_of_object(value)? {
            merged.update(dict.as_mapping())?;
        }
        (merged, true)
    };
    dict.iter()
        .filter(|(_, value)| !(is_object && value.is_none()))
        .map(|(key, value)| match key.cast::<PyString>() {
            Ok(key) => Ok((key.clone(), value)),
            Err(_) => Err(Error::wrong_type("string keys", &key)),
        })
        .collect()
}

fn member(key: &Bound<'_, PyString>) -> Step {
    // not `to_str`: that would leave a copy in the caller's key
    let mut name = String::new();
    view(key).each_point(|point| name.push(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)));
    Step::Name(name.into())
}
