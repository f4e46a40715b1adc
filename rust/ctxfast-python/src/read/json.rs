//! Values that are sent as JSON: how long they are, without writing them; and the text, for those who need it.

use std::ops::Range;

use ctxfast::json::{Length, push_string};
use ctxfast::media::in_data_url;
use ctxfast::text::{Escapes, Text};
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
    let mut walk = Walk::new(keys, Measure { escapes, length: Length::default() });
    walk.value(value)?;
    Ok((walk.sink.length, walk.media.len()))
}

/// The text of a value as compact JSON, as Python's `json` writes it with `ensure_ascii=False`; and the data of the
/// media that are in it.
pub(crate) fn text<'py>(value: &Bound<'py, PyAny>, keys: Keys) -> Read<(Bound<'py, PyString>, Found<'py>)> {
    let mut walk = Walk::new(keys, Writer(Vec::new()));
    walk.value(value)?;
    Ok((walk.sink.text(value.py())?, walk.media))
}

/// The same of some messages of a list, as a list.
pub(crate) fn text_of_messages<'py>(
    messages: &Bound<'py, PyList>,
    range: Range<usize>,
) -> Read<Bound<'py, PyString>> {
    let mut walk = Walk::new(Keys::All, Writer(Vec::new()));
    let mut start = "[";
    for index in range {
        walk.sink.ascii(start);
        start = ",";
        walk.value(&messages.get_item(index)?).at_index(index).at_key("messages")?;
    }
    walk.sink.ascii(if start == "[" { "[]" } else { "]" });
    walk.sink.text(messages.py())
}

/// The data of media.
type Found<'py> = Vec<Bound<'py, PyAny>>;

/// Takes a value as JSON, piece by piece.
trait Sink {
    /// Punctuation and names.
    fn ascii(&mut self, text: &str);
    /// A string or a key.
    fn string(&mut self, text: Text<'_>);
    fn int(&mut self, value: &Bound<'_, PyInt>) -> Read<()>;
    fn float(&mut self, value: &Bound<'_, PyFloat>) -> Read<()>;
}

/// Adds up the length.
struct Measure {
    escapes: Escapes,
    length: Length,
}

impl Sink for Measure {
    fn ascii(&mut self, text: &str) {
        self.length.add_ascii(text.len());
    }

    fn string(&mut self, text: Text<'_>) {
        self.length.add_string(text, self.escapes);
    }

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
            self.length.add_ascii(digits(value)?.len()?);
        }
        Ok(())
    }

    fn float(&mut self, value: &Bound<'_, PyFloat>) -> Read<()> {
        self.length.add_float(value.value(), self.escapes);
        Ok(())
    }
}

/// Writes it, in UTF-8 that may have lone surrogates.
struct Writer(Vec<u8>);

impl Writer {
    fn text<'py>(&self, py: Python<'py>) -> Read<Bound<'py, PyString>> {
        written(py, &self.0)
    }
}

/// UTF-8 that may have lone surrogates, as a string.
pub(crate) fn written<'py>(py: Python<'py>, utf8: &[u8]) -> Read<Bound<'py, PyString>> {
    if let Ok(text) = str::from_utf8(utf8) {
        return Ok(PyString::new(py, text));
    }
    let bytes = PyBytes::new(py, utf8);
    Ok(PyString::from_encoded_object(&bytes, Some(c"utf-8"), Some(c"surrogatepass"))?)
}

impl Sink for Writer {
    fn ascii(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    fn string(&mut self, text: Text<'_>) {
        push_string(&mut self.0, text);
    }

    fn int(&mut self, value: &Bound<'_, PyInt>) -> Read<()> {
        match value.extract::<i64>() {
            Ok(small) => self.ascii(&small.to_string()),
            Err(_) => self.ascii(&digits(value)?.to_string_lossy()),
        }
        Ok(())
    }

    fn float(&mut self, value: &Bound<'_, PyFloat>) -> Read<()> {
        match value.value() {
            number if number.is_nan() => self.ascii("NaN"),
            f64::INFINITY => self.ascii("Infinity"),
            f64::NEG_INFINITY => self.ascii("-Infinity"),
            _ => {
                let digits = value.py().get_type::<PyFloat>().call_method1("__repr__", (value,))?;
                self.ascii(&digits.cast::<PyString>().map_err(PyErr::from)?.to_string_lossy());
            }
        }
        Ok(())
    }
}

/// All digits of an integer, whatever a subclass says.
pub(super) fn digits<'py>(value: &Bound<'py, PyInt>) -> Read<Bound<'py, PyString>> {
    let digits = value.py().get_type::<PyInt>().call_method1("__repr__", (value,))?;
    Ok(digits.cast_into().map_err(PyErr::from)?)
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

/// Walks over a value, and notes the media that are left out.
struct Walk<'py, S> {
    keys: Keys,
    sink: S,
    media: Found<'py>,
    above: Above,
    nodes: Nodes,
}

impl<'py, S: Sink> Walk<'py, S> {
    fn new(keys: Keys, sink: S) -> Self {
        Self { keys, sink, media: Vec::new(), above: Above::new(), nodes: Nodes::default() }
    }

    fn value(&mut self, value: &Bound<'py, PyAny>) -> Read<()> {
        self.nodes.one_more(value.py())?;
        if self.keys.is_media(value) {
            self.media.push(value.clone());
            self.sink.ascii("\"\"");
        } else if let Ok(text) = value.cast::<PyString>() {
            self.sink.string(view(text));
        } else if value.is_none() {
            self.sink.ascii("null");
        } else if let Ok(value) = value.cast::<PyBool>() {
            self.sink.ascii(if value.is_true() { "true" } else { "false" });
        } else if let Ok(value) = value.cast::<PyInt>() {
            expect_printable(value)?;
            self.sink.int(value)?;
        } else if let Ok(value) = value.cast::<PyFloat>() {
            self.sink.float(value)?;
        } else if let Some(items) = Items::of(value) {
            enter(value, &mut self.above)?;
            let mut start = "[";
            items.each(|item| {
                self.sink.ascii(start);
                start = ",";
                self.value(&item)
            })?;
            self.sink.ascii(if start == "[" { "[]" } else { "]" });
            self.above.pop();
        } else {
            enter(value, &mut self.above)?;
            let mut start = "{";
            for (key, value) in text_members(value, self.keys, &mut self.media)? {
                self.sink.ascii(start);
                start = ",";
                self.sink.string(view(&key));
                self.sink.ascii(":");
                self.value(&value).at(|| member(&key))?;
            }
            self.sink.ascii(if start == "{" { "{}" } else { "}" });
            self.above.pop();
        }
        Ok(())
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

pub(super) type Members<'py> = Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>;

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
