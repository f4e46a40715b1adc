"""What belongs together in a list of messages, and where it can be cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxfast.reference.reading import (
    expect_messages,
    read_message,
)

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


def answered_calls(entries: Sequence[Entry]) -> dict[tuple[int, int], tuple[int, int]]:
    """Which call each result answers, both as (message, place in it). Results whose call is nowhere are left out.

    A result answers the nearest earlier open call with its id; within one message equal ids match by order. So the
    open calls of an id are a stack, and the calls of one message lie on it with the first on top.
    """
    open_calls: dict[str | None, list[tuple[int, int]]] = {}
    answered = {}
    for index, entry in enumerate(entries):
        for place, key in enumerate(entry.results):
            if open_calls.get(key):
                answered[index, place] = open_calls[key].pop()
        for place, key in reversed(list(enumerate(entry.calls))):
            open_calls.setdefault(key, []).append((index, place))
    return answered


def pair(entries: Sequence[Entry]) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs of (call's message, result's message), and the messages of calls that have no result."""
    answered = answered_calls(entries)
    done = set(answered.values())
    unanswered = [
        index for index, entry in enumerate(entries) for place in range(len(entry.calls)) if (index, place) not in done
    ]
    return [(call, result) for (result, _), (call, _) in answered.items()], unanswered


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
