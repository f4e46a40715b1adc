"""A session replayed request by request through `fit_messages`: the cached prefix is seldom broken, no stub is undone.

The caller either keeps its own full history and sends what is made of it, or goes on with what came back. The budget is
reached after a fifth of the requests. Real sessions are replayed as well, where the optional data are there.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from cases import Message, blocks, get, pairing, results_of, sessions, transcript_files, two_and_a_half
from growing_sessions import Form, session, user_texts

import ctxfast
from ctxfast import CannotFitError, ContextBudget, TokenCounter, validate

CALLS = 400  # requests of the made-up session
MOST_BROKEN = 0.06  # share of the requests that may change what was sent before
REACHED = 5  # a fifth of the requests are below the budget
AGAIN = 40  # each so many requests it is done twice
COUNTERS = {"default": TokenCounter.estimator(), "flat": two_and_a_half(ctxfast)}

Fit = Callable[[list[Message]], list[Message]]
Caller = Literal["full history", "returned list"]
CALLERS: tuple[Caller, ...] = ("full history", "returned list")


def fitting(budget: Any, counter: TokenCounter) -> Fit:
    """`fit_messages` with these options."""
    return lambda messages: ctxfast.fit_messages(messages, budget, counter=counter).messages


# --------------------------------------------------------------------------------------------------- the measure


@dataclass
class Replay:
    """What was seen: by number of the request, where it began to go wrong."""

    requests: int = 0
    changed: int = 0
    """Requests that were not sent as they were."""
    broken: list[int] = field(default_factory=list)
    """Requests of which what was sent before is not a prefix."""
    restored: list[tuple[int, str]] = field(default_factory=list)
    """Outputs that were something else in an earlier list and are whole again, by the id of their call."""
    returned: list[tuple[int, str]] = field(default_factory=list)
    """Outputs that were missing in an earlier list and are there again."""

    @property
    def share(self) -> float:
        return len(self.broken) / self.requests


def requests_of(messages: list[Message]) -> list[int]:
    """Where each request ends: before a response, which may be several messages."""
    roles = [get(message, "role") for message in messages]
    return [at for at in range(1, len(roles)) if roles[at] == "assistant" != roles[at - 1]]


def outputs(messages: list[Message]) -> dict[str, Any]:
    """The content of each tool output, by the id of its call."""
    found: dict[str, Any] = {}
    for message in messages:
        if message["role"] == "tool":
            found[message["tool_call_id"]] = message["content"]
        elif message["role"] == "user":
            found |= {block["tool_use_id"]: block["content"] for block in blocks(message, "tool_result")}
    return found


def replay(
    messages: list[Message], fit: Fit, caller: Caller, check: Callable[[list[Message], list[Message]], None]
) -> Replay:
    """Each request of a session in turn. `check` sees what the caller had and what is sent."""
    whole = outputs(messages)
    found = Replay()
    sent: list[Message] = []
    before = 0  # messages of the session that the request before had
    touched: set[str] = set()
    gone: set[str] = set()
    for number, end in enumerate(requests_of(messages)):
        given = messages[:end] if caller == "full history" else sent + messages[before:end]
        fitted = fit(given)
        check(given, fitted)
        found.requests += 1
        found.changed += fitted != messages[:end]
        if fitted[: len(sent)] != sent:
            found.broken.append(number)
        now = {call: output for call, output in outputs(fitted).items() if call in whole}  # no made-up ones
        had = outputs(messages[:end])
        touched_now = {call for call, output in now.items() if output != whole[call]}
        found.restored += [(number, call) for call in touched & now.keys() - touched_now]
        found.returned += [(number, call) for call in gone & now.keys()]
        touched |= touched_now
        gone |= had.keys() - now.keys()
        sent, before = fitted, end
    return found


def checked(budget: int, counter: TokenCounter, fit: Fit) -> Callable[[list[Message], list[Message]], None]:
    """What must be true of each list: valid, within the budget, with the task, the same if it is done again."""
    number = 0

    def check(given: list[Message], fitted: list[Message]) -> None:
        nonlocal number
        number += 1
        assert validate(fitted) == []
        pairs = pairing(fitted)
        assert not pairs.orphans
        for at, _ in pairs.unanswered:  # calls that are still running
            assert all(results_of(message) for message in fitted[at + 1 :])
        assert counter.messages(fitted) <= budget
        if counter.messages(given) <= budget and validate(given) == []:
            assert fitted == given
        said = user_texts(given)
        assert not said or any(said[-1] in text for text in user_texts(fitted))  # the task
        front = list(itertools.takewhile(lambda message: message["role"] in ("system", "developer"), given))
        assert fitted[: len(front)] == front
        if number % AGAIN == 0:
            assert fit(given) == fitted
            assert fit(fitted) == fitted

    return check


def budget_of(messages: list[Message], counter: TokenCounter) -> int:
    """What the session reaches after a fifth of its requests."""
    ends = requests_of(messages)
    return counter.messages(messages[: ends[len(ends) // REACHED]])


# -------------------------------------------------------------------------------------------- the measure measures


def test_a_tail_that_just_fits_breaks_the_prefix_all_the_time() -> None:
    """Cutting as little as possible: what this file is to rule out."""
    messages = session(100)
    counter = COUNTERS["flat"]
    budget = budget_of(messages, counter)

    def cut(given: list[Message]) -> list[Message]:
        return ctxfast.select_fresh_tail(given, budget, counter=counter).messages

    found = replay(messages, cut, "full history", lambda given, fitted: None)
    assert found.requests == 100
    assert found.share > 5 * MOST_BROKEN
    assert not found.restored
    assert not found.returned


def test_what_is_undone_is_seen() -> None:
    """The oldest outputs are replaced, or left out, in every other request."""
    messages = session(20)
    turns = 0

    def waver(given: list[Message]) -> list[Message]:
        nonlocal turns
        turns += 1
        if turns % 2 or len(given) < 10:
            return given
        stub, *others = (at for at, message in enumerate(given) if message["role"] == "tool")
        return [
            {**message, "content": "stub"} if at == stub else message
            for at, message in enumerate(given)
            if at != others[0]
        ]

    found = replay(messages, waver, "full history", lambda given, fitted: None)
    first, second = list(outputs(messages))[:2]
    assert {call for _, call in found.restored} == {first}
    assert {call for _, call in found.returned} == {second}
    assert found.share > 0.5


def test_nothing_done_is_nothing_broken() -> None:
    messages = session(20, turns=3)
    for caller in CALLERS:
        found = replay(messages, lambda given: given, caller, lambda given, fitted: None)
        assert (found.requests, found.changed) == (22, 0)  # two answers between the turns
        assert not found.broken
        assert not found.restored
        assert not found.returned


# ------------------------------------------------------------------------------------------------ a made-up session


@functools.cache
def made_up(form: Form, turns: int) -> list[Message]:
    return session(CALLS, turns=turns, form=form, seed=f"{form} {turns}")


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("counting", COUNTERS)
@pytest.mark.parametrize("turns", [1, 12])
@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_the_prefix_is_seldom_broken(form: Form, turns: int, counting: str, caller: Caller) -> None:
    messages, counter = made_up(form, turns), COUNTERS[counting]
    before = copy.deepcopy(messages)
    budget = budget_of(messages, counter)
    fit = fitting(budget, counter)
    found = replay(messages, fit, caller, checked(budget, counter, fit))
    assert messages == before
    assert found.requests >= CALLS
    assert found.changed > 0.7 * found.requests  # it was over most of the time: else all this says nothing
    assert found.broken
    assert found.share <= MOST_BROKEN
    assert found.restored == []
    assert found.returned == []


def test_a_budget_is_its_usable_tokens() -> None:
    """A `ContextBudget` gives the same lists as the number of its usable tokens."""
    messages, counter = made_up("openai", 1), COUNTERS["flat"]
    budget = ContextBudget(budget_of(messages, counter))
    assert budget.usable is not None
    one, other = fitting(budget, counter), fitting(budget.usable, counter)
    for end in requests_of(messages)[::20]:
        assert one(messages[:end]) == other(messages[:end])


# ---------------------------------------------------------------------------------------------------- real sessions

LONG = 100  # requests: in shorter ones, that pass their budget by a factor of five all the same, each break is much


def real_sessions(shared: Path) -> Iterator[list[Message]]:
    """Those in which each output can be followed, with tools and with more than a few requests."""
    for name in transcript_files():
        for messages in sessions(shared / "transcripts" / name):
            calls = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
            named = all(isinstance(call, str) and call.strip() for call in calls)
            if named and len(set(calls)) == len(calls) >= 10 and len(requests_of(messages)) >= 20:
                yield messages


@pytest.mark.parametrize("caller", CALLERS)
def test_real_sessions(caller: Caller, shared: Path) -> None:
    """All that must be true of each list; in the long ones together the prefix is seldom broken.

    Where a request was not valid as it was logged, it comes back repaired, and what repairs it can change later.
    """
    counter = COUNTERS["flat"]
    requests = broken = seen = 0
    for messages in real_sessions(shared):
        budget = budget_of(messages, counter)
        fit = fitting(budget, counter)
        try:
            found = replay(messages, fit, caller, checked(budget, counter, fit))
        except CannotFitError:  # a user has said more than a fifth of the session
            continue
        seen += 1
        if any(validate(messages[:end]) for end in requests_of(messages)):
            continue
        assert found.restored == []
        assert found.returned == []
        if found.requests >= LONG:
            requests += found.requests
            broken += len(found.broken)
    if not seen:
        pytest.skip("no transcripts among the shared data")
    assert seen >= 15
    assert requests > 1_000
    assert broken / requests <= MOST_BROKEN
