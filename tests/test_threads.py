"""Many threads at once, lists that change while they are read, forked processes, pickled counters.

While a list changes there is no right answer. What must hold: no panic, no crash, and either an answer of the right
type or an error of a clear one: `MessageTypeError` and `MessageValueError` for a message caught half done, `IndexError`
for a list that has become shorter. Where it can be done without a race, the change is made by the counting function.
"""

from __future__ import annotations

import copy
import functools
import multiprocessing
import operator
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ctxfast
from ctxfast import EstimatorConfig, TokenCounter, reference

API: Any = ctxfast
ALLOWED = (TypeError, ValueError, IndexError)
N_THREADS = 8


def transcript(turns: int) -> list[dict[str, Any]]:
    """Turns with parallel calls in both forms."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for turn in range(turns):
        messages += [
            {"role": "user", "content": f"ไทย {turn} " * (1 + turn % 7)},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"a{turn}",
                        "type": "function",
                        "function": {"name": "f", "arguments": {"path": "é" * turn}},
                    },
                    {"id": f"b{turn}", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": f"b{turn}", "content": "x" * turn},
            {"role": "tool", "tool_call_id": f"a{turn}", "content": [{"type": "text", "text": "😀" * turn}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{turn}", "input": {"k": [turn]}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{turn}", "content": "y" * turn}]},
        ]
    return messages


def let_others_run(text: str) -> int:
    """A counting function during which other threads get their turn."""
    time.sleep(0)
    return len(text)


COUNTERS = [
    TokenCounter.default(),
    TokenCounter.picoclaw("4.0"),
    TokenCounter.flat(EstimatorConfig.seed_rules()),
    TokenCounter.from_callable(len),
    TokenCounter.estimator("llama3"),
]


STRUCTURE = ("atoms", "turn_starts", "step_starts", "safe_cuts")


def everything(messages: list[Any]) -> list[Any]:
    """The answers of every function about a list of messages."""
    answers: list[Any] = [getattr(ctxfast, name)(messages) for name in STRUCTURE]
    for counter in COUNTERS:
        tail = ctxfast.select_fresh_tail(messages, 500, counter=counter)
        answers += [counter.messages(messages), counter.fits(messages, 500), tail.start, tail.tokens, tail.messages]
        answers += [counter.head("ไทย😀" * 50, 30), counter.tail("ไทย😀" * 50, 30)]
    return [*answers, ctxfast.count_tokens(messages), ctxfast.find_safe_cut(messages, 11, "role")]


@contextmanager
def many_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_all(tasks: list[Callable[[], object]]) -> list[Any]:
    """Runs each task in a thread of its own, all at once; what they return, or the exception that came out."""
    results: list[Any] = [None] * len(tasks)
    barrier = threading.Barrier(len(tasks))

    def run(place: int) -> None:
        barrier.wait()
        try:
            results[place] = tasks[place]()
        except BaseException as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(tasks))]
    with many_switches():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return results


def test_threads_agree() -> None:
    messages = transcript(20)
    expected = everything(messages)
    assert expected[:4] == [getattr(reference, name)(messages) for name in STRUCTURE]

    def work() -> bool:
        return all(everything(messages) == expected for _ in range(20))

    assert run_all([work] * N_THREADS) == [True] * N_THREADS


def test_a_counter_is_shared_by_threads() -> None:
    """Each thread has its own list, and all have one counter whose function lets others run."""
    counter = TokenCounter.from_callable(let_others_run)

    def work(turns: int) -> bool:
        messages = transcript(turns)
        expected = reference.CallableCounter(len).messages(messages)
        tail = reference.select_fresh_tail(messages, 200, counter=reference.CallableCounter(len))
        return all(
            counter.messages(messages) == expected
            and ctxfast.select_fresh_tail(messages, 200, counter=counter).messages == tail.messages
            for _ in range(5)
        )

    assert run_all([functools.partial(work, turns) for turns in range(1, 1 + N_THREADS)]) == [True] * N_THREADS


# ------------------------------------------------------------------------- lists that change while they are read


def append_and_pop(messages: list[Any], step: int) -> None:
    if step % 3:
        messages.append(copy.deepcopy(messages[step % len(messages)]) if messages else {"role": "user", "content": "x"})
    elif messages:
        messages.pop(step % len(messages))


def clear_and_refill(messages: list[Any], step: int) -> None:
    kept = list(messages)
    messages.clear()
    messages.extend(kept)


def replace_contents(messages: list[Any], step: int) -> None:
    message = messages[step % len(messages)]
    message["content"] = ["text", [{"type": "text", "text": "new"}], None, [{"type": "unknown", "k": [step]}]][step % 4]


def change_keys(messages: list[Any], step: int) -> None:
    message = messages[step % len(messages)]
    for number in range(20):
        message[f"key {number}"] = number
    for number in range(20):
        del message[f"key {number}"]


def empty_dicts(messages: list[Any], step: int) -> None:
    message = messages[step % len(messages)]
    kept = dict(message)
    message.clear()
    message.update(kept)


def change_arguments(messages: list[Any], step: int) -> None:
    for message in messages[step % 6 :: 6]:
        for call in message.get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            if isinstance(arguments, dict):
                arguments[f"ไทย {step % 10}"] = [step]
                if step % 10 == 9:
                    arguments.clear()


def change_parts(messages: list[Any], step: int) -> None:
    for message in messages[step % 7 :: 7]:
        content = message["content"]
        if isinstance(content, list):
            content.append({"type": "text", "text": "more"})
            if len(content) > 4:
                content.clear()


CHANGES = [append_and_pop, clear_and_refill, replace_contents, change_keys, empty_dicts, change_arguments, change_parts]


def good_answer(answer: Any) -> bool:
    return isinstance(answer, (*ALLOWED, int, list, ctxfast.FreshTail))


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_lists_may_change_while_they_are_read(change: Callable[[list[Any], int], None]) -> None:
    messages = transcript(30)
    done = threading.Event()
    slow = TokenCounter.from_callable(let_others_run)
    functions: list[Callable[[], Any]] = [
        *(functools.partial(counter.messages, messages) for counter in COUNTERS),
        *(functools.partial(getattr(ctxfast, name), messages) for name in ("atoms", "turn_starts", "safe_cuts")),
        functools.partial(API.find_safe_cut, messages, 50, "role"),
        functools.partial(ctxfast.select_fresh_tail, messages, 300),
        functools.partial(ctxfast.select_fresh_tail, messages, 10**6, counter=slow),
        functools.partial(slow.fits, messages, 10**6),
    ]

    def write() -> None:
        until = time.monotonic() + 0.5
        step = 0
        while time.monotonic() < until:
            change(messages, step)
            step += 1
        done.set()

    def read(first: int) -> str | None:
        while not done.is_set():
            for function in functions[first:] + functions[:first]:
                answer = outcome(function)
                if not good_answer(answer):
                    return f"{answer!r} came out of {function}"
        return None

    results = run_all([write, *(functools.partial(read, place * 3) for place in range(3))])
    assert results == [None] * 4


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except BaseException as error:
        return error


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_counting_function_may_change_what_is_counted(change: Callable[[list[Any], int], None]) -> None:
    messages: list[Any] = []
    steps = iter(range(10**9))

    def count(text: str) -> int:
        if 0 < len(messages) < 200:  # a list that grows with every text that is counted has no end
            change(messages, next(steps))
        return len(text)

    counter = TokenCounter.from_callable(count)
    for size in (1, 2, 5):
        for budget in (1, 50, 10**6):
            for function in (
                lambda: counter.messages(messages),
                lambda budget=budget: counter.fits(messages, budget),
                lambda budget=budget: ctxfast.select_fresh_tail(messages, budget, counter=counter),
                lambda: counter.message(messages[1]),
                lambda: counter.request({"messages": messages}),
                lambda: counter.content(messages[4]["content"]),
            ):
                messages[:] = transcript(size)
                answer = outcome(function)
                assert good_answer(answer), repr(answer)


@pytest.mark.parametrize("when", range(12))
def test_everything_may_vanish_while_it_is_counted(when: int) -> None:
    """The list, a message, its content and its arguments are emptied in the middle of being read."""

    def vanish(target: Any) -> TokenCounter:
        calls = iter(range(10**9))

        def count(text: str) -> int:
            if next(calls) == when:
                target.clear()
            return len(text)

        return TokenCounter.from_callable(count)

    picks: list[Callable[[list[Any]], Any]] = [
        lambda messages: messages,
        lambda messages: messages[2],
        lambda messages: messages[2]["tool_calls"],
        lambda messages: messages[2]["tool_calls"][0],
        lambda messages: messages[2]["tool_calls"][0]["function"],
        lambda messages: messages[2]["tool_calls"][0]["function"]["arguments"],
        lambda messages: messages[4]["content"],
        lambda messages: messages[4]["content"][0],
        lambda messages: messages[5]["content"],
        lambda messages: messages[6]["content"][0],
    ]
    for pick in picks:
        messages = transcript(2)
        answer = outcome(functools.partial(vanish(pick(messages)).messages, messages))
        assert good_answer(answer), repr(answer)
        for budget in (1, 60, 10**6):
            messages = transcript(2)
            counter = vanish(pick(messages))
            answer = outcome(functools.partial(ctxfast.select_fresh_tail, messages, budget, counter=counter))
            assert good_answer(answer), repr(answer)


class Reader:
    """A message whose attributes are computed, and who does something else meanwhile."""

    def __init__(self, act: Callable[[], object]) -> None:
        object.__setattr__(self, "act", act)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        object.__getattribute__(self, "act")()
        return {"role": "user", "content": [{"type": "text", "text": "x"}], "type": "unknown"}


def test_a_property_may_change_what_is_read() -> None:
    for place in range(13):
        for act in ("clear", "reverse", "pop"):
            for function in (
                ctxfast.atoms,
                ctxfast.count_tokens,
                lambda messages: ctxfast.find_safe_cut(messages, 5, "role"),
                lambda messages: ctxfast.select_fresh_tail(messages, 1),
                lambda messages: ctxfast.select_fresh_tail(messages, 10**6),
                lambda messages: ctxfast.select_fresh_tail(messages, 60, counter=COUNTERS[-1]),
            ):
                messages: list[Any] = transcript(2)
                messages.insert(place, Reader(getattr(messages, act)))
                answer = outcome(functools.partial(function, messages))
                assert good_answer(answer), repr(answer)
                block: dict[str, Any] = {"type": "unknown", "text": "y"}
                block["inner"] = Reader(block.clear)
                messages = transcript(2)
                messages.insert(place, {"role": "user", "content": [block, {"type": "text", "text": "z"}]})
                answer = outcome(functools.partial(function, messages))
                assert good_answer(answer), repr(answer)


def test_a_counting_function_may_use_its_own_counter() -> None:
    inner = TokenCounter.from_callable(len)
    messages = transcript(3)

    def count(text: str) -> int:
        inner.messages(messages)
        ctxfast.select_fresh_tail(messages, 100)
        return inner.text(text)

    assert TokenCounter.from_callable(count).messages(messages) == inner.messages(messages)


# ----------------------------------------------------------------------------------------------------- processes


def answers_in_a_child(messages: list[Any], counter: TokenCounter, queue: Any) -> None:
    queue.put((everything(messages), counter.messages(messages), repr(counter)))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_forked_processes_agree() -> None:
    messages = transcript(10)
    expected = everything(messages)
    context = multiprocessing.get_context("fork")
    for counter in COUNTERS:
        queue = context.SimpleQueue()
        child = context.Process(target=answers_in_a_child, args=(messages, counter, queue))
        child.start()
        assert queue.get() == (expected, counter.messages(messages), repr(counter))
        child.join(30)
        assert child.exitcode == 0
    assert everything(messages) == expected


def test_a_spawned_process_gets_counters_and_results() -> None:
    messages = transcript(3)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for counter in COUNTERS:
            assert pool.apply(counter, (messages,)) == counter(messages)


# ------------------------------------------------------------------------------------------------------- pickling


def words(text: str) -> int:
    return len(text.split())


EVALUATES = [
    TokenCounter.default(),
    TokenCounter.picoclaw("4.0"),
    TokenCounter.picoclaw("2.5"),
    TokenCounter.flat(EstimatorConfig()),
    TokenCounter.flat(EstimatorConfig.seed_rules()),
    TokenCounter.flat(EstimatorConfig(chars_per_token=1 / 3, rounding="down", unit="mixed", tool_overhead=7)),
    TokenCounter.flat(EstimatorConfig(chars_per_token=3, code_per_token=0.015625, message_overhead=0, media_tokens=1)),
]
ALL = [
    *EVALUATES,
    TokenCounter.from_callable(len),
    TokenCounter.from_callable(words),
    TokenCounter.from_callable(words, message_overhead=0),
    TokenCounter.from_callable(words, media_tokens=1000),
    TokenCounter.from_callable(operator.methodcaller("__len__")),
]


@pytest.mark.parametrize("counter", ALL, ids=repr)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_counters_count_alike(counter: TokenCounter, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(counter, protocol))
    assert type(again) is TokenCounter
    assert repr(again) == repr(counter) or "methodcaller" in repr(counter)
    assert again.messages(transcript(3)) == counter.messages(transcript(3))
    assert again.tools([{"name": "f", "description": "d"}]) == counter.tools([{"name": "f", "description": "d"}])
    if "methodcaller" not in repr(counter):  # two of them are never equal
        assert again == counter
        assert hash(again) == hash(counter)


@pytest.mark.parametrize("counter", ALL, ids=repr)
def test_copies_of_counters_are_equal(counter: TokenCounter) -> None:
    assert copy.copy(counter) == counter
    if "methodcaller" not in repr(counter):
        assert copy.deepcopy(counter) == counter
        assert copy.deepcopy({counter: [counter]}) == {counter: [counter]}


def test_a_counter_whose_function_cannot_be_pickled_says_so() -> None:
    counter = TokenCounter.from_callable(lambda text: 1)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(counter)


@pytest.mark.parametrize("counter", EVALUATES, ids=repr)
def test_repr_is_the_constructor_call(counter: TokenCounter) -> None:
    again = eval(repr(counter), {"TokenCounter": TokenCounter, "EstimatorConfig": EstimatorConfig})
    assert again == counter
    assert hash(again) == hash(counter)
    assert repr(again) == repr(counter)


def test_repr_of_a_counter_with_a_function() -> None:
    assert repr(TokenCounter.from_callable(len)) == f"TokenCounter.from_callable({len!r})"
    counter = TokenCounter.from_callable(words, message_overhead=0, media_tokens=7)
    assert repr(counter) == f"TokenCounter.from_callable({words!r}, message_overhead=0, media_tokens=7)"


def test_counters_are_keys() -> None:
    table = {counter: place for place, counter in enumerate(ALL)}
    assert len(table) == len(ALL)
    for place, counter in enumerate(ALL):
        assert table[counter] == place
    assert table[TokenCounter.default()] == 0
    assert table[TokenCounter.from_callable(words, message_overhead=0)] == ALL.index(
        TokenCounter.from_callable(words, message_overhead=0)
    )
    assert len({TokenCounter.from_callable(len), TokenCounter.from_callable(len, message_overhead=4)}) == 1


def test_equal_counters_count_alike_and_others_differ() -> None:
    for one in ALL:
        for other in ALL:
            assert (one == other) == (one is other)
            assert (one != other) == (one is not other)
    assert TokenCounter.picoclaw("4.0") == TokenCounter.flat(EstimatorConfig(unit="mixed"))
    assert hash(TokenCounter.picoclaw("4.0")) == hash(TokenCounter.flat(EstimatorConfig(unit="mixed")))
    assert TokenCounter.default() == TokenCounter.estimator("o200k")
    assert hash(TokenCounter.default()) == hash(TokenCounter.estimator("o200k"))
    assert TokenCounter.flat(EstimatorConfig(chars_per_token=4)) == TokenCounter.flat(EstimatorConfig())
    assert hash(TokenCounter.flat(EstimatorConfig(chars_per_token=4))) == hash(TokenCounter.flat(EstimatorConfig()))
    for stranger in (None, 5, "TokenCounter.default()", len, reference.default_counter()):
        assert TokenCounter.default() != stranger


class Unhashable:
    """A counting function that cannot be a key."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, text: str) -> int:
        return len(text)


def test_a_counter_is_hashable_if_its_function_is() -> None:
    counter = TokenCounter.from_callable(Unhashable())
    assert counter.text("text") == 4
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_others_run_while_a_long_text_is_estimated() -> None:
    """An estimate of 65,536 characters and more lets go of the interpreter: an event loop elsewhere goes on."""
    counter, text = TokenCounter.estimator("o200k"), "The tests pass now; I have changed two files.\n" * 1_000_000
    ticks, done = [0], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        gained = []
        for _ in range(10):
            before = ticks[0]
            counter.text(text)
            gained.append(ticks[0] - before)
        assert sorted(gained)[5] > 1_000  # a microsecond or less each; with the lock held it is almost none
    finally:
        done.set()
        thread.join()
