//! Tool definitions: name, description and schema, as `OpenAI` and Anthropic write them.

use ctxfast::part::Kind;
use pyo3::prelude::*;

use super::fields;
use super::items::{expect_list, expect_str};
use super::json::Keys;
use super::visit::{Tool, Visit};
use crate::errors::{At, Read};
use crate::memory::wanted;

wanted! {
    /// Where a tool's definition is, if it is not the tool itself.
    pub(crate) struct ToolFields {
        function = b"function",
        custom = b"custom",
    }
}

wanted! {
    /// Fields of a tool definition.
    pub(crate) struct DefinitionFields {
        name = b"name",
        description = b"description",
        parameters = b"parameters",
        input_schema = b"input_schema",
        format = b"format",
    }
}

/// Reads a list of tool definitions, calling `frame` after each.
pub(crate) fn tools<'py, V: Visit<'py>>(
    tools: &Bound<'py, PyAny>,
    visit: &mut V,
    mut frame: impl FnMut(&mut V),
) -> Read<()> {
    let mut read = |tools| {
        expect_list(tools)?.each(|tool| {
            let mut fields = ToolFields::default();
            fields::read(&tool, &mut fields)?;
            if let Some(function) = &fields.function {
                definition(function, visit).at_key("function")?;
            } else if let Some(custom) = &fields.custom {
                definition(custom, visit).at_key("custom")?;
            } else {
                definition(&tool, visit)?;
            }
            frame(visit);
            Ok(())
        })
    };
    read(tools).at_key("tools")
}

fn definition<'py, V: Visit<'py>>(tool: &Bound<'py, PyAny>, visit: &mut V) -> Read<()> {
    let mut fields = DefinitionFields::default();
    fields::read(tool, &mut fields)?;
    if fields.name.is_none() {
        return visit.json(Kind::Arguments, tool, Keys::NotOpaque);
    }
    let text = |field, key| Option::map(field, expect_str).transpose().at_key(key);
    let Some(name) = text(fields.name.as_ref(), "name")? else { return Ok(()) };
    let description = text(fields.description.as_ref(), "description")?;
    let tool = |schema, key| Tool { name, description, schema, key };
    visit.tool(&match &fields {
        DefinitionFields { parameters: Some(schema), .. } => tool(Some(schema), "parameters"),
        DefinitionFields { input_schema: Some(schema), .. } => tool(Some(schema), "input_schema"),
        DefinitionFields { format, .. } => tool(format.as_ref(), "format"),
    })
}
