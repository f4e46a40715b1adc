"""Running totals: three messages more, a tail of 8,000 tokens, and the whole list handed in again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.counters import FLAT
from benches.transcripts import Message, from_json_lines
from ctxfast import TokenCounter, TokenLedger, reference

BUDGET = 8_000
COUNTERS = {"flat": FLAT, "estimator": TokenCounter.estimator("o200k")}


@pytest.mark.parametrize("name", COUNTERS)
def test_append_three_and_total(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, name: str) -> None:
    """What an agent does with each step; the total that it saves is that of `size` messages."""
    messages, counter = transcripts(size, storage="real"), COUNTERS[name]
    one, two, three = short_step()
    ledger = TokenLedger(counter, messages)

    def step() -> int:
        ledger.append(one)
        ledger.append(two)
        ledger.append(three)
        return ledger.total()

    assert step() == counter.messages([*messages, one, two, three])
    benchmark.group = f"append 3 and total, {name}"
    benchmark(step)


@pytest.mark.parametrize("name", ["ledger", "reference"])
def test_tail_within(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, name: str) -> None:
    messages = transcripts(size, storage="real")
    if name == "reference" and size > 1_000:
        pytest.skip("quadratic")
    ledger = TokenLedger(messages=messages)
    start = ledger.tail_within(BUDGET)
    assert ctxfast.count_tokens(messages[start:]) <= BUDGET < ctxfast.count_tokens(messages[start - 1 :])
    benchmark.group = f"tail within {BUDGET:,} of {size}"
    benchmark((ledger if name == "ledger" else reference.TokenLedger(messages=messages)).tail_within, BUDGET)


def unchanged(messages: list[Message]) -> list[Message]:
    return messages


def compacted(messages: list[Message]) -> list[Message]:
    """The first half is gone: each message that is left stands elsewhere."""
    return [messages[0], *messages[len(messages) // 2 :]]


LISTS: dict[str, Callable[[list[Message]], list[Message]]] = {
    "unchanged": unchanged,
    "other objects": from_json_lines,
    "compacted": compacted,
}


@pytest.mark.parametrize("how", [*LISTS, "full count"])
@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.sizes_up_to(10_000)
def test_resync(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, name: str, how: str) -> None:
    messages, counter = transcripts(size, storage="real"), COUNTERS[name]
    benchmark.group = f"resync {size}, {name}"
    if how == "full count":
        benchmark(counter.messages, messages)
        return
    other = LISTS[how](messages)
    ledger = TokenLedger(counter, messages)

    def resync() -> TokenLedger:
        again = ledger.copy()  # 1 us for 1,000 messages
        assert again.resync(other) == (0 if name == "estimator" else len(other))
        return again

    assert resync().total() == counter.messages(other)
    benchmark(resync)


@pytest.mark.sizes_up_to(10_000)
def test_resync_new_strings(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int) -> None:
    """Equal messages whose strings nobody has hashed yet: each text has to be read, once."""
    messages, counter = transcripts(size, storage="real"), COUNTERS["estimator"]
    ledger = TokenLedger(counter, messages)
    total = ledger.total()

    def new_strings() -> tuple[tuple[list[Message]], dict[str, object]]:
        return (from_json_lines(messages),), {}

    benchmark.group = f"resync {size}, estimator"
    counted = benchmark.pedantic(ledger.resync, setup=new_strings, rounds=10)  # type: ignore[no-untyped-call]
    assert counted == 0
    assert ledger.total() == total


def short_step() -> tuple[Message, Message, Message]:
    """A call, its result and an answer, some hundred characters each."""
    function = {"name": "bash", "arguments": '{"command": "pytest -q tests/test_orders.py"}'}
    return (
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "E   assert 5 == 6\n1 failed, 12 passed in 0.21s\n" * 10},
        {"role": "assistant", "content": "`total` subtracts one where it should not. I fix it now. " * 5},
    )
