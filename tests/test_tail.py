"""The fresh tail rule by rule, on lists small enough to add up by eye, in core and reference alike.

Sizes are in characters, which the counter here takes for tokens: `U=10` is a user message of 10 tokens (see
`talk` in `cases.py`). Every tail is also checked for what must be true of all tails.
"""

from __future__ import annotations

import copy
import math
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cases import by_length, check_tail, counters, talk, two_and_a_half

import ctxfast
from ctxfast import BudgetError, EstimatorConfig, MessageTypeError, MessageValueError


def select(package: ModuleType, messages: list[Any], budget: int, **options: Any) -> Any:
    before = copy.deepcopy(messages)
    tail = package.select_fresh_tail(messages, budget, counter=by_length(package), **options)
    assert messages == before
    check_tail(messages, tail)
    return tail


def test_the_check_of_all_tails_sees_what_is_wrong() -> None:
    messages = talk("S U A[a] T[a] A U2 A2")

    def check(start: int, kept: list[Any], pinned: tuple[int, ...] = (), tokens: int = 0) -> None:
        tail = SimpleNamespace(start=start, pinned=pinned, messages=kept, tokens=tokens)
        check_tail(messages, tail, total=0)

    check(5, [messages[0], *messages[5:]])
    wrong: list[tuple[Any, ...]] = [
        (5, messages[5:]),  # without the system message
        (6, [messages[0], *messages[6:]]),  # without the task
        (3, [messages[0], *messages[3:]]),  # a result without its call
        (5, [messages[0], *messages[5:6]]),  # without the newest message
        (5, [messages[0], messages[6], messages[5]]),  # out of order
        (5, copy.deepcopy([messages[0], *messages[5:]])),  # copies
        (5, [messages[0], messages[1], *messages[5:]]),  # a message that is not said to be pinned
        (5, [messages[0], messages[4], *messages[5:]], (4,)),  # what is pinned is no user message
        (5, [messages[0], *messages[5:]], (), 1),  # miscounted
    ]
    for arguments in wrong:
        with pytest.raises(AssertionError):
            check(*arguments)


# ----------------------------------------------------------------------------------------------- what is kept


def test_everything_fits(package: ModuleType) -> None:
    messages = talk("U=10 A=10 U2=10 A2=10")
    tail = select(package, messages, budget=40)
    assert (tail.start, tail.pinned, tail.tokens, tail.turns) == (0, (), 40, 2)
    assert not tail.split_turn
    assert not tail.over_budget
    assert tail.messages == messages
    assert tail.messages is not messages  # always a new list, of the same objects


def test_an_empty_list(package: ModuleType) -> None:
    tail = select(package, [], budget=10)
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.messages) == (0, (), 0, 0, [])
    assert not tail.over_budget


def test_whole_turns(package: ModuleType) -> None:
    messages = talk("U=10 A=10 U2=10 A2=10 U3=10 A3=10")
    assert select(package, messages, budget=59).start == 2
    tail = select(package, messages, budget=40)
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (2, (), 40, 2, False)
    # 39 do not hold U2 and all that follows; A2 alone would need U2 in front of it.
    assert select(package, messages, budget=39).start == 4


def test_the_newest_atom_is_always_kept(package: ModuleType) -> None:
    """A step is kept whole, whatever it costs, and so is a user message."""
    messages = talk("U=10 A=10 U2=10 A[a,b]=5 T[a]=1000 T[b]=5")
    tail = select(package, messages, budget=20)
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (3, (2,), 1_020, True)
    tail = select(package, talk("U=10 A=10 U2=1000"), budget=20)
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (2, (), 1_000, True)


def test_over_budget_means_above_it(package: ModuleType) -> None:
    assert not select(package, talk("U=20 A=10"), budget=30).over_budget
    assert select(package, talk("U=20 A=10"), budget=29).over_budget


def test_steps_are_kept_or_dropped_whole(package: ModuleType) -> None:
    messages = talk("U=10 A[a]=10 T[a]=10 A[b,c]=10 T[b]=10 T[c]=10 A=10")
    for budget, start in ((20, 6), (49, 6), (50, 3), (69, 3), (70, 0)):
        assert select(package, messages, budget).start == start, budget


def test_calls_that_are_still_running_are_the_newest_atom(package: ModuleType) -> None:
    messages = talk("U=10 A[a]=10 T[a]=10 A[b,c]=10 T[c]=10")
    tail = select(package, messages, budget=1)
    assert (tail.start, tail.pinned) == (3, (0,))


# --------------------------------------------------------------------------------------------- what is pinned


def test_the_head_of_a_split_turn(package: ModuleType) -> None:
    """A tail that begins inside a turn takes the user message along that opened the turn."""
    messages = talk("U=10 A=10 U2=10 A[a]=10 T[a]=10 A[b]=10 T[b]=10")
    tail = select(package, messages, budget=30)
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (5, (2,), 30, 1, True)
    assert tail.messages == [messages[2], *messages[5:]]
    tail = select(package, messages, budget=50)  # the head is part of the tail now: nothing to pin
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (2, (), 50, 1, False)


def test_a_head_that_does_not_fit(package: ModuleType) -> None:
    """The tail starts at the next turn then, though steps of the older one would fit."""
    messages = talk("U=1000 A=10 A2=10 U2=10 A3=10")
    tail = select(package, messages, budget=500)
    assert (tail.start, tail.pinned, tail.tokens, tail.split_turn) == (3, (), 20, False)


def test_the_task(package: ModuleType) -> None:
    """The newest real user message is kept even if it is more than the budget: it is what the user wants."""
    messages = talk("U=10 A=10 U2=1000 A[a]=10 T[a]=10")
    tail = select(package, messages, budget=100)
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (3, (2,), 1_020, True)


def test_a_task_inside_a_step(package: ModuleType) -> None:
    """What the user said while a tool ran is the task; the head that opened the turn is pinned beside it."""
    messages = talk("U=10 A[a]=10 U2=10 T[a]=10 A[b]=10 T[b]=10")
    tail = select(package, messages, budget=40)
    assert (tail.start, tail.pinned, tail.tokens) == (4, (0, 2), 40)
    assert tail.messages == [messages[0], messages[2], *messages[4:]]
    tail = select(package, messages, budget=39)  # no room for both: the task it is
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (4, (2,), 30, False)


def test_text_beside_results(package: ModuleType) -> None:
    """Of a pinned Anthropic message with results and text the results are left out: their call is gone."""
    image = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}}
    messages = talk("U A[a] U[a] A[b] T[b]", form="anthropic")
    messages[2]["content"].append(image)
    messages[2]["cache_control"] = {"type": "ephemeral"}
    result, text, _ = messages[2]["content"]

    tail = select(package, messages, budget=275)  # A[b]{} 6, T[b] 4, U 1, U[a] 4 and 256 for the image
    assert (tail.start, tail.pinned, tail.tokens) == (3, (0, 2), 271)
    rest = tail.messages[1]
    assert rest == {"role": "user", "content": [text, image], "cache_control": {"type": "ephemeral"}}
    assert rest["content"][0] is text  # the same parts in a new message
    assert rest["content"][1] is image
    assert messages[2]["content"] == [result, text, image]

    whole = select(package, messages, budget=1_000)
    assert whole.start == 0
    assert whole.messages[2] is messages[2]


def test_no_user_message_at_all(package: ModuleType) -> None:
    tail = select(package, talk("A=10 A2=10 A3=10"), budget=20)
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (1, (), 20, 0, False)
    tail = select(package, talk("T[a]=10 A=10"), budget=10)
    assert (tail.start, tail.pinned) == (1, ())


# -------------------------------------------------------------------------------------------- system messages


def test_system_messages_stay_in_front(package: ModuleType) -> None:
    """They are no part of the tail's budget: the request has them anyway."""
    messages = [*talk("S=500"), {"role": "developer", "content": "D" * 500}, *talk("U=10 A=10 U2=10 A2=10")]
    tail = select(package, messages, budget=20)
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (4, (), 20, False)
    assert tail.messages == [*messages[:2], *messages[4:]]
    tail = select(package, messages, budget=40)
    assert (tail.start, tail.tokens, tail.messages) == (2, 40, messages)


def test_system_messages_in_the_middle_are_like_others(package: ModuleType) -> None:
    messages = talk("U=10 A=10 S=10 U2=10 A2=10")
    assert select(package, messages, budget=20).messages == messages[3:]
    assert select(package, messages, budget=30).messages == messages[2:]


def test_nothing_but_system_messages(package: ModuleType) -> None:
    tail = select(package, talk("S=10 S2=10"), budget=5)
    assert (tail.start, tail.tokens, tail.messages) == (2, 0, talk("S=10 S2=10"))


# ----------------------------------------------------------------------------------------- a minimum of turns


def test_min_turns_reach_beyond_the_budget(package: ModuleType) -> None:
    """Up to the start of the n-th newest turn the limit is `max_tokens`."""
    messages = talk("U=10 A=10 U2=10 A2=100 U3=10 A3=10")
    assert select(package, messages, budget=50).start == 4
    tail = select(package, messages, budget=50, max_tokens=200)
    assert (tail.start, tail.tokens, tail.turns) == (2, 130, 2)
    assert not tail.over_budget  # it is within the limit that counts for two turns
    assert select(package, messages, budget=50, min_turns=1, max_tokens=200).start == 4
    assert select(package, messages, budget=50, min_turns=3, max_tokens=200).start == 0
    assert select(package, messages, budget=50, min_turns=0, max_tokens=200).start == 4


def test_max_tokens_bounds_them(package: ModuleType) -> None:
    messages = talk("U=10 A=10 U2=10 A2=100 U3=10 A3=10")
    assert select(package, messages, budget=50, max_tokens=129).start == 4  # A2 would need U2: 130
    assert select(package, messages, budget=50, max_tokens=130).start == 2
    assert select(package, messages, budget=50, min_turns=9, max_tokens=130).start == 2


def test_a_turn_that_is_split_counts(package: ModuleType) -> None:
    messages = talk("U=10 A=100 A2=10 U2=10 A3=10")
    tail = select(package, messages, budget=25, max_tokens=60)  # 20, then A2 with its head: 40
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (2, (0,), 40, 2, True)


# ---------------------------------------------------------------------------------------- counters, arguments


def test_other_counters(package: ModuleType) -> None:
    """Budgets are in the tokens of the counter: 40 characters and 12 for the frame here."""
    messages = talk("U=40 A=40 U2=40 A2=40")
    flat = counters(package).flat(EstimatorConfig())  # 52 / 4 = 13 for each message
    tail = package.select_fresh_tail(messages, 26, counter=flat)
    assert (tail.start, tail.tokens) == (2, 26)
    tail = package.select_fresh_tail(messages, 26, counter=two_and_a_half(package))  # 52 / 2.5 = 20.8: 21
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (3, (2,), 42, True)
    tail = package.select_fresh_tail(messages, 33)  # the default counter: 16 for each message, and 3 % of both
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (2, (), 33, False)
    assert package.select_fresh_tail(messages, 32).over_budget
    assert package.select_fresh_tail(messages).messages == messages  # 8,000 without a budget


def test_the_budget_of_a_tail(package: ModuleType) -> None:
    """25 % of the usable context, 2,000 to 8,000, and never above half of it."""
    expected = {
        1: 1,
        2: 1,
        3: 1,
        1_000: 500,
        3_999: 1_999,
        4_000: 2_000,
        8_000: 2_000,
        8_004: 2_001,
        16_000: 4_000,
        32_000: 8_000,
        1_000_000: 8_000,
    }
    for usable, budget in expected.items():
        assert package.fresh_tail_budget(usable) == budget, usable
    assert package.fresh_tail_budget(16_000.9) == 4_000


@pytest.mark.parametrize("wrong", [0, -1, 0.5, math.nan, math.inf, -math.inf, True])
def test_a_budget_is_a_number_of_tokens(package: ModuleType, wrong: Any) -> None:
    with pytest.raises(BudgetError):
        package.select_fresh_tail(talk("U"), wrong)
    with pytest.raises(BudgetError):
        package.select_fresh_tail(talk("U"), 1, max_tokens=wrong)
    with pytest.raises(BudgetError):
        package.fresh_tail_budget(wrong)


def test_wrong_arguments(package: ModuleType) -> None:
    with pytest.raises(BudgetError):
        package.select_fresh_tail(talk("U"), 10, max_tokens=9)
    with pytest.raises(ValueError, match="min_turns"):
        package.select_fresh_tail(talk("U"), 10, min_turns=-1)
    with pytest.raises(MessageTypeError):
        package.select_fresh_tail("U", 10)


@pytest.mark.parametrize("wrong", [True, 1.5, "2", None])
def test_min_turns_is_a_whole_number(package: ModuleType, wrong: Any) -> None:
    with pytest.raises(TypeError):
        package.select_fresh_tail(talk("U"), 10, min_turns=wrong)


@pytest.mark.parametrize("wrong", ["10", [10], None])
def test_a_budget_is_a_number(package: ModuleType, wrong: Any) -> None:
    with pytest.raises(TypeError):
        package.select_fresh_tail(talk("U"), wrong)


def test_the_result_is_frozen() -> None:
    tail = ctxfast.select_fresh_tail(talk("U A"))
    for name in ("start", "pinned", "tokens", "turns", "split_turn", "over_budget", "messages"):
        with pytest.raises(AttributeError):
            setattr(tail, name, None)
    assert repr(tail).startswith("FreshTail(start=0, pinned=(), tokens=")
    assert "U" not in repr(tail).replace("FreshTail", "")  # no message's text


def test_old_messages_are_not_read() -> None:
    """The walk ends where the budget does: what lies before costs nothing, and is not even checked."""
    messages = [*talk("U=10 A=10"), {"no": "message"}, *talk("U=10 A=100 U=10 A=10")]
    assert select(ctxfast, messages, budget=20).start == 5
    with pytest.raises(MessageValueError):
        select(ctxfast, messages, budget=1_000)
