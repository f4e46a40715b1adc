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
use pyo3::types::{PyDict, PyList, PySet, PyString, PyTuple};

use crate::errors::{At, Error, Read, type_name};
use crate::memory::wanted;
use crate::memory::{chars, one_byte_text, view};
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
    /// A call that waits for a result; the name is that of the tool.
    fn call(&mut self, _id: Option<&Bound<'py, PyString>>, _name: Option<&Bound<'py, PyAny>>) {}
    /// The calls are in `tool_calls` or `function_call`: the message is of OpenAI's form.
    fn tool_calls(&mut self) {}
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
    fn call(&mut self, id: Option<&Bound<'py, PyString>>, name: Option<&Bound<'py, PyAny>>) {
        self.1.call(id, name);
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
    /// A user message that says something, be it beside tool results.
    pub(crate) own_text: bool,
    pub(crate) has_results: bool,
    pub(crate) blocks: Blocks,
}

/// What the blocks of a content list are.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts, each by itself")]
pub(crate) struct Blocks {
    /// There is one that is more than an empty text.
    pub(crate) any: bool,
    /// There is a text block without text.
    pub(crate) empty_text: bool,
    /// A tool result stands behind something else.
    pub(crate) late_result: bool,
    /// There is thinking without its signature.
    pub(crate) unsigned_thinking: bool,
    /// There are calls or results in Anthropic's form.
    pub(crate) anthropic: bool,
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
        reasoning_details = b"reasoning_details",
        thinking_blocks = b"thinking_blocks",
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
        signature = b"signature",
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
    openai_chat::calls(&fields, role, visit)?;

    let system_parts = rare.and_then(|rare| rare.system_parts.as_ref());
    if system_parts.is_some() {
        visit.content_begins();
    }
    let kind = if role == Role::Result { Kind::Output } else { Kind::Prose };
    let mut reader = Content::new(role, fields.tool_calls.as_ref(), visit);
    if let Some(content) = &fields.content {
        reader.content(content, kind, 0).at_key("content")?;
    }
    let Content { says_something, mut has_results, blocks, visit, .. } = reader;
    if let Some(parts) = system_parts {
        openai_chat::system_parts(parts, visit).at_key("system_parts")?;
    }

    openai_chat::result_id(&fields, role, visit)?;
    if fields.is_bare() {
        rest_of_message(message, visit)?;
    }
    has_results |= role == Role::Result;
    let own_text = role == Role::User && (says_something || !has_results);
    Ok(Shape { role, own_text, has_results, blocks })
}

impl MessageFields<'_> {
    /// Nothing but a role, as far as we know.
    fn is_bare(&self) -> bool {
        self.content.is_none()
            && self.tool_calls.is_none()
            && self.tool_call_id.is_none()
            && self.reasoning_content.is_none()
            && self.rare.is_none()
    }
}

/// What a message says in ways that we do not know is counted as its JSON: unknown is not zero.
#[cold]
fn rest_of_message<'py, V: Visit<'py>>(message: &Bound<'py, PyAny>, visit: &mut V) -> Read<()> {
    let rest = PyDict::new(message.py());
    for (key, value) in json::members(message)? {
        if !value.is_none() && one_byte_text(&key) != Some(b"role") {
            rest.set_item(key, value)?;
        }
    }
    if rest.is_empty() { Ok(()) } else { visit.json(Kind::Alias, &rest, Keys::NotOpaque) }
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

/// Of a message of role user: whether it says something, and whether it holds tool results.
pub(crate) fn user(message: &Bound<'_, PyAny>) -> Read<(bool, bool)> {
    let (mut says_something, mut has_results) = (false, false);
    if let Some(content) = fields::get(message, intern!(message.py(), "content"))?
        && let Some(parts) = Items::of(&content)
    {
        let look = |part: Bound<'_, PyAny>| {
            if is_tool_result(&part)? {
                has_results = true;
            } else {
                let mut fields = BlockFields::default();
                if !part.is_instance_of::<PyString>() {
                    fields::read(&part, &mut fields)?;
                }
                says_something |= is_text(&part, &fields);
            }
            Ok(())
        };
        parts.each(look).at_key("content")?;
    }
    Ok((says_something || !has_results, has_results))
}

/// Whether a part is a text that is more than white space.
fn is_text(part: &Bound<'_, PyAny>, fields: &BlockFields<'_>) -> bool {
    let text = match fields.kind.as_ref().and_then(one_byte_text) {
        Some(b"text" | b"input_text") => fields.text.as_ref(),
        _ => Some(part),
    };
    text.and_then(|text| text.cast::<PyString>().ok()).is_some_and(|text| !view(text).is_blank())
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
    Content::new(Role::User, None, visit).content(content, Kind::Prose, 0)
}

/// Reads the content of one message.
struct Content<'v, 'py, V> {
    role: Role,
    /// `tool_calls` of the message: blocks in the content that repeat them are not read again.
    tool_calls: Option<&'v Bound<'py, PyAny>>,
    /// Their ids, once they are asked for.
    listed: Option<Bound<'py, PySet>>,
    /// There is text, and there is something besides tool results.
    says_something: bool,
    own_blocks: bool,
    has_results: bool,
    blocks: Blocks,
    visit: &'v mut V,
}

impl<'v, 'py, V: Visit<'py>> Content<'v, 'py, V> {
    #[inline]
    fn new(role: Role, tool_calls: Option<&'v Bound<'py, PyAny>>, visit: &'v mut V) -> Self {
        Self {
            role,
            tool_calls,
            listed: None,
            says_something: false,
            own_blocks: false,
            has_results: false,
            blocks: Blocks::default(),
            visit,
        }
    }

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
        let mut fields = BlockFields::default();
        if let Ok(text) = part.cast::<PyString>() {
            self.own(depth, part, &fields);
            self.blocks.note_text(Some(part));
            return self.visit.text(kind, text);
        }
        fields::read(part, &mut fields)?;
        let name = fields.kind.as_ref().and_then(one_byte_text);
        if name != Some(b"tool_result") {
            self.own(depth, part, &fields);
        }
        if depth == 0 {
            self.blocks.note(name, &fields);
        }
        if let Some(name) = name
            && (openai_chat::part(name, &fields, kind, self.visit)?
                || self.anthropic_block(name, &fields, kind, depth)?)
        {
            return Ok(());
        }
        self.visit.json(Kind::Arguments, part, Keys::NotOpaque)
    }

    /// Notes a part that is no tool result.
    fn own(&mut self, depth: usize, part: &Bound<'py, PyAny>, fields: &BlockFields<'py>) {
        if depth == 0 && self.role == Role::User {
            self.own_blocks = true;
            self.says_something = self.says_something || is_text(part, fields);
        }
    }

    /// Whether a call of the content is one of `tool_calls`.
    fn is_listed(&mut self, id: Option<&Bound<'py, PyAny>>) -> Read<bool> {
        let (Some(calls), Some(id)) = (self.tool_calls, id) else { return Ok(false) };
        let ids = match &self.listed {
            Some(ids) => ids,
            None => self.listed.insert(openai_chat::ids(calls)?),
        };
        Ok(id.is_instance_of::<PyString>() && ids.contains(id)?)
    }
}

impl Blocks {
    fn note(&mut self, name: Option<&[u8]>, fields: &BlockFields<'_>) {
        match name {
            Some(b"text" | b"input_text" | b"output_text") => self.note_text(fields.text.as_ref()),
            Some(b"thinking") => {
                self.any = true;
                self.unsigned_thinking |= fields.signature.is_none();
            }
            _ => self.any = true,
        }
    }

    fn note_text(&mut self, text: Option<&Bound<'_, PyAny>>) {
        let is_empty = text.is_none_or(|text| text.cast::<PyString>().is_ok_and(|text| chars(text) == 0));
        self.empty_text |= is_empty;
        self.any |= !is_empty;
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
