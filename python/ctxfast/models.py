"""What is known of a model by its name: family of tokenizers, window, limits, what frames, tools and media cost."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from os.path import dirname, join
from typing import Any

__all__ = ["Frame", "ImageRule", "ModelInfo", "ToolOverhead", "known_models", "model_info"]

_DETAILS = ("auto", "low", "high", "original")
_MAX_PIXELS = 65_535  # a side; no provider takes more
_MAX_NAME = 300  # characters; what is longer is no model's name


@dataclass(frozen=True)
class Frame:
    """What a request has besides its texts, in tokens."""

    per_request: int = 0
    per_message: int = 0


@dataclass(frozen=True)
class ToolOverhead:
    """What tools cost besides their schemas, in tokens."""

    per_request: int = 0
    """Once, if there are tools at all: the provider's hidden instructions."""
    per_tool: int = 0
    schema_scale: float = 1.0
    """The estimate of the schemas' JSON times this: OpenAI writes them for the model in a shorter form."""


@dataclass(frozen=True)
class ImageRule:
    """How a provider turns an image's size into tokens. Sizes in pixels; a field that is 0 plays no part."""

    kind: str
    """- `"fixed"`: `tokens` for each image.
    - `"tiles"`: the image is fitted into a square of `max_side`, then its short side to `short_side`; each tile of
      `tile` pixels costs `per_tile`, and `base` comes on top. Detail "low" is `base` alone.
    - `"patches"`: squares of `patch` pixels, the last ones of a row or column whole, `multiplier` tokens each. The
      image is made smaller until its long side is at most `max_side` and it has at most `max_patches`.
    - `"google"`: `base` if both sides are at most `small_side`, else `base` for each tile of `tile` pixels. `tile=0`:
      tiles of two thirds of the short side, 256 to 768 pixels, and once more for the whole image."""
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
    auto: str = "high"
    """What detail "auto" means."""

    def count(self, width: int, height: int, detail: str = "auto") -> int:
        """Tokens of an image; see `ModelInfo.image_tokens`."""
        width, height = _side("width", width), _side("height", height)
        if detail not in _DETAILS:
            raise ValueError(f"detail: expected one of {', '.join(_DETAILS)}, got {detail!r}")
        if self.kind == "tiles":
            return self.base if detail == "low" else self._tiles(width, height)
        if self.kind == "patches":
            return self._patches(width, height, self.auto if detail == "auto" else detail)
        if self.kind == "google":
            return self._google(width, height)
        return self.tokens

    def _tiles(self, width: float, height: float) -> int:
        width, height = _fit(width, height, self.max_side)
        if self.short_side and min(width, height) > self.short_side:
            scale = self.short_side / min(width, height)
            width, height = width * scale, height * scale
        return self.base + self.per_tile * _squares(width, height, self.tile)

    def _patches(self, width: float, height: float, detail: str) -> int:
        width, height = _fit(width, height, self.max_side)
        most = self.max_patches
        if detail == "original" and self.original_patches:
            most = self.original_patches
        patches = _squares(width, height, self.patch)
        if 0 < most < patches:
            shrink = _shrunk_to_whole if self.whole_patches else _shrunk
            patches = shrink(width / self.patch, height / self.patch, most)
        return math.ceil(patches * self.multiplier - 1e-9)

    def _google(self, width: float, height: float) -> int:
        if max(width, height) <= self.small_side:
            return self.base
        width, height = _fit(width, height, self.max_side)
        if self.tile:
            return self.base * _squares(width, height, self.tile)
        tile = min(max(int(min(width, height) / 1.5), 256), 768)
        return self.base * (_squares(width, height, tile) + 1)


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
    `minimax`, `xai`, or `unknown`. A gateway is none."""
    family: str
    """For `TokenCounter.estimator`."""
    scale: float
    """The family's estimate times this: 1.2 for unknown models that are not OpenAI-compatible."""
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

    def image_tokens(self, width: int, height: int, detail: str = "auto") -> int:
        """Tokens of an image of so many pixels, by the provider's published rule.

        `detail` is OpenAI's: `"auto"`, `"low"`, `"high"` or `"original"`; other providers have none. A side of 0 counts
        as 1 pixel, one above 65,535 as that. Raises `TypeError` or `ValueError` for what is no size or no detail.

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
    Its tokens are estimated as those of the maker's newest models, if the name says who made it. Otherwise an
    OpenAI-compatible one (`openai/`, `azure/`) is taken for `o200k`, any other for `deepseek_v3` times 1.2.

    Windows are those of the model at its maker's own service. A gateway can have a smaller one, and a server of your
    own (Ollama) often has: then replace `context_window`.

    Raises `TypeError` or `ValueError` for what is no name.
    """
    if not isinstance(name, str):
        raise TypeError(f"model: expected a name such as 'claude-sonnet-4-5', got {type(name).__name__}")
    if not name.strip():
        raise ValueError(f"model: expected a name such as 'claude-sonnet-4-5', got {name!r}")
    return _find(name)


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
        for length in range(min(len(words), self.longest), 0, -1):
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
    if stated := re.fullmatch(r"(.*?)\[(\d{1,4})([km])\]", text):
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


def _fit(width: float, height: float, most: int) -> tuple[float, float]:
    """A size, made smaller until the long side is at most `most` (0: as it is)."""
    scale = most / max(width, height) if most else 1.0
    return (width * scale, height * scale) if scale < 1 else (width, height)


def _squares(width: float, height: float, side: float) -> int:
    return max(math.ceil(width / side - 1e-9), 1) * max(math.ceil(height / side - 1e-9), 1)


def _shrunk(wide: float, high: float, most: int) -> int:
    """Patches of the largest image of this shape that has at most `most`; sides in patches."""
    low, up = 0.0, 1.0
    for _ in range(50):
        middle = (low + up) / 2
        if _squares(wide * middle, high * middle, 1) <= most:
            low = middle
        else:
            up = middle
    return min(_squares(wide * low, high * low, 1), most)


def _shrunk_to_whole(wide: float, high: float, most: int) -> int:
    """Patches of an image that is scaled to an area of `most` patches and then until one side is whole patches."""
    scale = math.sqrt(most / (wide * high))
    wide, high = wide * scale, high * scale
    scale = min(max(math.floor(wide), 1) / wide, max(math.floor(high), 1) / high)
    return min(_squares(wide * scale, high * scale, 1), most)
