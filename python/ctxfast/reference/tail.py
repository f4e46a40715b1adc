"""The newest messages that fit a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctxfast.errors import BudgetError
from ctxfast.reference.counting import Counter, check_budget
from ctxfast.reference.estimating import default_counter
from ctxfast.reference.reading import (
    read_fields,
)
from ctxfast.reference.structure import (
    SYSTEM,
    USER,
    Entry,
    kinds_of_atoms,
    table,
)


@dataclass(frozen=True)
class FreshTail:
    """The newest messages that fit a budget, and the user messages that they need."""

    start: int
    pinned: tuple[int, ...]
    tokens: int
    turns: int
    split_turn: bool
    over_budget: bool
    messages: list[Any]


def fresh_tail_budget(usable_tokens: float) -> int:
    """25 % of the usable context, at least 2,000 and at most 8,000 tokens, and never above half of it."""
    usable = check_budget(usable_tokens, "usable_tokens")
    return max(1, min(max(2_000, min(usable // 4, 8_000)), usable // 2))


def select_fresh_tail(
    messages: Sequence[Any],
    budget: float = 8_000,
    *,
    min_turns: int = 2,
    max_tokens: float | None = None,
    counter: Counter | None = None,
) -> FreshTail:
    """The newest atoms within `budget`, with the user messages that they need pinned in front.

    In this order: the newest atom, always; the task (the newest real user message); the head (the user message that
    opens the turn into which the cut falls), unless it does not fit; older atoms, whole, while everything fits.
    Up to the start of the `min_turns`-th newest turn the limit is `max_tokens` instead. System messages at the start
    of the list stay in front and are not part of the budget.
    """
    budget = check_budget(budget, "budget")
    most = budget if max_tokens is None else check_budget(max_tokens, "max_tokens")
    if most < budget:
        raise BudgetError(f"max_tokens: expected at least the budget of {budget}, got {most}")
    if isinstance(min_turns, bool) or not isinstance(min_turns, int):
        raise TypeError(f"min_turns: expected a whole number, got {min_turns!r}")
    if min_turns < 0:
        raise ValueError(f"min_turns: expected 0 or more, got {min_turns!r}")
    counter = counter or default_counter()

    entries = table(messages)
    n = len(entries)
    body = next((index for index, entry in enumerate(entries) if entry.kind != SYSTEM), n)  # leading system: [0:body]
    units = [(start, stop, kind) for start, stop, kind in kinds_of_atoms(entries) if start >= body]

    dropped: set[int] = set()  # a head that does not fit

    def pin(index: int) -> Any:
        """A user message to put in front; of one that also carries tool results, the rest."""
        return without_results(messages[index]) if entries[index].results else messages[index]

    def suffix(cut: int) -> tuple[list[int], int, bool]:
        """For a tail that starts at `cut`: what must be pinned, how many turns it touches, whether it splits one."""
        opener = next((kind for start, _, kind in units if start >= cut and kind != SYSTEM), None)
        heads = [i for i in range(cut) if is_user(entries[i]) and not is_before_results(entries, i)]
        split = opener != USER and bool(heads)
        pins = {heads[-1]} - dropped if split else set()
        task = [i for i in range(n) if is_user(entries[i])][-1:]
        pins |= {i for i in task if i < cut}
        whole_turns = sum(start >= cut and kind == USER for start, _, kind in units)
        return sorted(pins), whole_turns + split, split

    def cost(cut: int, pins: Sequence[int]) -> int:
        """Tokens of a tail."""
        return counter.total(counter.messages_sum([*messages[cut:], *(pin(index) for index in pins)]))

    def limit(turns: int) -> int:
        """What a tail that touches so many turns may cost."""
        return most if turns <= min_turns else budget

    chosen = units[-1][0] if units else n
    pins, turns, split = suffix(chosen)
    task = [i for i in range(n) if is_user(entries[i])][-1:]
    if split and cost(chosen, pins) > limit(turns) and pins[0] not in task:
        dropped.add(pins.pop(0))  # the head does not fit beside the newest atom and the task
    if cost(chosen, pins) <= limit(turns):
        for start, _, _ in reversed(units[:-1]):
            next_pins, next_turns, next_split = suffix(start)
            if cost(start, next_pins) > limit(next_turns):
                break
            chosen, pins, turns, split = start, next_pins, next_turns, next_split
    tokens = cost(chosen, pins)
    kept = [*messages[: min(body, chosen)], *(pin(index) for index in pins), *messages[chosen:]]
    return FreshTail(chosen, tuple(pins), tokens, turns, split, tokens > limit(turns), kept)


def is_user(entry: Entry) -> bool:
    """A real user message: role user, and more than tool results."""
    return entry.own_text


def is_before_results(entries: Sequence[Entry], index: int) -> bool:
    """Whether a user message holds tool results or stands directly before some: it came in the middle of a step."""
    following = (e for e in entries[index:] if e.results or not is_user(e))
    return bool(next(following, entries[index]).results)


def without_results(message: Any) -> dict[str, Any]:
    """A user message as a new dict whose content leaves out the tool results; the other parts are the same objects."""
    fields = read_fields(message, "message")
    parts = [p for p in fields["content"] if isinstance(p, str) or read_fields(p, "").get("type") != "tool_result"]
    return {**fields, "content": parts}
