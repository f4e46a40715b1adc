"""What `python -m ctxfast report` computes of a list: the whole report, which is plain Python around the core."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from ctxfast.report import describe


@pytest.mark.sizes_up_to(1_000)
def test_describe(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int) -> None:
    benchmark.group = f"describe {size}"
    messages = transcripts(size, storage="real")
    report = describe(messages)
    assert report.messages == size
    assert report.tokens == ctxfast.count_tokens(messages) >= sum(role.tokens for role in report.roles)
    benchmark(describe, messages)
