//! Lists and tuples of messages and parts, and the errors that say which one is wrong.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::{At, Error, Read};

/// A list or a tuple.
pub(crate) enum Items<'a, 'py> {
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

impl<'a, 'py> Items<'a, 'py> {
    #[inline]
    pub(crate) fn of(value: &'a Bound<'py, PyAny>) -> Option<Self> {
        if let Ok(list) = value.cast::<PyList>() {
            Some(Self::List(list))
        } else {
            value.cast::<PyTuple>().ok().map(Self::Tuple)
        }
    }

    /// The messages of a conversation.
    pub(crate) fn of_messages(value: &'a Bound<'py, PyAny>) -> Read<Self> {
        Self::of(value).ok_or_else(|| Error::wrong_type("a list of messages", value)).at_key("messages")
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Tuple(tuple) => tuple.len(),
        }
    }

    /// An item. Another thread may have made the list shorter.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::List(list) => list.get_item(index),
            Self::Tuple(tuple) => tuple.get_item(index),
        }
    }

    /// A new list of the same items.
    pub(crate) fn to_list(&self) -> Bound<'py, PyList> {
        match self {
            Self::List(list) => list.get_slice(0, list.len()),
            Self::Tuple(tuple) => PyTupleMethods::to_list(*tuple),
        }
    }

    /// Does something with each item, in order; says in an error which one it was.
    #[inline]
    pub(crate) fn each(&self, mut each: impl FnMut(Bound<'py, PyAny>) -> Read<()>) -> Read<()> {
        let mut index = 0;
        let mut next = |item| {
            let result = each(item).at_index(index);
            index += 1;
            result
        };
        match self {
            Self::List(list) => list.iter().try_for_each(&mut next),
            Self::Tuple(tuple) => tuple.iter().try_for_each(&mut next),
        }
    }
}

/// The value, if it is a string.
#[inline]
pub(crate) fn expect_str<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Read<&'a Bound<'py, PyString>> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text),
        Err(_) => Err(Error::wrong_type("`str`", value)),
    }
}

/// The value, if it is a list or a tuple.
pub(crate) fn expect_list<'a, 'py>(value: &'a Bound<'py, PyAny>) -> Read<Items<'a, 'py>> {
    Items::of(value).ok_or_else(|| Error::wrong_type("a list", value))
}

/// The strings of a list or a tuple.
pub(crate) fn strings<'py>(value: &Bound<'py, PyAny>) -> Read<Vec<Bound<'py, PyString>>> {
    let items = Items::of(value).ok_or_else(|| Error::wrong_type("a list of strings", value))?;
    let mut strings = Vec::with_capacity(items.len());
    items.each(|item| {
        strings.push(expect_str(&item)?.clone());
        Ok(())
    })?;
    Ok(strings)
}
