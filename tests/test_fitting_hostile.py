"""Bad input to `fit_messages`, `keep_last` and `remove`: a clear error, never a panic, a wrong answer or too much time.

The values and places are those of `test_hostile.py`; lists that change meanwhile are those of `test_threads.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from cases import Message, two_and_a_half

import ctxfast
from ctxfast import CannotFitError, ContextBudget, TokenCounter, fit_messages, reference

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
