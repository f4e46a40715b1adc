"""`fit_messages`: the core against the reference, what must hold of every answer, each rung of the ladder by hand."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from agent_sessions import kinds_of_objects, often, own_policies, presets, pruning_counters, sessions, whole_sessions
from cases import get, has_user_text, pairing
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Message, Pair, as_object

import ctxfast
from ctxfast import CannotFitError, ContextBudget, fit_messages, reference, validate
from ctxfast.policy import FitPolicy, PrunePolicy
from test_prune_reference import ITEM

Options = dict[str, Any]

FIELDS = ("budget", "before", "after", "beside", "pinned", "earliest_changed_index")


class Shelf:
    """A store that gives numbers."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def save(self, text: str) -> str:
        if text not in self.texts:
            self.texts.append(text)
        return f"no. {self.texts.index(text)}"


def plain(report: Any) -> Options:
    """A report as plain data, whoever has written it."""
    fields: Options = {name: getattr(report, name) for name in FIELDS}
    fields["dropped"] = [tuple(part) for part in report.dropped]
    for name in ("stubs", "clamped"):
        fields[name] = [tuple(getattr(edit, field) for field in (*ITEM, "stored")) for edit in getattr(report, name)]
    fields["repairs"] = [(fix.code, fix.index, fix.call_id, fix.action) for fix in report.repairs.items]
    return fields


def outcome(package: Any, messages: Any, budget: Any, options: Options) -> Any:
    """What one of both gives: a list with its report, or an error with its numbers."""
    try:
        fitted = package.fit_messages(messages, budget, **options)
    except CannotFitError as error:
        return error.budget, error.needed
    return fitted.messages, plain(fitted.report)


policies = st.builds(
    FitPolicy,
    prune=often((2, presets), (3, own_policies), (1, st.just(PrunePolicy()))),
    pin_first=st.booleans(),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "policy": policies,
        "low_water": st.sampled_from([0, 0.3, 0.6, 0.6, 0.9, 1]),
        "system": st.sampled_from(["Be kind.", [{"type": "text", "text": "Be kind."}]]),
        "tools": st.sampled_from([[], [{"name": "read_file", "input_schema": {"type": "object"}}]]),
        "used": st.sampled_from([0, 30, 200, 1_000, 5_000]),
        "form": st.sampled_from(["auto", "openai", "anthropic"]),
        "provider": st.sampled_from([None, "anthropic"]),
    },
)
budgets = st.one_of(
    st.integers(1, 300),
    st.integers(1, 3_000),
    st.sampled_from([None, 10**9, ContextBudget(None), ContextBudget(500, 100), ContextBudget(2_000, 100)]),
)


@settings(max_examples=settings().max_examples * 2 // 5)
@given(sessions, budgets, options, pruning_counters, st.booleans())
def test_the_core_gives_what_the_reference_gives(
    messages: list[Message], budget: Any, options: Options, pair: Pair, stores: bool
) -> None:
    fast, slow = pair
    shelves = [{"store": Shelf()} if stores else {} for _ in range(2)]
    got = outcome(ctxfast, messages, budget, {**options, **shelves[0], "counter": fast})
    expected = outcome(reference, messages, budget, {**options, **shelves[1], "counter": slow})
    assert got == expected
