"""The size of the next prompt: exact where it can be, near where it is estimated, and not fooled by a wrong record."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import Message, by_length
from hypothesis import given
from hypothesis import strategies as st
from strategies import conversations

import ctxfast
from ctxfast import BudgetError, MessageTypeError, TokenCounter, Usage, UsageAnchor, UsageError
from ctxfast.logs import claude_code, read_source

LENGTH: TokenCounter = by_length(ctxfast)  # a token is a character


def user(*sizes: int) -> list[Message]:
    return [{"role": "user", "content": "x" * size} for size in sizes]


def anchored(*points: tuple[int, int], **options: Any) -> UsageAnchor:
    """After records that are believed: prompt and estimate."""
    anchor = UsageAnchor(LENGTH, **options)
    for prompt, estimate in points:
        assert anchor.observe(Usage(prompt), user(estimate))
    return anchor


def slope_after(spread: float, *increments: tuple[int, int]) -> float:
    """The mean of the slope by the formula: increments of the prompt and of the estimate."""
    weights = [1 / ((0.1 * estimate) ** 2 + 30**2) for _, estimate in increments]
    numerator = sum(weight * x * y for weight, (y, x) in zip(weights, increments, strict=True))
    denominator = sum(weight * x * x for weight, (_, x) in zip(weights, increments, strict=True))
    return (1 / spread**2 + numerator) / (1 / spread**2 + denominator)


# -------------------------------------------------------------------------------------------------- predictions


def test_without_a_record_it_is_the_estimate() -> None:
    messages = [{"role": "user", "content": "Fix the test, please."}]
    tools = [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}]
    counter = TokenCounter.default()
    anchor = UsageAnchor()
    assert anchor.predict(messages) == counter.messages(messages)
    assert anchor.predict(messages, tools=tools) == counter.messages(messages, tools)
    body = {"messages": messages, "system": "Be brief.", "tools": tools}
    assert anchor.predict(messages, system="Be brief.", tools=tools) == counter.request(body)
    assert anchor.predict(messages, system="Be brief.") > counter.messages(messages)
    assert UsageAnchor(LENGTH).predict([]) == 0


def test_the_same_list_again_is_what_was_counted() -> None:
    anchor = anchored((15_000, 100))
    assert anchor.predict(user(100)) == 15_000
    assert anchor.predict(user(60, 40, 7)) == 15_007


def test_growth_is_counted_from_the_last_record() -> None:
    anchor = anchored((15_000, 1_000), (17_000, 2_000))
    slope = slope_after(0.3, (2_000, 1_000))
    assert 1.8 < slope < 2
    assert anchor.slope() == pytest.approx(slope)
    assert anchor.predict(user(2_500)) == math.ceil(17_000 + slope * 500)


def test_a_list_that_shrank_is_counted_from_the_first_record() -> None:
    anchor = anchored((15_000, 1_000), (17_000, 2_000))
    slope = slope_after(0.3, (2_000, 1_000))
    assert anchor.predict(user(500)) == math.ceil(15_000 - slope * 1_000 + slope * 500)


def test_what_the_provider_counted_goes_before_the_estimate() -> None:
    """A log may hold what is not sent any more; after a compaction the estimate is the least."""
    anchor = anchored((700, 1_000))
    assert anchor.predict(user(1_000)) == 700
    assert anchor.predict(user(1_200)) == 900
    assert anchor.predict(user(900)) == 900


def test_rounded_up() -> None:
    anchor = anchored((15_000, 1_000), (16_100, 2_000))
    exact = 16_100 + anchor.slope() * 1
    assert exact != int(exact)
    assert anchor.predict(user(2_001)) == math.ceil(exact)


def test_predict_changes_nothing() -> None:
    anchor = anchored((15_000, 1_000))
    before = anchor.to_dict()
    anchor.predict(user(10), system="s", model="other")
    anchor.predict(user(5_000))
    assert anchor.to_dict() == before


# -------------------------------------------------------------------------------------------------------- slope


def test_slope_is_learned_from_increments_only() -> None:
    assert anchored((50_000, 1_000)).slope() == 1
    increments = ((1_300, 1_000), (150, 100), (2_500, 2_000))
    anchor = anchored((50_000, 1_000), (51_300, 2_000), (51_450, 2_100), (53_950, 4_100))
    assert anchor.slope() == pytest.approx(slope_after(0.3, *increments))
    fitted = anchored((50_000, 1_000), (51_300, 2_000), (51_450, 2_100), (53_950, 4_100), spread=0.06)
    assert fitted.slope() == pytest.approx(slope_after(0.06, *increments))
    assert 1 < fitted.slope() < anchor.slope()


def test_no_growth_teaches_nothing() -> None:
    assert anchored((50_000, 1_000), (50_900, 1_000), (45_000, 500)).slope() == 1


def test_one_increment_counts_at_most_fourfold() -> None:
    """A client that adds 9,000 tokens unseen says nothing about the slope."""
    anchor = anchored((50_000, 1_000), (59_000, 1_300))
    assert anchor.slope() == pytest.approx(slope_after(0.3, (1_200, 300)))
    assert anchored((50_000, 1_000), (40_000, 2_000)).slope() == pytest.approx(slope_after(0.3, (250, 1_000)))


def test_slope_is_kept_for_each_model() -> None:
    anchor = UsageAnchor(LENGTH)
    for prompt, estimate in ((15_000, 1_000), (17_000, 2_000)):
        assert anchor.observe(Usage(prompt), user(estimate), model="a")
    slope = anchor.slope("a")
    assert slope > 1.8
    assert anchor.slope("b") == anchor.slope() == 1
    assert anchor.observe(Usage(9_000), user(2_000), model="b")
    assert anchor.predict(user(2_100), model="b") == 9_100
    assert anchor.slope("a") == slope
    assert anchor.predict(user(1_000), model="a") == math.ceil(slope * 1_000)  # the record is gone, the slope is not


# -------------------------------------------------------------------------------------------------------- setup


@pytest.mark.parametrize("other", [{"system": "Be brief!"}, {"tools": [{"name": "b"}]}, {"model": "b"}])
def test_another_setup_begins_anew(other: dict[str, Any]) -> None:
    setup: dict[str, Any] = {"system": "Be brief.", "tools": [{"name": "a"}], "model": "a"}
    anchor = UsageAnchor(LENGTH)
    assert anchor.observe(Usage(15_000), user(100), **setup)
    assert anchor.predict(user(100), **setup) == 15_000
    estimate = UsageAnchor(LENGTH).predict(user(100), **(setup | other))
    assert anchor.predict(user(100), **(setup | other)) == estimate < 1_000
    assert anchor.predict(user(100), **setup) == 15_000  # only an observation drops it
    assert anchor.observe(Usage(9_000), user(100), **(setup | other))
    assert anchor.predict(user(100), **(setup | other)) == 9_000
    assert anchor.predict(user(100), **setup) < 1_000


def test_equal_setups_are_the_same() -> None:
    tools: list[Any] = [{"name": "a", "input_schema": {"type": "object", "properties": {}}}]
    reordered = [{"input_schema": {"properties": {}, "type": "object"}, "name": "a"}]
    anchor = UsageAnchor(LENGTH)
    assert anchor.observe(Usage(15_000), user(100), tools=tools)
    assert anchor.predict(user(100), tools=reordered) == 15_000
    assert anchor.predict(user(100), tools=tuple(tools)) == 15_000


class Tool(SimpleNamespace):
    def __repr__(self) -> str:
        return object.__repr__(self)  # with its address


def test_objects_are_compared_by_their_fields() -> None:
    numbers = itertools.count()

    def tool(name: str) -> list[Any]:
        return [Tool(name=name, description="d", input_schema={"type": "object"}, _private=next(numbers))]

    anchor = UsageAnchor(LENGTH)
    assert anchor.observe(Usage(15_000), user(100), tools=tool("a"))
    assert anchor.predict(user(100), tools=tool("a")) == 15_000
    assert anchor.predict(user(100), tools=tool("b")) < 1_000


def test_any_value_has_a_digest() -> None:
    from ctxfast.anchor import digest

    class Slots:
        __slots__ = ()

    cycle: list[Any] = []
    cycle.append(cycle)
    values: list[Any] = [None, "", "\ud800", b"\xff", {1: 2, "a": 3}, {(1, 2)}, Slots(), Slots, len, cycle, math.nan]
    assert len({digest(value, None) for value in values}) == len(values)
    assert digest(Slots(), None) == digest(Slots(), None)
    assert digest("a", None) != digest(None, "a")


# ------------------------------------------------------------------------------------------- what is not believed


@pytest.mark.parametrize("usage", [None, {}, Usage(), Usage(output_tokens=9), {"total_tokens": 5_000}])
def test_records_without_a_prompt_are_ignored(usage: Any) -> None:
    anchor = anchored((15_000, 1_000))
    before = anchor.to_dict()
    assert not anchor.observe(usage, user(2_000))
    assert not anchor.observe(usage, user(2_000), model="other")
    assert anchor.to_dict() == before


def test_all_that_usage_reads_is_read() -> None:
    anchor = UsageAnchor(LENGTH)
    assert anchor.observe({"usage": {"input_tokens": 12, "cache_read_input_tokens": 14_988}}, user(100))
    assert anchor.predict(user(100)) == 15_000
    with pytest.raises(UsageError):
        anchor.observe({"tokens_used": 3}, user(100))
    with pytest.raises(MessageTypeError):
        anchor.observe(Usage(3), [3])


@pytest.mark.parametrize(
    ("prompt", "estimate", "believed"),
    [
        # 40,000 + a quarter + 10,000
        (60_000, 1_000, True),
        (60_001, 1_000, False),
        # and four times the growth
        (64_000, 2_000, True),
        (64_001, 2_000, False),
        # half
        (20_000, 1_000, True),
        (19_999, 1_000, False),
        # shrunk: 40,000 - 1,000 + 500, a quarter, 10,000
        (59_375, 500, True),
        (59_376, 500, False),
        (1, 500, True),
    ],
)
def test_limits_after_a_record(prompt: int, estimate: int, believed: bool) -> None:
    anchor = anchored((40_000, 1_000))
    assert anchor.observe(Usage(prompt), user(estimate)) == believed


@pytest.mark.parametrize(
    ("prompt", "window", "believed"),
    [
        (104_000, None, True),
        (104_001, None, False),
        (104_001, 200_000, True),  # it fits
        (200_000, 200_000, True),
        (200_001, 200_000, False),
        (104_000, 90_000, True),
        (112_500, 90_000, False),
        (125_000, 100_000, False),
    ],
)
def test_limits_of_a_first_record(prompt: int, window: int | None, believed: bool) -> None:
    anchor = UsageAnchor(LENGTH, context_window=window)
    assert anchor.observe(Usage(prompt), user(1_000)) == believed


def test_a_reported_failure_cumulative_cache_reads() -> None:
    """Vector "cumulative-cache": 1.45 million in a window of 200,000, estimated at 91,000."""
    for window in (200_000, None):
        anchor = UsageAnchor(LENGTH, context_window=window)
        assert not anchor.observe(Usage(1_450_000), user(91_000))
        assert anchor.predict(user(91_000)) == 91_000


def test_beyond_the_window_nothing_is_believed() -> None:
    anchor = anchored((240_000, 230_000), context_window=200_000)
    assert anchor.observe(Usage(250_000), user(240_000))
    assert not anchor.observe(Usage(250_001), user(240_001))
    assert not anchor.observe(Usage(250_002), user(240_002))
    assert anchor.predict(user(240_000)) == 250_000
    assert not UsageAnchor(LENGTH).observe(Usage(10**400), user(1))


def test_one_wrong_record_changes_nothing() -> None:
    anchor = anchored((318_466, 200_000))
    assert not anchor.observe(Usage(1_364_156), user(207_000))
    assert anchor.predict(user(207_000)) == 325_466
    assert anchor.observe(Usage(335_000), user(214_000))
    assert anchor.predict(user(214_000)) == 335_000
    assert not anchor.observe(Usage(1_364_156), user(214_000))  # not the next one after the first of these


@pytest.mark.parametrize("direction", [1, -1])
def test_a_second_record_that_agrees_is_believed(direction: int) -> None:
    anchor = anchored((40_000, 1_000), (41_000, 2_000))
    slope = anchor.slope()
    suspect = 100_000 if direction > 0 else 12_000
    assert not anchor.observe(Usage(suspect), user(3_000))
    assert anchor.observe(Usage(suspect + 1_500), user(4_000))
    assert anchor.slope() == slope
    assert anchor.predict(user(4_000)) == suspect + 1_500
    shrunk = math.ceil(suspect + 1_500 - 500 * slope)  # from the newer one, which is first and last
    assert anchor.predict(user(3_500)) == shrunk


@pytest.mark.parametrize(("second", "believed"), [(110_000, True), (110_001, False), (92_000, True), (91_999, False)])
def test_how_near_it_must_be(second: int, believed: bool) -> None:
    """5 % of 100,000, and four times the growth of 1,000."""
    anchor = anchored((40_000, 1_000))
    assert not anchor.observe(Usage(100_000), user(1_000))
    assert anchor.observe(Usage(second), user(2_000)) == believed


def test_growth_counts_with_the_slope_and_shrinking_too() -> None:
    anchor = anchored((15_000, 1_000), (17_000, 2_000))
    assert not anchor.observe(Usage(100_000), user(2_000))
    assert anchor.observe(Usage(113_500), user(4_000))  # off by 9,700, and by 11,500 at a slope of 1
    anchor = anchored((40_000, 1_000))
    assert not anchor.observe(Usage(100_000), user(2_000))
    assert anchor.observe(Usage(93_500), user(1_500))


def test_a_short_list_beside_much_unseen() -> None:
    anchor = UsageAnchor(LENGTH)
    assert not anchor.observe(Usage(200_000), user(1_000))
    assert anchor.observe(Usage(201_500), user(1_000))


def test_two_wrong_records_that_differ() -> None:
    anchor = anchored((40_000, 1_000))
    assert not anchor.observe(Usage(100_000), user(2_000))
    assert not anchor.observe(Usage(180_000), user(3_000))
    assert anchor.observe(Usage(181_000), user(4_000))  # the newer one counts


@pytest.mark.parametrize("window", [None, 1_000_000])
def test_totals_of_all_requests_are_not_believed(window: int | None) -> None:
    anchor = anchored((318_000, 300_000), context_window=window)
    for number, prompt in enumerate((600_000, 1_000_000, 1_400_000), 1):
        assert not anchor.observe(Usage(prompt), user(300_000 + 7_000 * number))
    assert anchor.predict(user(321_000)) == 339_000


@pytest.mark.parametrize("first", [(318_000, 300_000), None])
def test_totals_are_not_believed_however_long_they_grow(first: tuple[int, int] | None) -> None:
    """Late in a session a total grows by less than 5 % a request."""
    anchor = anchored(first) if first else UsageAnchor(LENGTH)
    prompt, estimate, total = 318_000, 300_000, 2_000_000
    for _ in range(100):
        prompt, estimate = prompt + 700, estimate + 700
        total += prompt
        assert not anchor.observe(Usage(total), user(estimate))


def test_a_suspect_of_another_setup_confirms_nothing() -> None:
    anchor = UsageAnchor(LENGTH)
    assert not anchor.observe(Usage(200_000), user(1_000), model="a")
    assert not anchor.observe(Usage(200_000), user(1_000), model="b")
    assert anchor.observe(Usage(200_000), user(1_000), model="b")


# ------------------------------------------------------------------------------------------------------ plain data


def test_goes_on_after_json() -> None:
    anchor = anchored((40_000, 1_000), (41_500, 2_000), context_window=200_000, spread=0.1)
    assert not anchor.observe(Usage(100_000), user(2_100))
    data = json.loads(json.dumps(anchor.to_dict()))
    again = UsageAnchor.from_dict(data, LENGTH)
    assert again.to_dict() == anchor.to_dict()
    assert again.predict(user(2_500)) == anchor.predict(user(2_500))
    assert again.observe(Usage(100_100), user(2_200))  # it remembers what was not believed
    assert not again.observe(Usage(250_001), user(50_000))  # and the window
    assert UsageAnchor.from_dict(UsageAnchor().to_dict()).predict(user(10)) == UsageAnchor().predict(user(10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "unknown or missing: extra"),
        ({"spread": ...}, "unknown or missing: spread"),
        ({"version": 2}, "version"),
        ({"version": True}, "version"),
        ({"version": None}, "version"),
        ({"context_window": True}, "context_window"),
        ({"context_window": -1}, "context_window"),
        ({"context_window": 2.5}, "context_window"),
        ({"spread": math.nan}, "spread"),
        ({"spread": 0}, "spread"),
        ({"spread": "1"}, "spread"),
        ({"setup": "ab"}, "setup"),
        ({"setup": ["a"]}, "setup"),
        ({"setup": ["a", 3]}, "setup"),
        ({"setup": None}, "setup"),
        ({"first": None}, "first and last"),
        ({"last": None}, "first and last"),
        ({"first": [1]}, "first"),
        ({"first": [1, 2.0]}, "first"),
        ({"last": [True, 2]}, "last"),
        ({"last": [-1, 2]}, "last"),
        ({"suspect": [1, 10**30]}, "suspect"),
        ({"suspect": [10**30, 1]}, "suspect"),
        ({"suspect": {}}, "suspect"),
        ({"slopes": []}, "slopes"),
        ({"slopes": {3: [1.0, 1.0]}}, "slopes"),
        ({"slopes": {"m": [1.0]}}, "slopes.m"),
        ({"slopes": {"m": [1.0, True]}}, "slopes.m"),
        ({"slopes": {"m": [math.nan, 1.0]}}, "slopes.m"),
        ({"slopes": {"m": [1.0, math.inf]}}, "slopes.m"),
        ({"slopes": {"m": [1.0, 0.0]}}, "slopes.m"),
        ({"slopes": {"m": [-1.0, 1.0]}}, "slopes.m"),
        ({"slopes": {"m": [9.0, 1.0]}}, "slopes.m"),
    ],
)
def test_what_is_no_anchor_is_an_error(change: dict[str, Any], message: str) -> None:
    data = anchored((40_000, 1_000), (41_500, 2_000)).to_dict() | change
    data = {key: value for key, value in data.items() if value is not ...}
    with pytest.raises((TypeError, ValueError), match=message):
        UsageAnchor.from_dict(data)


def test_a_window_of_0_is_unknown() -> None:
    anchor = UsageAnchor(LENGTH, context_window=0)
    assert anchor.to_dict() == UsageAnchor(LENGTH).to_dict()
    assert anchor.observe(Usage(300_000), user(290_000))
    assert anchor.predict(user(290_000)) == 300_000


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="expected a dict, got list"):
        UsageAnchor.from_dict([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="counter: expected a TokenCounter, got builtin_function"):
        UsageAnchor(len)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="context_window"):
        UsageAnchor(context_window=-1)


def test_repr() -> None:
    assert repr(UsageAnchor()) == "<UsageAnchor: nothing observed, slope 1.00, TokenCounter.default()>"
    anchor = UsageAnchor()
    assert anchor.observe(Usage(15_012), user(10))
    assert repr(anchor) == "<UsageAnchor: last 15,012 tokens, slope 1.00, TokenCounter.default()>"


# ---------------------------------------------------------------------------------------------------- simulation


def errors(seed: int, slope: float, turns: int, unseen: bool = True) -> tuple[list[float], list[float], list[float]]:
    """Relative errors over 300 made-up sessions: of the next prompt, after dropping half of it, and by a plain ratio.

    The counter takes 4 characters for a token; the model `slope` times as many tokens, more or less of them by the kind
    of text, and 1,500 to 15,000 tokens that the counter does not see.
    """
    rng = random.Random(seed)
    counter = TokenCounter.from_callable(lambda text: -(-len(text) // 4))
    following: list[float] = []
    shrunk: list[float] = []
    ratio: list[float] = []
    for _ in range(300):
        hidden = rng.uniform(1_500, 15_000) if unseen else 0
        kinds = [rng.uniform(0.95, 1.05) for _ in range(4)]
        messages: list[Message] = []
        true: list[float] = []

        def add(messages: list[Message] = messages, true: list[float] = true, kinds: list[float] = kinds) -> None:
            for _ in range(rng.randint(1, 4)):
                messages.append({"role": "user", "content": "x" * rng.randint(200, 12_000)})
                true.append(4 + slope * rng.choice(kinds) * len(messages[-1]["content"]) / 4)

        anchor = UsageAnchor(counter)
        for _ in range(turns):
            add()
            prompt = round(hidden + sum(true))
            assert anchor.observe(Usage(prompt), messages)
            factor = prompt / counter.messages(messages)
        add()
        real = hidden + sum(true)
        following.append(abs(anchor.predict(messages) / real - 1))
        ratio.append(abs(factor * counter.messages(messages) / real - 1))
        half = sorted(rng.sample(range(len(messages)), (len(messages) + 1) // 2))
        real = hidden + sum(true[index] for index in half)
        shrunk.append(abs(anchor.predict([messages[index] for index in half]) / real - 1))
    return following, shrunk, ratio


@pytest.mark.parametrize(("slope", "turns", "limit"), [(1.0, 1, 0.01), (1.5, 3, 0.03), (1.5, 10, 0.01), (0.7, 3, 0.03)])
def test_made_up_sessions(slope: float, turns: int, limit: float) -> None:
    following, shrunk, ratio = (statistics.mean(found) for found in errors(7, slope, turns))
    assert following <= limit
    assert shrunk <= 0.05
    assert ratio > 2 * following


# ----------------------------------------------------------------------------------------------------- any input

observations = st.lists(st.tuples(st.integers(0, 10**6), conversations), max_size=5)


@given(observations, conversations, st.sampled_from([None, 1_000, 10**6]))
def test_any_conversation(seen: list[tuple[int, list[Any]]], messages: list[Any], window: int | None) -> None:
    anchor = UsageAnchor(context_window=window)
    for prompt, sent in seen:
        last, slope = anchor.to_dict()["last"], anchor.slope()
        believed = anchor.observe(Usage(prompt), sent)
        assert believed or (anchor.to_dict()["last"], anchor.slope()) == (last, slope)
        if believed:
            assert anchor.predict(sent) == prompt
    predicted = anchor.predict(messages)
    if anchor.to_dict()["last"] is None:
        assert predicted == math.ceil(anchor.slope() * ctxfast.count_tokens(messages))
    again = UsageAnchor.from_dict(json.loads(json.dumps(anchor.to_dict())))
    assert again.to_dict() == anchor.to_dict()
    assert again.predict(messages) == predicted


# ------------------------------------------------------------------------------------------------- real sessions


def requests(file: Path) -> Iterator[tuple[Usage, list[Message], str]]:
    """For each response of a Claude Code log: what was counted, what was sent as far as it is known, and the model."""
    source = read_source(file.name, file.read_bytes())
    messages = [record for record in source.lines.records if claude_code.is_message(record)]
    reader = claude_code.Reader(sub_agent=all(map(claude_code.is_side_chain, messages)))
    seen = set()
    for record in source.lines.records:
        own = claude_code.is_message(record) and (reader.sub_agent or not claude_code.is_side_chain(record))
        message = record["message"] if own and record["type"] == "assistant" else {}
        if message.get("usage") and message.get("id") not in seen:
            seen.add(message.get("id"))
            usage = Usage.from_provider(message["usage"])
            if usage is not None and usage.prompt_tokens is not None:
                yield usage, reader.log(source).messages, message["model"]
        reader.add(record)


def test_real_sessions(shared: Path) -> None:
    """Neither system prompt nor tools are in the logs, nor what the client cleared: the rest is what it is for."""
    files = sorted((shared / "transcripts" / "claude-code").glob("*.jsonl"))
    if not files:
        pytest.skip("no transcripts among the shared data")
    found: list[float] = []
    estimated: list[float] = []
    believed = refused = 0
    for file in files:
        anchor = UsageAnchor()
        observed = 0
        for usage, messages, model in requests(file):
            prompt = usage.prompt_tokens or 0
            if observed >= 5:
                found.append(abs(anchor.predict(messages, model=model) / prompt - 1))
                estimated.append(abs(ctxfast.count_tokens(messages) / prompt - 1))
            fine = anchor.observe(usage, messages, model=model)
            observed += fine
            believed += fine
            refused += not fine
    assert len(found) > 1_000
    assert statistics.median(found) <= 0.002
    assert statistics.quantiles(found, n=10)[-1] <= 0.006
    assert statistics.mean(found) <= 0.006
    assert statistics.mean(estimated) > 0.3
    assert refused <= 0.01 * believed
