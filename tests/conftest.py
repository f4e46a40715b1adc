"""Fixtures: the core and the reference in turn, and where the optional data lie."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from cases import shared_directory

import ctxfast
from ctxfast import reference


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
