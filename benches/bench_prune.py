"""Pruning old tool outputs, for each of the scenarios of `pruning.py`; ctxfast, and the reference for short lists."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.pruning import SCENARIOS, agreed
from ctxfast import reference


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.sizes_up_to(10_000)
def test_prune(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, scenario: str) -> None:
    benchmark.group = f"prune {size}, {scenario}"
    case, pruned = agreed(scenario, transcripts(size, storage="real"))
    benchmark.extra_info["stubs"] = len(pruned.report.items)
    benchmark(case.prune, ctxfast)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.sizes_up_to(100)
def test_prune_reference(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, scenario: str) -> None:
    benchmark.group = f"prune {size}, {scenario}"
    messages = transcripts(size, storage="real")
    agreed(scenario, messages)
    benchmark(SCENARIOS[scenario](reference, messages).prune, reference)
