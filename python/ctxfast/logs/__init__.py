"""Session logs of agents as lists of messages, ready for every other function of ctxfast.

    log = ctxfast.logs.load("examples/session.json")
    ctxfast.count_tokens(log.messages)

Each format has a file of its own, with a function that recognises it and one that reads it. Another format is one
more such file and a line in `READERS`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ctxfast.logs import claude_code, openai_chat
from ctxfast.logs.jsonl import Damage, Lines, decode, in_utf8, read_jsonl, read_lines
from ctxfast.logs.log import Form, Log, LogError, Source, shape

__all__ = ["Damage", "Log", "LogError", "load", "read_jsonl"]

Recognises = Callable[[Source], bool]
Read = Callable[[Source, "int | None"], Log]

READERS: dict[Form, tuple[Recognises, Read]] = {  # the first that recognises a file reads it
    "claude-code": (claude_code.recognises, claude_code.read),
    "openai": (openai_chat.recognises, openai_chat.read),
}

EXPECTED = "a list of messages that have a `role`, an object with such `messages`, or a session of Claude Code"


def load(path: str | os.PathLike[str], form: Literal["auto"] | Form = "auto", *, index: int | None = None) -> Log:
    """Read the conversation of a log.

    Formats: `"openai"`, which is a JSON list of messages, an object with such a list (a request body with `messages`,
    `system`, `tools`; also `conversation`, `traj` or `history`), or JSON Lines with a message or such an object in
    each line; `"claude-code"`, a session of Claude Code or the output of `claude -p --output-format stream-json`.
    `"auto"` looks at the content.

    `index` chooses one, from 0, where a file holds several conversations; without it that is an error which says how
    many there are. Damaged lines are left out and listed in `Log.damaged`, everything else is read.

    Raises `OSError` if the file cannot be opened, `LogError` (a `ValueError`) if no conversation is found in it.
    """
    if form not in ("auto", *READERS):
        raise ValueError(f"form: expected one of {', '.join(map(repr, ('auto', *READERS)))}, got {form!r}")
    return find(read_source(str(path), Path(path).read_bytes()), form, index)


def find(source: Source, form: Literal["auto"] | Form, index: int | None) -> Log:
    """The conversation of a file that has been read."""
    if form == "auto" and len(source.lines.damaged) > len(source.lines.records) + 10:
        raise unknown(source)  # some text with a bit of JSON in it
    for name, (recognises, read) in READERS.items():
        if form == name or (form == "auto" and recognises(source)):
            return read(source, index)
    raise unknown(source)


def read_source(name: str, data: bytes) -> Source:
    """The file as one JSON value, or else as JSON Lines."""
    data = in_utf8(data)
    if not data.strip(b" \t\r\n\0\xef\xbb\xbf"):
        raise LogError(EXPECTED, f"{len(data):,} bytes without text" if data else "an empty file", name)
    if begins_with_a_record(data):
        return Source(name, None, read_lines(data))
    text, invalid = decode(data)
    try:
        value = json.loads(text.lstrip("\ufeff"))
    except ValueError as error:
        flaw = (str(getattr(error, "msg", error)), int(getattr(error, "lineno", 1)))
    except RecursionError:
        flaw = ("nested too deeply", 1)
    else:
        lines = Lines([value], [1]) if isinstance(value, dict) else Lines()
        if invalid:
            number = data.count(b"\n", 0, invalid) + 1
            lines.damaged.append(Damage(number, f"invalid UTF-8 at byte {invalid} of the file, read as U+FFFD"))
        return Source(name, value, lines)
    return Source(name, None, read_lines(data), flaw)


def begins_with_a_record(data: bytes) -> bool:
    """Whether the first line that is not blank is a whole JSON object, so that others may follow."""
    start = data.find(b"{")
    end = data.find(b"\n", start)
    if start < 0 or data[:start].strip(b" \t\r\n\xef\xbb\xbf"):
        return False
    try:
        json.loads(data[start : end if end >= 0 else len(data)])
    except (ValueError, RecursionError):
        return False
    return True


def unknown(source: Source) -> LogError:
    """The error that says what the file holds instead of a log."""
    if source.value is not None:
        return LogError(EXPECTED, shape(source.value), source.name)
    if source.flaw is not None:
        return LogError(EXPECTED, f"no whole JSON ({source.flaw[0]})", source.name, source.flaw[1])
    if not source.lines.records:
        line, problem = (source.lines.damaged or [Damage(1, "nothing")])[0]
        return LogError(EXPECTED, problem, source.name, line)
    count, first = len(source.lines.records), shape(source.lines.records[0])
    got = first if count == 1 else f"{count:,} records, the first of them {first}"
    return LogError(EXPECTED, got, source.name, source.lines.numbers[0] if count > 1 else None)
