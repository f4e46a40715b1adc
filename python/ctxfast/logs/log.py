"""What a reader of logs returns, and its one error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ctxfast.errors import CtxfastError
from ctxfast.logs.jsonl import Damage, Lines

__all__ = ["Form", "Log", "LogError", "Source", "several", "shape"]

Message = dict[str, Any]
Form = Literal["openai", "claude-code"]


class LogError(CtxfastError, ValueError):
    """A log that cannot be read: what was expected, what came and where."""

    def __init__(self, expected: str, got: str, path: str, line: int | None = None) -> None:
        """Keep what the sentence is made of."""
        super().__init__(expected, got, path, line)
        self.expected = expected
        """What was expected, as a phrase."""
        self.got = got
        """What came instead."""
        self.path = path
        """The file."""
        self.line = line
        """The number of the line, from 1; `None` if it is no particular one."""

    def __str__(self) -> str:
        """One sentence on one line."""
        where = "" if self.line is None else f" line {self.line}"
        return f"expected {self.expected}, got {self.got}, in {self.path}{where}"


@dataclass(frozen=True, repr=False)
class Log:
    """A conversation, as a log has kept it.

    A log goes on where a compaction has replaced the conversation by its summary: from there on, what came before
    is not sent any more. So there are two views: `messages`, what the next request would send, and `history`,
    everything from the first line on. Without a compaction they are equal.
    """

    form: Form
    """The log's format: `"openai"`, a list of messages as chat APIs take them (Anthropic's request bodies are read
    too), or `"claude-code"`, a session of Claude Code in Anthropic's form."""
    messages: list[Message]
    """What would be sent with the next request: the end of `history` from the last compaction on."""
    history: list[Message]
    """All messages of the log."""
    compactions: tuple[int, ...] = ()
    """Indices in `history` before which a compaction was recorded: its summary stands there. 0: the log begins
    with one, and earlier messages are in another file."""
    injected: tuple[int, ...] = ()
    """Indices in `history` of messages that neither the user nor the model wrote: reminders, skills, summaries."""
    system: Any = None
    """The system prompt, where the log keeps it beside the messages: a string or a list of blocks."""
    tools: list[Any] | None = None
    """The tool definitions, where the log has them."""
    damaged: tuple[Damage, ...] = ()
    """What could not be read, one entry for each piece: `(line, problem)`, lines from 1."""
    glued: tuple[int, ...] = ()
    """Numbers of lines that held several records; all of these were read."""
    skipped: dict[str, int] = field(default_factory=dict)
    """How many records were left out because they are no messages, by kind, the most frequent first."""

    def __repr__(self) -> str:
        """Numbers instead of the messages."""
        counts = f"{len(self.messages)} of {len(self.history)} messages"
        return f"Log({self.form!r}, {counts}, damaged={len(self.damaged)}, skipped={sum(self.skipped.values())})"


@dataclass(frozen=True)
class Source:
    """A file, as it is handed to the readers of the formats."""

    name: str
    """Its path, for errors."""
    value: Any
    """What it holds, if it is one JSON value; else `None`."""
    lines: Lines
    """Its records: those of JSON Lines, or the one JSON value if that is an object."""
    flaw: tuple[str, int] | None = None
    """Why it is not one JSON value, and in which line; `None` if it is one or begins with a whole record."""


def several(name: str, count: int, index: int | None, unit: str) -> int:
    """Which of several conversations is meant."""
    if index is None and count != 1:
        raise LogError("an index that says which conversation to read", f"{count} conversations, one {unit}", name)
    index = index or 0
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
        numbers = "0" if count == 1 else f"0 to {count - 1}"
        raise LogError(f"an index of a conversation, {numbers}", repr(index), name)
    return index


def shape(value: object) -> str:
    """What a JSON value is, in a few words."""
    if isinstance(value, dict):
        keys = [repr(key) for key in value]
        return f"an object with {', '.join(keys[:6])}{', ...' if len(keys) > 6 else ''}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)} that begins with {shape(value[0])}" if value else "an empty list"
    kinds = {str: "a string", bool: "a boolean", int: "a number", float: "a number", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)
