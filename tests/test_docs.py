"""The examples in README, docs and docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import tempfile
from pathlib import Path

import pytest

import ctxfast

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = ["ctxfast", *(f"ctxfast.{module.name}" for module in pkgutil.iter_modules(ctxfast.__path__))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(ROOT)  # examples open files of the checkout
    options = doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8", optionflags=options)
    assert tried
    assert not failed


@pytest.mark.parametrize("name", [name for name in MODULES if name != "ctxfast.__main__"])
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert not doctest.testmod(module).failed


@pytest.mark.parametrize("name", ctxfast.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    thing = getattr(ctxfast, name)
    assert name == "__version__" or thing.__doc__


def test_every_function_of_the_counter_is_documented() -> None:
    for name in vars(ctxfast.TokenCounter):
        if not name.startswith("_"):
            assert getattr(ctxfast.TokenCounter, name).__doc__, name
