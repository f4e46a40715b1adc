"""Pruning old tool outputs, by what there is to do: only to decide, to put stubs in again, or to write new ones.

Core and reference must agree before anything is timed, on lists of up to 1,000 messages; the reference is quadratic.
Longer results must be shorter than what came in, cost what the report says, and stay as they are when pruned again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.transcripts import Message
from ctxfast import reference
from ctxfast.reference.pruning import Edit, Report

MOST_FOR_REFERENCE = 1_000
EVERYTHING = 10**9  # a zone of so many tokens covers all outputs
NO_CACHE: dict[str, Any] = {"prices": None}  # every saving pays


@dataclass(frozen=True)
class Case:
    """A list, and the options with which it is pruned."""

    messages: list[Message]
    options: dict[str, Any]

    def prune(self, module: ModuleType) -> Any:
        return module.prune_tool_outputs(self.messages, **self.options)


def commit(_: ModuleType, messages: list[Message]) -> Case:
    return Case(messages, NO_CACHE)


def fed_back(module: ModuleType, messages: list[Message]) -> Case:
    """The list that an earlier call gave."""
    return Case(commit(module, messages).prune(module).messages, NO_CACHE)


def previous(module: ModuleType, messages: list[Message]) -> Case:
    """The full list again, and the report of an earlier call."""
    return Case(messages, NO_CACHE | {"previous": commit(module, messages).prune(module).report})


SCENARIOS: dict[str, Callable[[ModuleType, list[Message]], Case]] = {
    "nothing old": lambda _, messages: Case(messages, {"protected_tokens": EVERYTHING}),
    "fed back": fed_back,
    "previous": previous,
    "commit": commit,
    "grid": lambda _, messages: Case(messages, {"prune_threshold": 20_000}),
}
CHANGING = ("previous", "commit", "grid")
Specified = Callable[[int, str], Any]


@pytest.fixture(scope="module")
def specified(transcripts: Transcripts) -> Specified:
    """What the reference gives, computed once."""

    @functools.cache
    def answer(size: int, scenario: str) -> Any:
        return SCENARIOS[scenario](reference, transcripts(size, storage="real")).prune(reference)

    return answer


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.sizes_up_to(10_000)
def test_prune(
    benchmark: BenchmarkFixture, transcripts: Transcripts, specified: Specified, size: int, scenario: str
) -> None:
    case = SCENARIOS[scenario](ctxfast, transcripts(size, storage="real"))
    pruned = case.prune(ctxfast)
    check(pruned, case, scenario)
    if size <= MOST_FOR_REFERENCE:
        expected = specified(size, scenario)
        assert pruned.messages == expected.messages
        assert facts(pruned.report) == facts(expected.report)
    benchmark.extra_info["stubs"] = len(pruned.report.items)
    benchmark.group = f"prune {size}, {scenario}"
    benchmark(case.prune, ctxfast)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.sizes_up_to(100)
def test_prune_reference(
    benchmark: BenchmarkFixture, transcripts: Transcripts, specified: Specified, size: int, scenario: str
) -> None:
    case = SCENARIOS[scenario](reference, transcripts(size, storage="real"))
    check(specified(size, scenario), case, scenario)
    benchmark.group = f"prune {size}, {scenario}"
    benchmark(case.prune, reference)


def check(pruned: Any, case: Case, scenario: str) -> None:
    """What is true of every result, whatever the rules are."""
    report = pruned.report
    assert report.changed == (scenario in CHANGING)
    assert report.before == ctxfast.count_tokens(case.messages)
    assert report.after == ctxfast.count_tokens(pruned.messages)
    assert report.after < report.before if report.changed else pruned.messages == case.messages
    again = ctxfast.prune_tool_outputs(pruned.messages, **case.options | {"previous": None})
    assert again.messages == pruned.messages
    assert not again.report.changed


def facts(report: Any) -> dict[str, Any]:
    """The report of the core or of the reference as plain data."""
    items = [{field.name: getattr(edit, field.name) for field in fields(Edit)} for edit in report.items]
    return {field.name: getattr(report, field.name) for field in fields(Report)} | {"items": items}
