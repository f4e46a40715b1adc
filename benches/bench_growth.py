"""Does twice the input take twice the time? Public functions at 1k to 8k messages; recorded, not judged."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.counters import FLAT
from benches.transcripts import Message

ALL = 10**9  # a budget that nothing exceeds: the whole list is walked


@functools.cache
def text(n_messages: int) -> str:
    return "x" * (1_000 * n_messages)


FUNCTIONS: dict[str, Callable[[list[Message]], object]] = {
    "count": FLAT.messages,
    "fits": lambda messages: FLAT.fits(messages, ALL),
    "head": lambda messages: FLAT.head(text(len(messages)), 200 * len(messages)),
    "tail": lambda messages: FLAT.tail(text(len(messages)), 200 * len(messages)),
    "atoms": ctxfast.atoms,
    "turn_starts": ctxfast.turn_starts,
    "step_starts": ctxfast.step_starts,
    "safe_cuts": ctxfast.safe_cuts,
    "find_safe_cut": lambda messages: ctxfast.find_safe_cut(messages, len(messages) // 2),
    "validate": ctxfast.validate,
    "select_fresh_tail": lambda messages: ctxfast.select_fresh_tail(messages, 8_000, counter=FLAT),
    "select_fresh_tail all": lambda messages: ctxfast.select_fresh_tail(messages, ALL, counter=FLAT).messages,
}


@pytest.mark.parametrize("n_messages", [1_000, 2_000, 4_000, 8_000])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("one_turn", [False, True], ids=["turns", "one turn"])
def test_growth(
    benchmark: BenchmarkFixture, transcripts: Transcripts, n_messages: int, function: str, one_turn: bool
) -> None:
    benchmark.group = f"growth of {function}, {'one turn' if one_turn else 'many turns'}"
    messages = transcripts(n_messages, one_turn=one_turn)
    benchmark(FUNCTIONS[function], messages)
    if benchmark.stats is not None:
        benchmark.extra_info["ns_per_message"] = benchmark.stats.stats.median / n_messages * 1e9
