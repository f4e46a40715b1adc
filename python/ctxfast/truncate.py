"""Tool outputs that are too long: a preview for the model, and everything on disk."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, overload

from ctxfast._core import (
    TokenCounter,
    cut_text,
    join_ascii,
    kept_ends,
    output_json,
    output_text,
    text_size,
    truncation_marker,
)
from ctxfast.errors import BudgetError
from ctxfast.policy import SupportsSave
from ctxfast.store import OutputStore

__all__ = ["TruncatedResult", "fit_tool_results", "truncate_tool_output"]

P = TypeVar("P")
Keep = Literal["auto", "head", "tail", "both"]
Store = OutputStore | SupportsSave | os.PathLike[str] | Literal["default"] | None

_MOST = sys.maxsize  # no limit
_NEAR = 4_096  # characters, beside the limits, that are cleaned or decoded of each end of a long output
_ROUNDS = 20  # attempts to meet a limit in tokens
_ENOUGH = 0.95  # of a limit in tokens: good enough

# What a terminal reads as commands, and control characters but for tab, line feed and carriage return.
_CONTROLS = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor; also one that is not finished
    "|\x1b[]PX^_][^\x07\x1b\x9c\r\n]{0,4096}(?:\x07|\x1b\\\\|\x9c)"  # OSC and other strings: titles, links
    "|\x1b[ -/]*[0-~]?"  # the rest
    "|\x9b[0-?]*[ -/]*[@-~]?"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


@dataclass(frozen=True)
class TruncatedResult(Generic[P]):
    """A tool output as the model is to see it, and where the rest is."""

    preview: P
    """What goes into the conversation: the output itself if it was short enough. The line that says what is missing is
    part of it and counts. Of a list of content blocks it is a list, of anything else a text."""
    full_path: str | None
    """The file with the whole output; `None` if there is none, or the store has no files."""
    was_truncated: bool
    """Whether something was cut out."""
    hint: str
    """Where the rest is, or why there is none: a sentence, empty if nothing was cut. It is in the preview already,
    if there was room for it."""
    total_lines: int
    """Lines of the whole text. A line feed at its end begins no further one."""
    total_bytes: int
    """Bytes of the whole text, as UTF-8."""
    kept: Literal["all", "head", "tail", "both", "none"]
    """What of it is in the preview."""
    output_id: str | None = None
    """The id in the store."""
    save_error: str | None = None
    """Why it could not be saved."""
    omitted_lines: int = 0
    """Lines of which nothing is in the preview."""
    omitted_bytes: int = 0
    """Bytes that are not in the preview."""


@overload
def truncate_tool_output(
    output: str | bytes | bytearray,
    max_lines: int | None = 2_000,
    max_bytes: int | None = 51_200,
    tool_name: str = "tool",
    *,
    max_tokens: float | None = None,
    counter: TokenCounter | None = None,
    keep: Keep = "auto",
    clean: bool = False,
    store: Store = "default",
) -> TruncatedResult[str]: ...


@overload
def truncate_tool_output(
    output: list[Any],
    max_lines: int | None = 2_000,
    max_bytes: int | None = 51_200,
    tool_name: str = "tool",
    *,
    max_tokens: float | None = None,
    counter: TokenCounter | None = None,
    keep: Keep = "auto",
    clean: bool = False,
    store: Store = "default",
) -> TruncatedResult[list[Any]]: ...


def truncate_tool_output(
    output: str | bytes | bytearray | list[Any],
    max_lines: int | None = 2_000,
    max_bytes: int | None = 51_200,
    tool_name: str = "tool",
    *,
    max_tokens: float | None = None,
    counter: TokenCounter | None = None,
    keep: Keep = "auto",
    clean: bool = False,
    store: Store = "default",
) -> TruncatedResult[Any]:
    r"""A tool output within limits: a preview that says what is missing, and all of it in a file.

    An output within `max_lines` lines, `max_bytes` bytes of UTF-8 and `max_tokens` tokens of `counter` comes back as
    it is, and nothing is saved. (2,000 lines and 50 KiB are what OpenCode and pi use; `None`: no such limit.) Of a
    longer one the preview has whole lines, and where a line is too long for that, a piece of it, never a part of a
    character that is written as several. In the gap stands one line::

        [Tool output truncated: 17,800 lines, 540,000 bytes omitted, saved as bash-0123456789abcdef. Full text: /...]

    It counts: the preview is within all limits and smaller than the output. Where there is no room even for a short
    form of that line, the preview is a plain piece of the output.

    `keep`: the `"head"`, the `"tail"` or `"both"`; `"auto"` is both for commands, a fifth of it head, as their errors
    are at the end; the head for tools that read files; and both, half and half, for everything else. The tool's kind
    is found by `tool_name`, as in `prune_tool_outputs`.

    `clean=True` takes escape sequences and control characters out of the preview (not tabs and line breaks). What is
    saved is the output as it was.

    `output` may be bytes, too: what is no UTF-8 is shown as U+FFFD. Of a list of content blocks the text parts are
    cut, as one; images and other blocks stay, unless `max_tokens` is too small for them. What is saved is the list as
    JSON.

    `store`: an `OutputStore`, its directory as a `Path`, or anything with `save(text) -> id`; `None` keeps nothing,
    and the preview says so. If the output cannot be saved the preview says that, and `save_error` why: nothing is
    raised.

    Raises `BudgetError` (a `ValueError`) for a negative limit, `TypeError` for an output of another type,
    `MessageTypeError` for content blocks that cannot be read.

    >>> result = truncate_tool_output("line\n" * 5_000, max_lines=3, tool_name="read_file", store=None)
    >>> print(result.preview)
    line
    line
    [Tool output truncated: 4,998 lines, 24,991 bytes omitted, not saved. The rest was not kept: ask for less at a time]
    """
    limits = _Limits.of(max_lines, max_bytes, max_tokens, counter)
    return _Output(output, tool_name, keep, clean, store).within(limits)


def fit_tool_results(
    results: Sequence[str | bytes | list[Any]],
    room: float,
    *,
    tool_names: str | Sequence[str] = "tool",
    counter: TokenCounter | None = None,
    max_lines: int | None = 2_000,
    max_bytes: int | None = 51_200,
    keep: Keep = "auto",
    clean: bool = False,
    store: Store = "default",
) -> list[TruncatedResult[Any]]:
    """The outputs of parallel calls, made to fit the room that is left *before* they are appended.

    Together they have at most `room` tokens of `counter` (default: `TokenCounter.default()`): their contents, without
    the frames of the messages. Short ones stay whole, and what they leave of their share is shared by the others,
    evenly. Each is within `max_lines` and `max_bytes`, too. Everything else is as in `truncate_tool_output`;
    `tool_names` is one name, or one for each. Where `room` is very small previews are empty: see `was_truncated`.

    Raises `BudgetError` for a negative room, `ValueError` if there are more or fewer names than results.
    """
    if isinstance(results, (str, bytes, bytearray, Mapping)):
        raise TypeError(f"results: expected a sequence of outputs, got {type(results).__name__}")
    results = list(results)
    names = [tool_names] * len(results) if isinstance(tool_names, str) else list(tool_names)
    if len(names) != len(results):
        raise ValueError(f"tool_names: expected one for each of {len(results)} results, got {len(names)}")
    counter = counter or TokenCounter.default()
    limits = _Limits.of(max_lines, max_bytes, room, counter, "room")
    outputs = [_Output(result, name, keep, clean, store) for result, name in zip(results, names, strict=True)]
    shown = [output.within(_Limits(limits.lines, limits.size)) for output in outputs]
    tokens = [_tokens(one.preview, counter) for one in shown]
    left = limits.tokens
    waiting = sorted(range(len(shown)), key=lambda number: tokens[number])
    for done, number in enumerate(waiting):  # the smallest first: what it leaves is the others'
        share = left // (len(waiting) - done)
        if tokens[number] > share:
            shown[number] = outputs[number].within(_Limits(limits.lines, limits.size, share, counter))
            tokens[number] = _tokens(shown[number].preview, counter)
        left = max(0, left - tokens[number])
    return shown


@dataclass(frozen=True)
class _Limits:
    """How long a preview may be."""

    lines: int
    size: int
    tokens: int = _MOST
    counter: TokenCounter | None = None

    @classmethod
    def of(
        cls,
        lines: int | None,
        size: int | None,
        tokens: float | None,
        counter: TokenCounter | None,
        name_of_tokens: str = "max_tokens",
    ) -> _Limits:
        limits = []
        for name, value in (("max_lines", lines), ("max_bytes", size), (name_of_tokens, tokens)):
            if value is None:
                limits.append(_MOST)
                continue
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number and not hasattr(type(value), "__index__"):
                raise TypeError(f"{name}: expected a number or None, got {value!r}")
            if isinstance(value, bool) or not 0 <= value < float("inf"):
                raise BudgetError(f"{name}: expected 0 or more, got {value!r}")
            limits.append(min(int(value), _MOST))
        if counter is not None and not isinstance(counter, TokenCounter):
            raise TypeError(f"counter: expected a TokenCounter, got {type(counter).__name__}")
        if tokens is None:
            return cls(limits[0], limits[1])
        return cls(limits[0], limits[1], limits[2], counter or TokenCounter.default())


class _Output:
    """An output, saved at most once."""

    def __init__(self, output: object, tool_name: str, keep: str, clean: bool, store: Store) -> None:
        if keep not in ("auto", "head", "tail", "both"):
            raise ValueError(f"keep: expected 'auto', 'head', 'tail' or 'both', got {keep!r}")
        if not isinstance(tool_name, str):
            raise TypeError(f"tool_name: expected str, got {type(tool_name).__name__}")
        _check_store(store)
        self.tool_name, self.clean, self.given_store = tool_name, clean, store
        self.keep = kept_ends(keep, tool_name.encode("utf-8", "replace").decode())
        self.parts: Sequence[Any] | None = None
        self.saved: tuple[str | None, str | None] | None = None
        self.given = output
        text: str | bytes
        if isinstance(output, str):
            text = output if type(output) is str else str.__str__(output)  # whatever a subclass does
        elif isinstance(output, (bytes, bytearray, memoryview)):
            text = output if type(output) is bytes else memoryview(output).tobytes()
        elif isinstance(output, (list, tuple)):
            self.parts = output
            text = output_text(output)[0]
        else:
            raise TypeError(f"output: expected str, bytes or a list of content blocks, got {type(output).__name__}")
        self.text = text
        self.lines, self.size = _size(text)

    @functools.cached_property
    def store(self) -> OutputStore | SupportsSave | None:
        """Where it is saved."""
        store = self.given_store
        if isinstance(store, str):
            return OutputStore.default()
        return OutputStore(store) if isinstance(store, os.PathLike) else store

    def within(self, limits: _Limits) -> TruncatedResult[Any]:
        """The output within limits."""
        shown = self.shown(limits)
        others = [] if self.parts is None else [part for part in self.parts if not _is_text(part)]
        left_out = 0
        most = limits.tokens
        if others and limits.counter is not None:
            counted = limits.counter.content(others)
            if counted <= limits.tokens:
                limits = replace(limits, tokens=limits.tokens - counted)
            else:
                left_out, others = len(others), []
        if not left_out and shown.joint is None and shown.fits(limits) and self.parts_fit(limits.counter, most):
            if shown.is_all_of(self.text):
                return self.result(shown.text if isinstance(self.text, bytes) else self.given, _Cut("", "all"), "")
            self.save()  # something was cleaned away
            return self.result(self.as_parts(shown.text, others), _Cut("", "all"), "")
        output_id, error = self.save()
        words = self.words(output_id, error)
        if left_out:
            words = f"{left_out} {'attachment' if left_out == 1 else 'attachments'} left out. {words}".rstrip()
        gap = _Gap(output_id, words, may_grow=left_out > 0)
        cut = self.cut(shown, limits, gap)
        if limits.counter is not None:
            cut = self.cut_to_tokens(cut, shown, limits, limits.counter, gap)
        hint = words or f"Saved as {output_id}"
        return self.result(self.as_parts(cut.text, others), cut, hint)

    def parts_fit(self, counter: TokenCounter | None, tokens: int) -> bool:
        """Whether the parts do, which may have a few tokens more than their text as one."""
        return counter is None or self.parts is None or counter.content(self.parts) <= tokens

    def result(self, preview: Any, cut: _Cut, hint: str) -> TruncatedResult[Any]:
        output_id, error = self.saved or (None, None)
        path = None
        if output_id is not None and isinstance(self.store, OutputStore):
            path = str(self.store.path(output_id))
        return TruncatedResult(
            preview=preview,
            full_path=path,
            was_truncated=hint != "",
            hint=hint,
            total_lines=self.lines,
            total_bytes=self.size,
            kept=cut.kept,
            output_id=output_id,
            save_error=error,
            omitted_lines=cut.omitted_lines,
            omitted_bytes=cut.omitted_bytes,
        )

    def as_parts(self, text: str, others: list[Any]) -> Any:
        """The text as the output was: a text, or a list of blocks with everything that is no text."""
        if self.parts is None:
            return text
        first = next((part for part in self.parts if _is_text(part)), None)
        if isinstance(first, str):
            return [text, *others]
        block = first if isinstance(first, Mapping) else {"type": getattr(first, "type", "text")}
        return [{**block, "text": text}, *others]

    def save(self) -> tuple[str | None, str | None]:
        """The id, or why there is none."""
        if self.saved is None:
            content = self.text if self.parts is None else output_json(self.parts)
            self.saved = _save(content, self.tool_name, self.store)
        return self.saved

    def words(self, output_id: str | None, error: str | None) -> str:
        """Where the rest is."""
        if output_id is None:
            why = "The rest was not kept" if error is None else f"The rest could not be saved ({error})"
            return f"{why}: ask for less at a time"
        if not isinstance(self.store, OutputStore):
            return ""
        path = str(self.store.path(output_id))
        return f"Full text: {path}" if path.isprintable() else ""

    def shown(self, limits: _Limits) -> _Shown:
        """The text that the preview is taken of: of a long one that is cleaned or decoded, no more than the ends."""
        text = self.text
        if isinstance(text, str) and not self.clean:
            return _Shown(text, self.lines, self.size)
        near = min(limits.size, limits.tokens * 8, len(text)) + _NEAR
        if len(text) <= 4 * near:
            text = self.legible(text)
            return _Shown(text, *_size(text))
        head, tail = self.legible(text[:near]), self.legible(text[-near:])
        return _Shown(head + tail, *_size(head + tail), joint=len(head))

    def legible(self, text: str | bytes) -> str:
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        return _CONTROLS.sub("", text) if self.clean else text

    def cut(self, shown: _Shown, limits: _Limits, gap: _Gap, chars: int = _MOST) -> _Cut:
        """What is kept, with the longest of the lines that fit in the gap; in no more than so many characters."""
        most, size = chars, limits.size
        if not gap.may_grow:
            most, size = min(most, max(0, len(self.text) - 1)), min(size, max(0, self.size - 1))
        for words in (gap.words, "") if gap.words else ("",):
            widest = truncation_marker(self.lines, self.size, gap.output_id, words)
            room, used = len(widest) + 2, len(widest.encode("utf-8", "replace")) + 2
            share = 2 if words else 1  # the long form must leave as much room as it takes
            if limits.lines < 2 or room * share > most or used * share > size:
                continue
            within = (limits.lines - 1, size - used, most - room)
            return self.joined(shown, within, self.keep, replace(gap, words=words))
        one_end = "head" if self.keep in ("head", "halves") else "tail"
        return self.joined(shown, (limits.lines, size, most), one_end, None)

    def joined(self, shown: _Shown, limits: tuple[int, int, int], keep: str, gap: _Gap | None) -> _Cut:
        text = shown.text
        found = cut_text(text, (shown.lines, shown.size), limits, keep)
        end = len(text)
        head, tail, lines, size = found or (end, 0 if shown.joint is None else end, 0, 0)
        if tail and text.endswith("\n"):  # the preview ends without a line break
            drop = 2 if text.endswith("\r\n") else 1
            end, tail, size = end - drop, max(0, tail - drop), size + min(drop, tail)
        if shown.joint is not None:
            head, tail = min(head, shown.joint), min(tail, end - shown.joint)
        if text is not self.text:  # in what is omitted is also what was cleaned away
            kept = _size(text[:head]), _size(text[end - tail : end])
            lines = max(0, self.lines - kept[0][0] - kept[1][0])
            size = max(0, self.size - kept[0][1] - kept[1][1])
        line = "" if gap is None else truncation_marker(lines, size, gap.output_id, gap.words)
        if line and head:
            line = f"\n{line}"
        if line and tail:
            line += "\n"
        if text.isascii():
            preview = join_ascii(text, head, line, end - tail, end)
        else:
            preview = text[:head]
            preview += line
            preview += text[end - tail : end]
        return _Cut(preview, _kept(head, tail, size), lines, size)

    def cut_to_tokens(self, cut: _Cut, shown: _Shown, limits: _Limits, counter: TokenCounter, gap: _Gap) -> _Cut:
        """The largest cut that is found within the limit in tokens, by its length in characters."""
        low, high = 0, len(cut.text)
        tokens = counter.text(cut.text)
        if tokens <= limits.tokens:
            return cut
        best = _Cut("", "none", self.lines, self.size)
        for _ in range(_ROUNDS):
            middle = (high if tokens > limits.tokens else low) * limits.tokens // max(1, tokens)
            if not low < middle < high:
                middle = (low + high) // 2
            if middle <= low:
                break
            tried = self.cut(shown, limits, gap, middle)
            tokens = counter.text(tried.text)
            if tokens > limits.tokens:
                high = middle
                continue
            low, best = middle, tried
            if tokens >= _ENOUGH * limits.tokens:
                break
        return best


@dataclass(frozen=True)
class _Gap:
    """What the line in the gap says."""

    output_id: str | None
    words: str
    may_grow: bool  # the text may become longer: blocks that are no text were left out


@dataclass(frozen=True)
class _Shown:
    """A text of which a preview is taken; `joint`: where its two ends meet, if there is more between them."""

    text: str
    lines: int
    size: int
    joint: int | None = None

    def is_all_of(self, text: str | bytes) -> bool:
        shown = self.text if isinstance(text, str) else self.text.encode("utf-8", "surrogatepass")
        return shown == text

    def fits(self, limits: _Limits) -> bool:
        if self.lines > limits.lines or self.size > limits.size:
            return False
        return limits.counter is None or limits.counter.fits(self.text, limits.tokens)


@dataclass(frozen=True)
class _Cut:
    """A preview."""

    text: str
    kept: Literal["all", "head", "tail", "both", "none"]
    omitted_lines: int = 0
    omitted_bytes: int = 0


def _kept(head: int, tail: int, omitted_bytes: int) -> Literal["all", "head", "tail", "both", "none"]:
    if omitted_bytes == 0:
        return "all"
    if head and tail:
        return "both"
    return "head" if head else "tail" if tail else "none"


def _check_store(store: object) -> None:
    if isinstance(store, str) and store != "default":
        raise ValueError(f"store: expected 'default', a Path, a store or None, got {store!r}")
    if store is None or isinstance(store, (str, os.PathLike, OutputStore)):
        return
    if not callable(getattr(store, "save", None)):
        raise TypeError(f"store: expected something with a method save(text) -> id, got {type(store).__name__}")


def _save(text: str | bytes, tool_name: str, store: OutputStore | SupportsSave | None) -> tuple[str | None, str | None]:
    """The id under which an output was saved, or why it was not; neither if it should not be."""
    if store is None:
        return None, None
    if isinstance(store, OutputStore):
        found = store.put(text, tool_name)
        if store == OutputStore.default():
            store.tidy()
        return found
    try:
        output_id = store.save(text if isinstance(text, str) else text.decode("utf-8", "replace"))
    except Exception as error:  # an agent goes on without a store
        return None, type(error).__name__
    if isinstance(output_id, str) and 0 < len(output_id) <= 200 and output_id.isprintable():
        return output_id, None
    return None, "the store gave no id"


def _is_text(part: object) -> bool:
    if isinstance(part, str):
        return True
    kind = part.get("type") if isinstance(part, Mapping) else getattr(part, "type", None)
    return kind in ("text", "input_text", "output_text")


def _size(text: str | bytes) -> tuple[int, int]:
    """Lines and bytes."""
    if isinstance(text, str):
        return text_size(text)
    return text.count(b"\n") + (len(text) > 0 and not text.endswith(b"\n")), len(text)


def _tokens(preview: Any, counter: TokenCounter) -> int:
    return counter.text(preview) if isinstance(preview, str) else counter.content(preview)
