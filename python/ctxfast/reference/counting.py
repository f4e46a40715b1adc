"""How many tokens texts, messages and tools have."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ctxfast.counting import EstimatorConfig
from ctxfast.errors import BudgetError, MessageValueError
from ctxfast.reference.reading import (
    ALIAS,
    ARGUMENTS,
    BLOCK,
    ID,
    MEDIA,
    NAME,
    OUTPUT,
    PROSE,
    REST,
    Piece,
    Reading,
    block_text,
    expect_list,
    expect_messages,
    expect_str,
    json_text,
    read_content,
    read_fields,
    read_message,
)


class Counter:
    """What every counter can do; a kind of counter says what a message, some content and a tool cost."""

    def text_tokens(self, text: str) -> int:
        """Tokens of a string, before safety."""
        raise NotImplementedError

    def pieces(self, reading: Reading) -> int:
        """Tokens of what was read of a message, its frame included."""
        raise NotImplementedError

    def bare_content(self, pieces: list[Piece]) -> int:
        """Tokens of content without a message around it."""
        raise NotImplementedError

    def tools_sum(self, tools: Sequence[object] | None) -> int:
        """Tokens of a list of tool definitions, before safety."""
        raise NotImplementedError

    def result_frames(self, reading: Reading) -> int:
        """Tokens of tool results beside their texts."""
        return 0

    def one(self, tokens: int) -> int:
        """A count of one text or message, as safe as it shall be."""
        return tokens

    def total(self, tokens: int) -> int:
        """A sum of counts as the count of a request: with what is added to each, as safe as it shall be."""
        return tokens

    def messages_sum(self, messages: Sequence[object]) -> int:
        """The sum of the counts of single messages."""
        return sum(self.pieces(read_message(m, f"messages[{i}]")) for i, m in enumerate(expect_messages(messages)))

    def text(self, text: str) -> int:
        """Tokens of a string."""
        return self.one(self.text_tokens(text))

    def tools(self, tools: Sequence[object] | None) -> int:
        """Tokens of a list of tool definitions."""
        return self.one(self.tools_sum(tools))

    def content(self, parts: object) -> int:
        """Tokens of a message's content: a string, `None` or a list of parts."""
        reading = Reading(role="user")
        read_content(parts, PROSE, reading, "content")
        return self.one(self.bare_content(reading.content) + self.result_frames(reading))

    def message(self, message: object) -> int:
        """Tokens of one message."""
        return self.one(self.pieces(read_message(message, "message")))

    def messages(self, messages: Sequence[object], tools: Sequence[object] | None = None) -> int:
        """Tokens of a list of messages, and of the tools."""
        return self.total(self.messages_sum(messages) + self.tools_sum(tools))

    def request(self, body: object) -> int:
        """Tokens of a request body: `messages`, Anthropic's separate `system`, `tools`."""
        fields = read_fields(body, "request")
        if fields.get("messages") is None:
            raise MessageValueError("a request with `messages`", "none", "request")
        tokens = self.messages_sum(fields["messages"]) + self.tools_sum(fields.get("tools"))
        if fields.get("system") is not None:
            reading = Reading(role="user")  # content that stands for itself
            read_content(fields["system"], PROSE, reading, "request.system")
            tokens += self.pieces(reading)
        return self.total(tokens)

    def __call__(self, content: object, tools: Sequence[object] | None = None) -> int:
        """Tokens of a string, a message or a list of messages, and of the tools."""
        if isinstance(content, (list, tuple)):
            return self.messages(content, tools)
        if isinstance(content, str):
            return self.one(self.text_tokens(content) + self.tools_sum(tools))
        return self.one(self.pieces(read_message(content, "message")) + self.tools_sum(tools))

    def fits(self, content: object, limit: float) -> bool:
        """Whether `content` has at most `limit` tokens."""
        return self(content) <= check_budget(limit, "limit", zero=True)

    def head(self, text: str, max_tokens: float) -> str:
        """The longest prefix within `max_tokens`."""
        limit = check_budget(max_tokens, "max_tokens", zero=True)
        return longest(len(text), lambda n: text[:n], lambda part: self.text(part) <= limit, 4 * limit + 64)

    def tail(self, text: str, max_tokens: float) -> str:
        """The longest suffix within `max_tokens`."""
        limit = check_budget(max_tokens, "max_tokens", zero=True)
        return longest(
            len(text), lambda n: text[len(text) - n :], lambda part: self.text(part) <= limit, 4 * limit + 64
        )


def longest(length: int, part: Callable[[int], str], fits: Callable[[str], bool], guess: int) -> str:
    """The longest part that fits, of a text whose count does not fall when it grows (else: one that fits).

    Of a long text, twice as much is tried each time from `guess` on, until it is too much; what fits whole stays whole.
    """
    most = min(guess, length)
    while most < length and fits(part(most)):
        most = min(2 * most, length)
    if most == length and fits(part(length)):
        return part(length)
    low, high = 0, most
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

    def text_tokens(self, text: str) -> int:
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

    def tools_sum(self, tools: Sequence[object] | None) -> int:
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
            text, media = block_text(*value)
            weight[MEDIA] = len(media)
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


class PerTextCounter(Counter):
    """Counts each text of a message by itself, in parts of a token; ids are not sent as text and cost nothing."""

    message_overhead: int
    media_tokens: int
    units_per_token: ClassVar[int] = 1

    def units(self, text: str) -> int:
        """What a text costs, in parts of a token."""
        raise NotImplementedError

    def media(self, hint: str, part: object) -> int:
        """Tokens of a media part."""
        return self.media_tokens

    def tool_tokens(self, units: int, tools: int) -> int:
        """Tokens of so many tools whose texts cost so much."""
        return self.tokens(units) + tools * self.message_overhead

    def tokens(self, units: int) -> int:
        """Parts of a token to tokens; a half is rounded up."""
        return (units + self.units_per_token // 2) // self.units_per_token

    def text_tokens(self, text: str) -> int:
        """Tokens of a string."""
        return self.tokens(self.units(text))

    def bare_content(self, pieces: list[Piece]) -> int:
        """Tokens of content without a message around it."""
        return self.tokens(sum(self.piece(*piece) for piece in pieces))

    def pieces(self, reading: Reading) -> int:
        """Tokens of a message: each text by itself, and the frame; rounded once."""
        content = sum(self.piece(*piece) for piece in reading.content)
        if reading.alternative is not None:
            media = sum(self.media_units(*piece) for piece in reading.content)
            content = max(content, media + sum(self.piece(PROSE, text) for text in reading.alternative))
        units = content + sum(self.piece(*piece) for piece in reading.other)
        return self.tokens(units) + self.message_overhead + self.result_frames(reading)

    def piece(self, kind: str, value: Any) -> int:
        """What one piece costs, in parts of a token."""
        if kind == MEDIA:
            return self.media(*value) * self.units_per_token
        if kind == ID:
            return 0
        media: list[Any] = []
        if kind in (BLOCK, REST):
            value, media = block_text(*value)
        elif kind == ARGUMENTS:
            value = value[0] if isinstance(value[0], str) else json_text(*value)
        return (self.units(value) if value else 0) + sum(self.piece(MEDIA, ("other", data)) for data in media)

    def declared(self, tool: object, path: str) -> str | None:
        """A tool as the text that is sent of it, if that is not its JSON."""
        return None

    def media_units(self, kind: str, value: Any) -> int:
        """What the media of a piece cost, in parts of a token."""
        if kind in (BLOCK, REST):
            return sum(self.piece(MEDIA, ("other", data)) for data in block_text(*value)[1])
        return self.piece(kind, value) if kind == MEDIA else 0

    def tools_sum(self, tools: Sequence[object] | None) -> int:
        """Tokens of tool definitions: name, description and schema each by itself, and frames; rounded once."""
        definitions = list(enumerate(expect_list(tools, "tools")))
        pieces: list[Piece] = []
        declarations = ""
        for index, tool in definitions:
            declared = self.declared(tool, f"tools[{index}]")
            declarations += declared or ""
            pieces += [] if declared else read_tool(tool, f"tools[{index}]")
        pieces.append((PROSE, declarations))
        media = sum(self.media_units(*piece) for piece in pieces)
        texts = sum(self.piece(*piece) for piece in pieces) - media
        return self.tool_tokens(texts, len(definitions)) + self.tokens(media)


@dataclass(frozen=True)
class CallableCounter(PerTextCounter):
    """Any `str -> int`."""

    fn: Callable[[str], int]
    message_overhead: int = 4
    media_tokens: int = 256

    def units(self, text: str) -> int:
        """What the function says."""
        count = self.fn(text)
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"the counting function must return an int, got {count!r}")
        if not 0 <= count < 2**32:
            raise ValueError(f"the counting function must return 0 to 4,294,967,295 tokens, got {count!r}")
        return count


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


def check_budget(value: float, name: str, *, zero: bool = False) -> int:
    """A number of tokens: whole, finite, not negative, and 0 only where that means something."""
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name}: expected a number of tokens, got `{type(value).__name__}`")
    is_number = not isinstance(value, bool) and (isinstance(value, int) or math.isfinite(value))
    if not is_number or value < 0 or (value < 1 and not zero):
        raise BudgetError(f"{name}: expected a number of tokens, {'0' if zero else '1'} or more, got {value!r}")
    return min(int(value), 2**63 - 1)
