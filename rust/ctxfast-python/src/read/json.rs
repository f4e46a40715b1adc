//! Values that are sent as JSON: how long they are, without writing them; and the text, for those who need it.

use ctxfast::json::Length;
use ctxfast::media::in_data_url;
use ctxfast::text::Escapes;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};

use super::fields::dicts_of_object;
use super::{Items, MAX_DEPTH};
use crate::errors::{At, Error, Read, Step};
use crate::memory::{one_byte_text, view};

/// What of a value is text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// All of it: arguments, schemas.
    All,
    /// Not signatures, encrypted content and cache marks, nor the data of media: a block that we do not know.
    NotOpaque,
}

impl Keys {
    pub(super) fn skips(self, key: &Bound<'_, PyString>) -> bool {
        self == Self::NotOpaque
            && one_byte_text(key).is_some_and(|key| {
                matches!(key, b"signature" | b"thought_signature" | b"cache_control")
                    || key.starts_with(b"encrypted_")
            })
    }

    /// Whether a value is bytes or a data URL: its characters are no text.
    fn is_media(self, value: &Bound<'_, PyAny>) -> bool {
        if self == Self::All {
            return false;
        }
        match one_byte_text(value) {
            Some(text) => in_data_url(text).is_some(),
            None => value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>(),
        }
    }
}

/// What the `data` of a dict is.
enum Data {
    Text,
    Media,
    Opaque,
}

/// Length of a value as compact JSON, non-ASCII characters as they are, objects as their fields; and how many media
/// are in it, whose data are not counted.
pub(crate) fn length(value: &Bound<'_, PyAny>, keys: Keys, escapes: Escapes) -> Read<(Length, usize)> {
    let mut walk = Measure { escapes, length: Length::default(), media: Vec::new(), nodes: Nodes::default() };
    visit(value, keys, &mut Vec::new(), &mut walk)?;
    Ok((walk.length, walk.media.len()))
}

/// The text of a value as compact JSON, and the data of the media that are in it.
pub(crate) fn text<'py>(value: &Bound<'py, PyAny>, keys: Keys) -> Read<(Bound<'py, PyString>, Found<'py>)> {
    let py = value.py();
    let mut copy = Copy { keys, media: Vec::new(), nodes: Nodes::default() };
    let plain = copy.plain(value, &mut Vec::new())?;
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("separators", (",", ":"))?;
    let text = py.import("json")?.getattr("dumps")?.call((plain,), Some(&options))?;
    Ok((text.cast_into::<PyString>().map_err(PyErr::from)?, copy.media))
}

/// The data of media.
type Found<'py> = Vec<Bound<'py, PyAny>>;

/// Adds up the length.
struct Measure<'py> {
    escapes: Escapes,
    length: Length,
    media: Found<'py>,
    nodes: Nodes,
}

/// How many values were walked over. A value that shares its parts can be huge written out: lets Ctrl-C through.
#[derive(Default)]
pub(super) struct Nodes(u32);

impl Nodes {
    pub(super) fn one_more(&mut self, py: Python<'_>) -> PyResult<()> {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(1 << 16) { py.check_signals() } else { Ok(()) }
    }
}

impl Measure<'_> {
    fn int(&mut self, value: &Bound<'_, PyInt>) -> Read<()> {
        expect_printable(value)?;
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

/// Python refuses to print integers of more than 4,300 digits.
pub(super) fn expect_printable(value: &Bound<'_, PyInt>) -> Read<()> {
    if value.extract::<i64>().is_err() && value.call_method0("bit_length")?.gt(14_000)? {
        return Err(Error::wrong_value("an integer of at most 4,000 digits", "more".to_owned()));
    }
    Ok(())
}

/// The way down to a value: to find cycles, and to end.
pub(super) type Above = Vec<usize>;

pub(super) fn enter(value: &Bound<'_, PyAny>, above: &mut Above) -> Read<()> {
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

fn visit<'py>(value: &Bound<'py, PyAny>, keys: Keys, above: &mut Above, walk: &mut Measure<'py>) -> Read<()> {
    walk.nodes.one_more(value.py())?;
    if keys.is_media(value) {
        walk.media.push(value.clone());
        walk.length.add_ascii(2); // an empty string
    } else if let Ok(text) = value.cast::<PyString>() {
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
        for (key, value) in text_members(value, keys, &mut walk.media)? {
            count += 1;
            walk.length.add_string(view(&key), walk.escapes);
            visit(&value, keys, above, walk).at(|| member(&key))?;
        }
        walk.length.add_ascii(2 + count + usize::saturating_sub(count, 1)); // braces, colons, commas
        above.pop();
    }
    Ok(())
}

/// Copies a value without what is no text.
struct Copy<'py> {
    keys: Keys,
    media: Found<'py>,
    nodes: Nodes,
}

impl<'py> Copy<'py> {
    /// The value as dicts, lists, strings, numbers, booleans and nothing else.
    fn plain(&mut self, value: &Bound<'py, PyAny>, above: &mut Above) -> Read<Bound<'py, PyAny>> {
        let py = value.py();
        self.nodes.one_more(py)?;
        if self.keys.is_media(value) {
            self.media.push(value.clone());
            return Ok(PyString::new(py, "").into_any());
        }
        if let Ok(number) = value.cast::<PyInt>() {
            expect_printable(number)?;
        }
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
            items.each(|item| Ok(list.append(self.plain(&item, above)?)?))?;
            list.into_any()
        } else {
            let dict = PyDict::new(py);
            for (key, value) in text_members(value, self.keys, &mut self.media)? {
                dict.set_item(&key, self.plain(&value, above).at(|| member(&key))?)?;
            }
            dict.into_any()
        };
        above.pop();
        Ok(copy)
    }
}

/// The members that are text, and what is in them; notes the media that are left out.
fn text_members<'py>(value: &Bound<'py, PyAny>, keys: Keys, media: &mut Found<'py>) -> Read<Members<'py>> {
    let mut members = members(value)?;
    if keys == Keys::NotOpaque {
        let data = data_of(&members);
        members.retain(|(key, value)| {
            let is_data = matches!(one_byte_text(key), Some(b"data" | b"blob"))
                && (value.is_instance_of::<PyString>()
                    || value.is_instance_of::<PyBytes>()
                    || value.is_instance_of::<PyByteArray>());
            if is_data && matches!(data, Data::Media) {
                media.push(value.clone());
            }
            !keys.skips(key) && (!is_data || matches!(data, Data::Text))
        });
    }
    Ok(members)
}

/// What `data` or `blob` among these members holds: media if a media type says so, something opaque if it is encrypted.
fn data_of(members: &Members<'_>) -> Data {
    let mut data = Data::Text;
    for (key, value) in members {
        match (one_byte_text(key), one_byte_text(value)) {
            (Some(b"media_type" | b"mime_type" | b"mimeType" | b"mediaType"), _)
            | (Some(b"type"), Some(b"base64")) => return Data::Media,
            (Some(b"type"), Some(kind)) if kind == b"redacted_thinking" || kind.ends_with(b"encrypted") => {
                data = Data::Opaque;
            }
            _ => {}
        }
    }
    data
}

type Members<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>;

/// Keys and values of a dict, or of an object: of equal keys the later, and no `None`, for that is what SDKs put where
/// nothing was sent.
pub(crate) fn members<'py>(value: &Bound<'py, PyAny>) -> Read<Members<'py>> {
    // copies of our own: nobody else changes them while they are read
    let dict = if let Ok(dict) = value.cast::<PyDict>() {
        dict.copy()?
    } else {
        let merged = PyDict::new(value.py());
        for dict in dicts_of_object(value)? {
            for (key, value) in dict.copy()? {
                if !value.is_none() {
                    merged.set_item(key, value)?;
                }
            }
        }
        merged
    };
    dict.iter()
        .map(|(key, value)| match key.cast::<PyString>() {
            Ok(key) => Ok((key.clone(), value)),
            Err(_) => Err(Error::wrong_type("string keys", &key)),
        })
        .collect()
}

pub(super) fn member(key: &Bound<'_, PyString>) -> Step {
    // not `to_str`: that would leave a copy in the caller's key
    let mut name = String::new();
    view(key).each_point(|point| name.push(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)));
    Step::Name(name.into())
}
