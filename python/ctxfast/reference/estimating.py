"""What a text costs in tokens, estimated from its characters and their neighbours by a table for each family.

For each character the table says how many tokens start there on average, in 1/64 token: by the character before, how
long the run of like characters is, and the class of the next. The text's cost is the sum. Another table says how much
texts in which such a character occurs cost more or less than that; its mean over the text corrects the sum.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from string import punctuation
from typing import Any, ClassVar, NamedTuple

from ctxfast._core import TokenCounter, _estimator_table
from ctxfast.models import ModelInfo, model_info
from ctxfast.reference.counting import Counter, PerTextCounter
from ctxfast.reference.declaring import declaration
from ctxfast.reference.media import tokens as media_tokens
from ctxfast.reference.reading import Reading

ASCII = 96 * 96 * 4 * 4  # before, here, length of the run, class of the next
ALPHABETS = 8 * 128 * 64 * 4  # which, letter before, letter here, class of the next
HAN = 2**13 * 4 * 2  # group of characters, class of the next, whether CJK stands before
OTHERS = 40 * 32 * 40  # class before, script here, class of the next
COSTS = ASCII + ALPHABETS + HAN + OTHERS

LINE_END = 10  # stands before the first character and after the last

# Of ASCII, in this order: groups first, then each letter and sign by itself.
SYMBOLS = {
    **dict.fromkeys((*range(32), 127), 4),
    **dict.fromkeys(b"0123456789", 1),
    **dict.fromkeys(b"\r\n", 2),
    **dict.fromkeys(b"\t", 3),
    **dict.fromkeys(b" ", 5),
    **{point: 6 + i for i, point in enumerate(b"abcdefghijklmnopqrstuvwxyz")},
    **{point: 32 + i for i, point in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")},
    **{point: 58 + i for i, point in enumerate(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")},
}
# Of others, by script.
OTHER_SYMBOLS = {0: 92, 1: 90, 2: 91, 3: 91, 4: 92, 17: 91, 31: 95} | dict.fromkeys(range(18, 24), 93)
OTHER_SYMBOLS |= dict.fromkeys(range(24, 29), 94)
# Fewer symbols of ASCII, before letters of other alphabets.
FEW_SYMBOLS = (
    {point: SYMBOLS[point] for point in range(128) if SYMBOLS[point] < 32}
    | {point: 32 + i // 4 for i, point in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
    | {point: 39 + i for i, point in enumerate(b"_-./()\"',:=\\<>")}
    | dict.fromkeys(b"{[", 53)
    | dict.fromkeys(b"}]", 54)
    | dict.fromkeys(b";", 55)
    | dict.fromkeys(b"*#", 56)
    | dict.fromkeys(b"$%&@", 57)
    | dict.fromkeys(b"`|~+!?^", 58)
)

# Where each script begins, by blocks of Unicode, and its number.
SCRIPTS = (
    (0, 0), (0xC0, 1), (0xDF, 2), (0x100, 3), (0x250, 4), (0x370, 5), (0x400, 6), (0x530, 7), (0x590, 8), (0x600, 9),
    (0x700, 10), (0x900, 11), (0x980, 12), (0xE00, 13), (0xE80, 14), (0x1100, 15), (0x1200, 16), (0x1E00, 17),
    (0x1F00, 5), (0x2000, 18), (0x2070, 19), (0x2500, 20), (0x2600, 21), (0x2C00, 22), (0x3000, 23), (0x3040, 24),
    (0x30A0, 25), (0x3100, 26), (0x4E00, 27), (0xA000, 22), (0xAC00, 28), (0xD800, 29), (0xFF00, 30), (0x10000, 31),
)  # fmt: skip
# Scripts that are alphabets, with their number: Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, kana.
ALPHABET = {0: 0, 1: 0, 2: 0, 3: 0, 17: 0, 5: 1, 6: 2, 8: 3, 9: 4, 11: 5, 13: 6, 24: 7, 25: 7}
CJK = (27, 28)  # Han, Hangul

# (before, here): lower, UPPER, digit, space, other letter; a change from lower to upper ends a run.
RUNS = {"ll", "uu", "ul", "oo", "lo", "uo", "ol", "ou", "dd", "ss"}


class Sums(NamedTuple):
    """Of a text: its cost in 1/64 token, the register of its ASCII characters in 1/500, its code points."""

    cost: int
    register: int
    chars: int


# How much a count is raised: a share of it, and so many times its square root; for 95 and for 99 of 100 documents.
MARGINS = {
    "o200k": ((0.043, 0.3), (0.074, 0.4)),
    "cl100k": ((0.042, 0.4), (0.073, 0.5)),
    "claude_v3": ((0.067, 0.2), (0.087, 0.9)),
    "claude_v47": ((0.065, 0.1), (0.082, 0.6)),
    "claude_legacy": ((0.067, 0.2), (0.087, 0.9)),
    "llama3": ((0.053, 0.2), (0.063, 0.8)),
    "qwen3": ((0.050, 0.2), (0.073, 0.5)),
    "deepseek_v3": ((0.040, 0.4), (0.066, 0.7)),
    "gemma3": ((0.034, 0.3), (0.051, 0.6)),
    "mistral_tekken": ((0.042, 0.3), (0.072, 0.4)),
}
OF_TOTALS = (0.03, 0.0)  # unless the caller says how safe


# The vocabularies in the package, by family. What a text has with one is the core's to say: `tests/test_exact.py`
# compares it with tiktoken.
VOCABULARIES = {"o200k": "o200k_base", "cl100k": "cl100k_base"}


@dataclass(frozen=True)
class EstimatorCounter(PerTextCounter):
    """The estimate of one family of tokenizers; with `info`, of a model."""

    family: str = "o200k"
    safety: float | None = None
    message_overhead: int = 4
    media_tokens: int = 256
    info: ModelInfo | None = None
    units_per_token: ClassVar[int] = 64

    def units(self, text: str) -> int:
        """In 1/64 token; a half is rounded up. What repeats itself is counted, where there is a vocabulary."""
        scale = self.info.scale if self.info else 1.0
        if self.family in VOCABULARIES and repeats(text):
            return math.floor(vocabulary(VOCABULARIES[self.family]).text(text) * scale * 64.0 + 0.5)
        return estimated(table(self.family), text, scale)

    def one(self, tokens: int) -> int:
        """Raised where the caller says how safe."""
        margins = dict(zip((0.95, 0.99), MARGINS[self.family], strict=True))
        return raised(tokens, *margins.get(self.safety or 0.5, (0.0, 0.0)))

    def total(self, tokens: int) -> int:
        """Raised by 3 % unless the caller says how safe."""
        if tokens == 0:
            return 0
        tokens += self.info.frame.per_request if self.info else 0
        return raised(tokens, *OF_TOTALS) if self.safety is None else self.one(tokens)

    def tool_tokens(self, units: int, tools: int) -> int:
        """Tokens of so many tools whose texts cost so much."""
        if self.info is None or not tools:
            return super().tool_tokens(units, tools)
        frames = self.info.tools.per_request + tools * self.info.tools.per_tool
        return self.tokens(math.floor(units * self.info.tools.schema_scale + 0.5)) + frames

    def declared(self, tool: object, path: str) -> str | None:
        """OpenAI writes tools as types of TypeScript; they are one text."""
        return declaration(tool, path) if self.info and self.info.tools.notation == "typescript" else None

    def result_frames(self, reading: Reading) -> int:
        """Tokens of tool results beside their texts."""
        return self.info.frame.per_result * len(reading.results) if self.info else 0

    def media(self, hint: str, part: object) -> int:
        """Tokens of a media part."""
        return super().media(hint, part) if self.info is None else media_tokens(hint, part, self.info)

    def sums(self, text: str) -> Sums:
        """The pass over the text."""
        return summed(table(self.family), text)


@dataclass(frozen=True)
class ExactCounter(EstimatorCounter):
    """The exact count of a model's texts, with what the model adds."""

    encoding: str = "o200k_base"
    units_per_token: ClassVar[int] = 1

    def units(self, text: str) -> int:
        """In tokens."""
        return vocabulary(self.encoding).text(text)

    def one(self, tokens: int) -> int:
        """As it is."""
        return tokens

    def head(self, text: str, max_tokens: float) -> str:
        """As many whole tokens of the text as fit: not always the longest prefix that does.

        By itself, a part can have fewer tokens than in the whole. The core's to say (`tests/test_exact_limits.py`).
        """
        return vocabulary(self.encoding).head(text, max_tokens)

    def tail(self, text: str, max_tokens: float) -> str:
        """The same from the end."""
        return vocabulary(self.encoding).tail(text, max_tokens)


def repeats(text: str) -> bool:
    """Whether a text of 1,000 characters or more is nothing but repetition in the middle of one of its quarters.

    That is: the 64 characters there are something of at most 16 characters, said again and again.
    """
    if len(text) < 1_000:
        return False
    starts = ((len(text) - 64) * (2 * quarter + 1) // 8 for quarter in range(4))
    places = (text[start : start + 64] for start in starts)
    return any(place[n:] == place[:-n] for place in places for n in range(1, 17))


def estimated(values: bytes, text: str, scale: float = 1.0) -> int:
    """What the text costs by a table with these values, times `scale`, in 1/64 token; a half is rounded up."""
    sums = summed(values, text)
    offset, slope = struct.unpack("<2d", values[-16:])
    register = sums.register / 500.0 / (sums.chars + 100.0)
    correction = max(-0.25, min(0.25, offset + slope * register))
    tokens = sums.cost / 64.0 * math.exp(correction)
    if tokens * 12 < sums.chars:  # it repeats itself, which tables cannot see: they know neighbours only
        spaces, line_ends, signs = (sum(map(text.count, chars)) for chars in ("\t ", "\n\r", punctuation))
        others = len(text) - spaces - line_ends - signs
        tokens = max(tokens, others / 12.0 + spaces / 128.0 + line_ends / 16.0 + signs / 64.0)
    return math.floor(tokens * scale * 64.0 + 0.5)


def summed(values: bytes, text: str) -> Sums:
    """The pass over the text."""
    cost = register = 0
    for place in slots(text):
        cost += values[place]
        if place < ASCII:
            value = values[COSTS + place]
            register += value if value < 128 else value - 256
    return Sums(cost, register, len(text))


def for_model(model: str | ModelInfo, safety: float | None = None, *, exact: bool = True) -> EstimatorCounter:
    """The counter of a model: its texts exactly or as its family's estimate, with what its provider adds for frames,
    tools and media. What is exact needs no safety."""
    info = model_info(model) if isinstance(model, str) else model
    if exact and info.encoding is not None and info.scale == 1:
        return ExactCounter(info.family, 0.5, info.frame.per_message, info=info, encoding=info.encoding)
    return EstimatorCounter(info.family, safety, info.frame.per_message, info=info)


def default_counter() -> EstimatorCounter:
    """The estimate for OpenAI's models."""
    return EstimatorCounter()


def count_tokens(
    content: object,
    *,
    tools: Sequence[object] | None = None,
    model: str | ModelInfo | None = None,
    counter: Counter | None = None,
) -> int:
    """Tokens of a string, a message or a list of messages, and of tools."""
    if model is not None and counter is not None:
        raise ValueError("model and counter: expected one of them, got both")
    counter = counter or (default_counter() if model is None else for_model(model))
    return counter(content, tools)


def raised(tokens: int, share: float, root: float) -> int:
    """A count with its margin, rounded up."""
    if not share:
        return tokens
    return math.ceil(tokens + tokens * share + root * math.sqrt(tokens))


@cache
def vocabulary(encoding: Any) -> TokenCounter:
    """The exact counter of an encoding."""
    return TokenCounter.exact(encoding)


@cache
def table(family: str) -> bytes:
    """Costs (u8), registers (i8) and two coefficients of a family. Raises `ValueError` for a family that is none."""
    return _estimator_table(family)


def slots(text: str) -> Iterator[int]:
    """For each character of the text, its place in the table."""
    points = [LINE_END, *map(ord, text), LINE_END]
    run = 0
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        run = run + 1 if runs_with(before) + runs_with(here) in RUNS else 0
        yield slot(before, here, run, after)


def slot(before: int, here: int, run: int, after: int) -> int:
    """The place in the table of a character with these neighbours."""
    if here < 128:
        length = bisect((2, 4, 7), run)
        then = {"lower": 0, "upper": 1, "space": 2}.get(kind(after), 3)
        return (symbol(before) * 96 + symbol(here)) * 16 + length * 4 + then
    then = {"space": 0, "lower": 1, "upper": 1, "other": 3}.get(kind(after), 2)
    writing = script(here)
    if writing in ALPHABET:
        letter = FEW_SYMBOLS.get(before, 63) if before < 128 else 64 + before % 64
        return ASCII + ((ALPHABET[writing] * 128 + letter) * 64 + here % 64) * 4 + then
    if writing in CJK:
        group = (here * 40_503 >> 3) % 2**13
        return ASCII + ALPHABETS + group * 8 + then * 2 + (before >= 0x2E80)
    return ASCII + ALPHABETS + HAN + (script_or_kind(before) * 32 + writing) * 40 + script_or_kind(after)


def symbol(point: int) -> int:
    """Of 96."""
    return SYMBOLS[point] if point < 128 else OTHER_SYMBOLS.get(script(point), 0)


KINDS = ("lower", "upper", "digit", "space", "break", "sign", "other", "control")


def kind(point: int) -> str:
    """One of `KINDS`; `other` is not ASCII."""
    if point >= 128:
        return "other"
    char = chr(point)
    if char.isalpha():
        return "lower" if char.islower() else "upper"
    if char.isdigit():
        return "digit"
    if char == " ":
        return "space"
    if char in "\t\n\r":
        return "break"
    return "sign" if 32 < point < 127 else "control"


def runs_with(point: int) -> str:
    """A letter for what it makes runs with (see `RUNS`), or nothing."""
    if point >= 0xC0:
        return "o"
    return {"lower": "l", "upper": "u", "digit": "d", "space": "s"}.get(kind(point), "")


def script(point: int) -> int:
    """The number of the writing system."""
    return SCRIPTS[bisect(SCRIPTS, (point, 99)) - 1][1]


def script_or_kind(point: int) -> int:
    """Of 40: the script, and for ASCII the kind."""
    return script(point) if point >= 128 else 32 + KINDS.index(kind(point))
