"""Bad input to `fit_messages`, `keep_last` and `remove`: a clear error, never a panic, a wrong answer or too much time.

The values and places are those of `test_hostile.py`; lists that change meanwhile are those of `test_threads.py`.
"""

from __future__ import annotations

import contextlib
import copy
import enum
import functools
import gc
import itertools
import json
import math
import multiprocessing
import random
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import (
    Message,
    has_user_text,
    raw_claude_code,
    results_of,
    sessions,
    transcript_files,
    two_and_a_half,
)
from test_complexity import grows_linearly
from test_hostile import (
    COUNTERS,
    FRAMES,
    HOSTILE,
    HostileError,
    at,
    base_transcript,
    copy_of_containers,
    mutate,
)
from test_hostile import guarded as guarded_but_for_this
from test_prune_hostile import FINE, RESULTS, around, long_session
from test_sdk_objects import OPENAI_MESSAGES, anthropic_response, openai_message, tool, user
from test_threads import ALLOWED, CHANGES, N_THREADS, Reader, let_others_run, outcome, run_all

import ctxfast
from ctxfast import (
    BudgetError,
    CannotFitError,
    ContextBudget,
    FitPolicy,
    Fitted,
    MessageTypeError,
    PrunePolicy,
    Repaired,
    TokenCounter,
    fit_messages,
    keep_last,
    reference,
    remove,
    repair,
    validate,
)

API: Any = ctxfast  # called with what type checkers forbid
COUNTER = two_and_a_half(ctxfast)
SLOW = two_and_a_half(reference)
LENGTHS = TokenCounter.from_callable(len)
TEXT = "some line of text\n" * 40


# ---------------------------------------------------------------------------------------------- never above the budget


@pytest.mark.parametrize("budget", [1, 10, 500, ContextBudget(500, 100)], ids=repr)
@pytest.mark.parametrize("measured", [None, 5_000])
def test_what_stands_before_the_messages_can_be_too_large_alone(budget: Any, measured: int | None) -> None:
    """With nothing behind the system messages there is nothing to drop, and yet it does not fit."""
    large: Message = {"role": "system", "content": TEXT * 10}
    for messages, system in (([large], None), ([], TEXT * 10), ([large, large], TEXT)):
        with pytest.raises(CannotFitError) as caught:
            fit_messages(messages, budget, system=system, used=measured, counter=COUNTER)
        assert caught.value.needed == caught.value.pinned > caught.value.budget
        with pytest.raises(CannotFitError) as caught_too:
            reference.fit_messages(messages, budget, system=system, used=measured, counter=SLOW)
        assert caught.value.needed == caught_too.value.needed


def test_what_the_counter_does_not_see_can_be_too_large_alone() -> None:
    for messages, counter in (
        ([], COUNTER),
        ([{"role": "user", "content": "x"}], TokenCounter.from_callable(lambda text: 0, message_overhead=0)),
    ):
        with pytest.raises(CannotFitError, match="at least 5,000 are needed"):
            fit_messages(messages, 10, used=5_000, counter=counter)


@pytest.mark.parametrize("budget", range(8, 40))
def test_a_measured_request_is_rounded_to_the_safe_side(budget: int) -> None:
    """Where the counter counts more than the provider, what is left is not a token above the budget either."""
    counter = TokenCounter.from_callable(len, message_overhead=0)
    messages = [{"role": "user", "content": "x"}, *[{"role": "assistant", "content": "y"}] * 99]
    for used in range(budget, 100):
        fitted = fit_messages(messages, budget, used=used, low_water=1, counter=counter)
        assert fitted.report.after <= budget
        assert fitted.report.changed == (used > budget)


# --------------------------------------------------------------------------------------------------------------- time


def call(number: int, name: str = "read_file", calls: int = 1) -> Message:
    """A response that calls a tool."""
    made = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": f'{{"path": "{number}.py"}}'},
        }
        for place in range(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(number: int, content: Any = TEXT, place: int = 0, **more: Any) -> Message:
    """What a tool gave."""
    return {"role": "tool", "tool_call_id": f"call_{number}_{place}", "content": content, **more}


def steps_of_one_task(n: int) -> list[Message]:
    task: Message = {"role": "user", "content": "Do it."}
    return [task, *(message for number in range(n // 2) for message in (call(number), result(number)))]


def turns_without_tools(n: int) -> list[Message]:
    turn: list[Message] = [{"role": "user", "content": "why? " * 20}, {"role": "assistant", "content": "so " * 50}]
    return turn * (n // 2)


def users_alone(n: int) -> list[Message]:
    return [{"role": "user", "content": f"note {number}, and no answer"} for number in range(n)]


def turns_in_blocks(n: int) -> list[Message]:
    messages: list[Message] = []
    for number in range(n // 4):
        output = {"type": "tool_result", "tool_use_id": f"{number}", "content": TEXT}
        messages += [
            {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"{number}", "name": "read", "input": {}}]},
            {"role": "user", "content": [output, {"type": "text", "text": "And the docs?"}]},
            {"role": "assistant", "content": "done"},
        ]
    return messages


def errors_of_many_tools(n: int) -> list[Message]:
    """None is made up for, each is too small for a stub."""
    return [
        {"role": "user", "content": "Do it."},
        *(
            message
            for number in range(n // 2)
            for message in (call(number, f"tool_{number}"), result(number, is_error=True))
        ),
    ]


def errors_with_long_ends(n: int) -> list[Message]:
    """Each is large enough, but its stub, too."""
    messages = errors_of_many_tools(n)
    for message in messages[2::2]:
        message["content"] = "error: " + "x y z w " * 70
    return messages


def one_wide_step(n: int) -> list[Message]:
    task: Message = {"role": "user", "content": "Do it."}
    return [task, call(0, calls=n), *(result(0, TEXT * 4, place) for place in range(n))]


def one_wide_message(n: int) -> list[Message]:
    calls = [{"type": "tool_use", "id": f"{place}", "name": "read", "input": {}} for place in range(n)]
    results = [{"type": "tool_result", "tool_use_id": f"{place}", "content": TEXT * 4} for place in range(n)]
    return [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


SHAPES: list[Any] = [
    steps_of_one_task,
    turns_without_tools,
    users_alone,
    turns_in_blocks,
    errors_of_many_tools,
    errors_with_long_ends,
]
ALL_STEPS = FitPolicy(prune=PrunePolicy(protected_steps=10**6))
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "at each request": {"low_water": 1},  # the replay drops something almost each time
    "all steps protected": {"low_water": 1, "policy": ALL_STEPS},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_eight_times_the_messages_take_eight_times_the_time(way: str, shape: Callable[[int], list[Message]]) -> None:
    def make(n: int) -> Callable[[], object]:
        messages = shape(n)
        return functools.partial(fit_messages, messages, COUNTER.messages(messages) // 10, counter=COUNTER, **WAYS[way])

    grows_linearly(make, (4_000, 32_000))


@pytest.mark.parametrize("shape", [one_wide_step, one_wide_message])
def test_a_wide_step_is_cut_in_linear_time(shape: Callable[[int], list[Message]]) -> None:
    def make(n: int) -> Callable[[], object]:
        messages = shape(n)
        return functools.partial(fit_messages, messages, COUNTER.messages(messages) // 2, counter=COUNTER)

    grows_linearly(make, (500, 4_000))
    messages = shape(500)
    fitted = fit_messages(messages, COUNTER.messages(messages) // 2, counter=COUNTER)
    assert len(fitted.report.clamped) == 500
    assert not fitted.report.dropped


# ----------------------------------------------------------------------------------------------------- what comes in


class Shelf:
    """A store that counts what it gets, and does something else meanwhile."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.texts: list[str] = []
        self.act = act

    def save(self, text: str) -> str:
        self.texts.append(text)
        self.act()
        return f"no. {len(self.texts)}"


ONE_STEP = FitPolicy(prune=PrunePolicy(protected_steps=1, protected_tokens=0, min_saved=1))
ANSWERS = (*ALLOWED, CannotFitError, Fitted, Repaired)


def guarded(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """As in `test_hostile.py`; that something does not fit is an answer, too."""
    try:
        return guarded_but_for_this(function, *args, **options)
    except AssertionError as error:
        if isinstance(error.__cause__, CannotFitError):
            return error.__cause__
        raise


def shorten_in_every_way(messages: Any) -> list[Any]:
    """Every rung of the ladder, in both forms; what came out, or the errors."""
    answers = []
    for options in (
        {"max_tokens": 1},
        {"max_tokens": 300, "policy": ONE_STEP, "counter": COUNTER},
        {"max_tokens": 600, "form": "anthropic", "store": Shelf()},
        {"max_tokens": 900, "low_water": 0.9, "counter": LENGTHS, "store": Shelf()},
        {"max_tokens": None},
    ):
        answers.append(guarded(API.fit_messages, messages, **options))
        form = options.get("form", "auto")
        if isinstance(answers[-1], Fitted):
            fitted = answers[-1]
            assert fitted.report.budget is None or fitted.report.after <= fitted.report.budget
            assert {problem.code for problem in API.validate(fitted.messages, form)} <= {"no_user_message"}
            assert str(fitted.report)
    answers.append(guarded(API.keep_last, messages, 1, store=Shelf()))
    answers.append(guarded(API.remove, messages, ["x", "a", "t"]))
    answers.append(guarded(API.remove, messages, ["x", "a", "t"], "anthropic"))
    return answers


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_makes_it_panic(name: str) -> None:
    value = HOSTILE[name]
    shorten_in_every_way(value)
    shorten_in_every_way(around(value))
    shorten_in_every_way([value] * 3)
    for frame in (*FRAMES, *RESULTS):
        shorten_in_every_way(around(at("$", value, frame)))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_argument_makes_it_panic(name: str) -> None:
    value, messages = HOSTILE[name], around(FINE)
    guarded(API.fit_messages, messages, value)
    for option in ("system", "tools", "used", "form", "provider", "policy", "counter", "store"):
        guarded(API.fit_messages, messages, 300, **{option: value})
    if "deep" not in name:  # Python's `repr` gives up
        guarded(API.fit_messages, messages, 300, low_water=value)
        guarded(API.keep_last, messages, value)
    for option in ("form", "provider", "counter", "store"):
        guarded(API.keep_last, messages, 1, **{option: value})
    for option in ("form", "provider"):
        guarded(API.remove, messages, ["x"], **{option: value})
    guarded(API.remove, messages, value)
    guarded(API.remove, messages, [value])
    for option in ("prune", "pin_first", "clamp_user"):
        if "deep" not in name:
            guarded(FitPolicy, **{option: value})
        policy = FitPolicy()
        object.__setattr__(policy, option, value)
        guarded(API.fit_messages, messages, 300, policy=policy)
    guarded(API.fit_messages, messages, 300, store=SimpleNamespace(save=value))
    guarded(API.fit_messages, messages, 300, store=SimpleNamespace(save=lambda text: value))
    guarded(API.keep_last, messages, 1, store=SimpleNamespace(save=lambda text: value))


@pytest.mark.parametrize("messages", [None, 5, {"role": "user"}, {1}, "text", b"x", iter([FINE])], ids=repr)
def test_lists_must_be_lists(messages: Any) -> None:
    shorten: Any
    for shorten in (
        lambda: API.fit_messages(messages, 300),
        lambda: API.keep_last(messages, 1),
        lambda: API.remove(messages, []),
    ):
        with pytest.raises(MessageTypeError, match=r"Expected a list of messages, got `\w+` - at `messages`"):
            shorten()


def test_numbers() -> None:
    for bad in (0, 0.99, -1, -(10**400), math.nan, math.inf, True, False):
        with pytest.raises(BudgetError, match="max_tokens: expected a number of tokens, 1 or more, got"):
            API.fit_messages([FINE], bad)
    for bad in (-1, math.nan, math.inf, True):
        with pytest.raises(BudgetError, match="used: expected a number of tokens, 0 or more, got"):
            API.fit_messages([FINE], 300, used=bad)
    wrong: Any
    for wrong in ("800", b"8", [800], 8j, Decimal(800), Fraction(800), object()):
        for name in ("max_tokens", "used"):
            with pytest.raises(TypeError, match=rf"{name}: expected a number of tokens, got `\w+`"):
                API.fit_messages([FINE], **{"max_tokens": 300, name: wrong})
    for bad in (-0.1, 1.0001, math.nan, math.inf, 10**400):
        with pytest.raises(ValueError, match="low_water: expected a share, 0 to 1, got"):
            API.fit_messages([FINE], 300, low_water=bad)
    for wrong in (True, None, "0.5", Decimal("0.5"), 1j):
        with pytest.raises(TypeError, match="low_water: expected a share, 0 to 1, got"):
            API.fit_messages([FINE], 300, low_water=wrong)
    for bad in (0, -1, -(10**400)):
        with pytest.raises(ValueError, match="n_steps: expected a whole number, 1 or more, got"):
            API.keep_last([FINE], bad)
    for wrong in (True, 1.0, "1", None, Decimal(1)):
        with pytest.raises(TypeError, match="n_steps: expected a whole number, 1 or more, got"):
            API.keep_last([FINE], wrong)


@pytest.mark.parametrize(
    "huge", [2**63 - 1, 2**63, 2**64, 10**30, 10**400], ids=lambda huge: f"{len(str(huge))} digits"
)
def test_huge_numbers_are_endless(huge: int) -> None:
    messages = steps_of_one_task(20)
    fitted = fit_messages(messages, huge)
    assert (fitted.messages, fitted.report.changed, fitted.report.budget) == (messages, False, huge)
    assert keep_last(messages, huge).messages == messages
    with pytest.raises(CannotFitError):
        fit_messages(messages, 300, used=huge)


def test_words() -> None:
    for wrong in ("x", "", "AUTO", "\0"):
        shorten: Any
        for shorten in (
            lambda word=wrong, **more: API.fit_messages([FINE], 300, **more),
            lambda word=wrong, **more: API.keep_last([FINE], 1, **more),
            lambda word=wrong, **more: API.remove([FINE], [], **more),
        ):
            with pytest.raises(ValueError, match="form: expected 'auto', 'openai' or 'anthropic', got"):
                shorten(form=wrong)
            with pytest.raises(ValueError, match="provider: expected 'openai', 'anthropic' or None, got"):
                shorten(provider=wrong)


@pytest.mark.parametrize("messages", [[], (), [{"role": "system", "content": "Be kind."}] * 3])
def test_lists_without_anything_to_drop(messages: Any) -> None:
    for fitted in (fit_messages(messages, 300), keep_last(messages, 1), remove(messages, ["a"])):
        assert fitted.messages == list(messages)
        assert not fitted.report.changed
    assert not fit_messages([call(0)], 300).report.changed  # still running
    results = [result(number) for number in range(50)]
    assert fit_messages(results, 300).messages == keep_last(results, 1).messages == []  # orphans


def test_a_running_list_stays_so() -> None:
    messages = [*steps_of_one_task(60), call(0, calls=3), result(0, TEXT, 1), result(0, TEXT * 50, 0)]
    for fitted in (fit_messages(messages, 2_000, counter=COUNTER), keep_last(messages, 1)):
        assert [message["role"] for message in fitted.messages[-3:]] == ["assistant", "tool", "tool"]
        assert fitted.messages[-3] is messages[-3]
        assert fitted.messages[-2] is messages[-2]
        assert validate(fitted.messages) == []


@pytest.mark.parametrize("ids", ["same", "blank", "none", "huge", "surrogates"])
def test_ids_of_every_kind(ids: str) -> None:
    messages = steps_of_one_task(200)
    for number, message in enumerate(messages[1:]):
        new = {
            "same": "x",
            "blank": " ",
            "none": None,
            "huge": "x" * 200_000 + str(number // 2),
            "surrogates": "\ud800" * (1 + number // 2),
        }[ids]
        if message["role"] == "tool":
            message["tool_call_id"] = new
        else:
            message["tool_calls"][0]["id"] = new
    budget = 3_000 if ids != "huge" else 2_000_000  # ids count
    for shelf in ({}, {"store": Shelf()}):
        for fitted in (
            API.fit_messages(messages, budget, counter=COUNTER, **shelf),
            API.keep_last(messages, 5, **shelf),
        ):
            assert validate(fitted.messages) == []
            assert len(fitted.messages) < 60
            assert fitted.messages[0] is messages[0]
    if ids == "same":
        assert remove(messages, ["x"]).messages == messages[:1]
    if ids == "surrogates":
        assert len(remove(messages, ["\ud800", "\ud800\ud800"]).messages) == len(messages) - 4


def test_ids_of_what_is_removed() -> None:
    messages = steps_of_one_task(20)

    def grows() -> Iterator[str]:
        """Changes the list meanwhile."""
        for number in range(5):
            messages.pop()
            yield f"call_{number}_0"

    removed = remove(messages, grows())
    assert len(messages) == 16
    assert len(removed.messages) == 16 + 1 - 10 or validate(removed.messages) == []
    wrong: Any
    for wrong in ("call_0_0", 5, None, [5], [b"x"], [None], iter([5])):
        with pytest.raises(TypeError, match=r"ids: expected .*, got "):
            API.remove(messages, wrong)

    def raises() -> Iterator[str]:
        yield "a"
        raise HostileError

    with pytest.raises(HostileError):
        remove(messages, raises())
    nothing: Any
    for nothing in ((), [], {}, set[str](), ["nowhere"], ["\ud800"], ["x" * 10**6]):
        assert remove(messages[:15], nothing).messages == messages[:15]


def test_a_removed_call_takes_blocks_and_results_with_it() -> None:
    blocks = [{"type": "tool_use", "id": name, "name": "read", "input": {}} for name in "abc"]
    results: list[Message] = [{"type": "tool_result", "tool_use_id": name, "content": TEXT} for name in "abc"]
    messages: list[Message] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [*results, {"type": "text", "text": "And?"}]},
        {"role": "assistant", "content": "done"},
    ]
    before = copy.deepcopy(messages)
    for gone in ("a", "b", "ac", "abc"):
        got = remove(messages, gone if len(gone) > 3 else list(gone))
        assert validate(got.messages) == []
        assert got.messages[0] is messages[0]
        assert got.messages[-1] is messages[-1]
        left = [block["id"] for message in got.messages for block in message["content"] if "id" in block]
        assert left == [name for name in "abc" if name not in gone]
        assert [fix.code for fix in got.report.items].count("removed") >= len(gone)
        assert messages == before
        assert remove(got.messages, list(gone)).messages == got.messages


class MyList(list[Any]):
    pass


class MyDict(dict[str, Any]):
    pass


def test_subclasses_and_tuples_are_read_as_what_they_are() -> None:
    messages = steps_of_one_task(200)
    expected = fit_messages(messages, 3_000, counter=COUNTER)
    for other in (tuple(messages), MyList(messages), [MyDict(message) for message in messages]):
        fitted = fit_messages(other, 3_000, counter=COUNTER)
        assert fitted.messages == expected.messages
        assert fitted.report == expected.report
        assert type(fitted.messages) is list
        assert all(any(message is one for one in other) for message in fitted.messages[:1] + fitted.messages[-5:])


def test_objects_whose_fields_change_or_raise() -> None:
    """Fields are read many times: for faults, counts, stubs, what was said, the new message, the store."""
    for number in range(1, 30):
        for answer in ("raise", "other role", "other content", "nothing"):
            reads = iter(range(1, 10**6))

            class Result:
                @property
                def __dict__(self, reads: Any = reads, number: int = number, answer: str = answer) -> Any:  # type: ignore[override]
                    if next(reads) < number:
                        return {"role": "tool", "tool_call_id": "a", "content": TEXT}
                    if answer == "raise":
                        raise HostileError
                    return {
                        "other role": {"role": "user", "content": TEXT},
                        "other content": {"role": "tool", "tool_call_id": "a", "content": [{}]},
                        "nothing": {},
                    }[answer]

            messages = [*around(Result()), *steps_of_one_task(10)]
            for options in ({"max_tokens": 700}, {"max_tokens": 900, "policy": ONE_STEP, "store": Shelf()}):
                got = outcome(functools.partial(API.fit_messages, messages, **options))
                assert isinstance(got, (*ANSWERS, HostileError, RuntimeError)), repr(got)


def test_a_property_may_change_the_list() -> None:
    for place in range(13):
        for act in ("clear", "reverse", "pop"):
            shorten: Any
            for shorten in (
                lambda messages: fit_messages(messages, 300, policy=ONE_STEP),
                lambda messages: fit_messages(messages, 900, store=Shelf(messages.clear)),
                lambda messages: keep_last(messages, 1),
                lambda messages: remove(messages, ["x"]),
            ):
                messages: list[Any] = around(FINE)
                messages.insert(place, Reader(getattr(messages, act)))
                answer = outcome(functools.partial(shorten, messages))
                assert isinstance(answer, ANSWERS), repr(answer)


def test_random_mutations_never_panic() -> None:
    chance = random.Random(11)
    junk = [value for name, value in HOSTILE.items() if "deep" not in name and "10**" not in name]
    junk += ["tool_use", "tool_result", "text", "user", "tool", "a", "t1", TEXT, [{}], {"type": "text"}, '{"path": 5}']
    original = [*base_transcript()[:5], *around(result(0)), *base_transcript()[5:]]
    counters = [*COUNTERS.values(), COUNTER]
    shortened = 0
    for number in range(4_000):
        messages = copy_of_containers(original)
        for _ in range(chance.choice([1, 1, 2, 3])):
            mutate(messages, chance, junk)
        counter = counters[number % len(counters)]
        form = chance.choice(["auto", "openai", "anthropic"])
        budget = chance.choice([20, 200, 500, 1_000])
        got = guarded(API.fit_messages, messages, budget, form=form, counter=counter, policy=ONE_STEP)
        if isinstance(got, Fitted):
            shortened += got.report.changed
            assert got.report.after <= budget
            assert {problem.code for problem in API.validate(got.messages, form)} <= {"no_user_message"}
            again = guarded(API.fit_messages, got.messages, budget, form=form, counter=counter, policy=ONE_STEP)
            assert not again.report.changed
        guarded(API.keep_last, messages, 1 + number % 3, form=form)
        guarded(API.remove, messages, ["a", "t1"], form=form)
    assert 500 < shortened < 3_500


def test_one_message_of_fifty_megabytes() -> None:
    huge = "x y\n" * 12_500_000
    messages = [{"role": "user", "content": "Go."}, call(0), result(0, huge), call(1), result(1, huge)]
    start = time.perf_counter()
    fitted = fit_messages(messages, 3_000, counter=COUNTER)
    assert len(fitted.report.clamped) + len(fitted.report.stubs) == 2
    assert validate(fitted.messages) == []
    shelf = Shelf()
    fit_messages(messages, 3_000, counter=COUNTER, store=shelf)
    assert shelf.texts == [huge, huge]
    assert keep_last(messages, 1).messages == [messages[0], *messages[3:]]
    with pytest.raises(CannotFitError, match=r"the largest is messages\[0\] \(user\)"):
        fit_messages([{"role": "user", "content": huge}], 3_000, counter=COUNTER)
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize("shape", [*SHAPES, one_wide_step], ids=lambda shape: shape.__name__)
def test_budgets_from_nothing_to_everything(shape: Callable[[int], list[Message]]) -> None:
    messages = shape(200)
    total = COUNTER.messages(messages)
    for budget in (1, 2, 10, total // 1_000, total // 2, total - 2, total - 1, total, total + 1):
        try:
            fitted = fit_messages(messages, budget, counter=COUNTER)
        except CannotFitError as error:
            assert error.needed > error.budget == budget  # noqa: PT017
            fitted = fit_messages(messages, error.needed, counter=COUNTER)
        assert validate(fitted.messages) == []
        assert fitted.report.after == COUNTER.messages(fitted.messages)
        assert fitted.report.changed == (budget < total)


# ------------------------------------------------------------------------------------------------------------ counters


@pytest.mark.parametrize("error", [HostileError(), KeyError("x"), KeyboardInterrupt(), SystemExit()], ids=repr)
@pytest.mark.parametrize("when", [0, 1, 10, 20, 30, 40, 50])
def test_exceptions_of_a_counting_function_come_through(error: BaseException, when: int) -> None:
    calls = iter(range(10**6))

    def count(text: str) -> int:
        if next(calls) == when:
            raise error
        return len(text)

    messages = [*around(result(0)), *steps_of_one_task(10)]
    before = copy.deepcopy(messages)
    with pytest.raises(type(error)) as caught:
        fit_messages(messages, 1_500, policy=ONE_STEP, counter=TokenCounter.from_callable(count))
    assert caught.value is error
    assert messages == before


def test_counts_that_make_no_sense() -> None:
    """Random counts, the same text never the same: a list that a provider takes comes out, or it does not fit."""
    chance = random.Random(5)
    messages = [*around(result(0)), *steps_of_one_task(20), *turns_in_blocks(12)]
    for counts in ([0], [1], [2**32 - 1], [0, 2**32 - 1], list(range(1000)), list(range(0, 10_000, 500))):

        def count(text: str, counts: list[int] = counts) -> int:
            return chance.choice(counts)

        counter = TokenCounter.from_callable(count)
        for budget in (1, 1_000, 20_000, 2**33, 2**62):
            for used in (None, 2**40):
                got = outcome(functools.partial(fit_messages, messages, budget, counter=counter, used=used))
                assert isinstance(got, (Fitted, CannotFitError)), repr(got)
                if isinstance(got, Fitted):
                    assert validate(got.messages) == []
                    assert got.report.after <= budget
                    assert str(got.report)
        assert validate(keep_last(messages, 2, counter=counter).messages) == []


def test_longer_texts_may_count_less() -> None:
    """Not monotone: cutting makes it worse. Then it does not fit, or fits all the same; it ends in any case."""
    for count in (
        lambda text: max(0, 10_000 - len(text)),
        lambda text: hash(text) % 1_000,
        lambda text: 1_000 if len(text) % 2 else 1,
        lambda text: 5_000 if "omitted" in text or text.startswith("[") else len(text),
    ):
        counter = TokenCounter.from_callable(count)
        messages = [*steps_of_one_task(30), call(0, calls=2), result(0, TEXT * 9, 0), result(0, TEXT * 7, 1)]
        for budget in range(500, 20_000, 700):
            got = outcome(functools.partial(fit_messages, messages, budget, counter=counter))
            assert isinstance(got, (Fitted, CannotFitError)), repr(got)
            if isinstance(got, Fitted):
                assert validate(got.messages) == []
                assert got.report.after <= budget


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_counting_function_may_change_what_is_counted(change: Callable[[list[Any], int], None]) -> None:
    for first in range(0, 80, 3):
        shorten: Any
        for shorten in (
            lambda messages, counter: fit_messages(messages, 900, policy=ONE_STEP, counter=counter),
            lambda messages, counter: keep_last(messages, 1, counter=counter, store=Shelf()),
        ):
            messages = copy.deepcopy(around(result(0)))
            steps = iter(range(10**9))

            def count(text: str, messages: list[Any] = messages, steps: Any = steps, first: int = first) -> int:
                step = next(steps)
                if step >= first and 0 < len(messages) < 100:
                    change(messages, step)
                return len(text)

            answer = outcome(functools.partial(shorten, messages, TokenCounter.from_callable(count)))
            assert isinstance(answer, ANSWERS), repr(answer)


@pytest.mark.parametrize("when", range(0, 100, 3))
def test_everything_may_vanish_while_it_is_counted(when: int) -> None:
    """The list, a message, its content, a block: emptied or changed in the middle of it."""
    picks: list[Callable[[list[Any]], Any]] = [
        lambda messages: messages,
        lambda messages: messages[0],
        lambda messages: messages[1]["tool_calls"],
        lambda messages: messages[2],
        lambda messages: messages[3]["content"],
        lambda messages: messages[5],
        lambda messages: messages[5]["content"],
        lambda messages: messages[5]["content"][0],
        lambda messages: messages[-1],
    ]
    for pick in picks:
        for act in ("clear", "change"):
            messages = copy.deepcopy([*around(result(0)), *steps_of_one_task(6)])
            target, calls = pick(messages), iter(range(10**9))

            def count(text: str, target: Any = target, calls: Any = calls, act: str = act) -> int:
                if next(calls) == when:
                    if act == "clear":
                        target.clear()
                    elif isinstance(target, list):
                        target.insert(0, {"type": "tool_result", "role": "user", "content": [{"type": "text"}]})
                    else:
                        target.update(role="user", content=[5], type="text", text=[], path=5)
                return len(text)

            counter = TokenCounter.from_callable(count)
            for options in ({"max_tokens": 1_000, "policy": ONE_STEP}, {"max_tokens": 1_500, "store": Shelf()}):
                answer = outcome(functools.partial(API.fit_messages, messages, counter=counter, **options))
                assert isinstance(answer, ANSWERS), repr(answer)


def test_a_counting_function_may_fit() -> None:
    messages = steps_of_one_task(40)
    expected = fit_messages(messages, 3_000, counter=TokenCounter.from_callable(len))

    def count(text: str) -> int:
        fit_messages(messages[:9], 700, counter=COUNTER)
        return len(text)

    assert fit_messages(messages, 3_000, counter=TokenCounter.from_callable(count)) == expected


# -------------------------------------------------------------------------------------------------------------- stores


@pytest.mark.parametrize("error", [HostileError(), OSError("full"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("when", range(6))
def test_exceptions_of_a_store_come_through(error: BaseException, when: int) -> None:
    messages = steps_of_one_task(40)
    before = copy.deepcopy(messages)
    shorten: Any
    for shorten in (
        lambda shelf: fit_messages(messages, 3_000, counter=COUNTER, store=shelf),
        lambda shelf: keep_last(messages, 1, store=shelf),
    ):
        calls = iter(range(10**6))

        def act(calls: Any = calls) -> None:
            if next(calls) == when:
                raise error

        with pytest.raises(type(error)) as caught:
            shorten(Shelf(act))
        assert caught.value is error
        assert messages == before


@pytest.mark.parametrize("saved", [5, b"x", "", "x" * 201, "a\nb", "\ud800", ["x"]], ids=ascii)
def test_ids_of_stores_are_checked(saved: Any) -> None:
    shorten: Any
    for shorten in (
        lambda store: API.fit_messages(steps_of_one_task(40), 3_000, counter=COUNTER, store=store),
        lambda store: API.keep_last(steps_of_one_task(40), 1, store=store),
    ):
        with pytest.raises((TypeError, ValueError), match="store: expected save to give an id"):
            shorten(SimpleNamespace(save=lambda text: saved))
        with pytest.raises(TypeError, match="store: expected something with a method save"):
            shorten(SimpleNamespace(save=saved))


def test_a_store_may_do_anything_meanwhile() -> None:
    messages = steps_of_one_task(40)
    expected = fit_messages(messages, 3_000, counter=COUNTER, store=Shelf())

    def again() -> None:
        assert fit_messages(messages, 3_000, counter=COUNTER, store=Shelf()).messages == expected.messages

    assert fit_messages(messages, 3_000, counter=COUNTER, store=Shelf(again)) == expected

    passed = list(messages)
    assert fit_messages(passed, 3_000, counter=COUNTER, store=Shelf(passed.clear)).messages == expected.messages
    for change in CHANGES:
        passed, steps = copy.deepcopy(messages), iter(range(10**6))

        def act(passed: Any = passed, steps: Any = steps, change: Any = change) -> None:
            if passed:
                change(passed, next(steps))

        shelf = Shelf(act)
        answer = outcome(functools.partial(fit_messages, passed, 3_000, counter=COUNTER, store=shelf))
        assert isinstance(answer, ANSWERS), repr(answer)


def test_everything_that_goes_is_saved_and_only_once() -> None:
    messages = [*steps_of_one_task(400), call(0), result(0, TEXT * 99)]
    shelf = Shelf()
    report = fit_messages(messages, 3_000, counter=COUNTER, store=shelf).report
    assert report.clamped
    assert report.dropped
    names = [edit.stored for edit in (*report.stubs, *report.clamped)] + [part.stored for part in report.dropped]
    assert len(set(names)) == len(names)
    saved = {f"no. {number}": text for number, text in enumerate(shelf.texts, 1)}
    for part in report.dropped:
        assert json.loads(saved[str(part.stored)]) == messages[part.start : part.stop]
    for edit in (*report.stubs, *report.clamped):
        assert saved[str(edit.stored)] == messages[edit.index]["content"]
        assert f"{edit.stored}" in edit.stub


@pytest.mark.parametrize("value", [{1: 2}, b"x", {"deep": object()}], ids=["a key", "bytes", "an object"])
def test_what_is_no_json_cannot_be_saved_and_goes_all_the_same(value: Any) -> None:
    messages = steps_of_one_task(40)
    messages[7]["meta"] = value
    for fitted in (
        fit_messages(messages, 3_000, counter=COUNTER, store=Shelf()),
        keep_last(messages, 1, store=Shelf()),
    ):
        lost = [part for part in fitted.report.dropped if part.start <= 7 < part.stop]
        assert [part.stored for part in lost] == [None]
        assert all(part.stored for part in fitted.report.dropped if part not in lost)


# ---------------------------------------------------------------------------------------------- threads and processes


def test_threads_agree() -> None:
    messages = [*long_session(60), *turns_in_blocks(40)]
    shelf = Shelf()
    functions: list[Callable[[], Any]] = [
        functools.partial(fit_messages, messages, budget, counter=counter, store=store)
        for budget in (2_500, 8_000)
        for counter in (*COUNTERS.values(), TokenCounter.from_callable(let_others_run))
        for store in (None, SimpleNamespace(save=lambda text: shelf.save(text) and f"{len(text)}"))
    ]
    functions += [functools.partial(keep_last, messages, 5), functools.partial(remove, messages, ["c5", "12"])]
    expected = [outcome(function) for function in functions]
    assert sum(isinstance(answer, Fitted) and answer.report.changed for answer in expected) > 15

    def work() -> bool:
        for function, answer in zip(functions, expected, strict=True):
            got = outcome(function)
            if got != answer and repr(got) != repr(answer):
                return False
        return True

    assert run_all([work] * N_THREADS) == [True] * N_THREADS


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_lists_may_change_while_they_are_shortened(change: Callable[[list[Any], int], None]) -> None:
    messages = copy.deepcopy(long_session(30))
    done = threading.Event()
    slow = TokenCounter.from_callable(let_others_run)
    functions: list[Callable[[], Any]] = [
        functools.partial(fit_messages, messages, 2_000),
        functools.partial(fit_messages, messages, 3_000, counter=slow, store=Shelf()),
        functools.partial(keep_last, messages, 3, store=Shelf()),
        functools.partial(remove, messages, ["c5", "c7"]),
    ]

    def write() -> None:
        until, step = time.monotonic() + 0.3, 0
        while time.monotonic() < until:
            change(messages, step)
            step += 1
        done.set()

    def read() -> str | None:
        while not done.is_set():
            for function in functions:
                answer = outcome(function)
                if not isinstance(answer, ANSWERS):
                    return f"{answer!r} came out"
        return None

    assert run_all([write, read, read, read]) == [None] * 4


def answer_in_a_child(messages: list[Any], queue: Any) -> None:
    fitted = fit_messages(messages, 3_000)
    queue.put((fitted.messages, fitted.report.as_dict(), keep_last(messages, 3).messages))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_forked_processes_agree() -> None:
    messages = long_session(40)
    expected = fit_messages(messages, 3_000)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=answer_in_a_child, args=(messages, queue))
    child.start()
    got, report, kept = queue.get()
    child.join(30)
    assert child.exitcode == 0
    assert (got, report) == (expected.messages, expected.report.as_dict())
    assert kept == keep_last(messages, 3).messages


def test_nothing_is_held_or_lost() -> None:
    """Reference counts are what they were, also after errors; memory does not grow."""
    messages = [*long_session(60), *turns_in_blocks(40)]
    parts = [messages, messages[0], messages[-1], TEXT, messages[1].get("tool_calls"), messages[5]["content"]]

    def use() -> None:
        fit_messages(messages, 3_000, counter=COUNTER, store=Shelf())
        failing: Any
        for failing in (lambda: fit_messages(messages, 1), lambda: API.fit_messages(messages, 800, store=5)):
            with contextlib.suppress(CannotFitError, TypeError):
                failing()
        keep_last(messages, 3)
        remove(messages, ["c5"])

    use()
    gc.collect()
    before = [sys.getrefcount(part) for part in parts]
    tracemalloc.start()
    use()
    gc.collect()
    first = tracemalloc.get_traced_memory()[0]
    for _ in range(10):
        use()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - first
    tracemalloc.stop()
    assert [sys.getrefcount(part) for part in parts] == before
    assert grown < 20_000


# -------------------------------------------------------------------------------------------------- what is said of it


def test_a_message_that_was_written_as_one_with_another_has_changed() -> None:
    """Anthropic's form: the first message is pinned and gets the next user's words."""
    messages: list[Message] = []
    for number in range(20):
        messages += [
            {"role": "user", "content": [{"type": "text", "text": f"question {number}"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "so " * 100}]},
        ]
    for package, counter in ((ctxfast, COUNTER), (reference, SLOW)):
        got: Any = package.fit_messages(messages, 1_000, form="anthropic", counter=counter)
        assert got.report.pinned == (0,)
        assert len(got.messages[0]["content"]) == 2
        assert got.report.earliest_changed_index == 0
        got = package.fit_messages(messages, 1_000, form="openai", counter=counter)
        assert got.messages[0] is messages[0]
        assert got.report.earliest_changed_index == 1


class Role(str, enum.Enum):
    """As SDKs have it."""

    USER = "user"


class Odd(str):
    """A text whose own methods raise."""

    __slots__ = ()

    def __str__(self) -> str:
        raise HostileError

    __repr__ = __str__


@pytest.mark.parametrize("role", ["user", Role.USER, Odd("user")], ids=["text", "enum", "odd"])
def test_the_largest_is_named_by_its_role(role: Any) -> None:
    for message in ({"role": role, "content": TEXT}, SimpleNamespace(role=role, content=TEXT)):
        with pytest.raises(CannotFitError) as caught:
            API.fit_messages([message], 10, counter=COUNTER)
        assert caught.value.largest.startswith("messages[0] (user): ")


def test_forms_that_are_no_text() -> None:
    shorten: Any
    for shorten in (
        lambda **more: API.fit_messages([FINE], 300, **more),
        lambda **more: API.keep_last([FINE], 1, **more),
        lambda **more: API.remove([FINE], [], **more),
    ):
        for option in ("form", "provider"):
            with pytest.raises(TypeError, match="'int' object"):
                shorten(**{option: 5})


# ---------------------------------------------------------------------------------------------------- objects of SDKs


def openai_objects() -> list[Any]:
    """The usual loop: the message object of each response is appended, then dicts with the results."""
    objects: list[Any] = [{"role": "system", "content": "You are a coding agent."}]
    for number, body in enumerate([*OPENAI_MESSAGES.values()] * 5):
        objects += [user(f"Go on, please, {number}. " * 5), openai_message(body)]
        objects += [tool(call["id"], TEXT * 2) for call in body.get("tool_calls", ())]
        if "function_call" in body:
            objects.append({"role": "function", "name": "get_weather", "content": TEXT})
    return objects


def anthropic_objects() -> list[Any]:
    """Responses whole and their contents in dicts; users who speak beside results."""
    response = anthropic_response()
    outputs = [{"type": "tool_result", "tool_use_id": call_id, "content": TEXT} for call_id in ("toolu_1", "toolu_2")]
    said = {"type": "text", "text": "and fix the docs"}
    objects: list[Any] = []
    for _ in range(12):
        objects += [user("look it up"), response, {"role": "user", "content": outputs}]
        objects += [{"role": "assistant", "content": response.content}, {"role": "user", "content": [*outputs, said]}]
    return objects


@pytest.mark.parametrize("make", [openai_objects, anthropic_objects])
def test_objects_are_shortened_as_dicts_are(make: Callable[[], list[Any]]) -> None:
    objects = make()
    before = copy.deepcopy(objects)
    total = COUNTER.messages(repair(objects).messages)
    dicts: list[Any] = [plain(item) for item in objects]
    fits = 0
    for budget in range(200, total, total // 40):
        one, other = (
            outcome(functools.partial(API.fit_messages, items, budget, counter=COUNTER, policy=ONE_STEP, store=Shelf()))
            for items in (objects, dicts)
        )
        assert type(one) is type(other)
        if isinstance(one, CannotFitError):
            assert (one.needed, one.pinned) == (other.needed, other.pinned)
            continue
        fits += 1
        assert plain(one.messages) == plain(other.messages)
        for name in ("before", "after", "pinned", "earliest_changed_index"):
            assert getattr(one.report, name) == getattr(other.report, name)
        assert [part[:5] for part in one.report.dropped] == [part[:5] for part in other.report.dropped]
        assert validate(one.messages) == []
    assert fits > 10
    assert plain(keep_last(objects, 3).messages) == plain(keep_last(dicts, 3).messages)
    gone = ["call_1", "call_5", "toolu_2"]
    assert plain(remove(objects, gone).messages) == plain(remove(dicts, gone).messages)
    assert objects == before


def plain(item: Any) -> Any:
    """A message as dicts, without what was not sent."""
    if isinstance(item, dict):
        return {key: plain(value) for key, value in item.items() if value is not None}
    if isinstance(item, list):
        return [plain(value) for value in item]
    if not hasattr(item, "model_dump"):
        return item
    return item.model_dump(exclude_none=True)


# ------------------------------------------------------------------------------------------------------- real sessions


def has_same_content(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize("file", transcript_files())
def test_real_sessions(file: str, shared: Path) -> None:
    """Valid, within the budget, the task is there; each message is the same, edited, or in the report."""
    path = shared / "transcripts" / file
    lists = list(itertools.islice(sessions(path), 3))
    if path.parent.name == "claude-code":
        lists.append(raw_claude_code(path))
    for messages in lists:
        if len(messages) > 1_000:
            continue
        before = json.dumps(messages)
        mended = repair(messages).messages
        known = {id(message) for message in messages}
        total = COUNTER.messages(mended)
        for share in (0.1, 0.3, 0.6, 0.9):
            budget = max(1, int(total * share))
            try:
                fitted = fit_messages(messages, budget, counter=COUNTER)
            except CannotFitError as error:
                assert error.needed > budget  # noqa: PT017
                fitted = fit_messages(messages, error.needed, counter=COUNTER)
            report = fitted.report
            assert report.budget is not None
            assert report.after == COUNTER.messages(fitted.messages) <= report.budget
            codes = {problem.code for problem in validate(fitted.messages)}
            assert codes <= {problem.code for problem in validate(mended)} & {"no_user_message"}

            gone = {index for part in report.dropped for index in range(part.start, part.stop)}
            edited = {edit.index for edit in (*report.stubs, *report.clamped)}
            stay = [index for index in range(len(mended)) if index not in gone or index in report.pinned]
            assert not edited & gone
            changed = {index for index in report.pinned if results_of(mended[index])}
            if len(stay) == len(fitted.messages):  # no users' messages were joined
                for index, message in zip(stay, fitted.messages, strict=True):
                    if index in edited:
                        assert COUNTER.message(message) < COUNTER.message(mended[index])
                    elif index not in changed:
                        assert message is mended[index] or id(mended[index]) not in known
                        assert has_same_content(message, mended[index])
                assert report.earliest_changed_index == min(gone | edited, default=None)
                saved = sum(part.tokens for part in report.dropped)
                saved += sum(edit.before - edit.after for edit in (*report.stubs, *report.clamped))
                assert report.saved == saved
            else:
                assert len(fitted.messages) == len(stay) - 1
            users = [index for index, message in enumerate(mended) if has_user_text(message)]
            assert not users or users[-1] in stay
            again = fit_messages(fitted.messages, report.budget, counter=COUNTER)
            assert not again.report.changed
            assert all(one is other for one, other in zip(again.messages, fitted.messages, strict=True))
        assert json.dumps(messages) == before
