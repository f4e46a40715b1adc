"""Fitting a list into a part of its tokens, and one that fits already; ctxfast, and the reference for short ones."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.counters import FLAT, flat
from benches.transcripts import Message
from ctxfast import reference

SHARES = {"fits": 1.0, "a quarter": 0.25, "a hundredth": 0.01}
MOST_FOR_REFERENCE = 100  # messages; it is cubic


def fit(module: ModuleType, messages: list[Message], share: str) -> Any:
    budget = max(int(FLAT.messages(messages) * SHARES[share]), 12_000)
    return module.fit_messages(messages, budget, counter=flat(module))


def agreed(messages: list[Message], share: str) -> None:
    """The core's answer is valid, within the budget, stays as it is, and is the reference's."""
    fitted = fit(ctxfast, messages, share)
    report = fitted.report
    assert report.after == FLAT.messages(fitted.messages) <= report.budget
    assert report.changed == (report.before > report.budget)
    assert ctxfast.validate(fitted.messages) == []
    assert ctxfast.fit_messages(fitted.messages, report.budget, counter=FLAT).messages == fitted.messages
    if len(messages) <= MOST_FOR_REFERENCE:
        assert fitted.messages == fit(reference, messages, share).messages


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.sizes_up_to(10_000)
def test_fit(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, share: str) -> None:
    benchmark.group = f"fit {size}, {share}"
    messages = transcripts(size, storage="real")
    agreed(messages, share)
    benchmark(fit, ctxfast, messages, share)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.sizes_up_to(100)
def test_fit_reference(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, share: str) -> None:
    benchmark.group = f"fit {size}, {share}"
    messages = transcripts(size, storage="real")
    agreed(messages, share)
    benchmark(fit, reference, messages, share)
