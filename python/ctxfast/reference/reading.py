"""What one message holds, whatever its form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxfast.errors import MessageTypeError, MessageValueError

PROSE = "prose"  # what people and the model say: content, reasoning, refusals
OUTPUT = "output"  # what tools say
ALIAS = "alias"  # `reasoning`, where there is no `reasoning_content`; PicoClaw does not know it
NAME = "name"  # the name of a called tool
ARGUMENTS = "arguments"  # its arguments: a string or a JSON value
ID = "id"  # ids and types of calls and results
BLOCK = "block"  # a content block that we do not know, counted as its JSON: unknown is not zero
REST = "rest"  # what else a message says in ways that we do not know, likewise; PicoClaw does not count it
MEDIA = "media"  # an image, a sound, a file: what it calls itself, and the part

BLOCKS, OWN_BLOCKS = "blocks", "own blocks"  # facts of a message: it has blocks, and some that are no tool results

TEXT_BLOCKS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
MEDIA_BLOCKS = {
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "other"),
    **dict.fromkeys(("file", "input_file", "container_upload"), "file"),
}
CALL_BLOCKS = {
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
}  # the last two are answered by the provider itself
OPAQUE_KEYS = {"signature", "thought_signature", "cache_control"}  # and all that begin with `encrypted_`
MEDIA_TYPE_KEYS = {"media_type", "mime_type", "mimeType", "mediaType"}
PAYLOAD_KEYS = {
    *("content", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "media", "system_parts"),
    *("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"),
}
MAX_DEPTH = 64  # of nested blocks and of JSON values

Piece = tuple[str, Any]


@dataclass
class Reading:
    """What one message holds, in the order in which it is read."""

    role: str
    content: list[Piece] = field(default_factory=list)
    alternative: list[str] | None = None  # PicoClaw's `system_parts`: another form of the content, the larger counts
    other: list[Piece] = field(default_factory=list)
    calls: list[str | None] = field(default_factory=list)  # ids of calls that wait for a result; None: blank
    called: list[tuple[Any, Any]] = field(default_factory=list)  # name and arguments of each of these calls
    results: list[str | None] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)  # what holds each result: the message, or a block
    facts: set[str] = field(default_factory=set)  # codes of `validate` that this message shows by itself
    form: str | None = None  # the form that it can only be of
    own_text: bool = False  # a user message that says something, be it beside tool results


def read_message(message: object, path: str) -> Reading:
    """Read one message of any supported form."""
    fields = read_fields(message, path)
    if fields.get("role") is None:
        raise MessageValueError("a message with a `role`", f"`{type(message).__name__}` without one", path)
    reading = Reading(role=expect_str(fields["role"], f"{path}.role"))

    reasoning = fields.get("reasoning_content")
    if reasoning is not None:
        reading.other.append((PROSE, expect_str(reasoning, f"{path}.reasoning_content")))
    else:
        for key in ("reasoning", "reasoning_details", "thinking_blocks"):  # three ways to write the same
            if fields.get(key) is not None:
                is_text = isinstance(fields[key], str)
                reading.other.append((ALIAS, fields[key]) if is_text else (REST, (fields[key], f"{path}.{key}")))
                break
    if fields.get("refusal") is not None:
        reading.other.append((PROSE, expect_str(fields["refusal"], f"{path}.refusal")))
    if fields.get("audio") is not None:
        reading.other.append((MEDIA, ("audio", fields["audio"])))
    for item in expect_list(fields.get("media"), f"{path}.media"):
        reading.other.append((MEDIA, ("other", item)))

    read_tool_calls(fields, reading, path)
    if reading.calls or is_result_role(reading.role):
        reading.form = "openai"
    listed = set(reading.calls) - {None}  # `tool_use` blocks of the content that repeat these are not counted again

    kind = OUTPUT if is_result_role(reading.role) else PROSE
    content = fields.get("content")
    read_content(content, kind, reading, f"{path}.content", listed=listed)
    parts = expect_list(fields.get("system_parts"), f"{path}.system_parts")
    if parts:
        reading.alternative = []
        for index, part in enumerate(parts):
            where = f"{path}.system_parts[{index}]"
            text = read_fields(part, where).get("text")
            reading.alternative.append("" if text is None else expect_str(text, f"{where}.text"))

    result_id = fields.get("tool_call_id")
    if result_id is not None:
        reading.other.append((ID, expect_str(result_id, f"{path}.tool_call_id")))
    if is_result_role(reading.role):
        reading.results = [pairing_key(result_id)]
        reading.outputs = [fields]
    if reading.role != "assistant":
        reading.calls = []
        reading.called = []
    if reading.role == "user":
        reading.own_text = not reading.results or has_text(content)
    if all(fields.get(key) is None for key in PAYLOAD_KEYS):
        rest = {key: value for key, value in fields.items() if key != "role" and value is not None}
        if rest:
            reading.other.append((REST, (rest, path)))
    pieces = [*reading.content, *reading.other, *((PROSE, text) for text in reading.alternative or ())]
    says = any(kind == MEDIA or (kind != ID and value != "" and value != ("", None)) for kind, value in pieces)
    if not (says or BLOCKS in reading.facts or reading.calls or reading.results):
        reading.facts.add("empty_message")
    return reading


def read_tool_calls(fields: dict[str, Any], reading: Reading, path: str) -> None:
    """`tool_calls` (function, custom, or flat as some frameworks write them) and the older `function_call`."""
    for index, call in enumerate(expect_list(fields.get("tool_calls"), f"{path}.tool_calls")):
        where = f"{path}.tool_calls[{index}]"
        call_fields = read_fields(call, where)
        call_id = call_fields.get("id")
        for key in ("id", "type"):
            if call_fields.get(key) is not None:
                reading.other.append((ID, expect_str(call_fields[key], f"{where}.{key}")))
        inner = call_fields.get("function")
        inner_path = f"{where}.function"
        if inner is None:
            inner, inner_path = call_fields.get("custom"), f"{where}.custom"
        if inner is None:
            inner, inner_path = call, where
        read_called_function(inner, reading, inner_path)
        reading.calls.append(pairing_key(call_id))
    if fields.get("function_call") is not None:
        read_called_function(fields["function_call"], reading, f"{path}.function_call")
        reading.calls.append(None)


def read_called_function(function: object, reading: Reading, path: str) -> None:
    """A name and its arguments (`arguments`, or `input` of custom tools, or `args`): a string or a JSON value."""
    fields = read_fields(function, path)
    if fields.get("name") is not None:
        reading.other.append((NAME, expect_str(fields["name"], f"{path}.name")))
    if reading.role == "assistant" and not str(fields.get("name") or "").strip():
        reading.facts.add("blank_name")
    arguments = None
    for key in ("arguments", "input", "args"):
        if fields.get(key) is not None:
            arguments = fields[key]
            reading.other.append((ARGUMENTS, (arguments, f"{path}.{key}")))
            break
    reading.called.append((fields.get("name"), arguments))


def read_content(
    content: object, kind: str, reading: Reading, path: str, *, listed: set[str | None] | None = None, depth: int = 0
) -> None:
    """A string, nothing, or a list of parts."""
    if content is None:
        return
    if isinstance(content, str):
        reading.content.append((kind, content))
        return
    if not isinstance(content, (list, tuple)):
        raise MessageTypeError("`str`, `None` or a list of parts", f"`{type(content).__name__}`", path)
    if depth > MAX_DEPTH:
        raise MessageValueError(f"at most {MAX_DEPTH} levels of nested blocks", "more", path)
    for index, part in enumerate(content):
        read_part(part, kind, reading, f"{path}[{index}]", listed or set(), depth)


def read_part(part: object, kind: str, reading: Reading, path: str, listed: set[str | None], depth: int) -> None:
    """One part of a content list: a bare string or a block that says its `type`."""
    if isinstance(part, str):
        reading.content.append((kind, part))
        if depth == 0:
            note_block({"type": "text", "text": part}, reading)
        return
    fields = read_fields(part, path)
    block_type = fields.get("type")
    if depth == 0:
        note_block(fields, reading)
    if not isinstance(block_type, str):
        reading.content.append((BLOCK, (part, path)))
    elif block_type == "thinking" and isinstance(fields.get("thinking"), (list, tuple)):  # Mistral's
        read_content(fields["thinking"], kind, reading, f"{path}.thinking", depth=depth + 1)
    elif block_type in TEXT_BLOCKS:
        key = TEXT_BLOCKS[block_type]
        if fields.get(key) is not None:
            reading.content.append((kind, expect_str(fields[key], f"{path}.{key}")))
    elif block_type == "redacted_thinking":
        pass  # opaque
    elif block_type in MEDIA_BLOCKS:
        reading.content.append((MEDIA, (MEDIA_BLOCKS[block_type], part)))
    elif block_type == "document":
        read_document(part, kind, reading, path, depth)
    elif block_type in CALL_BLOCKS:
        if block_type == "tool_use" and isinstance(fields.get("id"), str) and fields["id"] in listed:
            return
        if fields.get("id") is not None:
            reading.content.append((ID, expect_str(fields["id"], f"{path}.id")))
        if fields.get("name") is not None:
            reading.content.append((NAME, expect_str(fields["name"], f"{path}.name")))
        if fields.get("input") is not None:
            reading.content.append((ARGUMENTS, (fields["input"], f"{path}.input")))
        if block_type == "tool_use" and depth == 0 and reading.role == "assistant":
            reading.calls.append(pairing_key(fields.get("id")))
            reading.called.append((fields.get("name"), fields.get("input")))
            reading.form = reading.form or "anthropic"
            if not str(fields.get("name") or "").strip():
                reading.facts.add("blank_name")
    elif block_type == "tool_result":
        if fields.get("tool_use_id") is not None:
            reading.content.append((ID, expect_str(fields["tool_use_id"], f"{path}.tool_use_id")))
        read_content(fields.get("content"), OUTPUT, reading, f"{path}.content", depth=depth + 1)
        if depth == 0 and reading.role == "user":
            reading.results.append(pairing_key(fields.get("tool_use_id")))
            reading.outputs.append(fields)
            reading.form = reading.form or "anthropic"
    else:
        reading.content.append((BLOCK, (part, path)))


def note_block(fields: dict[str, Any], reading: Reading) -> None:
    """Notes what `validate` needs to know of a block of the content itself."""
    block_type = fields.get("type")
    if block_type in ("text", "input_text", "output_text") and not fields.get("text"):
        reading.facts.add("empty_text")
    else:
        reading.facts.add(BLOCKS)
    if block_type == "thinking" and fields.get("signature") is None:
        reading.facts.add("thinking_without_signature")
    if reading.role == "user" and block_type != "tool_result":
        reading.facts.add(OWN_BLOCKS)
    elif reading.role == "user" and OWN_BLOCKS in reading.facts:
        reading.facts.add("result_after_text")


def read_document(part: object, kind: str, reading: Reading, path: str, depth: int) -> None:
    """A document is media, unless its source is text or a list of blocks."""
    fields = read_fields(part, path)
    for key in ("title", "context"):
        if fields.get(key) is not None:
            reading.content.append((kind, expect_str(fields[key], f"{path}.{key}")))
    source_path = f"{path}.source"
    source = {} if fields.get("source") is None else read_fields(fields["source"], source_path)
    if source.get("type") == "text":
        if source.get("data") is not None:
            reading.content.append((kind, expect_str(source["data"], f"{source_path}.data")))
    elif source.get("type") == "content":
        read_content(source.get("content"), kind, reading, f"{source_path}.content", depth=depth + 1)
    else:
        reading.content.append((MEDIA, ("file", part)))


def has_text(content: Any) -> bool:
    """Whether a user message that carries tool results says something besides: an image alone is no task."""
    for part in content:
        text = part if isinstance(part, str) else None
        if text is None and (fields := read_fields(part, "")).get("type") in ("text", "input_text"):
            text = fields.get("text")
        if isinstance(text, str) and text.strip():
            return True
    return False


def is_result_role(role: str) -> bool:
    """Roles of messages that are one tool result."""
    return role in ("tool", "function")


def pairing_key(call_id: object) -> str | None:
    """Ids pair when they are equal. Missing and blank ids are all the same one."""
    return call_id if isinstance(call_id, str) and call_id.strip() else None


def read_fields(value: object, path: str) -> dict[str, Any]:
    """The fields of a dict, or of an object as its `__dict__` (and pydantic's extras) hold them."""
    if isinstance(value, dict):
        fields = value
    else:
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict):
            raise MessageTypeError("a dict or an object with attributes", f"`{type(value).__name__}`", path)
        extra = getattr(value, "__pydantic_extra__", None) or {}
        fields = {**attributes, **{key: item for key, item in extra.items() if item is not None}}
        if not (attributes or extra):  # a function, an exception, a class without fields
            raise MessageTypeError("a dict or an object with attributes", f"`{type(value).__name__}`", path)
    for key in fields:
        if not isinstance(key, str):
            raise MessageTypeError("string keys", f"`{type(key).__name__}`", path)
    return fields


def expect_str(value: object, path: str) -> str:
    """The value, if it is a string."""
    if not isinstance(value, str):
        raise MessageTypeError("`str`", f"`{type(value).__name__}`", path)
    return value


def expect_list(value: object, path: str) -> Sequence[Any]:
    """The value, if it is a list or a tuple; nothing counts as an empty one."""
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        raise MessageTypeError("a list", f"`{type(value).__name__}`", path)
    return value


def expect_messages(messages: object) -> Sequence[Any]:
    """A list or tuple of messages."""
    if not isinstance(messages, (list, tuple)):
        raise MessageTypeError("a list of messages", f"`{type(messages).__name__}`", "messages")
    return messages


def json_text(value: object, path: str) -> str:
    """Compact JSON of arguments and schemas, non-ASCII characters as they are, objects as their fields."""
    return dump(plain(value, path, None, ()))


def block_text(value: object, path: str) -> tuple[str, list[Any]]:
    """Compact JSON of what we do not know, without what is no text; and the data of the media that are in it."""
    media: list[Any] = []
    return dump(plain(value, path, media, ())), media


def dump(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(value: object, path: str, media: list[Any] | None, above: tuple[int, ...]) -> Any:
    """The value as dicts, lists, strings, numbers, booleans and nothing else.

    With a list for `media`: opaque fields are left out, and data of media go to that list.
    """
    if media is not None and is_media(value):
        media.append(value)
        return ""
    if isinstance(value, int) and value.bit_length() > 14_000:
        raise MessageValueError("an integer of at most 4,000 digits", "more", path)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if len(above) >= MAX_DEPTH or id(value) in above:
        raise MessageValueError(f"JSON of at most {MAX_DEPTH} levels", "a cycle or more", path)
    above = (*above, id(value))
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{path}[{index}]", media, above) for index, item in enumerate(value)]
    fields = read_fields(value, path)
    if not isinstance(value, dict):  # an SDK's object: what was not sent is `None`
        fields = {key: item for key, item in fields.items() if item is not None}
    result = {}
    for key, item in fields.items():
        if media is not None and (key in OPAQUE_KEYS or key.startswith("encrypted_")):
            continue
        if media is not None and key in ("data", "blob") and isinstance(item, (str, bytes, bytearray)):
            of = fields.get("type")
            if of == "base64" or MEDIA_TYPE_KEYS & fields.keys():
                media.append(item)
                continue
            if isinstance(of, str) and (of.endswith("encrypted") or of == "redacted_thinking"):
                continue
        result[key] = plain(item, f"{path}.{printable(key)}", media, above)
    return result


def printable(key: str) -> str:
    """A key as it is shown in the path of an error: lone surrogates cannot be printed."""
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in key)


def is_media(value: object) -> bool:
    """Bytes, and data URLs: their characters are no text."""
    if isinstance(value, str):
        return value.startswith("data:") and ";base64," in value[:256] and max(value) <= "\xff"
    return isinstance(value, (bytes, bytearray))
