//! By what a message is recognised: a number that stands for all that a counter can see of it.
//!
//! Python keeps the hash of a string in the string, so an unchanged message costs as little as a walk over its fields,
//! however long its texts are; only a string that nobody has hashed before is read. Hashes are of 64 bits and seeded
//! anew in each process (unless `PYTHONHASHSEED` says otherwise): that two messages by chance have the same mark is as
//! good as impossible, and nobody can prepare it.
//!
//! More may be in a mark than is counted (ids, all of the data of media). Then a message is counted again without need.

use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};

use ctxfast::ledger::Mark;
use ctxfast::media::Hint;
use ctxfast::part::Kind;
use ctxfast::text::Text;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyString};

use super::json::{Above, Keys, Nodes, digits, enter, expect_printable, member, members};
use super::media::data_of;
use super::{Items, Visit};
use crate::errors::{At, Read};
use crate::memory::view;

/// The mark of a message, among those with the same seed.
pub(crate) fn mark(message: &Bound<'_, PyAny>, seed: &RandomState) -> Read<Mark> {
    let mut marker = Marker { hasher: seed.build_hasher(), nodes: Nodes::default() };
    super::message(message, &mut marker)?;
    Ok(Mark::new(marker.hasher.finish()).unwrap_or(Mark::MAX))
}

/// What comes next: no two different messages say the same.
#[derive(Clone, Copy)]
enum Tag {
    Piece,
    Json,
    Media,
    Output,
    OutputEnd,
    Content,
    Alternative,
    AlternativeEnd,
    Text,
    None,
    Bool,
    Int,
    LongInt,
    Float,
    Bytes,
    List,
    Dict,
    End,
}

/// Hashes what a message holds.
struct Marker {
    hasher: DefaultHasher,
    nodes: Nodes,
}

impl Marker {
    fn tag(&mut self, tag: Tag, number: usize) {
        self.hasher.write_u64(((number as u64) << 8) | tag as u64);
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> Read<()> {
        let characters = view(text);
        // Python's hash is of the bytes: texts of another width can have the same
        let width = match characters {
            Text::Ucs1(_) | Text::Utf8(_) => 1,
            Text::Ucs2(_) => 2,
            Text::Ucs4(_) => 4,
        };
        self.tag(Tag::Text, (characters.chars() << 3) | width);
        if HASHES_ARE_LONG && text.is_exact_instance_of::<PyString>() {
            self.hasher.write_isize(text.hash()?);
        } else {
            // a subclass may say what it likes
            characters.each_point(|point| self.hasher.write_u32(point));
        }
        Ok(())
    }

    /// A value that is sent as JSON, as [`super::json`] walks it.
    fn value(&mut self, value: &Bound<'_, PyAny>, keys: Keys, above: &mut Above) -> Read<()> {
        self.nodes.one_more(value.py())?;
        if let Ok(text) = value.cast::<PyString>() {
            self.string(text)?;
        } else if value.is_none() {
            self.tag(Tag::None, 0);
        } else if let Ok(value) = value.cast::<PyBool>() {
            self.tag(Tag::Bool, usize::from(value.is_true()));
        } else if let Ok(value) = value.cast::<PyInt>() {
            self.int(value)?;
        } else if let Ok(value) = value.cast::<PyFloat>() {
            self.tag(Tag::Float, 0);
            self.hasher.write_u64(value.value().to_bits());
        } else if let Ok(bytes) = value.cast::<PyBytes>() {
            self.tag(Tag::Bytes, bytes.as_bytes().len());
            if HASHES_ARE_LONG && bytes.is_exact_instance_of::<PyBytes>() {
                self.hasher.write_isize(bytes.hash()?);
            } else {
                self.hasher.write(bytes.as_bytes());
            }
        } else if let Ok(bytes) = value.cast::<PyByteArray>() {
            let bytes = bytes.to_vec();
            self.tag(Tag::Bytes, bytes.len());
            self.hasher.write(&bytes);
        } else if let Some(items) = Items::of(value) {
            enter(value, above)?;
            self.tag(Tag::List, 0);
            items.each(|item| self.value(&item, keys, above))?;
            self.tag(Tag::End, 0);
            above.pop();
        } else {
            enter(value, above)?;
            self.tag(Tag::Dict, 0);
            for (key, value) in members(value)? {
                if !keys.skips(&key) {
                    self.string(&key)?;
                    self.value(&value, keys, above).at(|| member(&key))?;
                }
            }
            self.tag(Tag::End, 0);
            above.pop();
        }
        Ok(())
    }

    fn int(&mut self, value: &Bound<'_, PyInt>) -> Read<()> {
        if let Ok(small) = value.extract::<i64>() {
            self.tag(Tag::Int, 0);
            self.hasher.write_i64(small);
        } else {
            // Python's hash of a number is the number by a modulus
            expect_printable(value)?;
            let digits = digits(value)?;
            self.tag(Tag::LongInt, 0);
            self.string(&digits)?;
        }
        Ok(())
    }
}

/// Where Python's hashes have 32 bits, texts are read instead.
const HASHES_ARE_LONG: bool = size_of::<isize>() >= 8;

impl<'py> Visit<'py> for Marker {
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()> {
        self.tag(Tag::Piece, kind as usize);
        self.string(text)
    }

    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()> {
        self.tag(Tag::Json, ((kind as usize) << 8) | keys as usize);
        self.value(value, keys, &mut Above::new())
    }

    fn media(&mut self, hint: Hint, part: &Bound<'py, PyAny>) {
        let (data, detail) = data_of(part);
        self.tag(Tag::Media, ((hint as usize) << 8) | detail as usize);
        if let Some(data) = data {
            // strings and bytes can always be hashed
            let _ = self.value(&data, Keys::All, &mut Above::new());
        }
    }

    fn output_begins(&mut self) {
        self.tag(Tag::Output, 0); // results have a frame of their own
    }

    fn output_ends(&mut self) {
        self.tag(Tag::OutputEnd, 0);
    }

    fn content_begins(&mut self) {
        self.tag(Tag::Content, 0);
    }

    fn alternative_begins(&mut self, parts: usize) {
        self.tag(Tag::Alternative, parts);
    }

    fn alternative_ends(&mut self) {
        self.tag(Tag::AlternativeEnd, 0);
    }
}
