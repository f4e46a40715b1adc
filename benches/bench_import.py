"""Import time in a fresh interpreter against a bare start, and the modules that come along."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches import imports


@pytest.mark.parametrize("code", ["pass", "import ctxfast"])
def test_import(benchmark: BenchmarkFixture, code: str) -> None:
    benchmark.group = "import"
    assert imports.third_party_modules() == set()
    benchmark.pedantic(imports.starter(code), rounds=20, warmup_rounds=2)  # type: ignore[no-untyped-call]
