//! Python messages, per message and per block: which form is this, and what is in it?
//!
//! A [`Visit`]or is told what a message holds, in one pass. What it does with it decides what is compiled: counters
//! weigh texts, tables note ids. Lists may mix forms; a form is one file: [`openai_chat`], [`anthropic`].

mod anthropic;
mod arguments;
mod content;
pub(crate) mod fields;
mod items;
pub(crate) mod json;
mod mark;
mod media;
mod openai_chat;
pub(crate) mod tools;
mod typescript;
mod visit;

use ctxfast::part::{Kind, Role};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) use self::arguments::arguments;
use self::content::{Blocks, Content};
pub(crate) use self::content::{Part, content, is_tool_result, part_text, text_of, user};
use self::items::expect_str;
pub(crate) use self::items::{Items, strings};
use self::json::Keys;
pub(crate) use self::mark::mark;
pub(crate) use self::media::media;
pub(crate) use self::openai_chat::ids as listed_ids;
pub(crate) use self::typescript::declare;
use self::visit::text_field;
pub(crate) use self::visit::{Both, Called, Nobody, Tool, Visit};
use crate::errors::{At, Error, Read, type_name};
use crate::memory::{one_byte_text, wanted};

/// Deepest nesting of blocks and of JSON values. Real messages have less than ten levels.
pub(crate) const MAX_DEPTH: usize = 64;

/// What a message is.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) role: Role,
    /// A user message that says something, be it beside tool results.
    pub(crate) own_text: bool,
    pub(crate) has_results: bool,
    pub(crate) blocks: Blocks,
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
    if role == Role::Result {
        visit.output_begins();
    }
    let mut reader = Content::new(role, fields.tool_calls.as_ref(), visit);
    if let Some(content) = &fields.content {
        reader.content(content, kind, 0).at_key("content")?;
    }
    let Content { says_something, mut has_results, blocks, visit, .. } = reader;
    if role == Role::Result {
        visit.output_ends();
    }
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
