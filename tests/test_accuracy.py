"""How near the estimators are to true counts: on the committed set, and on what providers counted in real sessions."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from pathlib import Path
from typing import Any

import accuracy_set
import evaluate
import pytest
from evaluate import GENERATIONS, GROUPS, Errors, Text

from ctxfast import TokenCounter

TEXTS = evaluate.accuracy_set()
# Mean absolute error in percent, a little over what is measured: an estimator that becomes worse fails.
LIMITS = {
    "o200k": 3.9,
    "cl100k": 4.1,
    "claude_v3": 5.1,
    "claude_v47": 4.4,
    "claude_legacy": 4.1,
    "llama3": 4.2,
    "qwen3": 3.9,
    "deepseek_v3": 4.6,
    "gemma3": 4.0,
    "mistral_tekken": 4.9,
}
FAMILIES = list(LIMITS)


def ours(family: str, texts: list[Text] = TEXTS) -> Errors:
    count = evaluate.estimator(family)
    return evaluate.errors(texts, family, lambda text: count(text.text))


def is_central(errors: Errors) -> bool:
    return 0.97 <= errors.median <= 1.10 and errors.quantile(0.25) >= 0.90 and errors.quantile(0.75) <= 1.18


def test_the_set() -> None:
    """Many different texts of every kind, counted in every family that the package has."""
    assert len(TEXTS) == len({text.text for text in TEXTS}) == 100
    assert {text.group for text in TEXTS} == set(GROUPS)
    assert sum(len(text.text.encode()) for text in TEXTS) > 110_000
    for text in TEXTS:
        assert set(text.counts) == set(FAMILIES)
        assert 1 < len(text.text.encode()) / min(text.counts.values()) < 10
        assert max(text.counts.values()) < 5 * min(text.counts.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_margins(family: Any) -> None:
    """Safe counts are seldom too low, and the 3 % of totals are enough for 40 texts and more."""
    true = [text.counts[family] for text in TEXTS]
    for safety, least in ((0.95, 0.9), (0.99, 0.95)):
        count = TokenCounter.estimator(family, safety=safety).text
        assert sum(count(text.text) >= tokens for text, tokens in zip(TEXTS, true, strict=True)) >= least * len(TEXTS)
        assert sum(count(text.text) for text in TEXTS) < 1.14 * sum(true)
    chance, middle = random.Random(1), [TokenCounter.estimator(family).text(text.text) for text in TEXTS]
    for size, least in ((10, 0.87), (40, 0.98), (200, 1)):
        sums = [chance.choices(range(len(TEXTS)), k=size) for _ in range(2_000)]
        enough = sum(1.03 * sum(middle[i] for i in drawn) >= sum(true[i] for i in drawn) for drawn in sums)
        assert enough >= least * len(sums), size


def test_generated_texts_come_from_the_seed() -> None:
    assert (accuracy_set.FOLDER / "generated.txt").read_text(encoding="utf-8") == accuracy_set.generated()


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family: str) -> None:
    found = ours(family)
    assert is_central(found)
    assert found.mape < LIMITS[family]
    assert abs(found.bias) < 1.5
    assert sum(ratio < 0.9 for ratio in found.ratios) <= 6  # of 100
    usual = ours(family, [text for text in TEXTS if text.group != "terminal drawings"])
    assert all(0.75 < ratio < 1.3 for ratio in usual.ratios)


@pytest.mark.parametrize("family", FAMILIES)
def test_groups(family: str) -> None:
    """No kind of text is off by more than a tenth, but the shortest, where one token is a tenth, and drawings."""
    limits = {"under 100 characters": 12.5, "terminal drawings": 43.0}
    for group in GROUPS:
        found = ours(family, [text for text in TEXTS if text.group == group])
        assert found.mape < limits.get(group, 9.5), group


@pytest.mark.parametrize("family", FAMILIES)
def test_a_rate_of_characters_is_much_worse(family: str) -> None:
    """Not 4 characters a token, and no other number of them."""
    found = ours(family).mape
    assert evaluate.errors(TEXTS, family, lambda text: math.ceil(len(text.text) / 4)).mape > 6 * found
    best = min(evaluate.errors(TEXTS, family, lambda text, n=n: 10 * len(text.text) / n).mape for n in range(15, 46))  # type: ignore[misc]
    assert best > 5 * found


@pytest.mark.parametrize("family", ["claude_v3", "claude_v47"])
def test_the_exact_tokenizer_of_another_vendor_is_worse(family: str) -> None:
    found = evaluate.errors(TEXTS, family, lambda text: text.counts["o200k"])
    assert found.mape > 3.5 * ours(family).mape
    assert found.median < 0.85


def test_ruled_lines() -> None:
    """Once a line of box characters had 19 times too many; what is left is in the limits of the page."""
    line = accuracy_set.REPETITIONS["a rule of box characters (`─`), 4,000"]
    place = list(accuracy_set.REPETITIONS).index("a rule of box characters (`─`), 4,000")
    for family in FAMILIES:
        assert evaluate.estimator(family)(line) < 6 * evaluate.stored()["repetitions"][family][place], family


def test_totals_are_better_than_texts() -> None:
    """Errors of texts are nearly independent: a conversation's total is off by less than one of its texts."""
    for family in FAMILIES:
        count = evaluate.estimator(family)
        estimate, true = sum(count(text.text) for text in TEXTS), sum(text.counts[family] for text in TEXTS)
        assert estimate == pytest.approx(true, rel=0.025), family


@pytest.fixture(scope="module")
def increments(shared: Path) -> list[dict[str, Any]]:
    lines = (shared / "transcripts" / "usage-deltas" / "deltas.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("generation", list(GENERATIONS))
def test_what_providers_counted(increments: list[dict[str, Any]], generation: str) -> None:
    """The difference of two usage records against the estimate of the text between them, and its frame.

    Fable 5 thinks, and its thoughts are counted but not recorded: a quarter of its increments have more than a sixth
    of their tokens in no text.
    """
    _, family, frame = GENERATIONS[generation]
    count = evaluate.estimator(family)
    found = evaluate.increments(increments, generation, count, frame)
    assert len(found.ratios) >= 10
    assert 0.97 <= found.median <= 1.10
    assert found.quantile(0.25) >= (0.80 if generation == "Claude Fable 5" else 0.90)
    assert found.quantile(0.75) <= 1.18


def test_what_openai_counted_is_the_exact_count(increments: list[dict[str, Any]]) -> None:
    """And a frame: the estimate is four times as far off."""
    _, family, frame = GENERATIONS["GPT-5"]
    found = evaluate.increments(increments, "GPT-5", TokenCounter.for_model("gpt-5").text, frame)
    assert 0.995 <= found.quantile(0.25) <= found.quantile(0.75) <= 1.005
    assert 3 * found.mape < evaluate.increments(increments, "GPT-5", evaluate.estimator(family), frame).mape


@pytest.mark.parametrize("generation", [name for name in GENERATIONS if name.startswith("Claude")])
def test_claude_is_not_gpt(increments: list[dict[str, Any]], generation: str) -> None:
    """With any frame, another family's estimator is far off: so are 4 characters a token."""
    _, family, frame = GENERATIONS[generation]
    right = abs(evaluate.increments(increments, generation, evaluate.estimator(family), frame).median - 1)
    others = {"o200k", "claude_v3", "claude_v47"} - {family}
    for wrong in (*map(evaluate.estimator, others), lambda text: len(text) / 4):
        assert abs(evaluate.increments(increments, generation, wrong, frame).median - 1) > max(0.15, 3 * right)


def test_the_page_has_these_figures() -> None:
    page = (Path(__file__).parent.parent / "docs" / "accuracy.md").read_text(encoding="utf-8")
    for family in FAMILIES:
        found = ours(family)
        shown = re.search(rf"^\| {family} \| (.*?) \| (.*?) \| (.*?) \| \*\*(.*?)\*\* \|", page, re.MULTILINE)
        assert shown is not None, family
        quantiles = (found.median, found.quantile(0.25), found.quantile(0.75))
        assert shown.groups() == (*(f"{value:.2f}" for value in quantiles), str(found)), (
            "run tools/estimator/evaluate.py"
        )


def test_errors() -> None:
    found = Errors([0.9, 1.0, 1.0, 1.3])
    assert (found.median, found.quantile(0.25), found.quantile(1)) == (1.0, 1.0, 1.3)
    assert str(found) == "10.0 (+5.0)"
    assert statistics.mean(found.ratios) == pytest.approx(1.05)
