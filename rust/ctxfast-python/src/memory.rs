//! Python's memory, read in place: strings and dicts. The only `unsafe` of this crate.
//!
//! PyO3's own view of a string (unsafe as well) is not inlined, and its dict iterator takes and gives back a reference
//! for each key and value, wanted or not, and can panic; together they took more than half of the instructions of a
//! count.

use ctxfast::text::Text;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyDict, PyString};

use crate::errors::{Error, Read};

/// The string's characters in their own storage: no copy, no UTF-8 cache left behind, lone surrogates are fine.
#[inline]
#[expect(unsafe_code, reason = "a view into a string's storage")]
pub(crate) fn view<'a>(string: &'a Bound<'_, PyString>) -> Text<'a> {
    // SAFETY: `string` is a `str` or of a subclass, it keeps its storage alive for `'a`, and the contents of a `str`
    // never change.
    unsafe { view_of(string.as_ptr()) }
}

/// The characters of an ASCII string, or of any string that has one byte a character; `None` for everything else.
#[inline]
#[expect(unsafe_code, reason = "a view into a string's storage")]
pub(crate) fn one_byte_text<'a>(object: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    // SAFETY: `object` keeps its storage alive for `'a`, and the contents of a `str` never change.
    unsafe { one_byte_text_of(object.as_ptr()) }
}

/// Number of code points: what a string knows of itself.
#[inline]
#[expect(unsafe_code, reason = "the length in a string's header")]
pub(crate) fn chars(string: &Bound<'_, PyString>) -> usize {
    // SAFETY: `string` is a `str` or of a subclass.
    unsafe { length_of(string.as_ptr()) }
}

/// # Safety
/// `string` must be a `str`, alive and unchanged for `'a`.
#[inline]
#[expect(unsafe_code, reason = "a view into a string's storage")]
unsafe fn view_of<'a>(string: *mut ffi::PyObject) -> Text<'a> {
    // SAFETY: by this function's own promise. The storage has `length` units of the width that `KIND` names, and is
    // aligned for them. On CPython before 3.14 the width is read from a bit field whose place differs between
    // platforms: `tests/test_storage.py` reads strings of every width wherever wheels are tested.
    unsafe {
        let length = length_of(string);
        if length == 0 {
            return Text::Ucs1(&[]);
        }
        let data = ffi::PyUnicode_DATA(string);
        match ffi::PyUnicode_KIND(string) {
            ffi::PyUnicode_1BYTE_KIND => Text::Ucs1(std::slice::from_raw_parts(data.cast(), length)),
            ffi::PyUnicode_2BYTE_KIND => Text::Ucs2(std::slice::from_raw_parts(data.cast(), length)),
            _ => Text::Ucs4(std::slice::from_raw_parts(data.cast(), length)),
        }
    }
}

/// # Safety
/// `string` must be a `str`.
#[inline]
#[expect(unsafe_code, reason = "the length in a string's header")]
unsafe fn length_of(string: *mut ffi::PyObject) -> usize {
    // SAFETY: by this function's own promise. A string that an old C API left without its final storage (before Python
    // 3.12) gets it here; where even that fails, its length says 0.
    unsafe {
        #[allow(deprecated, reason = "needed before Python 3.12, nothing from then on")]
        if ffi::PyUnicode_READY(string) != 0 {
            ffi::PyErr_Clear(); // no memory for it
            return 0;
        }
        usize::try_from(ffi::PyUnicode_GET_LENGTH(string)).unwrap_or(0)
    }
}

/// # Safety
/// `object` must be alive and unchanged for `'a`.
#[inline]
#[expect(unsafe_code, reason = "a view into a string's storage")]
unsafe fn one_byte_text_of<'a>(object: *mut ffi::PyObject) -> Option<&'a [u8]> {
    // SAFETY: by this function's own promise. Compact ASCII strings have their characters behind their header.
    unsafe {
        if ffi::PyUnicode_CheckExact(object) == 0 && ffi::PyUnicode_Check(object) == 0 {
            return None;
        }
        #[cfg(not(Py_3_14))]
        if ffi::PyUnicode_IS_COMPACT_ASCII(object) != 0 {
            let length = usize::try_from(ffi::PyUnicode_GET_LENGTH(object)).unwrap_or(0);
            return Some(std::slice::from_raw_parts(
                object.cast::<ffi::PyASCIIObject>().add(1).cast(),
                length,
            ));
        }
        if let Text::Ucs1(units) = view_of(object) { Some(units) } else { None }
    }
}

/// A struct of wanted fields, made by [`wanted!`].
pub(crate) trait Slots<'py>: Default {
    /// Whether a key is wanted.
    fn wants(key: &[u8]) -> bool;

    /// Takes the value of a key, if it is wanted and its slot is empty. Does nothing but compare characters.
    fn take(&mut self, key: &[u8], value: impl FnOnce() -> Option<Bound<'py, PyAny>>);
}

/// Puts the values of wanted keys into their slots, but for `None`, and for slots that have a value already.
#[inline]
#[expect(unsafe_code, reason = "iteration over borrowed keys and values")]
pub(crate) fn fill<'py>(slots: &mut impl Slots<'py>, dict: &Bound<'py, PyDict>) -> Read<()> {
    let py = dict.py();
    let stranger = with_critical_section(dict, || {
        let mut position = 0;
        let mut key = std::ptr::null_mut();
        let mut value = std::ptr::null_mut();
        // SAFETY: `dict` is a dict; key and value are borrowed from it and alive until it changes. It does not change in
        // this loop: other threads are locked out, and no Python code runs here, for nothing is done but comparing
        // characters and taking references into empty slots. One that finds its slot full is given back while the dict
        // still holds the value, so nothing is destroyed.
        unsafe {
            while ffi::PyDict_Next(dict.as_ptr(), &raw mut position, &raw mut key, &raw mut value) != 0 {
                let Some(key) = one_byte_text_of(key) else {
                    if ffi::PyUnicode_Check(key) == 0 {
                        return Bound::from_borrowed_ptr_or_opt(py, key);
                    }
                    continue;
                };
                slots.take(key, || {
                    if value == ffi::Py_None() { None } else { Bound::from_borrowed_ptr_or_opt(py, value) }
                });
            }
        }
        None
    });
    match stranger {
        None => Ok(()),
        Some(key) => Err(Error::wrong_type("string keys", &key)),
    }
}

/// Defines a struct of wanted fields, each with the key that it has in Python. Those after `rare` lie in a box of their
/// own: most messages have none of them.
macro_rules! wanted {
    ($(#[$doc:meta])* pub(crate) struct $name:ident {
        $($field:ident = $key:literal,)*
        $([rare: $rare:ident])?
    }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name<'py> {
            $(pub(crate) $field: Option<pyo3::Bound<'py, pyo3::PyAny>>,)*
            $(pub(crate) rare: Option<Box<$rare<'py>>>,)?
        }

        impl<'py> $crate::memory::Slots<'py> for $name<'py> {
            #[inline]
            fn wants(key: &[u8]) -> bool {
                false $(|| key == $key)*
            }

            #[inline]
            fn take(&mut self, key: &[u8], value: impl FnOnce() -> Option<pyo3::Bound<'py, pyo3::PyAny>>) {
                // comparisons of whole words; a `match` compares byte by byte
                $(if key == $key {
                    if self.$field.is_none() {
                        self.$field = value();
                    }
                    return;
                })*
                $(if $rare::wants(key) && let Some(value) = value() {
                    // made for a value only: SDK objects have all these keys, most of them with `None`
                    self.rare.get_or_insert_default().take(key, || Some(value));
                })?
            }
        }
    };
}
pub(crate) use wanted;
