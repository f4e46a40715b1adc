//! Python messages, per message and per block: which form is this, and what is in it?
//!
//! A [`Visit`]or is told what a message holds, in one pass. What it does with it decides what is compiled: counters
//! weigh texts, tables note ids. Lists may mix forms; a form is one file: [`openai_chat`], [`anthropic`].

mod anthropic;
pub(crate) mod fields;
pub(crate) mod json;
mod openai_chat;
pub(crate) mod tools;

use ctxfast::part::{Kind, Role};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::errors::{At, Error, Read, type_name};
use crate::memory::one_byte_text;
use crate::memory::wanted;
use json::Keys;

/// Deepest nesting of blocks and of JSON values. Real messages have less than ten levels.
pub(crate) const MAX_DEPTH: usize = 64;

/// Somebody who is told what a message holds.
pub(crate) trait Visit<'py> {
    /// A text.
    fn text(&mut self, kind: Kind, text: &Bound<'py, PyString>) -> Read<()>;
    /// A value that is sent as JSON: arguments, or a block that we do not know (unknown is not zero).
    fn json(&mut self, kind: Kind, value: &Bound<'py, PyAny>, keys: Keys) -> Read<()>;
    /// An image, a sound, a file.
    fn media(&mut self) {}
    /// A call that waits for a result.
    fn call(&mut self, _id: Option<&Bound<'py, PyString>>) {}
    /// A result.
    fn result(&mut self, _id: Option<&Bound<'py, PyString>>) {}
    /// What comes next is the content, of which there is another form.
    fn content_begins(&mut self) {}
    /// What comes next are the parts of the other form: the larger of the two counts.
    fn alternative_begins(&mut self, _parts: usize) {}
    /// The other form is complete.
    fn alternative_ends(&mut self) {}
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
    fn media(&mut self) {
        self.0.media();
    }

    #[inline]
    fn call(&mut self, id: Option<&Bound<'py, PyString>>) {
        self.1.call(id);
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

/// What a message is.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) role: Role,
    /// A user message that is more than tool results.
    pub(crate) own_text: bool,
    pub(crate) has_results: bool,
}

wanted! {
    /// Fields of a message, of all dict forms.
    pub(crate) struct MessageFields {
        role = b"role",
        content = b"content",
        tool_calls = b"tool_calls",
        tool_call_id = b"tool_call_id",
        reasoning_content = b"reasoning_content",
        [rare: RareFields]
    }
}

wanted! {
    /// Fields that few messages have.
    pub(crate) struct RareFields {
        reasoning = b"reasoning",
        refusal = b"refusal",
        function_call = b"function_call",
        audio = b"audio",
        media = b"media",
        system_parts = b"system_parts",
    }
}

wanted! {
    /// Fields of a content block, of all dict forms.
    pub(crate) struct BlockFields {
        kind = b"type",
        text = b"text",
        id = b"id",
        name = b"name",
        input = b"input",
        tool_use_id = b"tool_use_id",
        content = b"content",
        thinking = b"thinking",
        refusal = b"refusal",
        source = b"source",
        title = b"title",
        context = b"context",
    }
}

/// Reads one message.
#[inline]
pub(crate) fn message<'py, V: Visit<'py>>(message: &Bound<'py, PyAny>, visit: &mut V) -> Read<Shape> {
    let mut fields = MessageFields::default();
    fields::read(message, &mut fields)?;
    let role = role_of(message, fields.role.as_ref())?;
    let rare = fields.rare.as_deref();
    text_field(fields.reasoning_content.as_ref(), "reasoning_content", Kind::Prose, visit)?;
    if let Some(rare) = rare {
        openai_chat::beside_content(rare, fields.reasoning_content.is_some(), visit)?;
    }
    let calls_are_listed = openai_chat::calls(&fields, role, visit)?;

    let system_parts = rare.and_then(|rare| rare.system_parts.as_ref());
    if system_parts.is_some() {
        visit.content_begins();
    }
    let mut reader = Content { role, calls_are_listed, own_blocks: false, has_results: false, visit };
    let kind = if role == Role::Result { Kind::Output } else { Kind::Prose };
    if let Some(content) = &fields.content {
        reader.content(content, kind, 0).at_key("content")?;
    }
    let Content { own_blocks, mut has_results, visit, .. } = reader;
    if let Some(parts) = system_parts {
        openai_chat::system_parts(parts, visit).at_key("system_parts")?;
    }

    openai_chat::result_id(&fields, role, visit)?;
    has_results |= role == Role::Result;
    Ok(Shape { role, own_text: role == Role::User && (own_blocks || !has_results), has_results })
}

/// The role of a message, without reading the rest of it.
#[inline]
pub(crate) fn role(message: &Bound<'_, PyAny>) -> Read<Role> {
    role_of(message, fields::get(message, intern!(message.py(), "role"))?.as_ref())
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "a few instructions for each message")]
fn role_of(message: &Bound<'_, PyAny>, role: Option<&Bound<'_, PyAny>>) -> Read<Role> {
    let Some(role) = role else {
        return Err(Error::wrong_value(
            "a message with a `role`",
            format!("{} without one", type_name(message)),
        ));
    };
    match one_byte_text(role) {
        Some(name) => Ok(Role::from_name(name)),
        None => expect_str(role).at_key("role").map(|_| Role::Other),
    }
}

/// Of a message of role user: whether it is more than tool results, and whether it holds any.
pub(crate) fn user(message: &Bound<'_, PyAny>) -> Read<(bool, bool)> {
    let (mut own_blocks, mut has_results) = (false, false);
    if let Some(content) = fields::get(message, intern!(message.py(), "content"))?
        && let Some(parts) = Items::of(&content)
    {
        let look = |part| {
            let is_result = is_tool_result(&part)?;
            own_blocks |= !is_result;
            has_results |= is_result;
            Ok(())
        };
        parts.each(look).at_key("content")?;
    }
    Ok((own_blocks || !has_results, has_results))
}

/// Whether a part is a tool result inside a user message.
pub(crate) fn is_tool_result(part: &Bound<'_, PyAny>) -> Read<bool> {
    if part.is_instance_of::<PyString>() {
        return Ok(false);
    }
    let kind = fields::get(part, intern!(part.py(), "type"))?;
    Ok(kind.as_ref().and_then(one_byte_text) == Some(b"tool_result"))
}

/// Reads content that stands for itself: a string, `None` or a list of parts.
pub(crate) fn content<'py, V: Visit<'py>>(content: &Bound<'py, PyAny>, visit: &mut V) -> Read<()> {
    let role = Role::User;
    Content { role, calls_are_listed: false, own_blocks: false, has_results: false, visit }.content(
        content,
        Kind::Prose,
        0,
    )
}

/// Reads the content of one message.
struct Content<'v, V> {
    role: Role,
    /// The calls have been read from `tool_calls`; blocks in the content repeat them.
    calls_are_listed: bool,
    /// There is something besides tool results.
    own_blocks: bool,
    has_results: bool,
    visit: &'v mut V,
}

impl<'py, V: Visit<'py>> Content<'_, V> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a few instructions for each message")]
    fn content(&mut self, content: &Bound<'py, PyAny>, kind: Kind, depth: usize) -> Read<()> {
        if let Ok(text) = content.cast::<PyString>() {
            return self.visit.text(kind, text);
        }
        self.parts(content, kind, depth)
    }

    fn parts(&mut self, content: &Bound<'py, PyAny>, kind: Kind, depth: usize) -> Read<()> {
        if content.is_none() {
            return Ok(());
        }
        let Some(parts) = Items::of(content) else {
            return Err(Error::wrong_type("`str`, `None` or a list of parts", content));
        };
        if depth > MAX_DEPTH {
            return Err(Error::wrong_value(
                format!("at most {MAX_DEPTH} levels of nested blocks"),
                "more".to_owned(),
            ));
        }
        parts.each(|part| self.part(&part, kind, depth))
    }

    /// One part: a bare string, or a block that says its type.
    fn part(&mut self, part: &Bound<'py, PyAny>, kind: Kind, depth: usize) -> Read<()> {
        if let Ok(text) = part.cast::<PyString>() {
            self.own_blocks |= depth == 0;
            return self.visit.text(kind, text);
        }
        let mut fields = BlockFields::default();
        fields::read(part, &mut fields)?;
        let Some(name) = fields.kind.as_ref().and_then(one_byte_text) else {
            return self.unknown(part, depth);
        };
        self.own_blocks |= depth == 0 && name != b"tool_result";
        if openai_chat::part(name, &fields, kind, self.visit)?
            || self.anthropic_block(name, &fields, kind, depth)?
        {
            return Ok(());
        }
        self.unknown(part, depth)
    }

    fn unknown(&mut self, part: &Bound<'py, PyAny>, depth: usize) -> Read<()> {
        self.own_blocks |= depth == 0;
        self.visit.json(Kind::Arguments, part, Keys::NotOpaque)
    }
}

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

/// Visits a field that holds a string, if it is there.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a few instructions, several times for each message")]
fn text_field<'py, V: Visit<'py>>(
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
fn arguments_field<'py, V: Visit<'py>>(
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
