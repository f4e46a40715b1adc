"""The context budget: its arithmetic by hand and as laws, who says how large the window is, and what is an error."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxfast import (
    BudgetError,
    ContextBudget,
    Level,
    fresh_tail_budget,
    model_info,
    prune_tool_outputs,
)
from ctxfast.models import known_models

UNKNOWN = ContextBudget(None)

# ------------------------------------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("budget", "expected"),  # reserve, hard limit, margin, usable, fresh tail
    [
        (ContextBudget(200_000), (20_000, 180_000, 27_000, 153_000, 8_000)),
        (ContextBudget(8_192), (1_638, 6_554, 984, 5_570, 2_000)),
        (ContextBudget(3_000), (600, 2_400, 360, 2_040, 1_020)),  # half of usable
        (ContextBudget(200_000, 32_000), (32_000, 168_000, 25_200, 142_800, 8_000)),
        (ContextBudget(262_144, 200_000), (200_000, 62_144, 9_322, 52_822, 8_000)),
        (ContextBudget(65_536, 32_000), (32_000, 33_536, 5_031, 28_505, 7_126)),
        (ContextBudget(16_000, 4_096), (4_096, 11_904, 1_786, 10_118, 2_529)),
        (ContextBudget(400_000, None, 272_000), (20_000, 272_000, 40_800, 231_200, 8_000)),
        # input and output together have to fit the window, too
        (ContextBudget(400_000, 200_000, 272_000), (200_000, 200_000, 30_000, 170_000, 8_000)),
        # the output does not count against an input limit as large as the window
        (ContextBudget(1_048_576, 65_536, 1_048_576), (65_536, 1_048_576, 157_287, 891_289, 8_000)),
        (ContextBudget(None, None, 100_000), (None, 100_000, 15_000, 85_000, 8_000)),
        (ContextBudget(100_000, 20_000, None, 0), (20_000, 80_000, 0, 80_000, 8_000)),
        (ContextBudget(1_000, 900, None, 0.1), (900, 100, 10, 90, 45)),
        (ContextBudget(204_800, soft_limit=60_000), (20_000, 184_800, 124_800, 60_000, 8_000)),
        (ContextBudget(204_800, soft_limit=184_800), (20_000, 184_800, 0, 184_800, 8_000)),
    ],
    ids=repr,
)
def test_arithmetic(budget: ContextBudget, expected: tuple[int | None, ...]) -> None:
    assert (budget.reserve, budget.hard, budget.margin, budget.usable, budget.fresh_tail) == expected
    assert budget.known
    assert budget.source == "caller"


@pytest.mark.parametrize("unknown", [UNKNOWN, ContextBudget(0), ContextBudget(0, 32_000, 0)], ids=repr)
def test_an_unknown_window_decides_nothing(unknown: ContextBudget) -> None:
    assert (unknown.known, unknown.source) == (False, "unknown")
    assert (unknown.context_window, unknown.hard, unknown.usable, unknown.margin) == (None, None, None, None)
    assert not any(unknown.is_over(used) for used in (0, 50_000, 10**11))
    assert {unknown.level(used) for used in (0, 50_000, 10**11)} == {Level.NORMAL}
    assert unknown.room(50_000) is None
    assert unknown.starts_at(Level.PRUNE) is None
    assert unknown.fresh_tail == 2_000
    assert prune_tool_outputs([], budget=unknown.usable).messages == []  # what takes a budget takes `None`
    assert ContextBudget(0) == UNKNOWN
    assert hash(ContextBudget(0)) == hash(UNKNOWN)


def test_a_soft_limit_of_the_caller_holds_in_an_unknown_window() -> None:
    budget = ContextBudget(None, soft_limit=50_000)
    assert (budget.known, budget.source, budget.hard, budget.margin) == (False, "unknown", None, None)
    assert (budget.usable, budget.fresh_tail, budget.room(49_000)) == (50_000, 8_000, 1_000)
    assert budget.is_over(50_001)
    assert not budget.is_over(50_000)
    assert budget.level(10**9) == Level.NORMAL


def test_the_reserve_is_assumed_or_given() -> None:
    assert [ContextBudget(window).reserve for window in (20, 99_999, 100_000, 2_000_000)] == [4, 19_999, 20_000, 20_000]
    assert ContextBudget(None, 5).reserve == 5
    assert UNKNOWN.reserve is None


def test_equality_fits() -> None:
    budget = ContextBudget(200_000)
    assert not budget.is_over(153_000)
    assert budget.is_over(153_001)
    assert budget.is_over(153_000.5)
    assert (budget.room(0), budget.room(153_000), budget.room(152_999.5), budget.room(10**9)) == (153_000, 0, 0, 0)


# ------------------------------------------------------------------------------------------------- levels


def test_levels_begin_at_their_share_of_the_hard_limit() -> None:
    budget = ContextBudget(1_000, input_limit=1_000)
    found = [budget.level(used).name for used in (0, 599, 600, 749, 750, 849, 850, 949, 950, 1_000, 1_001, 10**12)]
    assert found == ["NORMAL"] * 2 + ["PRUNE"] * 2 + ["SUMMARIZE"] * 2 + ["URGENT"] * 2 + ["EMERGENCY"] * 4
    assert [budget.starts_at(level) for level in Level] == [0, 600, 750, 850, 950]
    assert budget.usable == budget.starts_at(Level.URGENT)  # where the default margin begins


def test_levels_are_in_order_and_show_their_names() -> None:
    assert list(Level) == sorted(Level)
    assert Level.NORMAL < Level.PRUNE < Level.SUMMARIZE < Level.URGENT < Level.EMERGENCY
    assert [level.percent for level in Level] == [0, 60, 75, 85, 95]
    assert (str(Level.URGENT), f"{Level.PRUNE:>6}", repr(Level.NORMAL)) == ("URGENT", " PRUNE", "<Level.NORMAL: 0>")
    assert pickle.loads(pickle.dumps(Level.URGENT)) is Level.URGENT
    assert json.dumps(Level.EMERGENCY) == "4"


def test_every_level_can_be_reached_in_the_smallest_budget() -> None:
    for hard in range(10, 300):
        budget = ContextBudget(None, input_limit=hard)
        assert {budget.level(used) for used in range(hard + 1)} == set(Level)


# ------------------------------------------------------------------------------------ who says how large it is


def test_for_model() -> None:
    claude = ContextBudget.for_model("openrouter/anthropic/claude-sonnet-4.5")
    assert (claude.context_window, claude.hard, claude.usable, claude.source) == (200_000, 180_000, 153_000, "table")
    assert ContextBudget.for_model(model_info("claude-sonnet-4-5")) == claude
    gpt = ContextBudget.for_model("gpt-5", max_output_tokens=100_000, safety_margin=0.1)
    assert (gpt.reserve, gpt.input_limit, gpt.hard, gpt.usable) == (100_000, 272_000, 272_000, 244_800)
    gemini = ContextBudget.for_model("gemini-2.5-pro", soft_limit=200_000)
    assert (gemini.hard, gemini.usable) == (1_048_576, 200_000)


@pytest.mark.parametrize("name", known_models())
def test_every_model_of_the_table_has_a_budget(name: str) -> None:
    budget = ContextBudget.for_model(name)
    assert budget.known
    assert budget.source == "table"
    assert budget.usable is not None
    assert budget.usable > 2_000


def test_a_model_that_is_not_in_the_table_is_unknown() -> None:
    budget = ContextBudget.for_model("someone/new-model-9", max_output_tokens=1_000)
    assert (budget.known, budget.source, budget.context_window) == (False, "unknown", None)
    assert ContextBudget.for_model("someone/new-model-9", context_window=32_768).source == "caller"
    assert ContextBudget.for_model("someone/new-model-9", input_limit=32_768).source == "caller"
    with pytest.raises(ValueError, match="model: expected a name"):
        ContextBudget.for_model("  ")
    with pytest.raises(TypeError, match="model: expected a name"):
        ContextBudget.for_model(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "window", "input_limit", "hard"),
    [
        ("claude-opus-4-7", 32_768, None, 32_768 - 6_553),  # the table has 1,000,000
        ("claude-sonnet-4-5", 1_000_000, None, 980_000),  # the table has 200,000: the caller may widen it
        ("gpt-5", 300_000, 272_000, 272_000),  # its own limit of the input still makes sense
        ("gpt-5", 200_000, None, 180_000),  # no longer
        ("gpt-5", 800_000, None, 780_000),  # a window that the table knows nothing of
        ("gemini-2.5-pro", 500_000, None, 480_000),
        ("gpt-5", 400_000, 272_000, 272_000),  # what the table has, too
    ],
)
def test_the_caller_comes_before_the_table(model: str, window: int, input_limit: int | None, hard: int) -> None:
    budget = ContextBudget.for_model(model, context_window=window)
    assert (budget.context_window, budget.input_limit, budget.hard) == (window, input_limit, hard)
    assert budget.source == "caller"


def test_a_window_in_the_model_info_or_the_name_is_the_callers() -> None:
    own = ContextBudget.for_model(replace(model_info("gpt-5"), context_window=200_000))
    assert (own.context_window, own.input_limit, own.hard, own.source) == (200_000, None, 180_000, "caller")
    named = ContextBudget.for_model("our-own[64k]")
    assert (named.context_window, named.source) == (64_000, "caller")
    assert ContextBudget.for_model("claude-sonnet-4-5[1m]").source == "caller"
    assert ContextBudget.for_model(replace(model_info("gpt-5"), scale=1.1)).source == "table"
    assert ContextBudget.for_model("gpt-5", input_limit=100_000).hard == 100_000
    assert ContextBudget.for_model("gpt-5", context_window=0) == ContextBudget.for_model("gpt-5")


def test_what_the_provider_says_narrows_the_budget() -> None:
    table = ContextBudget.for_model("claude-opus-4-7", max_output_tokens=64_000)
    learned = table.learned(940_000)
    assert (learned.context_window, learned.hard, learned.source) == (940_000, 876_000, "learned")
    caller = ContextBudget(200_000)
    assert caller.learned(128_000) == ContextBudget(128_000, source="learned")
    assert UNKNOWN.learned(32_768) == ContextBudget(32_768, source="learned")
    assert learned.learned(900_000).context_window == 900_000


@pytest.mark.parametrize("window", [200_000, 1_000_000, 0, None])
def test_what_does_not_narrow_changes_nothing(window: int | None) -> None:
    for budget in (ContextBudget(200_000), ContextBudget(200_000, source="learned"), ContextBudget(None, 1, 200_000)):
        assert budget.learned(window) is budget


def test_learning_and_the_limit_of_the_input() -> None:
    gpt = ContextBudget.for_model("gpt-5")
    assert gpt.learned(300_000).hard == 272_000
    assert gpt.learned(250_000).hard == 230_000  # shared by input and output, so the reserve comes off
    gemini = ContextBudget.for_model("gemini-2.5-pro")
    assert gemini.learned(1_000_000).hard == 1_000_000  # the output still counts apart
    assert ContextBudget(None, input_limit=50_000).learned(40_000).hard == 40_000


def test_learning_and_the_other_settings() -> None:
    budget = ContextBudget(200_000, 8_192, soft_limit=100_000)
    assert budget.learned(128_000).usable == 100_000
    assert budget.learned(64_000) == ContextBudget(64_000, 8_192, source="learned")  # 100,000 are out of reach
    assert ContextBudget(200_000, safety_margin=0.3).learned(100_000).safety_margin == 0.3
    with pytest.raises(BudgetError, match="64,000 tokens leave nothing of a context window of 32,768"):
        ContextBudget(200_000, 64_000).learned(32_768)


# -------------------------------------------------------------------------------------------------- as a table


def test_the_table_shows_each_number_and_where_it_comes_from() -> None:
    assert str(ContextBudget.for_model("gpt-5", max_output_tokens=200_000)).splitlines() == [
        "context window  400,000  from the table of models",
        "output reserve  200,000  given",
        "input limit     272,000  of the provider, for the input alone",
        "hard limit      200,000  context window less output reserve",
        "safety margin    30,000  15 % of the hard limit",
        "usable          170,000  soft limit",
        "fresh tail        8,000  25 % of usable, at least 2,000, at most 8,000, never above half",
        "PRUNE           120,000  60 % of the hard limit",
        "SUMMARIZE       150,000  75 % of the hard limit",
        "URGENT          170,000  85 % of the hard limit",
        "EMERGENCY       190,000  95 % of the hard limit",
    ]
    assert str(UNKNOWN).splitlines() == [
        "context window  not known",
        "output reserve  not known  assumed: 20 % of the window, at most 20,000",
        "hard limit      not known  every level is NORMAL",
        "safety margin   not known  15 % of the hard limit",
        "usable          not known  soft limit",
        "fresh tail          2,000  the least",
    ]
    assert "assumed" in str(ContextBudget(200_000))
    assert "16,800  hard limit less usable" in str(ContextBudget(204_800, 128_000, soft_limit=60_000))
    assert "learned from the provider" in str(ContextBudget(200_000).learned(100_000))
    assert "hard limit      272,000  input limit" in str(ContextBudget.for_model("gpt-5"))


# ------------------------------------------------------------------------------------------------------ errors

NUMBERS: list[Callable[[Any], object]] = [
    lambda value: ContextBudget(value),
    lambda value: ContextBudget(200_000, value),
    lambda value: ContextBudget(200_000, None, value),
    lambda value: ContextBudget(200_000, soft_limit=value),
    lambda value: ContextBudget(200_000).learned(value),
    lambda value: ContextBudget.for_model("gpt-5", context_window=value),
    lambda value: ContextBudget.for_model("gpt-5", input_limit=value),
    lambda value: ContextBudget(200_000).is_over(value),
    lambda value: ContextBudget(200_000).room(value),
    lambda value: ContextBudget(200_000).level(value),
    lambda value: UNKNOWN.is_over(value),
    lambda value: UNKNOWN.level(value),
]
FIELDS = ["context_window", "max_output_tokens", "input_limit", "soft_limit", "window", "context_window", "input_limit"]
FIELDS += ["used"] * 5


@pytest.mark.parametrize("wrong", [-1, -0.5, math.nan, math.inf, -math.inf, True, False], ids=repr)
@pytest.mark.parametrize(("call", "name"), list(zip(NUMBERS, FIELDS, strict=True)))
def test_what_is_no_number_of_tokens(call: Callable[[Any], object], name: str, wrong: object) -> None:
    with pytest.raises(BudgetError, match=rf"^{name}: expected .*, got {wrong!r}$"):
        call(wrong)


@pytest.mark.parametrize("wrong", ["200000", [1], 1j], ids=repr)
@pytest.mark.parametrize(("call", "name"), list(zip(NUMBERS, FIELDS, strict=True)))
def test_what_is_no_number_at_all(call: Callable[[Any], object], name: str, wrong: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: expected .*, got `{type(wrong).__name__}`$"):
        call(wrong)


@pytest.mark.parametrize("number", [200_000.0, 2 * 10**5], ids=repr)
def test_numbers_of_other_types(number: float) -> None:
    class Number:
        def __index__(self) -> int:
            return 200_000

    expected = ContextBudget(200_000)
    for value in (number, Number()):
        budget = ContextBudget(value)  # type: ignore[arg-type]
        assert budget == expected
        assert type(budget.context_window) is int
        assert expected.is_over(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_output_tokens": 0}, "max_output_tokens: expected a number of tokens, 1 to 1e12, got 0"),
        ({"soft_limit": 0}, "soft_limit: expected a number of tokens, 1 to 1e12, got 0"),
        ({"context_window": 10**13}, "context_window: expected a number of tokens, 0 to 1e12, got 10000000000000"),
        ({"context_window": 0.5}, "context_window: expected a whole number of tokens, 0 or more, got 0.5"),
        ({"safety_margin": 1}, "safety_margin: expected a share, 0 or more and below 1, got 1"),
        ({"safety_margin": -0.1}, "safety_margin: expected a share, 0 or more and below 1, got -0.1"),
        ({"safety_margin": math.nan}, "safety_margin: expected a share, 0 or more and below 1, got nan"),
        ({"safety_margin": True}, "safety_margin: expected a share, 0 or more and below 1, got True"),
        ({"source": "me"}, "source: expected caller, learned, table, unknown, got 'me'"),
        # settings that can never be reached
        (
            {"context_window": 8_192, "max_output_tokens": 8_192},
            "max_output_tokens: 8,192 tokens leave nothing of a context window of 8,192",
        ),
        (
            {"context_window": 8_192, "max_output_tokens": 32_000},
            "max_output_tokens: 32,000 tokens leave nothing of a context window of 8,192",
        ),
        (
            {"input_limit": 272_000},
            "input_limit: 272,000 tokens can never be reached in a context window of 200,000",
        ),
        (
            {"context_window": 204_800, "max_output_tokens": 128_000, "soft_limit": 163_840},
            "soft_limit: 163,840 tokens can never be reached below a hard limit of 76,800 tokens "
            "(context window 204,800 less output reserve 128,000)",
        ),
        (
            {"input_limit": 200_000, "soft_limit": 200_001},
            "soft_limit: 200,001 tokens can never be reached below a hard limit of 200,000 tokens (input limit)",
        ),
        (
            {"soft_limit": 100_000, "safety_margin": 0.2},
            "soft_limit: 100,000 tokens stand instead of a safety margin: expected no safety_margin beside it, got 0.2",
        ),
        (
            {"context_window": 100, "safety_margin": 0.999},
            "safety_margin: 0.999 leaves nothing usable of a hard limit of 80 tokens "
            "(context window 100 less output reserve 20)",
        ),
        (
            {"context_window": 8},
            "context_window: some levels can never be reached in a hard limit of 7 tokens "
            "(context window 8 less output reserve 1), which is less than 10",
        ),
        (
            {"input_limit": 9},
            "input_limit: some levels can never be reached in a hard limit of 9 tokens (input limit), "
            "which is less than 10",
        ),
    ],
)
def test_settings_that_cannot_be_meant(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        ContextBudget(**{"context_window": 200_000, **arguments})
    assert str(caught.value) == message


def test_a_margin_is_a_number() -> None:
    with pytest.raises(TypeError, match="safety_margin: expected a share, got `str`"):
        ContextBudget(200_000, safety_margin="15%")  # type: ignore[arg-type]
    assert ContextBudget(200_000, safety_margin=0) == ContextBudget(200_000, safety_margin=0.0)


# ------------------------------------------------------------------------------------------------ as plain data

TOKENS = st.integers(10, 3_000_000)
MAYBE = st.none() | TOKENS


@st.composite
def budgets(draw: st.DrawFn) -> ContextBudget:
    """Any budget that can be constructed."""
    margin = draw(st.just(0.15) | st.floats(0, 0.99))
    try:
        return ContextBudget(
            draw(st.none() | st.just(0) | TOKENS),
            draw(MAYBE),
            draw(MAYBE),
            margin,
            soft_limit=draw(MAYBE) if margin == 0.15 else None,
            source=draw(st.sampled_from(["caller", "learned", "table", "unknown"])),
        )
    except BudgetError:
        assume(False)
        raise


@given(budgets())
def test_round_trips(budget: ContextBudget) -> None:
    for same in (
        ContextBudget.from_dict(budget.to_dict()),
        ContextBudget.from_dict(json.loads(json.dumps(budget.to_dict()))),
        pickle.loads(pickle.dumps(budget)),
        copy.deepcopy(budget),
        replace(budget),
        eval(repr(budget)),
    ):
        assert same == budget
        assert hash(same) == hash(budget)
        assert str(same) == str(budget)


def test_it_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ContextBudget(1_000).context_window = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "unknown or missing: extra"),
        ({"soft_limit": ...}, "unknown or missing: soft_limit"),
        ({"version": 2}, "version: expected 1, got 2"),
        ({"version": True}, "version: expected 1, got True"),
        ({"context_window": "1"}, "context_window"),
        ({"safety_margin": None}, "safety_margin"),
        ({"source": None}, "source"),
    ],
)
def test_what_is_no_budget_is_an_error(change: dict[str, Any], message: str) -> None:
    data = {key: value for key, value in (ContextBudget(1_000).to_dict() | change).items() if value is not ...}
    with pytest.raises((TypeError, ValueError), match=message):
        ContextBudget.from_dict(data)
    with pytest.raises(TypeError, match="expected a dict, got list"):
        ContextBudget.from_dict([])  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------- laws


@given(budgets())
def test_the_limits_are_nested(budget: ContextBudget) -> None:
    assert budget.known == (budget.hard is not None) == (budget.source != "unknown")
    if budget.usable is not None:
        assert 1 <= budget.fresh_tail <= max(1, budget.usable // 2)
        assert budget.fresh_tail == fresh_tail_budget(budget.usable)
    if budget.hard is not None:
        assert budget.usable is not None
        assert 1 <= budget.usable <= budget.hard
        assert budget.margin == budget.hard - budget.usable
        assert budget.hard <= (budget.context_window or math.inf)
        assert budget.hard <= (budget.input_limit or math.inf)
        if budget.context_window != budget.input_limit and budget.context_window is not None:
            assert budget.hard + (budget.reserve or 0) <= budget.context_window


@given(budgets(), st.lists(st.integers(0, 4_000_000), min_size=2))
def test_levels_rise_with_what_is_used(budget: ContextBudget, used: list[int]) -> None:
    used.sort()
    levels = [budget.level(tokens) for tokens in used]
    assert levels == sorted(levels)
    over = [budget.is_over(tokens) for tokens in used]
    assert over == sorted(over)
    for less, more in pairwise(used):
        assert (budget.room(less) or 0) >= (budget.room(more) or 0)
    for tokens in used:
        assert (budget.room(tokens) == 0) == (budget.is_over(tokens) or tokens == budget.usable)
        for level in Level:
            begin = budget.starts_at(level)
            assert begin is None or (tokens >= begin) == (budget.level(tokens) >= level)


@given(budgets())
def test_every_level_begins_within_the_hard_limit(budget: ContextBudget) -> None:
    begins = [budget.starts_at(level) for level in Level]
    if budget.hard is not None:
        numbers = [begin for begin in begins if begin is not None]
        assert len(set(numbers)) == len(Level)
        assert numbers == sorted(numbers)
        assert numbers[-1] <= budget.hard
        assert [budget.level(begin) for begin in numbers] == list(Level)


@given(budgets(), st.integers(0, 4_000_000))
def test_learning_only_narrows(budget: ContextBudget, window: int) -> None:
    too_small = 13 if budget.max_output_tokens is None else budget.max_output_tokens + 10
    if 0 < window < too_small or budget.safety_margin > 0.9:  # an error, unless it changes nothing
        assume(budget.hard is not None and window >= (budget.context_window or budget.input_limit or 0))
    learned = budget.learned(window)
    assert learned is budget or learned.source == "learned"
    assert learned.learned(window) is learned
    if budget.hard is not None:
        assert learned.hard is not None
        assert learned.hard <= budget.hard
    if window:
        assert learned.hard is not None
        assert learned.hard <= window
