//! The form of OpenAI's chat completions, and of all who speak it: dicts, and the message objects of its SDK.

use ctxfast::media::Hint;
use ctxfast::part::{Kind, Role};
use pyo3::prelude::*;
use pyo3::types::{PySet, PyString};

use super::content::BlockFields;
use super::fields;
use super::items::expect_list;
use super::json::Keys;
use super::visit::{Called, Visit, arguments_field, text_field};
use super::{MessageFields, RareFields};
use crate::errors::{At, Read};
use crate::memory::{view, wanted};

wanted! {
    /// Fields of a tool call.
    pub(crate) struct CallFields {
        id = b"id",
        kind = b"type",
        function = b"function",
        custom = b"custom",
    }
}

wanted! {
    /// Fields of a called function.
    pub(crate) struct FunctionFields {
        name = b"name",
        arguments = b"arguments",
        input = b"input",
        args = b"args",
    }
}

/// What few messages have beside their content: reasoning under other names (of which one counts), refusal, sound,
/// PicoClaw's list of media.
pub(super) fn beside_content<'py, V: Visit<'py>>(
    fields: &RareFields<'py>,
    has_reasoning: bool,
    visit: &mut V,
) -> Read<()> {
    let ways = [
        (&fields.reasoning, "reasoning"),
        (&fields.reasoning_details, "reasoning_details"),
        (&fields.thinking_blocks, "thinking_blocks"),
    ];
    if !has_reasoning && let Some((Some(reasoning), key)) = ways.into_iter().find(|(way, _)| way.is_some()) {
        match reasoning.cast::<PyString>() {
            Ok(text) => visit.text(Kind::Alias, text)?,
            Err(_) => visit.json(Kind::Alias, reasoning, Keys::NotOpaque).at_key(key)?,
        }
    }
    text_field(fields.refusal.as_ref(), "refusal", Kind::Prose, visit)?;
    if let Some(audio) = &fields.audio {
        visit.media(Hint::Audio, audio);
    }
    if let Some(media) = &fields.media {
        expect_list(media).at_key("media")?.each(|item| {
            visit.media(Hint::Other, &item);
            Ok(())
        })?;
    }
    Ok(())
}

/// `tool_calls`, and the older `function_call`.
#[inline]
pub(super) fn calls<'py, V: Visit<'py>>(fields: &MessageFields<'py>, role: Role, visit: &mut V) -> Read<()> {
    if let Some(calls) = &fields.tool_calls {
        let calls = expect_list(calls).at_key("tool_calls")?;
        if calls.len() > 0 {
            visit.tool_calls();
        }
        calls.each(|call| tool_call(&call, role, visit)).at_key("tool_calls")?;
    }
    if let Some(function) = fields.rare.as_ref().and_then(|rare| rare.function_call.as_ref()) {
        visit.tool_calls();
        let called = called_function(function, visit).at_key("function_call")?;
        if role == Role::Assistant {
            visit.call(None, called.borrow());
        }
    }
    Ok(())
}

/// The ids of `tool_calls`, but for blank ones.
#[cold]
pub(crate) fn ids<'py>(calls: &Bound<'py, PyAny>) -> Read<Bound<'py, PySet>> {
    let ids = PySet::empty(calls.py())?;
    expect_list(calls)?.each(|call| {
        let mut fields = CallFields::default();
        super::fields::read(&call, &mut fields)?;
        if let Some(id) = fields.id
            && id.cast::<PyString>().is_ok_and(|id| !view(id).is_blank())
        {
            ids.add(id)?;
        }
        Ok(())
    })?;
    Ok(ids)
}

fn tool_call<'py, V: Visit<'py>>(call: &Bound<'py, PyAny>, role: Role, visit: &mut V) -> Read<()> {
    let mut fields = CallFields::default();
    fields::read(call, &mut fields)?;
    text_field(fields.id.as_ref(), "id", Kind::Id, visit)?;
    text_field(fields.kind.as_ref(), "type", Kind::Id, visit)?;
    let called = if let Some(function) = &fields.function {
        called_function(function, visit).at_key("function")?
    } else if let Some(custom) = &fields.custom {
        called_function(custom, visit).at_key("custom")?
    } else {
        called_function(call, visit)? // flat, as some frameworks write it
    };
    if role == Role::Assistant {
        visit.call(fields.id.as_ref().and_then(|id| id.cast().ok()), called.borrow());
    }
    Ok(())
}

/// A name and its arguments: `arguments`, or `input` of custom tools, or `args`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "once for each call")]
fn called_function<'py, V: Visit<'py>>(
    function: &Bound<'py, PyAny>,
    visit: &mut V,
) -> Read<FunctionFields<'py>> {
    let mut fields = FunctionFields::default();
    fields::read(function, &mut fields)?;
    text_field(fields.name.as_ref(), "name", Kind::Name, visit)?;
    if fields.arguments.is_some() {
        arguments_field(fields.arguments.as_ref(), "arguments", visit)?;
    } else if fields.input.is_some() {
        arguments_field(fields.input.as_ref(), "input", visit)?;
    } else {
        arguments_field(fields.args.as_ref(), "args", visit)?;
    }
    Ok(fields)
}

impl<'py> FunctionFields<'py> {
    fn borrow(&self) -> Called<'_, 'py> {
        let arguments = self.arguments.as_ref().or(self.input.as_ref()).or(self.args.as_ref());
        Called { name: self.name.as_ref(), arguments }
    }
}

/// A part of a content list. Returns whether it is of this form.
#[inline]
pub(super) fn part<'py, V: Visit<'py>>(
    name: &[u8],
    part: &Bound<'py, PyAny>,
    fields: &BlockFields<'py>,
    kind: Kind,
    visit: &mut V,
) -> Read<bool> {
    match name {
        b"text" | b"input_text" | b"output_text" => text_field(fields.text.as_ref(), "text", kind, visit)?,
        b"refusal" => text_field(fields.refusal.as_ref(), "refusal", kind, visit)?,
        b"image_url" | b"input_image" => visit.media(Hint::Image, part),
        b"audio" | b"input_audio" => visit.media(Hint::Audio, part),
        b"file" | b"input_file" => visit.media(Hint::File, part),
        b"video" | b"video_url" | b"input_video" => visit.media(Hint::Other, part),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Which call a message answers.
#[inline]
pub(super) fn result_id<'py, V: Visit<'py>>(
    fields: &MessageFields<'py>,
    role: Role,
    visit: &mut V,
) -> Read<()> {
    text_field(fields.tool_call_id.as_ref(), "tool_call_id", Kind::Id, visit)?;
    if role == Role::Result {
        visit.result(fields.tool_call_id.as_ref().and_then(|id| id.cast().ok()));
    }
    Ok(())
}

/// PicoClaw's other form of a system prompt.
pub(super) fn system_parts<'py, V: Visit<'py>>(parts: &Bound<'py, PyAny>, visit: &mut V) -> Read<()> {
    let parts = expect_list(parts)?;
    if parts.len() == 0 {
        return Ok(());
    }
    visit.alternative_begins(parts.len());
    parts.each(|part| {
        let mut fields = BlockFields::default();
        fields::read(&part, &mut fields)?;
        text_field(fields.text.as_ref(), "text", Kind::Prose, visit)
    })?;
    visit.alternative_ends();
    Ok(())
}
