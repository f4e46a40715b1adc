//! The form of Anthropic's messages: content blocks, as dicts and as the objects of its SDK.

use ctxfast::media::Hint;
use ctxfast::part::{Kind, Role};
use ctxfast::text::Text;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::content::{BlockFields, Content};
use super::fields;
use super::items::Items;
use super::visit::{Called, Visit, arguments_field, text_field};
use crate::errors::{At, Read};
use crate::memory::view;
use crate::memory::wanted;

wanted! {
    /// Where a document comes from.
    pub(crate) struct SourceFields {
        kind = b"type",
        data = b"data",
        content = b"content",
    }
}

impl<'py, V: Visit<'py>> Content<'_, 'py, V> {
    /// A content block. Returns whether it is of this form.
    pub(super) fn anthropic_block(
        &mut self,
        name: &[u8],
        part: &Bound<'py, PyAny>,
        fields: &BlockFields<'py>,
        kind: Kind,
        depth: usize,
    ) -> Read<bool> {
        match name {
            b"thinking" => match &fields.thinking {
                // Mistral's is a list of parts
                Some(parts) if Items::of(parts).is_some() => {
                    self.content(parts, kind, depth + 1).at_key("thinking")?;
                }
                thinking => text_field(thinking.as_ref(), "thinking", kind, self.visit)?,
            },
            b"redacted_thinking" => {} // opaque
            b"tool_use" if depth == 0 && self.is_listed(fields.id.as_ref())? => {}
            // the last two are answered by the provider itself
            b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => {
                text_field(fields.id.as_ref(), "id", Kind::Id, self.visit)?;
                text_field(fields.name.as_ref(), "name", Kind::Name, self.visit)?;
                arguments_field(fields.input.as_ref(), "input", self.visit)?;
                if name == b"tool_use" && depth == 0 && self.role == Role::Assistant {
                    self.blocks.anthropic = true;
                    let called = Called { name: fields.name.as_ref(), arguments: fields.input.as_ref() };
                    self.visit.call(fields.id.as_ref().and_then(|id| id.cast().ok()), called);
                }
            }
            b"tool_result" => {
                text_field(fields.tool_use_id.as_ref(), "tool_use_id", Kind::Id, self.visit)?;
                let is_result = depth == 0 && self.role == Role::User;
                if is_result {
                    self.visit.output_begins();
                }
                if let Some(content) = &fields.content {
                    self.content(content, Kind::Output, depth + 1).at_key("content")?;
                }
                if is_result {
                    self.visit.output_ends();
                    self.has_results = true;
                    self.blocks.anthropic = true;
                    self.blocks.late_result |= self.own_blocks;
                    self.visit.result(fields.tool_use_id.as_ref().and_then(|id| id.cast().ok()));
                }
            }
            b"image" => self.visit.media(Hint::Image, part),
            b"container_upload" => self.visit.media(Hint::File, part),
            b"document" => self.document(part, fields, kind, depth)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A document is media, unless its source is text or a list of blocks.
    fn document(
        &mut self,
        part: &Bound<'py, PyAny>,
        fields: &BlockFields<'py>,
        kind: Kind,
        depth: usize,
    ) -> Read<()> {
        text_field(fields.title.as_ref(), "title", kind, self.visit)?;
        text_field(fields.context.as_ref(), "context", kind, self.visit)?;
        let mut source = SourceFields::default();
        if let Some(fields) = &fields.source {
            fields::read(fields, &mut source).at_key("source")?;
        }
        match source.kind.as_ref().and_then(|kind| kind.cast::<PyString>().ok()).map(view) {
            Some(Text::Ucs1(b"text")) => {
                text_field(source.data.as_ref(), "data", kind, self.visit).at_key("source")
            }
            Some(Text::Ucs1(b"content")) => match &source.content {
                Some(content) => self.content(content, kind, depth + 1).at_key("content").at_key("source"),
                None => Ok(()),
            },
            _ => {
                self.visit.media(Hint::File, part);
                Ok(())
            }
        }
    }
}
