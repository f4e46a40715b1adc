"""Fixtures (the core and the reference in turn, where the optional data lie), and the profiles of Hypothesis.

`CTXFAST_HYPOTHESIS=ctxfast-thorough` runs its tests on 20,000 examples each instead of 250, and others that have a
`thorough` argument on more data.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest
from cases import shared_directory
from hypothesis import HealthCheck, settings

import ctxfast
from ctxfast import reference

SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile(
    "ctxfast",
    max_examples=250,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=SLOW_TO_DRAW,
)
settings.register_profile("ctxfast-thorough", parent=settings.get_profile("ctxfast"), max_examples=20_000)
PROFILE = os.environ.get("CTXFAST_HYPOTHESIS", "ctxfast")
settings.load_profile(PROFILE)


@pytest.fixture(params=[ctxfast, reference], ids=["ctxfast", "reference"])
def package(request: pytest.FixtureRequest) -> ModuleType:
    """The package itself, and the reference, which has the same functions: each such test runs twice."""
    module = request.param
    assert isinstance(module, ModuleType)
    return module


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real sessions and case files, in `CTXFAST_SHARED` or in `shared` beside the checkout; else it skips."""
    directory = shared_directory()
    if directory is None:
        pytest.skip("no shared data: set CTXFAST_SHARED to their directory")
    return directory


@pytest.fixture(scope="session")
def thorough() -> bool:
    """Whether a test should take all the data that it can."""
    return PROFILE == "ctxfast-thorough"
