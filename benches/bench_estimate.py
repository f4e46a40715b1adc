"""The estimate of long texts, by storage: how many bytes a second, after a check against the reference."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches.texts import corpus
from ctxfast import TokenCounter
from ctxfast.reference import EstimatorCounter

CHARS = 2_000_000


@pytest.mark.parametrize("storage", ["ascii", "ucs2", "ucs4"])
def test_estimate(benchmark: BenchmarkFixture, storage: str) -> None:
    text, _ = corpus("code", ornate=storage != "ascii")
    if storage == "ucs4":
        text = "\U0001f600" + text
    text = (text * (CHARS // len(text) + 1))[:CHARS]
    counter = TokenCounter.estimator("o200k")
    assert counter.text(text[:20_000]) == EstimatorCounter("o200k").text(text[:20_000])
    benchmark.group = f"estimate {CHARS:,} characters"
    benchmark.extra_info["bytes"] = CHARS * {"ascii": 1, "ucs2": 2, "ucs4": 4}[storage]
    benchmark(counter.text, text)
