"""The estimator: the core, its twin in plain Python and an independent program agree on every text."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import replace
from typing import Any

import pytest
from cases import load_vectors
from hypothesis import given
from hypothesis import strategies as st

from ctxfast import TokenCounter, count_tokens, model_info, select_fresh_tail
from ctxfast.reference import EstimatorCounter
from ctxfast.reference.estimating import COSTS, FEW_SYMBOLS, SYMBOLS, VOCABULARIES, repeats, table

VECTORS: dict[str, Any] = load_vectors("estimates.json")
TEXTS = [text if isinstance(text, str) else "".join(map(chr, text)) for text in VECTORS["texts"]]
FAMILIES: list[Any] = list(VECTORS["families"])

families = st.sampled_from(FAMILIES)
texts = st.one_of(
    st.text(),
    st.text(st.characters(max_codepoint=127), max_size=200),
    st.text(st.characters(max_codepoint=0x3FF), max_size=80),
    st.text(st.characters(min_codepoint=0x2E00, max_codepoint=0xFFFF, exclude_categories=()), max_size=80),
    st.lists(
        st.sampled_from(["aA", "Aa", "a9", "99", "  ", "\n\n", "\r\n", "é", "É", "中", "中a", "😀", "_", "{}", "ไ"])
    ).map("".join),
)


@pytest.mark.parametrize("family", FAMILIES)
def test_as_the_independent_program(family: Any) -> None:
    """Exact sums; tokens to the digits that the file has."""
    fast, slow = TokenCounter.estimator(family), EstimatorCounter(family)
    for text, (cost, register, chars, tokens) in zip(TEXTS, VECTORS["families"][family], strict=True):
        assert slow.sums(text) == (cost, register, chars)
        if tokens * 12 >= chars:  # the program has no floor for what repeats itself
            assert slow.units(text) / 64 == pytest.approx(tokens, abs=1 / 127)
        assert fast.text(text) == slow.text(text)


@given(families, texts)
def test_core_and_twin_agree(family: Any, text: str) -> None:
    assert TokenCounter.estimator(family).text(text) == EstimatorCounter(family).text(text)


@given(families, texts, st.integers(0, 30))
def test_head_and_tail_fit(family: Any, text: str, limit: int) -> None:
    fast, slow = TokenCounter.estimator(family), EstimatorCounter(family)
    head, tail = fast.head(text, limit), fast.tail(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert max(slow.text(head), slow.text(tail)) <= limit


@given(families, st.lists(texts, max_size=4))
def test_a_list_is_the_sum_of_its_messages(family: Any, contents: list[str]) -> None:
    """And 3 % for safety, once; not with `safety=0.5`."""
    counter, middle = TokenCounter.estimator(family), TokenCounter.estimator(family, safety=0.5)
    messages = [{"role": "user", "content": content} for content in contents]
    total = sum(map(counter.message, messages))
    assert middle.messages(messages) == total
    assert counter.messages(messages) == math.ceil(total + total * 0.03)
    assert count_tokens(messages, counter=counter) == EstimatorCounter(family).messages(messages)


@given(families, st.sampled_from([0.95, 0.99]), texts, st.integers(1, 300))
def test_safe_counts(family: Any, safety: float, text: str, times: int) -> None:
    """Raised once, whatever is counted: a text, a message, a list. The share is small where there is much."""
    safe, middle = TokenCounter.estimator(family, safety=safety), TokenCounter.estimator(family, safety=0.5)
    message = {"role": "user", "content": text}
    pairs = [(safe.text(text), middle.text(text)), (safe.message(message), middle.message(message))]
    pairs += [(counter([message] * times), plain([message] * times)) for counter, plain in [(safe, middle)]]
    for raised, plain in pairs:
        assert plain <= raised <= math.ceil(plain * 1.09 + 0.9 * math.sqrt(plain))
        assert (raised > plain) == (plain > 0)
    assert safe.messages([message] * times) <= times * safe.message(message)


def test_safe_counts_are_reached_by_fits() -> None:
    """What fits and what the count says are the same thing."""
    messages = [{"role": "user", "content": "How many tokens is this? " * 9}] * 7
    for safety in (None, 0.5, 0.95, 0.99):
        counter = TokenCounter.estimator("claude_v3", safety=safety)
        total = counter.messages(messages)
        assert counter.fits(messages, total)
        assert not counter.fits(messages, total - 1)
        text = messages[0]["content"]
        assert counter.text(counter.head(text, 20)) <= 20
        assert select_fresh_tail(messages, total, counter=counter).tokens == total
        assert select_fresh_tail(messages, total - 1, counter=counter).start > 0


@pytest.mark.parametrize("safety", [0, 1, 0.9, True, "high", float("nan")])
def test_no_other_safety(safety: Any) -> None:
    with pytest.raises(ValueError, match=r"^safety: expected 0\.5 \(the middle\), 0\.95, 0\.99 or None, got "):
        TokenCounter.estimator("o200k", safety=safety)


DEGENERATE = ["ab", "abc", "!", " ", "\n", "\0", "中国", "the ", "=", "👨‍👩‍👧"]


@pytest.mark.parametrize("unit", DEGENERATE, ids=repr)
def test_what_repeats_itself_has_a_floor(unit: str) -> None:
    """Not less than a token for 12 characters, 128 spaces, 64 signs or 16 line ends, where there is no vocabulary."""
    text = unit * (20_000 // len(unit))
    for family in FAMILIES:
        if family in VOCABULARIES:
            continue
        count = TokenCounter.estimator(family).text(text)
        assert count == EstimatorCounter(family).text(text)
        assert count >= 20_000 // {" ": 128, "\n": 16, "=": 64, "!": 64}.get(unit, 12) - 1


@pytest.mark.parametrize("unit", [*DEGENERATE, "a", "\t", "\r\n", "é", "─", "😀", "hello world "], ids=repr)
def test_what_repeats_itself_is_counted(unit: str) -> None:
    """Where the family has a vocabulary: its table would be off by up to 6 times."""
    for family, encoding in VOCABULARIES.items():
        counter, exact = TokenCounter.estimator(family), TokenCounter.exact(encoding)  # type: ignore[arg-type]
        for size in (1_000, 20_000):
            text = (unit * size)[:size]
            assert counter.text(text) == exact.text(text)
            assert TokenCounter.estimator(family, safety=0.99).text(text) > exact.text(text)  # type: ignore[arg-type]
        message = {"role": "user", "content": text}
        assert counter.message(message) == exact.message(message)
        assert counter.batch([text]) == [exact.text(text)]
    xai = replace(model_info("grok-4"), scale=1.5)
    assert TokenCounter.for_model(xai).text(text) == math.floor(TokenCounter.exact("o200k_base").text(text) * 1.5 + 0.5)


def test_a_stretch_of_a_quarter_is_seen() -> None:
    """A short one is not worth a count."""
    lines = "".join(f"line {number} of {number * number}\n" for number in range(300))
    assert not repeats(lines)
    for place in range(0, len(lines), 200):
        assert repeats(lines[:place] + "ab" * (len(lines) // 5) + lines[place:])
    for text in ("a" * 999, lines + "=" * 200, "=" * 200 + lines, "17 other characters" * 200):
        assert not repeats(text)


@given(families, st.text(min_size=1, max_size=17), st.integers(900, 1_500), texts, st.integers(0, 1_500))
def test_core_and_twin_agree_on_what_repeats_itself(family: Any, unit: str, size: int, other: str, place: int) -> None:
    text = (unit * size)[:size]
    text = text[:place] + other + text[place:]
    assert TokenCounter.estimator(family).text(text) == EstimatorCounter(family).text(text)


def test_a_message_is_rounded_once() -> None:
    """Three texts of 0.4 tokens are one token, not none."""
    counter, twin = TokenCounter.estimator("o200k", message_overhead=0), EstimatorCounter("o200k", message_overhead=0)
    units = {text: twin.units(text) for text in map(chr, range(0x20, 0x7F))}
    text = next(text for text, cost in units.items() if cost % 64 in range(16, 32))  # a quarter to a half too much
    message = {"role": "user", "content": [{"type": "text", "text": text}] * 3}
    assert counter.message(message) == twin.message(message) == (3 * units[text] + 32) // 64
    assert counter.message(message) > 3 * counter.text(text)


def test_families_differ() -> None:
    """The same text has more tokens for Claude than for GPT, and for Claude 4.7 more than before."""
    text = "def total(items: list[dict[str, int]]) -> int:\n    return sum(item['price'] for item in items)\n" * 20
    o200k, claude_v3, claude_v47 = (
        TokenCounter.estimator(name).text(text) for name in ("o200k", "claude_v3", "claude_v47")
    )
    assert o200k < claude_v3 < claude_v47


def test_frames_and_media() -> None:
    counter = TokenCounter.estimator("o200k", message_overhead=7, media_tokens=100)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000}}
    assert counter.message({"role": "user", "content": ""}) == 7
    assert counter.message({"role": "user", "content": [image]}) == 107


def test_wrong_families() -> None:
    with pytest.raises(ValueError, match=r"^family: expected one of o200k, cl100k, .*, got 'o200k_base'$"):
        TokenCounter.estimator("o200k_base")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        TokenCounter.estimator(4)  # type: ignore[arg-type]


def test_pickled_by_name() -> None:
    """A counter for a pool of workers does not carry its table along."""
    assert len(pickle.dumps(TokenCounter.estimator("o200k"))) < 200


def test_the_tail_of_a_list() -> None:
    counter = TokenCounter.estimator("qwen3")
    messages = [{"role": "user", "content": "How many tokens is this? " * 20}] * 30
    tail = select_fresh_tail(messages, 1_000, counter=counter)
    assert 0 < tail.tokens <= 1_000
    assert tail.tokens == counter.messages(messages[tail.start :])


@pytest.mark.parametrize("family", FAMILIES)
def test_tables(family: Any) -> None:
    """One byte for each slot, and the two coefficients are those of a correction, not of noise."""
    assert len(table(family)) == COSTS + 147_456 + 16
    assert sorted(SYMBOLS) == list(range(128))
    assert set(SYMBOLS.values()) == set(range(1, 90))
    assert max(FEW_SYMBOLS.values()) == 58


def test_a_long_text_takes_linear_time() -> None:
    """4 MB in well under a second, on any machine."""
    counter, text = TokenCounter.estimator("o200k"), "The tests pass now; I have changed two files.\n" * 90_000
    counter.text("")
    start = time.perf_counter()
    tokens = counter.text(text)
    assert time.perf_counter() - start < 2
    assert tokens == pytest.approx(counter.text(text[:46_000]) * len(text) / 46_000, rel=0.01)


@given(families, st.integers(1, 60), st.sampled_from(["\u0dff\u0e00\u0e7f\u0e80", "중", "aA9 ", "中a", "    "]))
def test_a_text_that_fits_stays_whole(family: Any, times: int, unit: str) -> None:
    """Also where a part of it has more tokens than all of it: the register knows the whole only."""
    counter, text = TokenCounter.estimator(family), unit * times
    assert counter.head(text, counter.text(text)) == counter.tail(text, counter.text(text)) == text
