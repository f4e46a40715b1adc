"""What is known of a model by its name: family of tokenizers, window, limits, what frames, tools and media cost."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from os.path import dirname, join
from typing import Any, Literal

from ctxfast._core import _image_tokens
from ctxfast.errors import UnknownModelWarning

__all__ = ["Frame", "ImageRule", "ModelInfo", "ToolOverhead", "known_models", "model_info"]

Family = Literal[
    "o200k",
    "cl100k",
    "claude_v3",
    "claude_v47",
    "claude_legacy",
    "llama3",
    "qwen3",
    "deepseek_v3",
    "gemma3",
    "mistral_tekken",
]
Encoding = Literal["o200k_base", "cl100k_base", "o200k_harmony"]
Detail = Literal["auto", "low", "high", "original"]

_DETAILS = ("auto", "low", "high", "original")
_MAX_PIXELS = 65_535  # a side; no provider takes more
_LARGEST_WINDOW = 1_000_000_000  # tokens; more is a mistake
_MAX_NAME = 300  # characters; what is longer is no model's name
_MAX_REST = 20  # words behind a name; they can be read in several ways, and all of them are tried


@dataclass(frozen=True)
class Frame:
    """What a request has besides its texts, in tokens."""

    per_request: int = 0
    per_message: int = 0
    per_result: int = 0
    """A tool result with the call that it answers, beside their texts."""

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for a field that is not a number of tokens."""
        for name, value in vars(self).items():
            _check_whole(name, value)


@dataclass(frozen=True)
class ToolOverhead:
    """What tools cost besides their schemas, in tokens."""

    per_request: int = 0
    """Once, if there are tools at all: the provider's hidden instructions."""
    per_tool: int = 0
    schema_scale: float = 1.0
    """What names, descriptions and schemas have, times this: some providers write them in a shorter form than JSON."""
    notation: Literal["json", "typescript"] = "json"
    """How tools are written: OpenAI declares them as types of TypeScript, with descriptions as comments."""

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for a field that is not such a number."""
        _check_whole("per_request", self.per_request)
        _check_whole("per_tool", self.per_tool)
        _check_number("schema_scale", self.schema_scale)
        if self.notation not in ("json", "typescript"):
            raise ValueError(f"notation: expected json or typescript, got {self.notation!r}")


@dataclass(frozen=True)
class ImageRule:
    """How a provider turns an image's size into tokens. Sizes in pixels; a field that is 0 plays no part."""

    kind: Literal["fixed", "tiles", "patches", "crops"]
    """- `"fixed"`: `tokens` for each image.
    - `"tiles"`: the image is fitted into a square of `max_side`, then its short side to `short_side`; each tile of
      `tile` pixels costs `per_tile`, and `base` comes on top. Detail "low" is `base` alone.
    - `"patches"`: squares of `patch` pixels, the last ones of a row or column whole, `multiplier` tokens each. The
      image is made smaller until its long side is at most `max_side` and it has at most `max_patches`.
    - `"crops"` (Gemini): `base` if both sides are at most `small_side`, else `base` for each tile of `tile` pixels.
      `tile=0`: tiles of two thirds of the short side, 256 to 768 pixels, and once more for the whole image."""
    tokens: int = 0
    base: int = 0
    per_tile: int = 0
    tile: int = 0
    max_side: int = 0
    short_side: int = 0
    small_side: int = 0
    patch: int = 0
    max_patches: int = 0
    original_patches: int = 0
    """Instead of `max_patches` for detail "original"; -1: no limit; 0: that detail is the same as "high"."""
    multiplier: float = 1.0
    whole_patches: bool = False
    """An image that is made smaller gets a side of whole patches (OpenAI), else the largest size that fits (Claude)."""
    auto: Detail = "high"
    """What detail "auto" means."""

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for another kind or detail, or a number out of range."""
        if self.kind not in ("fixed", "tiles", "patches", "crops"):
            raise ValueError(f"kind: expected fixed, tiles, patches or crops, got {self.kind!r}")
        for name, value in vars(self).items():
            if name not in ("kind", "multiplier", "whole_patches", "auto"):
                _check_whole(name, value, least=-1 if name == "original_patches" else 0)
        _check_number("multiplier", self.multiplier)
        _check_type("whole_patches", self.whole_patches, bool)
        if self.auto not in _DETAILS:
            raise ValueError(f"auto: expected one of {', '.join(_DETAILS)}, got {self.auto!r}")
        side = {"tiles": "tile", "patches": "patch"}.get(self.kind)
        if side is not None and getattr(self, side) == 0:
            raise ValueError(f"{side}: expected 1 or more for the kind {self.kind!r}, got 0")

    def count(self, width: int, height: int, detail: Detail = "auto") -> int:
        """Tokens of an image; see `ModelInfo.image_tokens`."""
        if detail not in _DETAILS:
            raise ValueError(f"detail: expected one of {', '.join(_DETAILS)}, got {detail!r}")
        return _image_tokens(self, _side("width", width), _side("height", height), detail)


@dataclass(frozen=True)
class ModelInfo:
    """What the table knows about a model. Frozen and hashable; every count is in tokens.

    It can be given wherever a model's name can, so that a figure of your own needs no registry:

    >>> from dataclasses import replace
    >>> replace(model_info("gpt-5"), context_window=200_000).context_window
    200000
    """

    name: str
    """As asked for."""
    known: bool
    """Whether the table has a row for it. If not, there is no window, and the rest is that of its maker's models if
    the name says who made it, else of the rule for unknown ones."""
    provider: str
    """Who made the model: `openai`, `anthropic`, `google`, `meta`, `mistral`, `deepseek`, `qwen`, `moonshot`, `zhipu`,
    `minimax`, `xai`, or `unknown`. Never a gateway."""
    family: Family
    """For `TokenCounter.estimator`."""
    encoding: Encoding | None
    """For `TokenCounter.exact`: that of an OpenAI model of the table, by which `for_model` counts its texts; `None`:
    they are estimated. Those of GPT-3.5 to GPT-5 and of gpt-oss are as tiktoken 0.14.0 has them; that `gpt-6` models,
    `gpt-audio`, `codex-mini` and `chat-latest` have `o200k_base` is an assumption."""
    scale: float
    """The family's estimate times this: 1.2 for unknown models that are not OpenAI-compatible. With another than 1
    there is no exact count: the model's tokens are not those of an encoding."""
    context_window: int | None
    """Input and output together where the provider counts them so; `None`: not known, and nothing is guessed."""
    input_limit: int | None
    """Where the provider limits the input by itself; `None`: the window is the limit."""
    max_output_tokens: int | None
    """The most that an answer may have; `None`: not known, or as much as the window."""
    frame: Frame
    tools: ToolOverhead
    images: ImageRule
    pdf_page_tokens: int
    """A page with an ordinary amount of text."""
    audio_tokens_per_second: float
    source: str
    """Where the window and the limits are from."""
    date: str
    """The day of the source's state, as in `2026-11-20`."""

    def __post_init__(self) -> None:
        """Raises `TypeError` or `ValueError` for a figure that is none."""
        for name in ("name", "provider", "family", "source", "date"):
            _check_type(name, getattr(self, name), str)
        for name, of in (("frame", Frame), ("tools", ToolOverhead), ("images", ImageRule)):
            _check_type(name, getattr(self, name), of)
        if self.encoding is not None:
            _check_type("encoding", self.encoding, str)
        for name in ("context_window", "input_limit", "max_output_tokens"):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name), least=1, most=_LARGEST_WINDOW)
        _check_whole("pdf_page_tokens", self.pdf_page_tokens)
        _check_number("audio_tokens_per_second", self.audio_tokens_per_second)
        _check_number("scale", self.scale)

    def image_tokens(self, width: int, height: int, detail: Detail = "auto") -> int:
        """Tokens of an image of so many pixels, by the provider's published rule.

        `detail` is OpenAI's: `"auto"`, `"low"`, `"high"` or `"original"`; other providers have none. A side of 0 counts
        as 1 pixel, one above 65,535 as that. Raises `TypeError` or `ValueError` for another size or detail.

        >>> model_info("gpt-4o").image_tokens(1024, 1024), model_info("gpt-4o").image_tokens(1024, 1024, "low")
        (765, 85)
        """
        return self.images.count(width, height, detail)

    @property
    def nearest(self) -> tuple[str, ...]:
        """Up to three names of the table that look most like this one, the best first, to show for an unknown one.

        Only those of its maker, if the name says who that is.
        """
        from difflib import get_close_matches

        table = _table()
        of_maker = [row for row in table.rows if table.groups[row["group"]]["provider"] == self.provider]
        names = {" ".join(_words(name)): name for row in of_maker or table.rows for name in row["names"]}
        last = " ".join(_words(self.name[-_MAX_NAME:].rsplit("/", 1)[-1]))
        return tuple(names[match] for match in get_close_matches(last, names, n=3, cutoff=0.5))


def model_info(name: str) -> ModelInfo:
    """What is known about a model, from a table in the package: nothing is looked up anywhere else.

    `name` may be as a provider, a gateway or a framework writes it: `claude-sonnet-4-5-20250929`,
    `openrouter/anthropic/claude-sonnet-4.5`, `bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0`, `azure/gpt-4o`,
    `ollama/llama3.1:8b`. Case, dots and dashes do not matter, nor do dates, sizes and quantisations at the end; `[1m]`
    at the end is a window of a million tokens.

    A name that is not in the table is no error: `known` is false, there is no window, `nearest` lists similar names.
    Its tokens are never counted exactly, but estimated as those of the maker's newest models, if the name says who made
    it. Otherwise an OpenAI-compatible one (`openai/`, `azure/`) is taken for `o200k`, any other for `deepseek_v3` times
    1.2.

    Windows are those of the model at its maker's own service. A gateway can have a smaller one, and a server of your
    own (Ollama) often has: then replace `context_window`.

    Raises `TypeError` if `name` is not a string, `ValueError` if it is empty.
    """
    if not isinstance(name, str):
        raise TypeError(f"model: expected a name such as 'claude-sonnet-4-5', got {type(name).__name__}")
    if not name.strip():
        raise ValueError(f"model: expected a name such as 'claude-sonnet-4-5', got {name!r}")
    return _find(name) if len(name) <= _MAX_NAME else _find.__wrapped__(name)  # long ones are not kept


def known_models() -> list[str]:
    """The names in the table, each in one spelling of its dots and dashes."""
    return [name for row in _table().rows for name in row["names"]]


class _Table:
    """The table, with its rows by the words of their names."""

    def __init__(self) -> None:
        with open(join(dirname(__file__), "models.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.date: str = data["date"]
        self.sources: dict[str, dict[str, str]] = data["sources"]
        self.groups: dict[str, dict[str, Any]] = data["groups"]
        self.frames = {key: Frame(**value) for key, value in data["frames"].items()}
        self.tools = {key: ToolOverhead(**value) for key, value in data["tools"].items()}
        self.images = {key: ImageRule(**value) for key, value in data["images"].items()}
        self.prefixes = frozenset(data["prefixes"])
        self.openai_compatible = frozenset(data["openai_compatible"])
        self.rows: list[dict[str, Any]] = data["rows"]
        self.by_words = {words: row for row in self.rows for name in row["names"] for words in _spellings(name)}
        self.makers = {_words(name): row["group"] for row in data["makers"] for name in row["names"]}
        self.longest = max(len(words) for words in self.by_words)
        # What may follow a name and is no other model: a date, a size, a version of the file, a quantisation.
        self.rest = re.compile(
            rf"(?: (?:{'|'.join(data['suffixes'])}"
            r"|\d{3,8}|20\d\d \d\d \d\d|\d\d 20\d\d|(?:preview|exp|beta) \d\d \d\d|1 0"
            r"|\d+(?:\.\d+)?[bem]|v \d{1,2}(?:[ .]\d{1,2})?|(?:[aqw]|iq|int|fp|bf|nf|nvfp|mxfp) \d{1,2}|\d+bit))*"
        )

    def row(self, words: tuple[str, ...]) -> tuple[int, dict[str, Any]] | None:
        """The row with the longest name with which these words begin, and its length."""
        for length in range(min(len(words), self.longest), max(len(words) - _MAX_REST, 1) - 1, -1):
            row = self.by_words.get(words[:length])
            if row is not None and self.rest.fullmatch("".join(f" {word}" for word in words[length:])):
                return length, row
        return None

    def maker(self, words: tuple[str, ...]) -> str | None:
        """The group of the maker whose name stands at the beginning."""
        return self.makers.get(words[:1]) or self.makers.get(words[:2])


@cache
def _table() -> _Table:
    return _Table()


@lru_cache(maxsize=256)
def _find(name: str) -> ModelInfo:
    table = _table()
    text, window = name.strip().lower(), None
    if len(text) > _MAX_NAME:
        return _info(table, name, "unknown", None, None)
    if stated := re.fullmatch(r"(.*?)\[(\d{1,4}(?=k)|\d{1,3}(?=m))([km])\]", text):
        text, window = stated[1], int(stated[2]) * {"k": 1_000, "m": 1_000_000}[stated[3]]
    parts = [list(_readings(part, table.prefixes)) for part in reversed(text.split("/"))]
    for readings in parts:
        found = [match for words in readings if (match := table.row(words))]
        if found:
            row = max(found, key=lambda match: match[0])[1]
            return _info(table, name, row["group"], row, window)
    for readings in parts:
        for words in readings:
            if group := table.maker(words):
                return _info(table, name, group, None, window)
    compatible = not table.openai_compatible.isdisjoint(re.split("[/:]", text)[:-1])
    return _info(table, name, "unknown_openai" if compatible else "unknown", None, window)


def _info(table: _Table, name: str, key: str, row: dict[str, Any] | None, window: int | None) -> ModelInfo:
    group = table.groups[key]
    source = table.sources[row["source"]] if row else {"name": "not in the table", "date": table.date}
    fields = row or {}
    return ModelInfo(
        name=name,
        known=row is not None,
        provider=group["provider"],
        family=group["family"],
        encoding=group.get("encoding") if row else None,
        scale=group.get("scale", 1.0),
        context_window=window or fields.get("window"),
        input_limit=None if window else fields.get("input"),
        max_output_tokens=fields.get("output"),
        frame=table.frames[group["frame"]],
        tools=table.tools[group["tools"]],
        images=table.images[group["images"]],
        pdf_page_tokens=group["pdf_page_tokens"],
        audio_tokens_per_second=group["audio_tokens_per_second"],
        source=source["name"],
        date=source["date"],
    )


def _readings(part: str, prefixes: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The words of a name, and those behind what a gateway may put before it: `us.anthropic.`, `openai:`, `fw-`."""
    if part.startswith("ft:"):  # a fine-tuned model of OpenAI: `ft:gpt-4o-2024-08-06:company::id`
        part = part[3:].split(":", 1)[0]
    while part:
        words = _words(part)
        yield words
        while len(words) > 1 and words[0] in prefixes:
            words = words[1:]
            yield words
        before = re.match(r"[a-z@][a-z_-]*[.:]", part)
        part = part[before.end() :] if before else ""


def _words(name: str) -> tuple[str, ...]:
    """`Llama-v3p1-8B` -> `llama v 3.1 8b`: versions keep their dot, a number is a word of its own."""
    name = re.sub(r"(?<=\d)p(?=\d)", ".", name.lower())
    name = re.sub(r"(?<=[a-z])(?=\d)", "-", name)
    return tuple(re.findall(r"\d+(?:\.\d+)*[a-z]*|[^\W\d_]+", name))


def _spellings(name: str) -> set[tuple[str, ...]]:
    """With a version's dot and with a dash: `4.5` and `4-5`."""
    return {_words(name), _words(name.replace(".", "-"))} if "." in name else {_words(name)}


def _side(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected a whole number of pixels, got {value!r}")
    if value < 0:
        raise ValueError(f"{name}: expected a number of pixels, got {value!r}")
    return min(max(value, 1), _MAX_PIXELS)


def _warn_unknown(info: ModelInfo) -> None:
    """For a name that is not in the table: nothing is guessed in silence. A `ModelInfo` in its place is no guess."""
    warnings.warn(_unknown(info), UnknownModelWarning, stacklevel=2)


@lru_cache(maxsize=256)
def _unknown(info: ModelInfo) -> str:
    times = "" if info.scale == 1 else f" times {info.scale:g}"
    return not_in_table(info, f", its tokens are taken for {info.family}{times}")


def not_in_table(info: ModelInfo, consequence: str = "") -> str:
    """That a name is not known, what follows from it, and the nearest that are."""
    name = info.name if len(info.name) <= 80 else f"{info.name[:79]}…"
    return f"model: {name!r} is not in the table{consequence}; nearest: {', '.join(info.nearest) or 'none'}"


def _check_type(name: str, value: object, of: type) -> None:
    if not isinstance(value, of):
        raise TypeError(f"{name}: expected `{of.__name__}`, got {value!r}")


def _check_whole(name: str, value: object, least: int = 0, most: int = 1_000_000) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name}: expected {least} to {most:,}, got {value!r}")


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    if not 0 <= value <= 1_000:
        raise ValueError(f"{name}: expected 0 to 1,000, got {value!r}")
