"""What of a conversation matters: a priority with its reason for each part, and its tasks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ctxfast._core import TokenCounter, turn_starts
from ctxfast.summary.fallback import finished_segments
from ctxfast.summary.reading import Message, Output, field_of, read

__all__ = ["Part", "Priority", "Segment", "priorities", "segments"]

VERBOSE = 50
"""Lines from which on a listing or a search is a verbose one."""


class Priority(IntEnum):
    """How long something stays. The smaller, the longer."""

    P1 = 1
    """Never removed: the task, what users decide and ask for, unresolved errors, pins, the newest summary."""
    P2 = 2
    """Reduced: what the model said, files that were read or changed, commands and their outcome."""
    P3 = 3
    """First to go: repeats, reads of what has changed since, exploration that led nowhere, long listings."""


@dataclass(frozen=True)
class Part:
    """A message, or one tool output in it."""

    index: int
    """Index of the message."""
    place: int | None
    """Which of the message's tool outputs it is, from 0; `None`: what the message itself says."""
    priority: Priority
    reason: str
    """Why: a word of the table of `priorities`."""
    tokens: int
    """Of a message itself, those of all of it, its outputs included."""
    call_id: str
    """Id of the call that an output answers; empty if there is none."""


@dataclass(frozen=True)
class Segment:
    """A task: a user message and all that follows it up to the next one."""

    start: int
    stop: int
    finished: bool
    """A later task follows, and no error in it is still open."""


def segments(messages: Sequence[Any]) -> list[Segment]:
    """The tasks of a conversation, the oldest first; the last one is active. What comes before the first is none.

    Raises `MessageTypeError` or `MessageValueError` for a message that cannot be read.
    """
    starts = [*turn_starts(messages), len(messages)]
    finished = set(finished_segments(messages))
    return [Segment(start, stop, (start, stop) in finished) for start, stop in itertools.pairwise(starts)]


def priorities(messages: Sequence[Any], *, pins: Iterable[str] = (), counter: TokenCounter | None = None) -> list[Part]:
    """The parts of a conversation with their priorities, in order.

    | priority | what |
    | --- | --- |
    | P1 | `system`; `task`, the newest message in which a user says something; `user`, all others; `summary` |
    | P1 | `decision`: outputs in which users answer, or decisions are recorded; `pinned`: what contains a pin |
    | P1 | `open_error`: no later success of the same tool with the same file or command makes up for it |
    | P2 | `said` by the model; `read`, `edit`, `command`, `search`, `list`, `web`, `agent`, `other`: outputs by kind |
    | P2 | `resolved_error` |
    | P3 | `repeat`: a later read has all of its lines; `outdated`: a read of a file that was changed since |
    | P3 | `exploration`: a read, search or listing of what no later call or text names |
    | P3 | `verbose`: a listing or search of 50 lines or more |

    `pins` are texts that must stay. Raises `MessageTypeError` or `MessageValueError` for a message that cannot be read.
    """
    counter = TokenCounter.default() if counter is None else counter
    told = read(messages, counter)
    pins = [pin for pin in pins if pin]
    users = [one.index for one in told if one.own_text]
    later = _named_later(told)
    read_again, changed, made_up = _histories(told)
    parts = []
    for message in told:
        if message.role != "tool" and (not message.outputs or message.own_text):
            is_pinned = any(pin in message.text for pin in pins)
            reason = "pinned" if is_pinned else _reason_of_message(message, users)
            parts.append(Part(message.index, None, _PRIORITIES[reason], reason, message.tokens, ""))
        ids = _call_ids(messages[message.index])
        for place, output in enumerate(message.outputs):
            at = (message.index, place)
            why = _reason_of_output(output, at in read_again, at in changed, at in made_up, at in later)
            if any(pin in output.text for pin in pins):
                why = "pinned"
            call_id = ids[place] if place < len(ids) else ""
            tokens = counter.text(output.text)
            parts.append(Part(message.index, place, _PRIORITIES[why], why, tokens, call_id))
    return parts


def _reason_of_message(message: Message, users: Sequence[int]) -> str:
    if message.role == "system":
        return "system"
    if message.summary is not None and not message.own_text:
        return "summary"
    if message.own_text:
        return "task" if message.index == users[-1] else "user"
    return "said"


def _reason_of_output(output: Output, again: bool, changed: bool, made_up: bool, named: bool) -> str:
    if output.kept:
        return "decision"
    if output.failed:
        return "resolved_error" if made_up else "open_error"
    if again:
        return "repeat"
    if changed:
        return "outdated"
    if output.kind in ("read", "search", "list") and not named:
        return "exploration"
    if output.kind in ("search", "list") and output.text.count("\n") >= VERBOSE - 1:
        return "verbose"
    return output.kind


_P1 = ("system", "task", "user", "decision", "open_error", "pinned", "summary")
_P2 = ("said", "read", "edit", "command", "search", "list", "web", "agent", "other", "resolved_error")
_P3 = ("repeat", "outdated", "exploration", "verbose")
_PRIORITIES = {
    **dict.fromkeys(_P1, Priority.P1),
    **dict.fromkeys(_P2, Priority.P2),
    **dict.fromkeys(_P3, Priority.P3),
}

_WORD = re.compile(r"[\w./\\-]+")


def _named_later(told: Sequence[Message]) -> set[tuple[int, int]]:
    """Outputs of which the path or the pattern, or the name of the file, occurs in a later call or text."""
    words: set[str] = set()
    named = set()
    for message in reversed(told):
        for place, output in enumerate(message.outputs):
            subject = output.path or output.pattern or ""
            names = {subject, subject.replace("\\", "/").rsplit("/", 1)[-1]} - {""}
            # what a search found counts as well: the files that were opened afterwards
            if not names or names & words or (output.kind != "read" and _files(output.text) & words):
                named.add((message.index, place))
        texts = [message.text, *(call.arguments for call in message.calls)]
        for text in texts if message.role != "system" else ():
            found = _WORD.findall(text)
            words.update(found)
            words.update(word.replace("\\", "/").rsplit("/", 1)[-1] for word in found)
    return named


def _files(text: str) -> set[str]:
    """What looks like a file in the first lines of an output."""
    found = _WORD.findall(text[:8_000])
    return {word.replace("\\", "/").rsplit("/", 1)[-1] for word in found if "." in word or "/" in word}


def _histories(told: Sequence[Message]) -> tuple[set[Any], set[Any], set[Any]]:
    """Reads that a later read covers, reads of files that were changed later, failures that were made up for."""
    covered: dict[str, list[tuple[int, float]]] = {}
    edited: set[str] = set()
    done: set[tuple[str, str | None]] = set()
    again, changed, made_up = set(), set(), set()
    for message in reversed(told):
        for place, output in reversed(list(enumerate(message.outputs))):
            at = (message.index, place)
            if output.failed:
                if (output.tool, output.target) in done:
                    made_up.add(at)
                continue
            done.add((output.tool, output.target))
            edited.update(output.edits)
            if output.kind == "read" and output.path is not None:
                first, last = output.lines or (1, None)
                end = float("inf") if last is None else float(last)
                if any(start <= first and end <= stop for start, stop in covered.get(output.path, ())):
                    again.add(at)
                elif output.path in edited:
                    changed.add(at)
                covered.setdefault(output.path, []).append((first, end))
    return again, changed, made_up


def _call_ids(message: Any) -> list[str]:
    """Ids of the calls that a message answers, in order."""
    if field_of(message, "role") == "user":
        content = field_of(message, "content")
        parts = content if isinstance(content, (list, tuple)) else ()
        return [str(field_of(part, "tool_use_id") or "") for part in parts if field_of(part, "type") == "tool_result"]
    return [str(field_of(message, "tool_call_id") or "")]
