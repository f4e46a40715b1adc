"""Calls of `prune_tool_outputs` by what there is to do: to decide, to put stubs in again, to write new ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

import ctxfast
from benches.counters import FLAT, flat
from benches.transcripts import Message
from ctxfast import CachePrices, reference
from ctxfast.reference.pruning import Edit, Report

MOST_FOR_REFERENCE = 1_000  # messages; it is quadratic
EVERYTHING = 10**9  # a zone of so many tokens covers all outputs
NO_CACHE: dict[str, Any] = {"prices": None}  # every saving pays


@dataclass(frozen=True)
class Case:
    """A list, and the options with which it is pruned."""

    messages: list[Message]
    options: dict[str, Any]

    def prune(self, module: ModuleType) -> Any:
        return module.prune_tool_outputs(self.messages, counter=flat(module), **self.options)


def commit(_: ModuleType, messages: list[Message]) -> Case:
    return Case(messages, NO_CACHE)


def fed_back(module: ModuleType, messages: list[Message]) -> Case:
    """The list that an earlier call gave."""
    return Case(commit(module, messages).prune(module).messages, NO_CACHE)


def previous(module: ModuleType, messages: list[Message]) -> Case:
    """The full list again, and the report of an earlier call."""
    return Case(messages, NO_CACHE | {"previous": commit(module, messages).prune(module).report})


Scenario = Callable[[ModuleType, list[Message]], Case]
DECISIONS: dict[str, Scenario] = {
    "nothing old": lambda _, messages: Case(messages, {"protected_tokens": EVERYTHING}),
    "fed back": fed_back,
    # much is old, and the cache is worth more: all of it is weighed and nothing is done
    "does not pay": lambda _, messages: Case(messages, {"prices": CachePrices(horizon=0.0)}),
}
COMMITS: dict[str, Scenario] = {
    "commit": commit,
    "grid": lambda _, messages: Case(messages, {"prune_threshold": 20_000}),
}
SCENARIOS = DECISIONS | {"previous": previous} | COMMITS


def agreed(scenario: str, messages: list[Message]) -> tuple[Case, Any]:
    """A case for the core and its answer, once that is right.

    Core and reference give the same; longer lists, for which the reference takes too long, must become shorter, cost
    what the report says, and stay as they are when they are pruned again.
    """
    case = SCENARIOS[scenario](ctxfast, messages)
    pruned = case.prune(ctxfast)
    report = pruned.report
    assert report.changed == (scenario not in DECISIONS)
    assert any(edit.new for edit in report.items) == (scenario in COMMITS)
    assert report.before == FLAT.messages(case.messages)
    assert report.after == FLAT.messages(pruned.messages)
    assert report.after < report.before if report.changed else pruned.messages == case.messages
    again = ctxfast.prune_tool_outputs(pruned.messages, counter=FLAT, **case.options | {"previous": None})
    assert again.messages == pruned.messages
    assert not again.report.changed
    if len(messages) <= MOST_FOR_REFERENCE:
        expected = SCENARIOS[scenario](reference, messages).prune(reference)
        assert pruned.messages == expected.messages
        assert facts(report) == facts(expected.report)
    return case, pruned


def facts(report: Any) -> dict[str, Any]:
    """The report of the core or of the reference as plain data."""
    items = [{field.name: getattr(edit, field.name) for field in fields(Edit)} for edit in report.items]
    return {field.name: getattr(report, field.name) for field in fields(Report)} | {"items": items}
