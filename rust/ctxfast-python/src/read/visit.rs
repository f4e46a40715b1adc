//! Somebody who is told what a message holds: what is done with it is theirs.

use ctxfast::media::Hint;
use ctxfast::part::Kind;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::items::expect_str;
use super::json::Keys;
use crate::errors::{At, Read};

/// Somebody who is told what a message holds.
pub(crate) trait Visit<'py> {
    /// A text.
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()>;
    /// A value that is sent as JSON: arguments, or a block that we do not know (unknown is not zero).
    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()>;
    /// An image, a sound, a file: the part, or its data.
    fn media(&mut self, _hint: Hint, _part: &Bound<'py, PyAny>) {}
    /// The definition of a tool.
    fn tool(&mut self, tool: &Tool<'_, 'py>) -> Read<()>
    where
        Self: Sized,
    {
        self.text(Kind::Name, tool.name)?;
        if let Some(description) = tool.description {
            self.text(Kind::Name, description)?;
        }
        arguments_field(tool.schema, tool.key, self)
    }
    /// A call that waits for a result.
    fn call(&mut self, _id: Option<&Bound<'py, PyString>>, _called: Called<'_, 'py>) {}
    /// The calls are in `tool_calls` or `function_call`: the message is of OpenAI's form.
    fn tool_calls(&mut self) {}
    /// What comes next is what a tool has said.
    fn output_begins(&mut self) {}
    /// That was it.
    fn output_ends(&mut self) {}
    /// A result.
    fn result(&mut self, _id: Option<&Bound<'py, PyString>>) {}
    /// What comes next is the content, of which there is another form.
    fn content_begins(&mut self) {}
    /// What comes next are the parts of the other form: the larger of the two counts.
    fn alternative_begins(&mut self, _parts: usize) {}
    /// The other form is complete.
    fn alternative_ends(&mut self) {}
}

/// What a call calls: the tool's name, and its arguments as they stand there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Called<'a, 'py> {
    pub(crate) name: Option<&'a Bound<'py, PyAny>>,
    pub(crate) arguments: Option<&'a Bound<'py, PyAny>>,
}

/// A tool, and the field that its schema is in: a string or a JSON value.
pub(crate) struct Tool<'a, 'py> {
    pub(crate) name: &'a Bound<'py, PyString>,
    pub(crate) description: Option<&'a Bound<'py, PyString>>,
    pub(crate) schema: Option<&'a Bound<'py, PyAny>>,
    pub(crate) key: &'static str,
}

/// Nobody: for those who only want one of two visitors.
pub(crate) struct Nobody;

impl<'py> Visit<'py> for Nobody {
    fn text(&mut self, _: Kind, _: &Bound<'py, PyString>) -> Read<()> {
        Ok(())
    }

    fn json(&mut self, _: Kind, _: &Bound<'py, PyAny>, _: Keys) -> Read<()> {
        Ok(())
    }
}

/// Somebody who adds up what is told, and somebody who notes calls and results.
pub(crate) struct Both<'a, V, W>(pub(crate) &'a mut V, pub(crate) &'a mut W);

impl<'py, V: Visit<'py>, W: Visit<'py>> Visit<'py> for Both<'_, V, W> {
    #[inline]
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()> {
        self.0.text(kind, text)
    }

    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()> {
        self.0.json(kind, value, keys)
    }

    #[inline]
    fn media(&mut self, hint: Hint, part: &Bound<'py, PyAny>) {
        self.0.media(hint, part);
    }

    #[inline]
    fn call(&mut self, id: Option<&Bound<'py, PyString>>, called: Called<'_, 'py>) {
        self.1.call(id, called);
    }

    #[inline]
    fn output_begins(&mut self) {
        self.0.output_begins();
    }

    #[inline]
    fn output_ends(&mut self) {
        self.0.output_ends();
    }

    #[inline]
    fn result(&mut self, id: Option<&Bound<'py, PyString>>) {
        self.1.result(id);
    }

    #[inline]
    fn content_begins(&mut self) {
        self.0.content_begins();
    }

    fn alternative_begins(&mut self, parts: usize) {
        self.0.alternative_begins(parts);
    }

    fn alternative_ends(&mut self) {
        self.0.alternative_ends();
    }
}

/// Visits a field that holds a string, if it is there.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a few instructions, several times for each message")]
pub(super) fn text_field<'py, V: Visit<'py>>(
    field: Option<&Bound<'py, PyAny>>,
    key: &'static str,
    kind: Kind,
    visit: &mut V,
) -> Read<()> {
    match field {
        Some(value) => visit.text(kind, expect_str(value).at_key(key)?),
        None => Ok(()),
    }
}

/// Visits a field that holds arguments, if it is there: a string or a JSON value.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a few instructions for each call")]
pub(super) fn arguments_field<'py, V: Visit<'py>>(
    field: Option<&Bound<'py, PyAny>>,
    key: &'static str,
    visit: &mut V,
) -> Read<()> {
    match field {
        Some(value) => match value.cast::<PyString>() {
            Ok(text) => visit.text(Kind::Arguments, text),
            Err(_) => visit.json(Kind::Arguments, value, Keys::All).at_key(key),
        },
        None => Ok(()),
    }
}
