//! Tool definitions: name, description and schema, as `OpenAI` and Anthropic write them.

use ctxfast::part::Kind;
use pyo3::prelude::*;

use super::fields;
use super::json::Keys;
use super::{Visit, arguments_field, expect_list, text_field};
use crate::errors::{At, Read};
use crate::memory::wanted;

wanted! {
    /// Fields of a tool definition.
    pub(crate) struct ToolFields {
        function = b"function",
        custom = b"custom",
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
            let fields = fields::read::<ToolFields>(&tool)?;
            if let Some(function) = &fields.function {
                definition(function, &fields::read::<ToolFields>(function).at_key("function")?, visit)
                    .at_key("function")?;
            } else if let Some(custom) = &fields.custom {
                definition(custom, &fields::read::<ToolFields>(custom).at_key("custom")?, visit)
                    .at_key("custom")?;
            } else {
                definition(&tool, &fields, visit)?;
            }
            frame(visit);
            Ok(())
        })
    };
    read(tools).at_key("tools")
}

fn definition<'py, V: Visit<'py>>(
    tool: &Bound<'py, PyAny>,
    fields: &ToolFields<'py>,
    visit: &mut V,
) -> Read<()> {
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
