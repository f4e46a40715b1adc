"""Tools as OpenAI writes them, counted: `declaring` in Rust and in the reference, and what they must not do."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import keys

from ctxfast import TokenCounter, model_info
from ctxfast.reference import for_model
from ctxfast.reference.declaring import declaration

GPT = model_info("gpt-4o")
COUNTER = TokenCounter.for_model("gpt-4o")
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather at a place.\n\nNot that of tomorrow.",
        "strict": True,
        "parameters": {
            "type": "object",
            "title": "Weather",
            "properties": {
                "place": {"type": "string", "title": "Place", "description": "A city", "minLength": 1},
                "unit": {"enum": ["°C", "°F"], "default": "°C"},
                "days": {"type": ["integer", "null"], "default": None},
                "at": {"$ref": "#/$defs/At"},
                "until": {"$ref": "#/$defs/At"},
                "parts": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
                "mode": {"const": "fast", "examples": ["fast"]},
                "more": {},
            },
            "required": ["place", "days"],
            "additionalProperties": False,
            "$defs": {
                "At": {"type": "object", "description": "A time", "properties": {"at": {"$ref": "#/$defs/At"}}},
            },
        },
    },
}
WRITTEN = """\
// The weather at a place.
// Not that of tomorrow.
type get_weather = (_: // Weather
{
// Place
// A city
place: string,
unit?: "°C" | "°F", // default: "°C"
days: number | null, // default: null
at?: {
at?: any,
},
until?: any,
parts?:
 | string
 | number[],
// Examples:
// - "fast"
mode?: "fast",
more?: any,
}) => any;

""".replace("parts?:", "parts?: ")


def tool(schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": schema}}


def test_declaration() -> None:
    assert declaration(WEATHER, "tools[0]") == WRITTEN
    assert COUNTER.tools([WEATHER]) == COUNTER.text(WRITTEN) + GPT.tools.per_request
    assert COUNTER.tools([WEATHER, WEATHER]) == COUNTER.text(WRITTEN * 2) + GPT.tools.per_request
    assert COUNTER.tools([]) == 0
    estimate = TokenCounter.for_model("gpt-4o", exact=False, safety=0.5)
    assert estimate.tools([WEATHER]) == estimate.text(WRITTEN) + GPT.tools.per_request


def test_other_forms() -> None:
    """Definitions without `function`, Anthropic's, and objects."""
    function = WEATHER["function"]
    expected = COUNTER.tools([WEATHER])
    flat = {"name": function["name"], "description": function["description"]}
    assert COUNTER.tools([{"type": "function", **function}]) == expected
    assert COUNTER.tools([{**flat, "input_schema": function["parameters"]}]) == expected
    assert COUNTER.tools([SimpleNamespace(type="function", function=SimpleNamespace(**function))]) == expected


@pytest.mark.parametrize("schema", [{}, None, [], {"type": "object"}, {"properties": {}, "type": "object"}, 5])
def test_takes_nothing(schema: Any) -> None:
    assert declaration(tool(schema), "tool") == "type f = () => any;\n\n"
    assert COUNTER.tools([tool(schema)]) == COUNTER.text("type f = () => any;\n\n") + GPT.tools.per_request


def test_what_is_not_declared() -> None:
    """A schema that is text, a grammar, a provider's own tool: counted as they are."""
    for other in (
        tool('{"type": "object"}'),
        {"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {"definition": "a" * 99}}}},
        {"type": "web_search", "user_location": {"city": "Bern"}},
    ):
        assert declaration(other, "tool") is None
        assert COUNTER.tools([other]) == for_model("gpt-4o").tools([other]) > GPT.tools.per_request + 5
        both = [other, WEATHER]
        assert COUNTER.tools(both) == COUNTER.tools([other]) + COUNTER.text(WRITTEN)


values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 5, -1.5, "", 'a"\n', "\ud83d", "ไทย", [], (1, "b"), {}, {"é": [None]}, {5: 1}, {1}]
)
schemas: st.SearchStrategy[Any] = st.recursive(
    values | st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/é"}, {"$ref": "#"}, {"type": "integer"}]),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "boolean", ["array", "null", "array"], "odd"]),
            "properties": st.dictionaries(keys, inner, max_size=3),
            "required": st.lists(keys, max_size=3) | values,
            "items": inner,
            "title": st.sampled_from(["A", "", 5, "ä\n \nb"]),
            "description": st.sampled_from(["What it is", "\ud83d\r\n\x0b\n", None]),
            "anyOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2).map(tuple),
            "enum": st.lists(values, max_size=2),
            "const": values,
            "default": values,
            "examples": st.lists(values, max_size=2),
            "$defs": st.dictionaries(st.sampled_from(["a", "é"]), inner, max_size=2),
        },
    ),
    max_leaves=8,
)


def outcome(count: Callable[[Any], int], tools: list[Any]) -> int | str:
    try:
        return count(tools)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


@given(st.lists(schemas.map(tool), max_size=2), st.sampled_from(["gpt-4o", "gpt-5", "gpt-4"]), st.booleans())
def test_as_the_reference(tools: list[Any], model: str, exact: bool) -> None:
    counter, twin = TokenCounter.for_model(model, exact=exact), for_model(model, exact=exact)
    assert outcome(counter.tools, tools) == outcome(twin.tools, tools)


def test_wrong_schemas_are_named() -> None:
    cycle: dict[str, Any] = {"type": "object"}
    cycle["properties"] = {"a": cycle}
    for schema, message in ((cycle, r"tools\[0\]\.function\.parameters"), ({"x": {5: 1}}, "string keys")):
        with pytest.raises((TypeError, ValueError), match=message):
            COUNTER.tools([tool(schema)])


def test_definitions_do_not_explode() -> None:
    """Each is written once, and chains of them end."""
    twice = {f"d{i}": {"properties": {x: {"$ref": f"#/$defs/d{i + 1}"} for x in "ab"}} for i in range(5_000)}
    kinds: Any = {"type": "string"}
    for _ in range(30):
        kinds = {"type": ["object"] * 9 + ["array"] * 9, "properties": {"a": kinds}, "items": {"type": "string"}}
    start = time.perf_counter()
    for schema in ({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": twice}, kinds):
        assert COUNTER.tools([tool(schema)]) == for_model("gpt-4o").tools([tool(schema)]) < 2_000
    assert time.perf_counter() - start < 5


def test_descriptions_count_in_full() -> None:
    """Nothing is taken off a long description: only the schema is shorter than its JSON."""
    text = "Reads a file and says what is in it, line by line, with numbers.\n" * 50
    described = {"type": "function", "function": {"name": "read", "description": text, "parameters": {}}}
    assert COUNTER.tools([described]) > COUNTER.text(text)


def test_notation_is_checked() -> None:
    with pytest.raises(ValueError, match="notation: expected json or typescript"):
        type(GPT.tools)(notation="xml")  # type: ignore[arg-type]
