"""Fresh tails of real sessions at random budgets, and the reference's answers on all of them.

The sessions belong to others and are not part of this repository: they are read from the optional data,
through the loaders that lie beside them. Skipped without.
"""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from cases import (
    calls_of,
    check_tail,
    counters,
    raw_claude_code,
    results_of,
    sessions,
    transcript_files,
    two_and_a_half,
)

import ctxfast
from ctxfast import EstimatorConfig, reference

Messages = list[dict[str, Any]]

BUDGETS = 50  # for each session
SMALL = 150  # messages: up to here the reference's tail is compared as well, which it counts anew step by step
TAIL_FIELDS = ("start", "pinned", "tokens", "turns", "split_turn", "over_budget", "messages")


def check_session(messages: Messages, seed: str) -> None:
    """Tails at random budgets are valid; counting and structure are those of the reference."""
    core, slow = counters(ctxfast), counters(reference)
    for one, other in (
        (two_and_a_half(ctxfast), two_and_a_half(reference)),
        (core.picoclaw("4.0"), slow.picoclaw("4.0")),
        (core.flat(EstimatorConfig.seed_rules()), slow.flat(EstimatorConfig.seed_rules())),
    ):
        assert one.messages(messages) == other.messages(messages)
    counter, slow_counter = two_and_a_half(ctxfast), two_and_a_half(reference)
    counts = [counter.message(message) for message in messages]
    assert sum(counts) == counter.messages(messages)

    assert ctxfast.atoms(messages) == reference.atoms(messages)
    assert ctxfast.turn_starts(messages) == reference.turn_starts(messages)
    assert ctxfast.step_starts(messages) == reference.step_starts(messages)
    assert ctxfast.safe_cuts(messages) == reference.safe_cuts(messages)

    before = copy.deepcopy(messages)
    leading = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    total = sum(counts)
    chance = random.Random(seed)
    for trial in range(BUDGETS):
        budget = max(1, int(total ** chance.uniform(0.2, 1.05)))
        options: dict[str, Any] = {}
        if trial % 3 == 1:
            options["min_turns"] = chance.randrange(5)
        if trial % 3 == 2:
            options["max_tokens"] = budget * chance.randint(1, 8)
        tail = ctxfast.select_fresh_tail(messages, budget, counter=counter, **options)
        behind_system = tail.messages[min(leading, tail.start) :]
        pinned = behind_system[: len(tail.pinned)]
        check_tail(messages, tail, total=sum(counts[tail.start :]) + counter.messages(pinned))
        assert tail.tokens <= options.get("max_tokens", budget) or tail.over_budget
        assert not tail.over_budget or tail.start == ctxfast.atoms(messages)[-1][0]
        if len(messages) <= SMALL and trial % 5 == 0:
            slow_tail = reference.select_fresh_tail(messages, budget, counter=slow_counter, **options)
            for name in TAIL_FIELDS:
                assert getattr(tail, name) == getattr(slow_tail, name), (budget, options, name)
    assert messages == before


@pytest.mark.parametrize("name", transcript_files())
def test_session(name: str, shared: Path) -> None:
    for index, messages in enumerate(sessions(shared / "transcripts" / name)):
        check_session(messages, seed=f"{name} {index}")


@pytest.mark.parametrize("name", [name for name in transcript_files() if name.startswith("claude-code/")])
def test_raw_claude_code_session(name: str, shared: Path) -> None:
    messages = raw_claude_code(shared / "transcripts" / name)
    assert messages
    check_session(messages, seed=name)
    # The loaders merge the lines of a response and give each result a message of its own: other messages, but
    # the same calls and results.
    merged = [message for session in sessions(shared / "transcripts" / name) for message in session]
    if merged:
        assert sum(len(calls_of(one)) for one in messages) == sum(len(calls_of(one)) for one in merged)
        assert sum(len(results_of(one)) for one in messages) == sum(len(results_of(one)) for one in merged)


def test_there_are_sessions(shared: Path) -> None:
    """A loader that finds nothing would make all of the above pass."""
    files = [shared / "transcripts" / name for name in transcript_files()]
    if not (shared / "transcripts").is_dir():
        pytest.skip("no transcripts among the shared data")
    lengths = [len(messages) for file in files[:40] for messages in sessions(file)]
    assert len(lengths) >= 30
    assert sum(lengths) >= 5_000
