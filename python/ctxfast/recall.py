"""Getting saved tool outputs back: all of them into a list of messages, or parts of one for the model that asks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from ctxfast._core import output_text, text_size
from ctxfast.errors import OutputError
from ctxfast.store import OutputStore

__all__ = ["RecallTool", "SupportsLoad", "recall_tool", "restore", "saved_ids"]

M = TypeVar("M")

_STUB = "[Tool output pruned"
_LONGEST_STUB = 700  # characters, with the id
_MARK = "[Tool output truncated: "
_FACTS = re.compile(r"(?:[0-9,]{1,30} lines?, )?([0-9,]{1,30}) bytes? omitted, saved as ", re.ASCII)
_LONGEST_GAP = 5_000  # characters, with a path
_DEEPEST = 16  # outputs that were truncated, pruned, truncated again ...


class SupportsLoad(Protocol):
    """Where saved outputs are found again."""

    def load(self, output_id: str, /) -> str:
        """The output that was saved under an id; raises `LookupError` if there is none."""
        ...


def restore(
    messages: Sequence[M],
    store: SupportsLoad | os.PathLike[str],
    *,
    pruned: bool = True,
    truncated: bool = True,
    strict: bool = False,
) -> list[M]:
    """The messages with saved tool outputs in the place of their stubs and previews: a new list.

    What `prune_tool_outputs(..., store=store)` has replaced and what `truncate_tool_output(..., store=store)` has
    cut comes back byte for byte, of messages that are dicts. Everything else is the same object. A preview is known
    by the line in its gap, and only if the sizes agree: one that was changed since stays. A preview that had no room
    for that line stays, too; `TruncatedResult.output_id` has its id. With `truncated=False` previews stay as they are,
    so that `restore(prune_tool_outputs(m, store=s).messages, s, truncated=False) == m` for every `m`.

    An output that is not in the store any more is left as it is; with `strict=True` the store's error is raised
    (`OutputError`, a `LookupError`).
    """
    reader = _Reader(_store(store), pruned, truncated, strict)
    return [reader.message(message) for message in messages]


def saved_ids(messages: Sequence[object]) -> set[str]:
    """The ids that stubs and previews in these messages name: what `OutputStore.sweep(keep=...)` must keep."""
    ids = set()
    for message in messages:
        for content in _contents(message):
            for text in _texts(content):
                found = _stub_id(text)
                ids.update([found] if found else [])
                ids.update(gap.output_id for gap in _gaps(text))
    return ids


def _store(store: SupportsLoad | os.PathLike[str]) -> SupportsLoad:
    if isinstance(store, os.PathLike):
        return OutputStore(store)
    if not callable(getattr(store, "load", None)):
        raise TypeError(f"store: expected something with a method load(id) -> text, got {type(store).__name__}")
    return store


class _Reader:
    """Reads saved outputs into messages."""

    def __init__(self, store: SupportsLoad, pruned: bool, truncated: bool, strict: bool) -> None:
        self.store, self.pruned, self.truncated, self.strict = store, pruned, truncated, strict

    def message(self, message: Any) -> Any:
        if not isinstance(message, dict):
            return message
        content = message.get("content")
        if message.get("role") in ("tool", "function"):
            restored = self.content(content)
        elif message.get("role") == "user" and isinstance(content, list):
            restored = self.blocks(content)
        else:
            return message
        return message if restored is content else {**message, "content": restored}

    def blocks(self, blocks: list[Any]) -> list[Any]:
        """The blocks of a user message, with what is in its tool results."""
        restored = []
        for block in blocks:
            new = block
            if isinstance(block, dict) and block.get("type") == "tool_result" and "content" in block:
                content = self.content(block["content"])
                new = block if content is block["content"] else {**block, "content": content}
            restored.append(new)
        return blocks if all(new is old for new, old in zip(restored, blocks, strict=True)) else restored

    def content(self, content: Any) -> Any:
        """The content of a result, through all that was done to it."""
        for _ in range(_DEEPEST):
            found = self.once(content)
            if found is content:
                break
            content = found
        return content

    def once(self, content: Any) -> Any:
        if isinstance(content, str):
            found = self.text(content, as_json=False)
            return content if found is None else found
        if not isinstance(content, list):
            return content
        for text in _texts(content):
            found = self.text(text, as_json=True)
            if found is not None:
                return found
        return content

    def text(self, text: str, as_json: bool) -> Any:
        """What a text stands for, if it is a stub or a preview."""
        stub = _stub_id(text) if self.pruned else None
        if stub is not None:
            loaded = self.load(stub)
            return loaded if loaded is None or not as_json else _parsed(loaded)
        for gap in _gaps(text) if self.truncated else ():
            loaded = self.load(gap.output_id)
            whole = _parsed(loaded) if as_json and loaded is not None else loaded
            if whole is not None and gap.is_of(whole, text):
                return whole
        return None

    def load(self, output_id: str) -> str | None:
        try:
            return self.store.load(output_id)
        except LookupError:
            if self.strict:
                raise
            return None


class _Gap(NamedTuple):
    """A line that says what is missing."""

    start: int
    end: int
    omitted_bytes: int
    output_id: str

    def is_of(self, whole: Any, preview: str) -> bool:
        """Whether what is kept and what is omitted are together what there was."""
        head, tail = preview[: self.start].removesuffix("\n"), preview[self.end :].removeprefix("\n")
        size = text_size(whole if isinstance(whole, str) else output_text(whole)[0])[1]
        return text_size(head)[1] + text_size(tail)[1] + self.omitted_bytes == size


def _gaps(text: str) -> Iterator[_Gap]:
    """All lines of a text that could be one."""
    start = text.find(_MARK)
    while start >= 0:
        end = text.find("\n", start, start + _LONGEST_GAP)
        end = min(len(text), start + _LONGEST_GAP) if end < 0 else end
        facts = _FACTS.match(text, start + len(_MARK), end)
        if facts and text[end - 1] == "]" and text[start - 1 : start] in ("", "\n"):
            output_id = text[facts.end() : end - 1].partition(". ")[0]
            yield _Gap(start, end, int(facts[1].replace(",", "") or "0"), output_id)
        start = text.find(_MARK, end)


def _parsed(text: str) -> list[Any] | None:
    """The content blocks of which a text is the JSON."""
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parts if isinstance(parts, list) else None


def _stub_id(text: str) -> str | None:
    """The id that a stub names."""
    if not text.startswith(_STUB) or len(text) > _LONGEST_STUB:
        return None
    facts = text.partition("\n")[0]
    before, named, output_id = facts.rpartition(", saved as ")
    return output_id[:-1] if before and named and output_id.endswith("]") else None


def _contents(message: object) -> Iterator[Any]:
    """The contents of a message and of its tool results."""
    content = message.get("content") if isinstance(message, Mapping) else getattr(message, "content", None)
    yield content
    if isinstance(content, (list, tuple)):
        for block in content:
            yield block.get("content") if isinstance(block, Mapping) else getattr(block, "content", None)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, (list, tuple)):
        for part in content:
            text = part.get("text") if isinstance(part, Mapping) else getattr(part, "text", part)
            if isinstance(text, str):
                yield text


# ------------------------------------------------------------------------------------------------- for the model


class RecallTool(NamedTuple):
    """A tool with which a model reads saved outputs: what it is told, and what is done."""

    schema: dict[str, Any]
    """The definition of the tool, for `tools=` of a request."""
    handler: Callable[..., str]
    """Called with the arguments, as a mapping, as JSON or by name; gives the text of the result and raises nothing."""


def recall_tool(
    store: SupportsLoad | os.PathLike[str],
    *,
    name: str = "recall_output",
    form: Literal["openai", "anthropic", "responses"] = "openai",
    max_lines: int = 400,
    max_bytes: int = 20_000,
) -> RecallTool:
    """A tool that reads a saved output: a range of its lines or characters, or the lines in which a pattern occurs.

    `form` is the form of the schema: OpenAI chat completions, Anthropic messages, OpenAI responses. What the handler
    gives has at most `max_lines` lines and `max_bytes` bytes, and says how to go on; wrong arguments and ids that are
    not there are answered in words. The model asks for an id, as stubs and previews name it, never for a path.

    A pattern is plain text, small and capital letters alike, in which `|` is "or" and `.*` is anything: its time is
    linear, whatever the model asks for.
    """
    limits = {"max_lines": max_lines, "max_bytes": max_bytes}
    for parameter, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{parameter}: expected a whole number, got {value!r}")
        if value < (1 if parameter == "max_lines" else 200):
            raise ValueError(f"{parameter}: expected more, got {value!r}")
    parameters = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id after 'saved as'."},
            "start": {"type": "integer", "description": "First line (or character), counted from 1. Default: 1."},
            "end": {"type": "integer", "description": "Last line (or character). Default: as far as there is room."},
            "unit": {
                "type": "string",
                "enum": ["lines", "characters"],
                "description": "What start and end count. Characters are for outputs with very long lines.",
            },
            "pattern": {
                "type": "string",
                "description": "Give only lines with this text; '|' means or, '.*' means anything.",
            },
        },
        "required": ["id"],
    }
    description = (
        "Read a tool output that was shortened or removed from the conversation: a range of it, or the lines in which "
        "a pattern occurs. Lines are given with their numbers."
    )
    schema: dict[str, Any]
    if form == "openai":
        function = {"name": name, "description": description, "parameters": parameters}
        schema = {"type": "function", "function": function}
    elif form == "anthropic":
        schema = {"name": name, "description": description, "input_schema": parameters}
    elif form == "responses":
        schema = {"type": "function", "name": name, "description": description, "parameters": parameters}
    else:
        raise ValueError(f"form: expected 'openai', 'anthropic' or 'responses', got {form!r}")
    source = _store(store)

    def handler(arguments: Mapping[str, Any] | str | None = None, /, **named: Any) -> str:
        """The result of a call."""
        try:
            return _answer(source, {**_arguments(arguments), **named}, max_lines, max_bytes)
        except _Refusal as refusal:
            return f"Error: {refusal}"
        except Exception as error:  # a model's call must not end an agent
            return f"Error: the output could not be read ({type(error).__name__})"

    return RecallTool(schema, handler)


class _Refusal(Exception):
    """What the model is told."""


def _arguments(arguments: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise _Refusal("the arguments are no JSON") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        raise _Refusal("the arguments are no object")
    return dict(arguments)


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if isinstance(value, str) and re.fullmatch("[0-9]{1,15}", value, re.ASCII):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise _Refusal(f"{name}: expected a whole number, 1 or more")


def _answer(store: SupportsLoad, arguments: dict[str, Any], max_lines: int, max_bytes: int) -> str:
    output_id, pattern, unit = (arguments.get(key) for key in ("id", "pattern", "unit"))
    start, end = _number(arguments, "start"), _number(arguments, "end")
    if not isinstance(output_id, str) or not output_id:
        raise _Refusal("id: expected the id that follows 'saved as'")
    if pattern is not None and not isinstance(pattern, str):
        raise _Refusal("pattern: expected a text")
    if unit not in (None, "lines", "characters"):
        raise _Refusal("unit: expected 'lines' or 'characters'")
    try:
        text = store.load(output_id.strip())
    except LookupError as error:
        reason = error.reason if isinstance(error, OutputError) else "there is no such id"
        raise _Refusal(f"no saved output {output_id[:100]!r}: {reason}") from None
    if unit == "characters" and not pattern:
        return _characters(text, start or 1, end, max_lines, max_bytes)
    return _lines(text, start or 1, end, _Pattern(pattern) if pattern else None, max_lines, max_bytes)


def _characters(text: str, start: int, end: int | None, max_lines: int, max_bytes: int) -> str:
    last = min(end or len(text), len(text))
    piece = text[start - 1 : min(last, start - 1 + max_bytes)]
    piece = "\n".join(piece.split("\n", max_lines)[:max_lines])
    piece = _shortened(piece, max_bytes - 100)
    shown = start - 1 + len(piece)
    head = f"[characters {start:,} to {shown:,} of {len(text):,}]" if piece else f"[{len(text):,} characters]"
    more = f"\n[more: start={shown + 1}]" if piece and shown < last else ""
    return f"{head}\n{piece}{more}"


def _lines(text: str, start: int, end: int | None, pattern: _Pattern | None, max_lines: int, max_bytes: int) -> str:
    given: list[str] = []
    used, room = 0, max_bytes - 100
    number = 0
    found = 0
    more = None
    for number, line in enumerate(_each_line(text), start=1):
        if number < start or (end is not None and number > end):
            continue
        if pattern is not None and not pattern.is_in(line):
            continue
        found += 1
        if more is not None:
            continue
        entry = f"{number}: {line}"
        size = text_size(entry)[1] + 1
        if used + size > room and not given:
            entry = _shortened(entry, room - 100) + " [this line is longer: unit=characters shows the rest]"
            size = text_size(entry)[1] + 1
        if len(given) + 2 >= max(max_lines, 3) or used + size > room:
            more = number
            continue
        given.append(entry)
        used += size
    what = "lines" if pattern is None else "lines with the pattern"
    head = f"[{found:,} {what}, of {number:,} in all]"
    rest = [] if more is None else [f"[more: start={more}]"]
    return "\n".join([head, *given, *rest])


def _each_line(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        feed = text.find("\n", start)
        feed = len(text) if feed < 0 else feed
        yield text[start:feed]
        start = feed + 1


def _shortened(text: str, room: int) -> str:
    """As much of the start as has so many bytes."""
    text = text[: max(0, room)]
    while text and (size := text_size(text)[1]) > room:
        text = text[: min(len(text) - 1, len(text) * room // size)]
    return text


class _Pattern:
    """Pieces of text that follow each other in a line; alternatives of that."""

    def __init__(self, pattern: str) -> None:
        alternatives = [re.split(r"(?<!\\)\.\*", one) for one in re.split(r"(?<!\\)\|", pattern)]
        plain = [[re.sub(r"\\(.)", r"\1", piece).casefold() for piece in pieces] for pieces in alternatives]
        self.alternatives = [pieces for pieces in plain if any(pieces)]

    def is_in(self, line: str) -> bool:
        line = line.casefold()
        return any(self._has(line, pieces) for pieces in self.alternatives)

    @staticmethod
    def _has(line: str, pieces: list[str]) -> bool:
        place = 0
        for piece in pieces:
            place = line.find(piece, place)
            if place < 0:
                return False
            place += len(piece)
        return True
