"""Choosing a fresh tail of 8,000 tokens: with the newest user message in it, and inside one endless turn."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.counters import REFERENCE, flat
from benches.transcripts import Message, with_recent_turns
from ctxfast import reference

BUDGET = 8_000
MODULES = {"ctxfast": ctxfast, "reference": reference}


def scenario(transcripts: Transcripts, size: int, name: str) -> list[Message]:
    if name == "recent turns":
        return with_recent_turns(transcripts(size - 60, storage="real"))
    # One task, then only tool steps: the message that opens the turn is found by looking back to the start.
    return transcripts(size, storage="real", one_turn=True)


def facts(tail: Any) -> dict[str, object]:
    names = ("start", "pinned", "tokens", "turns", "split_turn", "over_budget")
    return {name: getattr(tail, name) for name in names} | {"pinned": tuple(tail.pinned)}


@pytest.mark.parametrize("name", ["recent turns", "one turn"])
def test_select_fresh_tail(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, name: str) -> None:
    measure(benchmark, ctxfast, size, name, scenario(transcripts, size, name))


@pytest.mark.parametrize("name", ["recent turns", "one turn"])
@pytest.mark.sizes_up_to(10_000)
def test_select_fresh_tail_reference(
    benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, name: str
) -> None:
    measure(benchmark, reference, size, name, scenario(transcripts, size, name))


def measure(benchmark: BenchmarkFixture, module: ModuleType, size: int, name: str, messages: list[Message]) -> None:
    benchmark.group = f"fresh tail {size}, {name}"
    counter = flat(module)
    tail = module.select_fresh_tail(messages, BUDGET, counter=counter)
    assert facts(tail) == facts(reference.select_fresh_tail(messages, BUDGET, counter=REFERENCE))
    # Looked at without being kept: what lies between the cut and the oldest message that is pinned.
    benchmark.extra_info["skipped"] = tail.start - tail.pinned[0]
    benchmark(module.select_fresh_tail, messages, BUDGET, counter=counter)
