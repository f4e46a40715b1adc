//! The content of a message: a string, nothing, or a list of parts.

use ctxfast::part::{Kind, Role};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PySet, PyString};

use super::items::Items;
use super::json::Keys;
use super::visit::Visit;
use super::{MAX_DEPTH, fields, openai_chat};
use crate::errors::{At, Error, Read};
use crate::memory::{chars, one_byte_text, view, wanted};

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

/// Reads content that stands for itself: a string, `None` or a list of parts.
pub(crate) fn content<'py, V: Visit<'py>>(content: &Bound<'py, PyAny>, visit: &mut V) -> Read<()> {
    Content::new(Role::User, None, visit).content(content, Kind::Prose, 0)
}

/// Reads the content of one message.
pub(super) struct Content<'v, 'py, V> {
    pub(super) role: Role,
    /// `tool_calls` of the message: blocks in the content that repeat them are not read again.
    tool_calls: Option<&'v Bound<'py, PyAny>>,
    /// Their ids, once they are asked for.
    listed: Option<Bound<'py, PySet>>,
    /// There is text, and there is something besides tool results.
    pub(super) says_something: bool,
    pub(super) own_blocks: bool,
    pub(super) has_results: bool,
    pub(super) blocks: Blocks,
    pub(super) visit: &'v mut V,
}

impl<'v, 'py, V: Visit<'py>> Content<'v, 'py, V> {
    #[inline]
    pub(super) fn new(role: Role, tool_calls: Option<&'v Bound<'py, PyAny>>, visit: &'v mut V) -> Self {
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
    pub(super) fn content(&mut self, content: &Bound<'py, PyAny>, kind: Kind, depth: usize) -> Read<()> {
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
            if depth == 0 {
                self.blocks.note_text(Some(part));
            }
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
            && (openai_chat::part(name, part, &fields, kind, self.visit)?
                || self.anthropic_block(name, part, &fields, kind, depth)?)
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
    pub(super) fn is_listed(&mut self, id: Option<&Bound<'py, PyAny>>) -> Read<bool> {
        let (Some(calls), Some(id)) = (self.tool_calls, id) else { return Ok(false) };
        let ids = match &self.listed {
            Some(ids) => ids,
            None => self.listed.insert(openai_chat::ids(calls)?),
        };
        Ok(id.is_instance_of::<PyString>() && ids.contains(id)?)
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

/// What a part of a content is, as far as mending a list goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Text,
    EmptyText,
    SignedThinking,
    UnsignedThinking,
    Redacted,
    /// `tool_use`
    Call,
    /// `tool_result`
    Result,
    Other,
}

impl Part {
    pub(crate) fn of(part: &Bound<'_, PyAny>) -> Read<Self> {
        let py = part.py();
        if let Some(text) = part_text(part)? {
            return Ok(if chars(&text) == 0 { Self::EmptyText } else { Self::Text });
        }
        let kind = fields::get(part, intern!(py, "type"))?;
        Ok(match kind.as_ref().and_then(one_byte_text) {
            Some(b"thinking") if fields::get(part, intern!(py, "signature"))?.is_none() => {
                Self::UnsignedThinking
            }
            Some(b"thinking") => Self::SignedThinking,
            Some(b"redacted_thinking") => Self::Redacted,
            Some(b"tool_use") => Self::Call,
            Some(b"tool_result") => Self::Result,
            _ => Self::Other,
        })
    }
}

/// The text of a part of content, if it is a text part; one without text is empty.
pub(crate) fn part_text<'py>(part: &Bound<'py, PyAny>) -> Read<Option<Bound<'py, PyString>>> {
    let py = part.py();
    if let Ok(text) = part.cast::<PyString>() {
        return Ok(Some(text.clone()));
    }
    let kind = fields::get(part, intern!(py, "type"))?;
    if !matches!(kind.as_ref().and_then(one_byte_text), Some(b"text" | b"input_text" | b"output_text")) {
        return Ok(None);
    }
    let text = fields::get(part, intern!(py, "text"))?.and_then(|text| text.cast_into::<PyString>().ok());
    Ok(Some(text.unwrap_or_else(|| PyString::new(py, ""))))
}

/// The text of content, its text parts joined by line feeds; and how many parts are no text.
pub(crate) fn text_of<'py>(content: &Bound<'py, PyAny>) -> Read<(Bound<'py, PyString>, usize)> {
    let py = content.py();
    if let Ok(text) = content.cast::<PyString>() {
        return Ok((text.clone(), 0));
    }
    let (mut texts, mut others) = (Vec::new(), 0);
    if let Some(parts) = Items::of(content) {
        parts.each(|part| {
            match part_text(&part)? {
                Some(text) => texts.push(text),
                None => others += 1,
            }
            Ok(())
        })?;
    }
    let text = match texts.pop() {
        Some(only) if texts.is_empty() => only,
        Some(last) => {
            texts.push(last);
            let joined = PyString::new(py, "\n").call_method1(intern!(py, "join"), (texts,))?;
            joined.cast_into::<PyString>().map_err(PyErr::from)?
        }
        None => PyString::new(py, ""),
    };
    Ok((text, others))
}
