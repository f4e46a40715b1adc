"""A message in the other form, where a list mixes forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ctxfast.reference.reading import (
    Reading,
    is_result_role,
    json_text,
    read_fields,
    read_message,
)
from ctxfast.reference.validating import KNOWN_ROLES

CALL_KEYS = ("tool_calls", "function_call")


def as_dict(value: object) -> dict[str, Any]:
    """A message or block as a dict of its own."""
    if isinstance(value, dict):
        return dict(value)
    return {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}


def get(value: object, key: str) -> Any:
    """A field of a message or block."""
    return read_fields(value, "").get(key)


def parts_of(content: object) -> list[Any]:
    """The parts of a content; a text is one, an empty one is none."""
    if isinstance(content, (list, tuple)):
        return list(content)
    return [{"type": "text", "text": content}] if content else []


def type_of(part: object) -> object:
    """The type of a part."""
    return "text" if isinstance(part, str) else get(part, "type")


def converted(message: Any, reading: Reading, form: str) -> list[Any] | None:
    """The message in another form, if it has to be: as many messages as that takes."""
    role = reading.role
    is_unknown = role not in KNOWN_ROLES["openai"]
    if is_unknown:
        message = {**as_dict(message), "role": "assistant" if role in ("ai", "model") else "user"}
        reading = read_message(message, "")
    if form == "anthropic":
        if is_result_role(role):
            return [as_user(as_dict(message))]
        if reading.form == "openai":
            return [with_blocks(as_dict(message), reading)]
    elif reading.role == "user" and reading.results:
        return one_by_one(as_dict(message))
    elif reading.role == "assistant" and has_own_call_blocks(message):
        return [with_tool_calls(as_dict(message))]
    return [message] if is_unknown else None


def listed_ids(fields: Mapping[str, Any]) -> set[str]:
    """Ids in `tool_calls`: blocks of the content that repeat these are no calls of their own."""
    ids = [get(call, "id") for call in fields.get("tool_calls") or ()]
    return {call_id for call_id in ids if isinstance(call_id, str) and call_id.strip()}


def is_call_block(part: Any, listed: set[str] | None) -> bool:
    """Whether a part is a call; with `listed`: one that is not among those."""
    if isinstance(part, str) or get(part, "type") != "tool_use":
        return False
    return listed is None or get(part, "id") not in listed


def has_own_call_blocks(message: Any) -> bool:
    """Whether there are calls in the content that `tool_calls` does not have."""
    content, listed = get(message, "content"), listed_ids(read_fields(message, ""))
    return isinstance(content, (list, tuple)) and any(is_call_block(part, listed) for part in content)


def as_user(fields: dict[str, Any]) -> dict[str, Any]:
    """A message that is one result as Anthropic's message of a user."""
    block: dict[str, Any] = {"type": "tool_result"}
    for key, name in (("tool_call_id", "tool_use_id"), ("content", "content"), ("is_error", "is_error")):
        if fields.get(key) is not None:
            block[name] = fields[key]
    for key in ("tool_call_id", "name", "is_error", *CALL_KEYS):
        fields.pop(key, None)
    return {**fields, "role": "user", "content": [block]}


def with_blocks(fields: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """A message with its calls as blocks of the content. Only the model's are calls."""
    calls = list(fields.get("tool_calls") or ())
    listed = listed_ids(fields)
    function = fields.get("function_call")
    for key in CALL_KEYS:
        fields.pop(key, None)
    if reading.role != "assistant":
        return fields
    inner = [(get(call, "id"), called(call)) for call in calls]
    inner += [] if function is None else [(None, function)]
    blocks = []
    for call_id, one in inner:
        found = next((get(one, key) for key in ("arguments", "input", "args") if get(one, key) is not None), None)
        block = {"type": "tool_use", "id": call_id, "name": get(one, "name"), "input": as_input(found)}
        blocks.append({key: value for key, value in block.items() if value is not None})
    parts = parts_of(fields.get("content"))
    own = [part for part in parts if not is_call_block(part, None)]
    theirs = [part for part in parts if is_call_block(part, listed)]
    return {**fields, "content": [*own, *blocks, *theirs]}


def called(call: object) -> object:
    """What of a call holds the name and the arguments."""
    function = get(call, "function")
    custom = get(call, "custom")
    return function if function is not None else custom if custom is not None else call


def as_input(arguments: object) -> object:
    """Arguments as the object that Anthropic's form demands."""
    value = arguments
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            value = arguments
        if not isinstance(value, dict):
            value = arguments
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"arguments": value}


def one_by_one(fields: dict[str, Any]) -> list[Any]:
    """Results as messages of their own, and what else there is behind them."""
    made: list[Any] = []
    rest = []
    for part in parts_of(fields.get("content")):
        if type_of(part) == "tool_result":
            content, call_id = get(part, "content"), get(part, "tool_use_id")
            message = {"role": "tool", "tool_call_id": call_id, "content": "" if content is None else content}
            made.append({key: value for key, value in message.items() if value is not None})
        else:
            rest.append(part)
    fields["content"] = rest
    return made if is_empty(fields) else [*made, fields]


def with_tool_calls(fields: dict[str, Any]) -> dict[str, Any]:
    """A message with all of its calls in `tool_calls`."""
    listed = listed_ids(fields)
    calls = list(fields.get("tool_calls") or ())
    if fields.get("function_call") is not None:
        calls.append({"type": "function", "function": fields["function_call"]})
    fields.pop("function_call", None)
    rest = []
    for part in fields["content"]:
        if not is_call_block(part, listed):
            rest.append(part)
            continue
        given = get(part, "input")
        text = given if isinstance(given, str) else "{}" if given is None else json_text(given, "")
        function = {"name": get(part, "name"), "arguments": text}
        call = {"id": get(part, "id"), "type": "function", "function": function}
        if function["name"] is None:
            del function["name"]
        if call["id"] is None:
            del call["id"]
        calls.append(call)
    return {**fields, "content": rest or None, "tool_calls": calls}


def is_empty(fields: Mapping[str, Any]) -> bool:
    """Whether `validate` would call it empty."""
    return "empty_message" in read_message(fields, "").facts
