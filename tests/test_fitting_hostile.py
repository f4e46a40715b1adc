"""Bad input to `fit_messages`, `keep_last` and `remove`: a clear error, never a panic, a wrong answer or too much time.

The values and places are those of `test_hostile.py`; lists that change meanwhile are those of `test_threads.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from cases import Message, two_and_a_half
from test_complexity import grows_linearly

import ctxfast
from ctxfast import CannotFitError, ContextBudget, FitPolicy, PrunePolicy, TokenCounter, fit_messages, reference

API: Any = ctxfast  # called with what type checkers forbid
COUNTER = two_and_a_half(ctxfast)
SLOW = two_and_a_half(reference)
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
