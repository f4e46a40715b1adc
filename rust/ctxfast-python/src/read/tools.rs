//! Tool definitions: name, description and schema, as `OpenAI` and Anthropic write them.

use ctxfast::part::Kind;
use pyo3::prelude::*;

use super::fields;
use super::items::expect_list;
use super::json::Keys;
use super::visit::{Visit, arguments_field, text_field};
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
    text_field(fields.name.as_ref(), "name", Kind::Name, visit)?;
    text_field(fields.description.as_ref(), "description", Kind::Name, visit)?;
    for (schema, key) in [
        (&fields.parameters, "parameters"),
        (&fields.input_schema, "input_schema"),
        (&fields.format, "format"),
    ] {
        if schema.is_some() {
            return arguments_field(schema.as_ref(), key, visit);
        }
    }
    Ok(())
}
