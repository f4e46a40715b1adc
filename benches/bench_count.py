"""Flat count of a transcript by size and string storage: ctxfast, reference, hand-written loop, C floor."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches import floor, plain_loop
from benches.conftest import Transcripts
from benches.counters import FLAT, REFERENCE
from benches.transcripts import Message, Storage, from_json_lines


def c_floor(messages: list[Message]) -> int:
    module, reason = floor.load()
    if module is None:
        pytest.skip(reason)
    return module.count(messages)


CONTENDERS: dict[str, Callable[[list[Message]], int]] = {
    "ctxfast": FLAT.messages,
    "c-floor": c_floor,
    "python-loop": plain_loop.count,
    "reference": REFERENCE.messages,
}


@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.parametrize("storage", ["ascii", "real", "ucs2"])
def test_count(
    benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, storage: Storage, contender: str
) -> None:
    messages = transcripts(size, storage=storage)
    measure(benchmark, f"count {size} {storage}", contender, messages)


@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.sizes_up_to(1_000)
def test_count_claude_shape(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, contender: str) -> None:
    messages = transcripts(size, storage="real", shape="claude")
    measure(benchmark, f"count {size} real, Claude shape", contender, messages)


@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.sizes_up_to(10_000)
def test_count_from_json_lines(
    benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, contender: str
) -> None:
    messages = from_json_lines(transcripts(size, storage="real"))
    measure(benchmark, f"count {size} real, from JSON lines", contender, messages)


def measure(benchmark: BenchmarkFixture, group: str, contender: str, messages: list[Message]) -> None:
    benchmark.group = group
    count = CONTENDERS[contender]
    assert count(messages) == plain_loop.count(messages)
    benchmark(count, messages)
