"""Tools as OpenAI shows them to its models: types of TypeScript, with titles and descriptions as comments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ctxfast.reference.reading import MAX_DEPTH, dump, expect_str, plain, read_fields

TYPES = {"integer": "number"} | {kind: kind for kind in ("number", "string", "boolean", "null", "object", "array")}


def declaration(tool: object, path: str) -> str | None:
    """The declaration of a tool; `None` if its name or schema is not given as such."""
    fields, where = read_fields(tool, path), path
    for key in ("function", "custom"):
        if fields.get(key) is not None:
            where = f"{path}.{key}"
            fields = read_fields(fields[key], where)
            break
    if fields.get("name") is None:
        return None
    name = expect_str(fields["name"], f"{where}.name")
    description = fields.get("description")
    described = "" if description is None else comment(expect_str(description, f"{where}.description"))
    given = [key for key in ("parameters", "input_schema", "format") if fields.get(key) is not None]
    schema = None
    if given:
        schema, where = fields[given[0]], f"{where}.{given[0]}"
        if given[0] == "format" or isinstance(schema, str):
            return None
        schema = plain(schema, where, None, ())
    written = f"(_: {Writer(schema).type_of(schema, commented=True)})" if has_properties(schema) else "()"
    return f"{described}type {name} = {written} => any;\n\n"


def has_properties(schema: Any) -> bool:
    """Whether a tool takes anything."""
    if not isinstance(schema, dict):
        return False
    if isinstance(schema.get("properties"), dict):
        return bool(schema["properties"])
    return isinstance(schema.get("$ref"), str) or bool(items(schema, "anyOf"))


def comment(text: str) -> str:
    """Lines, without blank ones."""
    return "".join(f"// {line}\n" for line in text.split("\n") if line.strip(" \t\r\f"))


def comments(schema: dict[str, Any]) -> str:
    """What is said about something."""
    return "".join(comment(schema[key]) for key in ("title", "description") if isinstance(schema.get(key), str))


def items(schema: dict[str, Any], key: str) -> list[Any]:
    """A list, be it empty."""
    found = schema.get(key)
    return found if isinstance(found, list) else []


@dataclass
class Writer:
    """Writes the types of one schema."""

    root: Any
    referred: set[str] = field(default_factory=set)

    def type_of(self, schema: Any, *, commented: bool, depth: int = 0) -> str:
        """A type; `commented`: what is said about an object stands before it, as no property is there to say it of."""
        if not isinstance(schema, dict) or depth >= MAX_DEPTH:
            return "any"
        if isinstance(schema.get("$ref"), str):
            return self.type_of(self.definition(schema["$ref"]), commented=commented, depth=depth + 1)
        for key in ("anyOf", "oneOf", "allOf"):
            if options := items(schema, key):
                return "".join(f"\n | {self.type_of(option, commented=True, depth=depth + 1)}" for option in options)
        if values := items(schema, "enum"):
            return " | ".join(map(dump, values))
        if schema.get("const") is not None:
            return dump(schema["const"])
        named = schema.get("type")
        names = [name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)]
        kinds = [TYPES.get(name, "any") for name in names]
        if not kinds:
            kinds = ["any" if schema.get("properties") is None else "object"]
        return " | ".join(self.kind(kind, schema, commented, depth) for kind in dict.fromkeys(kinds))

    def kind(self, kind: str, schema: dict[str, Any], commented: bool, depth: int) -> str:
        """One of the types that a schema allows."""
        if kind == "object":
            return (comments(schema) if commented else "") + "{\n" + self.properties(schema, depth) + "}"
        if kind == "array":
            of = schema.get("items")
            return ("any" if of is None else self.type_of(of, commented=True, depth=depth + 1)) + "[]"
        return kind

    def properties(self, schema: dict[str, Any], depth: int) -> str:
        """A line for each property, and comments before it."""
        lines = ""
        properties = schema.get("properties")
        required = {name for name in items(schema, "required") if isinstance(name, str)}
        for name, value in properties.items() if isinstance(properties, dict) else ():
            about = value if isinstance(value, dict) else {}
            lines += comments(about)
            if examples := items(about, "examples"):
                lines += "// Examples:\n" + "".join(f"// - {dump(example)}\n" for example in examples)
            lines += (
                f"{name}{'' if name in required else '?'}: {self.type_of(value, commented=False, depth=depth + 1)},"
            )
            lines += f" // default: {dump(about['default'])}\n" if "default" in about else "\n"
        return lines

    def definition(self, reference: str) -> Any:
        """What `#/$defs/Name` means, unless it was written before: it may refer to itself."""
        if not reference.startswith("#/") or reference in self.referred:
            return None
        found = self.root
        for step in reference[2:].split("/"):
            if not isinstance(found, dict) or step not in found:
                return None
            found = found[step]
        self.referred.add(reference)
        return found
