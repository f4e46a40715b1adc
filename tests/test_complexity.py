"""How much work is done: little where little is needed, and never more than in proportion to the input.

Where it can be, work is counted: a counting function notes the texts that it is given. Otherwise inputs of doubled
length are timed, the best of many runs each, and the factor is generous, so that a busy machine does not fail the
test: twice the input may take three times as long, where quadratic code takes four times as long.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

import ctxfast
from ctxfast import EstimatorConfig, TokenCounter

Message = dict[str, Any]


class Notes:
    """A counting function that notes what it is given; one token for each character."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.counter = TokenCounter.from_callable(self, message_overhead=0)

    def __call__(self, text: str) -> int:
        self.texts.append(text)
        return len(text)


def turns(n: int) -> list[Message]:
    """Turns of four messages, of ten characters each; their texts begin with their index."""
    messages: list[Message] = []
    while len(messages) < n:
        index = len(messages)
        call = {"id": f"call_{index}", "type": "function", "function": {"name": "f", "arguments": f"{index + 1:<9}"}}
        messages += [
            {"role": "user", "content": f"{index:<10}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{index}", "content": f"{index + 2:<10}"},
            {"role": "assistant", "content": f"{index + 3:<10}"},
        ]
    return messages[:n]


def one_turn(n: int) -> list[Message]:
    """A single task and a very long row of steps."""
    messages = turns(n)
    for message in messages[4::4]:
        message["role"] = "assistant"
    return messages


def indices(texts: list[str]) -> set[int]:
    return {int(text) for text in texts if text.strip().isdigit()}


# ------------------------------------------------------------------------------------------------- work is counted


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
@pytest.mark.parametrize("budget", [1, 25, 100, 500])
def test_a_tail_counts_no_more_than_it_keeps_and_one_atom(n: int, budget: int) -> None:
    notes = Notes()
    messages = turns(n)
    tail = ctxfast.select_fresh_tail(messages, budget, counter=notes.counter)
    assert n - tail.start <= budget // 10 + 2
    needed = set(range(tail.start, n)) | set(tail.pinned)
    beyond = indices(notes.texts) - needed
    assert beyond <= set(range(tail.start - 5, tail.start)), "more than the atom that did not fit, and its user message"
    numbered = [text for text in notes.texts if text != "f"]
    assert max(map(numbered.count, numbered)) <= 2, "a user message is counted as a pinned one and then in its place"


@pytest.mark.parametrize("n", [100, 10_000])
def test_a_tail_inside_a_long_turn_counts_the_task_besides(n: int) -> None:
    notes = Notes()
    tail = ctxfast.select_fresh_tail(one_turn(n), 200, counter=notes.counter)
    assert tail.pinned == (0,)
    assert tail.split_turn
    assert indices(notes.texts) - set(range(tail.start, n)) <= {0, *range(tail.start - 2, tail.start)}


def test_what_is_not_needed_is_not_read() -> None:
    """Only roles are looked at before the tail, and only as far as a user message is looked for."""
    messages: list[Any] = turns(100)
    messages[1:90] = [5] * 89
    tail = ctxfast.select_fresh_tail(messages, 30)
    assert tail.start > 90
    assert tail.messages[len(tail.pinned) :] == messages[tail.start :]
    messages = one_turn(100)
    messages[1:90] = [{"role": "assistant", "content": 5}] * 89
    tail = ctxfast.select_fresh_tail(messages, 60)
    assert tail.messages == [messages[0], *messages[tail.start :]]


@pytest.mark.parametrize("n", [100, 10_000])
def test_a_result_whose_call_is_nowhere_does_not_make_a_tail_longer(n: int) -> None:
    """The walk goes to the start of the list before it knows that the call is nowhere, and keeps as little as ever."""
    messages = [*turns(n), {"role": "tool", "tool_call_id": "nowhere", "content": f"{n:<10}"}]
    tail = ctxfast.select_fresh_tail(messages, 50)
    assert tail.start > n - 8


@pytest.mark.parametrize("limit", [0, 5, 9, 10, 11, 95, 1000])
def test_fits_stops_at_the_limit(limit: int) -> None:
    notes = Notes()
    messages = turns(10_000)
    assert not notes.counter.fits(messages, limit)
    assert sum(map(len, notes.texts)) <= limit + 10
    assert max(indices(notes.texts)) <= limit // 10


def test_fits_reads_all_when_all_fits() -> None:
    notes = Notes()
    messages = turns(1_000)
    total = notes.counter.messages(messages)
    counted = len(notes.texts)
    assert notes.counter.fits(messages, total)
    assert len(notes.texts) == 2 * counted
    assert not notes.counter.fits(messages, total - 1)


def test_counting_calls_the_function_once_for_each_text() -> None:
    notes = Notes()
    notes.counter.messages(turns(4))
    assert notes.texts == [f"{0:<10}", "f", f"{1:<9}", f"{2:<10}", f"{3:<10}"]


def test_structure_counts_nothing() -> None:
    """There is no counter to ask; arguments that cannot be written as JSON are not looked at."""
    messages = turns(8)
    messages[1]["tool_calls"][0]["function"]["arguments"] = {"a": {1, 2}}
    assert ctxfast.step_starts(messages) == [1, 3, 5, 7]


@pytest.mark.parametrize("length", [10, 1_000, 1_000_000])
def test_heads_and_tails_count_a_few_parts(length: int) -> None:
    notes = Notes()
    text = "x" * length
    assert notes.counter.head(text, 7) == text[:7]
    assert notes.counter.tail(text, 7) == text[-7:]
    assert len(notes.texts) <= 2 * (length.bit_length() + 1)  # and once the whole, if it is short


# ---------------------------------------------------------------------------------------------------- time is taken

SIZES = (1_000, 2_000, 4_000, 8_000)
FACTOR = 3.4  # between 2 (linear) and 4 (quadratic), nearer to the latter: caches and a busy machine cost time too
TRIES = 10


def best_time(call: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs, each long enough to be measured."""
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    rounds = max(1, int(0.0005 / once))
    best = once
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(rounds):
            call()
        best = min(best, (time.perf_counter() - start) / rounds)
    return best


def grows_linearly(make: Callable[[int], Callable[[], object]], sizes: tuple[int, ...] = SIZES) -> None:
    """Twice the size takes less than three times as long, in the mean from the smallest size to the largest.

    Single steps can be larger in linear code: where the input outgrows a cache, or what the allocator keeps at hand.
    """
    calls = [make(size) for size in sizes]
    times = [float("inf")] * len(sizes)
    allowed = FACTOR ** math.log2(sizes[-1] / sizes[0])
    gc.collect()
    gc.disable()
    try:
        for _ in range(TRIES):
            times = [min(known, best_time(call)) for known, call in zip(times, calls, strict=True)]
            if times[-1] < allowed * times[0]:
                return
    finally:
        gc.enable()
    raise AssertionError(f"microseconds for {sizes}: {[round(seconds * 1e6, 1) for seconds in times]}")


def crossed(n: int) -> list[Message]:
    """A[1] ... A[k], then T[k] ... T[1]: one step, nested as deep as can be."""
    half = n // 2
    asked = [{"role": "assistant", "tool_calls": [{"id": f"call_{i}", "function": {"name": "f"}}]} for i in range(half)]
    return [*asked, *({"role": "tool", "tool_call_id": f"call_{i}", "content": "x"} for i in reversed(range(half)))]


def in_order(n: int) -> list[Message]:
    """A[1] ... A[k], then T[1] ... T[k]."""
    messages = crossed(n)
    return messages[: n // 2] + messages[n // 2 :][::-1]


def all_ids_equal(n: int) -> list[Message]:
    """Every id the same: all calls first, and then all results."""
    messages = crossed(n)
    for message in messages:
        if message["role"] == "tool":
            message["tool_call_id"] = "same"
        else:
            message["tool_calls"][0]["id"] = "same"
    return messages


def never_answered(n: int) -> list[Message]:
    """Calls and no results: all of them may be running."""
    return crossed(2 * n)[:n]


def orphans(n: int) -> list[Message]:
    """Results and no calls."""
    return crossed(2 * n)[n:]


def orphans_between(n: int) -> list[Message]:
    """Turns with a result in each whose call is nowhere."""
    messages = turns(n)
    for message in messages[2::4]:
        message["tool_call_id"] += "?"
    return messages


def open_and_answered(n: int) -> list[Message]:
    """Calls with one id of which every second is never answered, so that a stack of open calls grows."""
    asked: Message = {"role": "assistant", "tool_calls": [{"id": "same", "function": {"name": "f"}}] * 2}
    return [asked, {"role": "tool", "tool_call_id": "same", "content": "x"}] * (n // 2)


def one_wide_step(n: int) -> list[Message]:
    """One message with all the calls."""
    calls = [{"id": f"call_{i}", "function": {"name": "f", "arguments": "{}"}} for i in range(n)]
    results = [{"type": "tool_result", "tool_use_id": f"call_{i}", "content": "x"} for i in reversed(range(n))]
    return [{"role": "assistant", "tool_calls": calls}, {"role": "user", "content": results}]


def wide_steps_after_a_huge_one(n: int) -> list[Message]:
    """A table that has once been large is not cleared at the cost of its largest size."""
    small = one_wide_step(20)
    return [*small * (n // 40), *one_wide_step(n)]


def system_first(n: int) -> list[Message]:
    """Half of the list is system messages at its start."""
    return [{"role": "system", "content": "x"}] * (n // 2) + turns(n - n // 2)


def system_everywhere(n: int) -> list[Message]:
    """Runs of system messages of growing length, each after a user message."""
    messages: list[Message] = []
    run = 0
    while len(messages) < n:
        run += 1
        messages += [{"role": "user", "content": "x"}, *[{"role": "system", "content": "x"}] * run]
    return messages[:n]


def user_results_only(n: int) -> list[Message]:
    """A task, then steps whose results are user messages: a long look back for the head."""
    step: list[Message] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
    ]
    return [{"role": "user", "content": "task"}, *step * (n // 2)][:n]


def user_results_with_text(n: int) -> list[Message]:
    """As before, and the user says something each time: all of them can be the task, none is a head."""
    step = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}, {"type": "text", "text": "y"}],
        },
    ]
    return (step * n)[:n]


def wide_step_and_orphans(n: int) -> list[Message]:
    """One message with many calls, and as many results that answer none of them."""
    asked, _ = one_wide_step(n // 2)
    return [asked, *({"role": "tool", "tool_call_id": f"other_{i}", "content": "x"} for i in range(n // 2))]


def blank_ids(n: int) -> list[Message]:
    """Ids that have to be made up, and whose names are taken."""
    asked: Message = {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "f"}}]}
    taken = [{"role": "tool", "tool_call_id": f"call_0_0_{i}", "content": "x"} for i in range(n // 3)]
    return [*[asked, {"role": "tool", "content": "x"}] * (n // 3), *taken]


def one_result_after_the_other(n: int) -> list[Message]:
    """Calls one after the other, and one message with all of their results."""
    asked = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": f"call_{i}", "name": "f", "input": {}}]}
        for i in range(n)
    ]
    return [*asked, one_wide_step(n)[1]]


SHAPES: dict[str, Callable[[int], list[Message]]] = {
    function.__name__: function
    for function in (
        *(turns, one_turn, crossed, in_order, all_ids_equal, never_answered, orphans, orphans_between),
        *(open_and_answered, one_wide_step, wide_steps_after_a_huge_one, system_first, system_everywhere),
        *(user_results_only, user_results_with_text, wide_step_and_orphans, blank_ids, one_result_after_the_other),
    )
}
ENDLESS = 10**12
COUNTER = TokenCounter.flat(EstimatorConfig(chars_per_token=2.5))
FUNCTIONS: dict[str, Callable[[list[Message]], object]] = {
    "messages": COUNTER.messages,
    "picoclaw": TokenCounter.picoclaw("4.0").messages,
    "fits": lambda messages: COUNTER.fits(messages, ENDLESS),
    "atoms": ctxfast.atoms,
    "turn_starts": ctxfast.turn_starts,
    "step_starts": ctxfast.step_starts,
    "safe_cuts": ctxfast.safe_cuts,
    "find_safe_cut": lambda messages: ctxfast.find_safe_cut(messages, len(messages) // 2),
    "find_safe_cut by role": lambda messages: ctxfast.find_safe_cut(messages, len(messages) // 2, "role"),
    "validate": ctxfast.validate,
    "repair": ctxfast.repair,
    "repair in the other form": lambda messages: ctxfast.repair(messages, "anthropic"),
    "repair strictly": lambda messages: ctxfast.repair(messages, strict_predecessor=True),
    "select all": lambda messages: ctxfast.select_fresh_tail(messages, ENDLESS),
    "select half": lambda messages: ctxfast.select_fresh_tail(messages, 4 * len(messages)),
    "select one": lambda messages: ctxfast.select_fresh_tail(messages, 1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_twice_the_messages_take_twice_the_time(function: str, shape: str) -> None:
    def make(n: int) -> Callable[[], object]:
        messages = SHAPES[shape](n)
        return lambda: FUNCTIONS[function](messages)

    grows_linearly(make)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", ["atoms", "select all"])
def test_eight_times_the_messages_of_a_long_list(function: str, shape: str) -> None:
    """What is quadratic with a small constant shows only in long lists.

    Eight times, because the step out of the cache alone costs a factor of two to three: 110 ns a message become 240 to
    350. Over four times the messages that is near to quadratic, over eight it is not.
    """

    def make(n: int) -> Callable[[], object]:
        messages = SHAPES[shape](n)
        return lambda: FUNCTIONS[function](messages)

    grows_linearly(make, (8_000, 64_000))


TEXTS = {
    "ASCII": "plain text ",
    "Latin-1": "déjà ",
    "Thai": "สวัสดี ",
    "emoji": "a😀",
    "escapes": '<"&\u2028',
    "Thai and emoji": "ไ😀",
}
TEXT_COUNTERS = {
    "chars": COUNTER,
    "estimator": TokenCounter.estimator("o200k"),
    "bytes": TokenCounter.flat(EstimatorConfig(unit="bytes")),
    "seed": TokenCounter.flat(EstimatorConfig.seed_rules()),
    "picoclaw": TokenCounter.picoclaw("4.0"),
    "from_callable": TokenCounter.from_callable(len),
}


@pytest.mark.parametrize("unit", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("counter", TEXT_COUNTERS.values(), ids=TEXT_COUNTERS)
def test_twice_the_text_takes_twice_the_time(counter: TokenCounter, unit: str) -> None:
    def make(n: int) -> Callable[[], object]:
        text = unit * n
        call = {"id": text, "function": {"name": text, "arguments": {"a": [text], text: None}}}
        message = {"role": "assistant", "content": text, "tool_calls": [call]}
        return lambda: (counter.message(message), counter.head(text, n // 4), counter.tail(text, n // 4))

    grows_linearly(make, (5_000, 20_000, 80_000))


def test_twice_the_blocks_arguments_and_tools_take_twice_the_time() -> None:
    def blocks(n: int) -> Callable[[], object]:
        content = [{"type": "text", "text": "x"}, {"type": "new", "data": [1]}, {"type": "image"}] * n
        return lambda: COUNTER.content(content)

    def arguments(n: int) -> Callable[[], object]:
        value = {f"key {number}": [number, 2.5, None, {"a": "ไทย"}] for number in range(n)}
        message = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": value}}]}
        return lambda: COUNTER.message(message)

    def tools(n: int) -> Callable[[], object]:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        definitions = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}] * n
        return lambda: COUNTER.tools(definitions)

    for make in (blocks, arguments, tools):
        grows_linearly(make)
