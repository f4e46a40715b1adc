//! A tool as `OpenAI` shows it to its models: a type of TypeScript, with titles and descriptions as comments.
//!
//! The rules are those of its published renderer for gpt-oss (`openai/harmony`), and of its hosted models as far as
//! recorded requests tell (docs/accuracy.md). What has no line here (limits, patterns, formats,
//! `additionalProperties`) is not sent.

use std::collections::HashSet;

use ctxfast::json::push_text;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PySet, PyString};

use super::fields;
use super::json::{Keys, Members, members, text, written};
use super::visit::Tool;
use super::{Items, MAX_DEPTH};
use crate::errors::Read;
use crate::memory::{one_byte_text, view};

/// Writes the declaration of a tool. Its schema is a JSON value, and somebody has looked whether it is one.
pub(crate) fn declare(tool: &Tool<'_, '_>, out: &mut Vec<u8>) -> Read<()> {
    let mut writer = Declaration { out, root: tool.schema, referred: HashSet::new() };
    if let Some(description) = tool.description {
        writer.comment(description);
    }
    writer.ascii("type ");
    push_text(writer.out, view(tool.name));
    match tool.schema {
        Some(schema) if has_properties(schema)? => {
            writer.ascii(" = (_: ");
            writer.type_of(schema, true, 0)?;
            writer.ascii(") => any;\n\n");
        }
        _ => writer.ascii(" = () => any;\n\n"),
    }
    Ok(())
}

struct Declaration<'a, 'py> {
    out: &'a mut Vec<u8>,
    root: Option<&'a Bound<'py, PyAny>>,
    /// Definitions that were written where they were first referred to.
    referred: HashSet<Vec<u8>>,
}

impl<'py> Declaration<'_, 'py> {
    fn ascii(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn json(&mut self, value: &Bound<'py, PyAny>) -> Read<()> {
        push_text(self.out, view(&text(value, Keys::All)?.0));
        Ok(())
    }

    /// Lines, without blank ones.
    fn comment(&mut self, text: &Bound<'py, PyString>) {
        let mut lines = Vec::new();
        push_text(&mut lines, view(text));
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            self.ascii("// ");
            self.out.extend_from_slice(line);
            self.ascii("\n");
        }
    }

    fn comments(&mut self, schema: &Schema<'py>) {
        for key in ["title", "description"] {
            if let Some(text) = schema.str(key) {
                self.comment(text);
            }
        }
    }

    /// A type; `commented`: what is said about an object stands before it, since there is no property to say it of.
    fn type_of(&mut self, value: &Bound<'py, PyAny>, commented: bool, depth: usize) -> Read<()> {
        let Some(schema) = Schema::read(value)?.filter(|_| depth < MAX_DEPTH) else {
            self.ascii("any");
            return Ok(());
        };
        if let Some(reference) = schema.str("$ref") {
            if let Some(definition) = self.definition(reference)? {
                return self.type_of(&definition, commented, depth + 1);
            }
            self.ascii("any");
            return Ok(());
        }
        if let Some(options) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.list(key)) {
            return options.each(|option| {
                self.ascii("\n | ");
                self.type_of(&option, true, depth + 1)
            });
        }
        if let Some(values) = schema.list("enum") {
            let mut between = "";
            return values.each(|value| {
                self.ascii(between);
                between = " | ";
                self.json(&value)
            });
        }
        if let Some(value) = schema.get("const") {
            return self.json(value);
        }
        for (index, kind) in schema.kinds()?.into_iter().enumerate() {
            if index > 0 {
                self.ascii(" | ");
            }
            match kind {
                "object" => self.object(&schema, commented, depth)?,
                "array" => {
                    match schema.get("items") {
                        Some(items) => self.type_of(items, true, depth + 1)?,
                        None => self.ascii("any"),
                    }
                    self.ascii("[]");
                }
                kind => self.ascii(kind),
            }
        }
        Ok(())
    }

    fn object(&mut self, schema: &Schema<'py>, commented: bool, depth: usize) -> Read<()> {
        if commented {
            self.comments(schema);
        }
        self.ascii("{\n");
        if let Some(properties) = schema.get("properties").filter(|value| is_object(value)) {
            let required = PySet::empty(properties.py())?;
            if let Some(names) = schema.list("required") {
                names.each(|name| {
                    if name.is_instance_of::<PyString>() {
                        required.add(name)?;
                    }
                    Ok(())
                })?;
            }
            for (name, value) in members(properties)? {
                let property = Schema::read(&value)?.unwrap_or_default();
                self.comments(&property);
                if let Some(examples) = property.list("examples") {
                    self.ascii("// Examples:\n");
                    examples.each(|example| {
                        self.ascii("// - ");
                        self.json(&example)?;
                        self.ascii("\n");
                        Ok(())
                    })?;
                }
                push_text(self.out, view(&name));
                self.ascii(if required.contains(&name)? { ": " } else { "?: " });
                self.type_of(&value, false, depth + 1)?;
                self.ascii(",");
                if let Some(default) = property.given("default") {
                    self.ascii(" // default: ");
                    self.json(default)?;
                }
                self.ascii("\n");
            }
        }
        self.ascii("}");
        Ok(())
    }

    /// What `#/$defs/Name` means, unless it was written before: it may refer to itself.
    fn definition(&mut self, reference: &Bound<'py, PyString>) -> Read<Option<Bound<'py, PyAny>>> {
        let mut path = Vec::new();
        push_text(&mut path, view(reference));
        let (Some(root), Some(steps)) = (self.root, path.strip_prefix(b"#/")) else { return Ok(None) };
        if self.referred.contains(&path) {
            return Ok(None);
        }
        let mut found = root.clone();
        for step in steps.split(|&byte| byte == b'/') {
            let step = written(root.py(), step)?;
            let next = if is_object(&found) { fields::get(&found, &step)? } else { None };
            let Some(next) = next else { return Ok(None) };
            found = next;
        }
        self.referred.insert(path);
        Ok(Some(found))
    }
}

/// The members of an object.
#[derive(Default)]
struct Schema<'py>(Members<'py>);

impl<'py> Schema<'py> {
    /// `None` if it is no object.
    fn read(value: &Bound<'py, PyAny>) -> Read<Option<Self>> {
        if is_object(value) { members(value).map(|members| Some(Self(members))) } else { Ok(None) }
    }

    /// A member, be it `None`.
    fn given(&self, key: &str) -> Option<&Bound<'py, PyAny>> {
        let is_it = |name: &Bound<'py, PyString>| one_byte_text(name) == Some(key.as_bytes());
        self.0.iter().find(|(name, _)| is_it(name)).map(|(_, value)| value)
    }

    fn get(&self, key: &str) -> Option<&Bound<'py, PyAny>> {
        self.given(key).filter(|value| !value.is_none())
    }

    fn str(&self, key: &str) -> Option<&Bound<'py, PyString>> {
        self.get(key)?.cast().ok()
    }

    /// A list, if there is anything in it.
    fn list(&self, key: &str) -> Option<Items<'_, 'py>> {
        self.get(key).and_then(Items::of).filter(|items| items.len() > 0)
    }

    /// The types that it allows, each once.
    fn kinds(&self) -> Read<Vec<&'static str>> {
        let mut kinds = Vec::new();
        let mut add = |kind: &Bound<'py, PyAny>| {
            if let Ok(name) = kind.cast::<PyString>() {
                let kind = match one_byte_text(name) {
                    Some(b"integer" | b"number") => "number",
                    Some(b"string") => "string",
                    Some(b"boolean") => "boolean",
                    Some(b"null") => "null",
                    Some(b"object") => "object",
                    Some(b"array") => "array",
                    _ => "any",
                };
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        };
        if let Some(kind) = self.get("type") {
            add(kind);
        }
        if let Some(kinds) = self.list("type") {
            kinds.each(|kind| {
                add(&kind);
                Ok(())
            })?;
        }
        if kinds.is_empty() {
            kinds.push(if self.get("properties").is_some() { "object" } else { "any" });
        }
        Ok(kinds)
    }
}

/// Whether a JSON value is an object.
fn is_object(value: &Bound<'_, PyAny>) -> bool {
    !(value.is_none()
        || value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBool>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
        || Items::of(value).is_some())
}

/// Whether a tool takes anything.
fn has_properties(schema: &Bound<'_, PyAny>) -> Read<bool> {
    let Some(schema) = Schema::read(schema)? else { return Ok(false) };
    let Some(properties) = schema.get("properties").map(Schema::read).transpose()?.flatten() else {
        return Ok(schema.str("$ref").is_some() || schema.list("anyOf").is_some());
    };
    Ok(!properties.0.is_empty())
}
