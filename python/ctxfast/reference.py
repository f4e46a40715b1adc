"""The rules of counting and cutting in plain Python: the specification, the tests' oracle, the benchmarks' baseline.

Nothing here is fast and nothing here is clever. The Rust core gives the same answers; where the two differ, one of
them has a bug. The text follows the data: read a message, count it, see what belongs together, choose a tail.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxfast.counting import EstimatorConfig
from ctxfast.errors import BudgetError, MessageTypeError, MessageValueError

__all__ = [
    "CallableCounter",
    "FlatCounter",
    "FreshTail",
    "atoms",
    "count_tokens",
    "default_counter",
    "find_safe_cut",
    "fresh_tail_budget",
    "picoclaw",
    "safe_cuts",
    "select_fresh_tail",
    "step_starts",
    "turn_starts",
    "validate",
]

# --------------------------------------------------------------------------------------------- 1. read a message

PROSE = "prose"  # what people and the model say: content, reasoning, refusals
OUTPUT = "output"  # what tools say
ALIAS = "alias"  # `reasoning`, where there is no `reasoning_content`; PicoClaw does not know it
NAME = "name"  # the name of a called tool
ARGUMENTS = "arguments"  # its arguments: a string or a JSON value
ID = "id"  # ids and types of calls and results
BLOCK = "block"  # a content block that we do not know, counted as its JSON: unknown is not zero
REST = "rest"  # what else a message says in ways that we do not know, likewise; PicoClaw does not count it
MEDIA = "media"  # an image, a sound, a file

BLOCKS, OWN_BLOCKS = "blocks", "own blocks"  # facts of a message: it has blocks, and some that are no tool results

TEXT_BLOCKS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
MEDIA_BLOCKS = {
    *("image", "image_url", "input_image", "audio", "input_audio", "video", "video_url", "input_video"),
    *("file", "input_file", "container_upload"),
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
    results: list[str | None] = field(default_factory=list)
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
        reading.other.append((MEDIA, None))
    for _ in expect_list(fields.get("media"), f"{path}.media"):
        reading.other.append((MEDIA, None))

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
    if reading.role != "assistant":
        reading.calls = []
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
    for key in ("arguments", "input", "args"):
        if fields.get(key) is not None:
            reading.other.append((ARGUMENTS, (fields[key], f"{path}.{key}")))
            break


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
        reading.content.append((MEDIA, None))
    elif block_type == "document":
        read_document(fields, kind, reading, path, depth)
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
            reading.form = reading.form or "anthropic"
            if not str(fields.get("name") or "").strip():
                reading.facts.add("blank_name")
    elif block_type == "tool_result":
        if fields.get("tool_use_id") is not None:
            reading.content.append((ID, expect_str(fields["tool_use_id"], f"{path}.tool_use_id")))
        read_content(fields.get("content"), OUTPUT, reading, f"{path}.content", depth=depth + 1)
        if depth == 0 and reading.role == "user":
            reading.results.append(pairing_key(fields.get("tool_use_id")))
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


def read_document(fields: dict[str, Any], kind: str, reading: Reading, path: str, depth: int) -> None:
    """A document is media, unless its source is text or a list of blocks."""
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
        reading.content.append((MEDIA, None))


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
        if not fields:  # a function, an exception, a class without fields
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


def block_text(value: object, path: str) -> tuple[str, int]:
    """Compact JSON of what we do not know, without what is no text; and how many media are in it."""
    media: list[str] = []
    return dump(plain(value, path, media, ())), len(media)


def dump(value: object) -> str:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(value: object, path: str, media: list[str] | None, above: tuple[int, ...]) -> Any:
    """The value as dicts, lists, strings, numbers, booleans and nothing else.

    With a list for `media`: opaque fields are left out, and data of media go to that list.
    """
    if media is not None and is_media(value):
        media.append(path)
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
                media.append(path)
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


# ------------------------------------------------------------------------------------------------- 2. count tokens


class Counter:
    """What every counter can do; a kind of counter says what a message, some content and a tool cost."""

    def text(self, text: str) -> int:
        """Tokens of a string."""
        raise NotImplementedError

    def pieces(self, reading: Reading) -> int:
        """Tokens of what was read of a message, its frame included."""
        raise NotImplementedError

    def bare_content(self, pieces: list[Piece]) -> int:
        """Tokens of content without a message around it."""
        raise NotImplementedError

    def tools(self, tools: Sequence[object] | None) -> int:
        """Tokens of a list of tool definitions."""
        raise NotImplementedError

    def content(self, parts: object) -> int:
        """Tokens of a message's content: a string, `None` or a list of parts."""
        reading = Reading(role="user")
        read_content(parts, PROSE, reading, "content")
        return self.bare_content(reading.content)

    def message(self, message: object) -> int:
        """Tokens of one message."""
        return self.pieces(read_message(message, "message"))

    def messages(self, messages: Sequence[object], tools: Sequence[object] | None = None) -> int:
        """Tokens of a list of messages: the plain sum, and the tools."""
        total = sum(self.pieces(read_message(m, f"messages[{i}]")) for i, m in enumerate(expect_messages(messages)))
        return total + self.tools(tools)

    def request(self, body: object) -> int:
        """Tokens of a request body: `messages`, Anthropic's separate `system`, `tools`."""
        fields = read_fields(body, "request")
        if fields.get("messages") is None:
            raise MessageValueError("a request with `messages`", "none", "request")
        total = self.messages(fields["messages"], fields.get("tools"))
        if fields.get("system") is not None:
            reading = Reading(role="system")
            read_content(fields["system"], PROSE, reading, "request.system")
            total += self.pieces(reading)
        return total

    def __call__(self, content: object) -> int:
        """Tokens of a string, a message or a list of messages."""
        if isinstance(content, str):
            return self.text(content)
        if isinstance(content, (list, tuple)):
            return self.messages(content)
        return self.message(content)

    def fits(self, content: object, limit: float) -> bool:
        """Whether `content` has at most `limit` tokens."""
        return self(content) <= check_budget(limit, "limit", zero=True)

    def head(self, text: str, max_tokens: float) -> str:
        """The longest prefix within `max_tokens`."""
        limit = check_budget(max_tokens, "max_tokens", zero=True)
        return longest(len(text), lambda n: text[:n], lambda part: self.text(part) <= limit)

    def tail(self, text: str, max_tokens: float) -> str:
        """The longest suffix within `max_tokens`."""
        limit = check_budget(max_tokens, "max_tokens", zero=True)
        return longest(len(text), lambda n: text[len(text) - n :], lambda part: self.text(part) <= limit)


def longest(length: int, part: Callable[[int], str], fits: Callable[[str], bool]) -> str:
    """The longest part that fits, of a text whose count does not fall when it grows (else: one that fits)."""
    low, high = 0, length
    while low < high:
        middle = (low + high + 1) // 2
        if fits(part(middle)):
            low = middle
        else:
            high = middle - 1
    return part(low)


@dataclass(frozen=True)
class FlatCounter(Counter):
    """So many characters (or bytes) make a token; see `EstimatorConfig`."""

    config: EstimatorConfig

    def text(self, text: str) -> int:
        """Tokens of a string."""
        return self.tokens(self.weigh(PROSE, text))

    def bare_content(self, pieces: list[Piece]) -> int:
        """Tokens of content without a message around it."""
        return self.tokens(self.weigh_all(pieces))

    def pieces(self, reading: Reading) -> int:
        """Tokens of a message: content (or its longer alternative), everything else, the frame; rounded once."""
        content = self.weigh_all(reading.content)
        if reading.alternative is not None:
            other_form = self.weigh_all([(PROSE, text) for text in reading.alternative])
            other_form[PROSE] += 20 * len(reading.alternative)
            if sum(other_form[k] for k in RATES) > sum(content[k] for k in RATES):
                other_form[MEDIA] = content[MEDIA]
                content = other_form
        weight = add(content, self.weigh_all(reading.other))
        weight[PROSE] += self.config.message_overhead
        return self.tokens(weight)

    def tools(self, tools: Sequence[object] | None) -> int:
        """Tokens of tool definitions: name, description, schema as compact JSON, a fixed frame; rounded once."""
        weight = dict.fromkeys((*RATES, MEDIA), 0)
        for index, tool in enumerate(expect_list(tools, "tools")):
            for piece in read_tool(tool, f"tools[{index}]"):
                weight = add(weight, self.weigh(*piece))
            weight[OUTPUT] += self.config.tool_overhead
        return self.tokens(weight)

    def weigh_all(self, pieces: list[Piece]) -> dict[str, int]:
        """Units of many pieces."""
        weight = dict.fromkeys((*RATES, MEDIA), 0)
        for piece in pieces:
            weight = add(weight, self.weigh(*piece))
        return weight

    def weigh(self, kind: str, value: Any) -> dict[str, int]:
        """Units of one piece, by rate: prose, code (everything that is not prose), Thai; and media parts."""
        weight = dict.fromkeys((*RATES, MEDIA), 0)
        mixed = self.config.unit == "mixed"
        if kind == MEDIA:
            weight[MEDIA] = 1
            return weight
        if kind in (ALIAS, REST) and mixed:
            return weight
        if kind in (BLOCK, REST):
            text, weight[MEDIA] = block_text(*value)
        elif kind == ARGUMENTS and not isinstance(value[0], str):
            text = json_text(*value)
        else:
            text = value[0] if kind == ARGUMENTS else value
        if mixed and text is not value and not (kind == ARGUMENTS and text is value[0]):
            text = go_json(json.loads(text, parse_int=float))
        value = text
        is_prose = kind in (PROSE, ALIAS, REST)
        in_chars = self.config.unit == "chars" or (mixed and kind in (PROSE, OUTPUT))
        thai_units = 0
        if self.config.thai_per_token is not None:
            thai_units = sum("\u0e00" <= c <= "\u0e7f" for c in value) * (1 if in_chars else 3)
        units = len(value) if in_chars else len(value.encode("utf-8", "surrogatepass"))
        weight[PROSE if is_prose else OUTPUT] = units - thai_units
        weight[THAI] = thai_units
        return weight

    def tokens(self, weight: dict[str, int]) -> int:
        """Units to tokens; a rate that is not set joins the one before it."""
        c = self.config
        prose, code, thai = weight[PROSE], weight[OUTPUT], weight[THAI]
        if c.thai_per_token is None:
            prose, thai = prose + thai, 0
        if c.code_per_token is None:
            prose, code = prose + code, 0
        share = prose / c.chars_per_token
        if c.code_per_token is not None:
            share += code / c.code_per_token
        if c.thai_per_token is not None:
            share += thai / c.thai_per_token
        return int(math.ceil(share) if c.rounding == "up" else math.floor(share)) + weight[MEDIA] * c.media_tokens


THAI = "thai"
RATES = (PROSE, OUTPUT, THAI)


def add(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    """Two weights, key by key."""
    return {key: a[key] + b[key] for key in a}


def picoclaw(version: Literal["4.0", "2.5"]) -> FlatCounter:
    """PicoClaw's estimator, bit by bit: 4.0 characters per token rounded up, or 2.5 rounded down."""
    if version == "4.0":
        return FlatCounter(EstimatorConfig(chars_per_token=4.0, rounding="up", unit="mixed"))
    if version == "2.5":
        return FlatCounter(EstimatorConfig(chars_per_token=2.5, rounding="down", unit="mixed"))
    raise ValueError(f"version: expected '4.0' or '2.5', got {version!r}")


def default_counter() -> FlatCounter:
    """2.5 characters per token, rounded up; see `TokenCounter.default` for where that errs upwards and where not."""
    return FlatCounter(EstimatorConfig(chars_per_token=2.5))


@dataclass(frozen=True)
class CallableCounter(Counter):
    """Any `str -> int`, for each text of a message; ids are not sent as text and cost nothing."""

    fn: Callable[[str], int]
    message_overhead: int = 4
    media_tokens: int = 256

    def text(self, text: str) -> int:
        """Tokens of a string."""
        count = self.fn(text)
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"the counting function must return an int, got {count!r}")
        if not 0 <= count < 2**32:
            raise ValueError(f"the counting function must return 0 to 4,294,967,295 tokens, got {count!r}")
        return count

    def bare_content(self, pieces: list[Piece]) -> int:
        """Tokens of content without a message around it."""
        return sum(self.piece(*piece) for piece in pieces)

    def pieces(self, reading: Reading) -> int:
        """Tokens of a message: each text by itself, and the frame."""
        content = self.bare_content(reading.content)
        if reading.alternative is not None:
            media = sum(self.media_tokens for kind, _ in reading.content if kind == MEDIA)
            content = max(content, media + sum(self.piece(PROSE, text) for text in reading.alternative))
        return content + self.bare_content(reading.other) + self.message_overhead

    def piece(self, kind: str, value: Any) -> int:
        """Tokens of one piece."""
        if kind == MEDIA:
            return self.media_tokens
        if kind == ID:
            return 0
        media = 0
        if kind in (BLOCK, REST):
            value, media = block_text(*value)
        elif kind == ARGUMENTS:
            value = value[0] if isinstance(value[0], str) else json_text(*value)
        return (self.text(value) if value else 0) + media * self.media_tokens

    def tools(self, tools: Sequence[object] | None) -> int:
        """Tokens of tool definitions: name, description and schema each by itself, and a frame."""
        return sum(
            sum(self.piece(*piece) for piece in read_tool(tool, f"tools[{index}]")) + self.message_overhead
            for index, tool in enumerate(expect_list(tools, "tools"))
        )


def read_tool(tool: object, path: str) -> Iterator[Piece]:
    """Name, description and schema of a tool definition; one without a name is counted as its JSON."""
    fields, where = read_fields(tool, path), path
    for key in ("function", "custom"):
        if fields.get(key) is not None:
            tool, where = fields[key], f"{path}.{key}"
            fields = read_fields(tool, where)
            break
    if fields.get("name") is None:
        yield (BLOCK, (tool, where))
        return
    for key in ("name", "description"):
        if fields.get(key) is not None:
            yield (NAME, expect_str(fields[key], f"{where}.{key}"))
    for key in ("parameters", "input_schema", "format"):
        if fields.get(key) is not None:
            yield (ARGUMENTS, (fields[key], f"{where}.{key}"))
            break


def go_json(value: object) -> str:
    """Compact JSON as Go's encoder writes it: `<`, `>`, `&`, U+2028 and U+2029 escaped, numbers as float64."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        for char in "<>&\u2028\u2029":
            text = text.replace(char, f"\\u{ord(char):04x}")
        return text
    if isinstance(value, dict):
        return "{" + ",".join(f"{go_json(key)}:{go_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(go_json(item) for item in value) + "]"
    if isinstance(value, float) and math.isfinite(value):
        return go_number(value)
    return json.dumps(value)


def go_number(value: float) -> str:
    """Shortest digits that read back as the same float64; an exponent below 1e-6 and from 1e21 on."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    mantissa, exponent = f"{abs(value)!r}e0".split("e")[:2] if "e" in repr(value) else (repr(abs(value)), "0")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent) - (len(whole + fraction) - len(digits))  # digits before the decimal point
    digits = digits.rstrip("0")
    if 1e-6 <= abs(value) < 1e21:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        padded = digits.ljust(point, "0")
        return sign + padded[:point] + ("." + padded[point:] if len(padded) > point else "")
    rest = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'-' if point - 1 < 0 else '+'}{abs(point - 1)}"


def count_tokens(content: object, *, tools: Sequence[object] | None = None, counter: Counter | None = None) -> int:
    """Tokens of a string, a message or a list of messages."""
    counter = counter or default_counter()
    return counter(content) + counter.tools(tools)


def check_budget(value: float, name: str, *, zero: bool = False) -> int:
    """A number of tokens: whole, finite, not negative, and 0 only where that means something."""
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name}: expected a number of tokens, got `{type(value).__name__}`")
    is_number = not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))
    if not is_number or value < 0 or (value < 1 and not zero):
        raise BudgetError(f"{name}: expected a number of tokens, {'0' if zero else '1'} or more, got {value!r}")
    return min(int(value), 2**63 - 1)


# ----------------------------------------------------------------------------------------- 3. what belongs together

SYSTEM, USER, STEP, STRAY, OTHER = "system", "user", "step", "stray", "other"


@dataclass
class Entry:
    """What the structure of a conversation needs to know of a message."""

    kind: str  # what an atom that begins here is
    calls: list[str | None]
    results: list[str | None]
    own_text: bool


def table(messages: Sequence[object]) -> list[Entry]:
    """One entry for each message."""
    entries = []
    for index, message in enumerate(expect_messages(messages)):
        reading = read_message(message, f"messages[{index}]")
        if reading.role in ("system", "developer"):
            kind = SYSTEM
        elif reading.role == "assistant":
            kind = STEP
        elif reading.results:
            kind = STRAY  # results, which belong to a step unless their call is nowhere
        elif reading.role == "user":
            kind = USER
        else:
            kind = OTHER
        entries.append(Entry(kind, reading.calls, reading.results, reading.own_text))
    return entries


def pair(entries: Sequence[Entry]) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs of (call's message, result's message), and the messages of calls that have no result.

    A result answers the nearest earlier open call with its id; within one message equal ids match by order. So the
    open calls of an id are a stack, and the calls of one message lie on it with the first on top.
    """
    open_calls: dict[str | None, list[int]] = {}
    pairs = []
    for index, entry in enumerate(entries):
        for key in entry.results:
            if open_calls.get(key):
                pairs.append((open_calls[key].pop(), index))
        for key in reversed(entry.calls):
            open_calls.setdefault(key, []).append(index)
    return pairs, sorted(index for stack in open_calls.values() for index in stack)


def live_calls(entries: Sequence[Entry], unanswered: Sequence[int]) -> list[int]:
    """Messages of calls that are still running: nothing but results comes after the last message with calls.

    Messages with calls that stand directly one after the other are one group of parallel calls.
    """
    last = len(entries) - 1
    while last >= 0 and entries[last].kind == STRAY and not entries[last].own_text:
        last -= 1
    first = last
    while first > 0 and entries[first].calls and entries[first - 1].calls:
        first -= 1
    return [index for index in unanswered if first <= index <= last and entries[last].calls]


def inside(entries: Sequence[Entry]) -> list[bool]:
    """For each index 0 to n: whether a cut there would part a call from its result. A live call's is still to come."""
    pairs, unanswered = pair(entries)
    n = len(entries)
    result = [False] * (n + 1)
    for call, answer in pairs + [(index, n) for index in live_calls(entries, unanswered)]:
        for index in range(call + 1, answer + 1):
            result[index] = True
    return result


def kinds_of_atoms(entries: Sequence[Entry]) -> list[tuple[int, int, str]]:
    """Atoms as (start, stop, kind).

    An atom is a run of system messages, a user message, or a step: an assistant message with everything up to its
    last result. Steps that overlap are one atom. Results whose call is nowhere go with the step before them.
    """
    within = inside(entries)
    starts: list[tuple[int, str]] = []
    for index, entry in enumerate(entries):
        previous = starts[-1][1] if starts else None
        follows = index > 0 and (
            within[index]
            or (entry.kind == SYSTEM and previous == SYSTEM)
            or (entry.kind == STRAY and previous in (STEP, STRAY))
        )
        if not follows:
            starts.append((index, entry.kind))
    borders = [start for start, _ in starts] + [len(entries)]
    return [(start, borders[place + 1], kind) for place, (start, kind) in enumerate(starts)]


def atoms(messages: Sequence[object]) -> list[tuple[int, int]]:
    """What is kept or dropped whole, as half-open ranges of indices."""
    return [(start, stop) for start, stop, _ in kinds_of_atoms(table(messages))]


def turn_starts(messages: Sequence[object]) -> list[int]:
    """Indices of user messages that open a turn; one that arrived inside a step, or with results, opens none."""
    return [start for start, _, kind in kinds_of_atoms(table(messages)) if kind == USER]


def step_starts(messages: Sequence[object]) -> list[int]:
    """Indices at which steps begin; steps that overlap begin together."""
    return [start for start, _, kind in kinds_of_atoms(table(messages)) if kind == STEP]


def safe_cuts(messages: Sequence[object]) -> list[int]:
    """Indices 0 to n at which no call lies before with its result at or after; n only if no call is still running."""
    return [index for index, is_inside in enumerate(inside(table(messages))) if not is_inside]


def find_safe_cut(messages: Sequence[object], target: int, mode: Literal["steps", "role"] = "steps") -> int:
    """The largest safe cut in 1 to `target`, else the next one below n, else 0.

    `mode="role"` is PicoClaw's rule: cuts are the messages of role user, n if `target` is n or more, and `target`
    itself in a list without any.
    """
    if isinstance(target, bool) or not isinstance(target, int):
        raise TypeError(f"target: expected an index, got {target!r}")
    n = len(expect_messages(messages))
    if mode == "role":
        roles = [read_message(m, f"messages[{i}]").role for i, m in enumerate(messages)]
        cuts = [index for index, role in enumerate(roles) if role == "user"]
        if target <= 0 or target >= n or not cuts:
            return max(0, min(target, n))
    elif mode == "steps":
        cuts = safe_cuts(messages)
        if target <= 0:
            return 0
    else:
        raise ValueError(f"mode: expected 'steps' or 'role', got {mode!r}")
    before = [cut for cut in cuts if 0 < cut <= target]
    after = [cut for cut in cuts if target < cut < n]
    return before[-1] if before else after[0] if after else 0


# ----------------------------------------------------------------------------------- 4. what a provider would refuse


@dataclass(frozen=True)
class Problem:
    """Something that a provider would refuse. (The core's has a `detail` for people, too.)"""

    code: str
    index: int


BOTH_FORMS = ("blank_name",)
ANTHROPIC_ONLY = ("empty_text", "result_after_text", "thinking_without_signature")
KNOWN_ROLES = {
    "openai": {"system", "developer", "user", "assistant", "tool", "function"},
    "anthropic": {"system", "developer", "user", "assistant"},
}


def validate(
    messages: Sequence[object],
    form: Literal["auto", "openai", "anthropic"] = "auto",
    provider: Literal["openai", "anthropic"] | None = None,
) -> list[Problem]:
    """What a provider would refuse, in the order of the messages; see `ctxfast.validate` for the codes."""
    if form not in ("auto", "openai", "anthropic"):
        raise ValueError(f"form: expected 'auto', 'openai' or 'anthropic', got {form!r}")
    if provider not in (None, "openai", "anthropic"):
        raise ValueError(f"provider: expected 'openai', 'anthropic' or None, got {provider!r}")
    readings = [read_message(m, f"messages[{i}]") for i, m in enumerate(expect_messages(messages))]
    entries = table(messages)
    if form == "auto":
        form = "anthropic" if next((r.form for r in readings if r.form), "openai") == "anthropic" else "openai"
    is_anthropic = form == "anthropic"
    strict = is_anthropic or provider == "anthropic"
    found: list[Problem] = []
    for index, reading in enumerate(readings):
        is_last_answer = index == len(readings) - 1 and reading.role == "assistant"
        if reading.role not in KNOWN_ROLES[form]:
            found.append(Problem("unknown_role", index))
        elif reading.form not in (None, form):
            found.append(Problem("mixed_forms", index))
        codes = [code for code in (*BOTH_FORMS, *(ANTHROPIC_ONLY if is_anthropic else ())) if code in reading.facts]
        if "empty_message" in reading.facts:  # then an empty text is no news
            codes = [code for code in codes if code != "empty_text"]
            codes += ["empty_message"] if strict and not is_last_answer else []
        found += [Problem(code, index) for code in codes]
    found += problems_of_pairs(entries, is_anthropic)

    first = next((index for index, entry in enumerate(entries) if entry.kind != SYSTEM), None)
    if not any(entry.own_text for entry in entries):
        found.append(Problem("no_user_message", first or 0))
    elif strict and first is not None and readings[first].role != "user":
        found.append(Problem("first_not_user", first))
    return sorted(found, key=lambda problem: problem.index)


def problems_of_pairs(entries: Sequence[Entry], is_anthropic: bool) -> list[Problem]:
    """Ids, orphans, duplicates, calls without results, results that do not come directly after their calls."""
    answers: dict[tuple[int, int], int] = {}  # (message, place of the call in it) -> message of the result
    answered: set[tuple[int, int]] = set()  # (message, place of the result in it)
    open_calls: dict[str | None, list[tuple[int, int]]] = {}
    for index, entry in enumerate(entries):
        for place, key in enumerate(entry.results):
            if open_calls.get(key):
                answers[open_calls[key].pop()] = index
                answered.add((index, place))
        for place, key in reversed(list(enumerate(entry.calls))):
            open_calls.setdefault(key, []).append((index, place))
    running = set(live_calls(entries, range(len(entries))))

    found = []
    newest_step: Entry | None = None
    for index, entry in enumerate(entries):
        for place, key in enumerate(entry.results):
            if key is None:
                found.append(Problem("blank_id", index))
            if (index, place) not in answered:
                again = newest_step is not None and key in newest_step.calls
                found.append(Problem("duplicate_result" if again else "orphan_result", index))
        if entry.kind == STEP:
            newest_step = entry
        end = index + 2
        if not is_anthropic:
            following = (i for i in range(index + 1, len(entries)) if entries[i].kind != STRAY)
            end = next(following, len(entries))
        own = [answers.get((index, place)) for place in range(len(entry.calls))]
        code = "split_parallel_group" if any(a is not None and a < end for a in own) else "result_out_of_order"
        for place, key in enumerate(entry.calls):
            if key is None:
                found.append(Problem("blank_id", index))
            elif is_anthropic and key in entry.calls[:place]:
                found.append(Problem("duplicate_call_id", index))
            answer = own[place]
            if answer is None and index not in running:
                found.append(Problem("unanswered_call", index))
            elif answer is not None and answer >= end:
                found.append(Problem(code, answer))
    return found


# ---------------------------------------------------------------------------------------------- 5. the fresh tail


@dataclass(frozen=True)
class FreshTail:
    """The newest messages that fit a budget, and the user messages that they need."""

    start: int
    pinned: tuple[int, ...]
    tokens: int
    turns: int
    split_turn: bool
    over_budget: bool
    messages: list[Any]


def fresh_tail_budget(usable_tokens: float) -> int:
    """25 % of the usable context, at least 2,000 and at most 8,000 tokens, and never above half of it."""
    usable = check_budget(usable_tokens, "usable_tokens")
    return max(1, min(max(2_000, min(usable // 4, 8_000)), usable // 2))


def select_fresh_tail(
    messages: Sequence[Any],
    budget: float = 8_000,
    *,
    min_turns: int = 2,
    max_tokens: float | None = None,
    counter: Counter | None = None,
) -> FreshTail:
    """The newest atoms within `budget`, with the user messages that they need pinned in front.

    In this order: the newest atom, always; the task (the newest real user message); the head (the user message that
    opens the turn into which the cut falls), unless it does not fit; older atoms, whole, while everything fits.
    Up to the start of the `min_turns`-th newest turn the limit is `max_tokens` instead. System messages at the start
    of the list stay in front and are not part of the budget.
    """
    budget = check_budget(budget, "budget")
    most = budget if max_tokens is None else check_budget(max_tokens, "max_tokens")
    if most < budget:
        raise BudgetError(f"max_tokens: expected at least the budget of {budget}, got {most}")
    if isinstance(min_turns, bool) or not isinstance(min_turns, int):
        raise TypeError(f"min_turns: expected a whole number, got {min_turns!r}")
    if min_turns < 0:
        raise ValueError(f"min_turns: expected 0 or more, got {min_turns!r}")
    counter = counter or default_counter()

    entries = table(messages)
    n = len(entries)
    body = next((index for index, entry in enumerate(entries) if entry.kind != SYSTEM), n)  # leading system: [0:body]
    units = [(start, stop, kind) for start, stop, kind in kinds_of_atoms(entries) if start >= body]

    dropped: set[int] = set()  # a head that does not fit

    def pin(index: int) -> Any:
        """A user message to put in front; of one that also carries tool results, the rest."""
        return without_results(messages[index]) if entries[index].results else messages[index]

    def suffix(cut: int) -> tuple[list[int], int, bool]:
        """For a tail that starts at `cut`: what must be pinned, how many turns it touches, whether it splits one."""
        opener = next((kind for start, _, kind in units if start >= cut and kind != SYSTEM), None)
        heads = [i for i in range(cut) if is_user(entries[i]) and not is_before_results(entries, i)]
        split = opener != USER and bool(heads)
        pins = {heads[-1]} - dropped if split else set()
        task = [i for i in range(n) if is_user(entries[i])][-1:]
        pins |= {i for i in task if i < cut}
        whole_turns = sum(start >= cut and kind == USER for start, _, kind in units)
        return sorted(pins), whole_turns + split, split

    def cost(cut: int, pins: Sequence[int]) -> int:
        """Tokens of a tail."""
        return counter.messages(list(messages[cut:])) + sum(counter.message(pin(index)) for index in pins)

    def limit(turns: int) -> int:
        """What a tail that touches so many turns may cost."""
        return most if turns <= min_turns else budget

    chosen = units[-1][0] if units else n
    pins, turns, split = suffix(chosen)
    task = [i for i in range(n) if is_user(entries[i])][-1:]
    if split and cost(chosen, pins) > limit(turns) and pins[0] not in task:
        dropped.add(pins.pop(0))  # the head does not fit beside the newest atom and the task
    if cost(chosen, pins) <= limit(turns):
        for start, _, _ in reversed(units[:-1]):
            next_pins, next_turns, next_split = suffix(start)
            if cost(start, next_pins) > limit(next_turns):
                break
            chosen, pins, turns, split = start, next_pins, next_turns, next_split
    tokens = cost(chosen, pins)
    kept = [*messages[: min(body, chosen)], *(pin(index) for index in pins), *messages[chosen:]]
    return FreshTail(chosen, tuple(pins), tokens, turns, split, tokens > limit(turns), kept)


def is_user(entry: Entry) -> bool:
    """A real user message: role user, and more than tool results."""
    return entry.own_text


def is_before_results(entries: Sequence[Entry], index: int) -> bool:
    """Whether a user message holds tool results or stands directly before some: it came in the middle of a step."""
    following = (e for e in entries[index:] if e.results or not is_user(e))
    return bool(next(following, entries[index]).results)


def without_results(message: Any) -> dict[str, Any]:
    """A user message as a new dict whose content leaves out the tool results; the other parts are the same objects."""
    fields = read_fields(message, "message")
    parts = [p for p in fields["content"] if isinstance(p, str) or read_fields(p, "").get("type") != "tool_result"]
    return {**fields, "content": parts}
