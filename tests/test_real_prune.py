"""Pruning of real sessions, in both forms: nothing breaks, nothing grows, and it is what the reference does.

The sessions belong to others and are not part of this repository: they are read from the optional data,
through the loaders that lie beside them. Skipped without.
"""

from __future__ import annotations

import copy
import functools
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import (
    Message,
    get,
    has_user_text,
    pairing,
    raw_claude_code,
    results_of,
    sessions,
    transcript_files,
    two_and_a_half,
)
from freed_shares import AGENTS, RULES, measure

import ctxfast
from ctxfast import CachePrices, PrunePolicy, reference, validate

# Simple counters: what pruning does shall not wait for the reference's estimates.
COUNT = two_and_a_half(ctxfast).messages
PRUNE = functools.partial(ctxfast.prune_tool_outputs, counter=two_and_a_half(ctxfast))
SPECIFIED = functools.partial(reference.prune_tool_outputs, counter=two_and_a_half(reference))
SMALL = 150  # messages: up to here the reference prunes as well
SAMPLE = {"short": 2, "long": 2}  # sessions that are grown in each form; along the short ones the reference's
MANY = 25  # sessions of a file that are looked at

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "no cache": {"prices": None},
    "cold": {"prices": CachePrices(cold=True)},
    "20,000": {"prune_threshold": 20_000},
    "1,000": {"prune_threshold": 1_000, "protected_tokens": 2_000},
    "budget": {"budget": 30_000},
    "two turns": {"protected_turns": 2, "prices": None},
    **{
        name: {"policy": getattr(PrunePolicy, name)()}
        for name in ("careful", "thrifty", "seed", "opencode", "claude_code", "anthropic_api")
    },
    "thrifty, no cache": {"policy": PrunePolicy.thrifty(), "prices": None},
    "no errors, no lists": {
        "policy": PrunePolicy(keep_errors="none", keep_tools=(), keep_paths=(), min_saved=0, protected_tokens=0),
        "prices": None,
    },
}
GROWN = ("default", "no cache", "20,000", "1,000", "budget", "opencode", "claude_code", "thrifty, no cache")

REPORT = (
    *("changed", "before", "after", "earliest_changed_index", "tokens_rewritten"),
    *("blocked_by", "reread_of_pruned"),
)
EDIT = (
    *("index", "place", "call_id", "tool", "kind", "reason", "before", "after", "new", "stub"),
    *("characters", "sample"),
)


def said(report: Any) -> dict[str, Any]:
    """What a report says, of the core or of the reference."""
    items = [{name: getattr(item, name) for name in EDIT} for item in report.items]
    return {**{name: getattr(report, name) for name in REPORT}, "items": items}


def faults(messages: list[Message]) -> Counter[str]:
    """All that a provider would refuse, under the stricter rules, too."""
    return Counter(
        str(problem) for provider in (None, "anthropic") for problem in validate(messages, provider=provider)
    )


def check_pruned(messages: list[Message], pruned: Any) -> None:
    """What must be true of the answer, whatever the policy."""
    report = pruned.report
    assert len(pruned.messages) == len(messages)
    touched = {item.index for item in report.items}
    assert report.changed == bool(touched)
    for index, (message, old) in enumerate(zip(pruned.messages, messages, strict=True)):
        assert (message is not old) == (index in touched)
        assert results_of(message) == results_of(old)
    assert not faults(pruned.messages) - faults(messages)
    assert report.before == COUNT(messages)
    assert report.after == COUNT(pruned.messages) <= report.before
    assert report.before - report.after == sum(item.before - item.after for item in report.items)
    for item in report.items:
        assert item.after <= item.before  # of a message, which is rounded: one character can save nothing
        assert 0 < len(item.stub) <= 400
        text = output_text(messages[item.index], item.place)
        assert text is None or len(item.stub) < len(text)
    assert report.earliest_changed_index == min((item.index for item in report.items if item.new), default=None)


def output_text(message: Message, place: int) -> str | None:
    """The text of a result; `None` if it is more than text."""
    content = get(message, "content")
    if get(message, "role") == "user":
        content = [block for block in content if get(block, "type") == "tool_result"][place].get("content")
    return content if isinstance(content, str) else None


def check_session(messages: list[Message]) -> Counter[str]:
    """All settings on a whole session; how many outputs each of them has replaced."""
    before = copy.deepcopy(messages)
    replaced: Counter[str] = Counter()
    for name, options in SETTINGS.items():
        pruned = PRUNE(messages, **options)
        check_pruned(messages, pruned)
        replaced[name] += len(pruned.report.items)

        again = PRUNE(pruned.messages, **options)
        assert not again.report.changed, name
        assert all(one is other for one, other in zip(again.messages, pruned.messages, strict=True))
        known = PRUNE(messages, **options, previous=pruned)
        assert known.messages == pruned.messages
        assert known.report.earliest_changed_index is None

        if len(messages) <= SMALL:
            slow = SPECIFIED(messages, **options)
            assert said(pruned.report) == said(slow.report), name
            assert pruned.messages == slow.messages, name
    assert messages == before
    return replaced


def stubs_of(report: Any) -> list[tuple[int, int, str]]:
    """What stands where."""
    return [(item.index, item.place, item.stub) for item in (() if report is None else report.items)]


def check_growth(messages: list[Message]) -> None:
    """One call before each response: what was sent stays as it was, up to the index that the report names."""
    for name in GROWN:
        options = SETTINGS[name]
        sent: list[Message] = []
        report: Any = None
        alone: Any = None
        slow_report: Any = None
        for end, message in enumerate(messages):
            if end == 0 or get(message, "role") != "assistant":
                continue
            pruned = PRUNE(messages[:end], **options, previous=report)
            check_pruned(messages[:end], pruned)
            kept = pruned.report.earliest_changed_index
            kept = len(sent) if kept is None else min(kept, len(sent))
            assert pruned.messages[:kept] == sent[:kept], (name, end)
            assert set(stubs_of(report)) <= set(stubs_of(pruned.report)), (name, end)  # what is a stub stays that stub
            if "prune_threshold" in options:  # the same ones without a memory, whatever is appended
                without = PRUNE(messages[:end], **options).report
                assert set(stubs_of(alone)) <= set(stubs_of(without)), (name, end)
                alone = without
            if len(messages) <= SMALL:
                slow = SPECIFIED(messages[:end], **options, previous=slow_report)
                assert said(pruned.report) == said(slow.report), (name, end)
                slow_report = slow.report
            report, sent = pruned.report, pruned.messages


def all_sessions(shared: Path, name: str) -> Iterator[list[Message]]:
    """The sessions of a file, a sample of them where there are very many, and the raw messages of a log."""
    found = list(sessions(shared / "transcripts" / name))
    yield from random.Random(name).sample(found, MANY) if len(found) > MANY else found
    if name.startswith("claude-code/"):
        yield raw_claude_code(shared / "transcripts" / name)


@pytest.mark.parametrize("name", transcript_files())
def test_session(name: str, shared: Path) -> None:
    for messages in all_sessions(shared, name):
        check_session(messages)


def test_something_is_pruned(shared: Path) -> None:
    """Each setting does something on some session: else all of the above would say nothing about it."""
    names = transcript_files()
    if not names:
        pytest.skip("no transcripts among the shared data")
    replaced: Counter[str] = Counter()
    for name in names:
        if name.startswith(("claude-code/", "codex-rollout/")):
            for messages in all_sessions(shared, name):
                for setting, options in SETTINGS.items():
                    replaced[setting] += len(PRUNE(messages, **options).report.items)
    assert set(replaced) == set(SETTINGS)
    assert min(replaced.values()) >= 20


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize("length", ["short", "long"])
def test_growing_session(form: str, length: str, shared: Path) -> None:
    names = [name for name in transcript_files() if name.startswith(tuple(f"{folder}/" for folder in AGENTS.values()))]
    if form == "anthropic":
        found = [raw_claude_code(shared / "transcripts" / name) for name in names if name.startswith("claude-code/")]
    else:
        found = [messages for name in names for messages in sessions(shared / "transcripts" / name)]
    low, high = (20, SMALL) if length == "short" else (SMALL + 1, 500)
    candidates = [messages for messages in found if low <= len(messages) <= high]
    if not candidates:
        pytest.skip("no transcripts among the shared data")
    count = min(SAMPLE[length], len(candidates))
    for messages in random.Random(f"{form} {length}").sample(candidates, count):
        check_growth(messages)


def test_health(shared: Path) -> None:
    """Calls without a result and results without a call, counted by `validate` and by the tests' own pairing."""
    files = [shared / "transcripts" / name for name in transcript_files()]
    if not files:
        pytest.skip("no transcripts among the shared data")
    total: Counter[str] = Counter()
    for file in files:
        for messages in sessions(file):
            found = validate(messages)
            pairs = pairing(messages)
            running = [at for at, _ in pairs.unanswered if is_running(messages, at)]
            unanswered = Counter(at for at, _ in pairs.unanswered) - Counter(running)
            orphans = Counter(at for at, _ in pairs.orphans)
            assert Counter(problem.index for problem in found if problem.code == "unanswered_call") == unanswered
            codes = ("orphan_result", "duplicate_result")
            assert Counter(problem.index for problem in found if problem.code in codes) == orphans
            body = next((i for i, message in enumerate(messages) if message["role"] != "system"), 0)
            total["files that begin with a result"] += bool(results_of(messages[body]))
            total["calls without a result"] += unanswered.total() + len(running)
            total["at the end"] += len(running)
    assert total["files that begin with a result"] >= 1
    assert total["calls without a result"] > total["at the end"] >= 1


def is_running(messages: list[Message], index: int) -> bool:
    """Whether nothing but the rest of its response and results comes after a call."""
    rest = itertools.dropwhile(lambda message: message["role"] == "assistant", messages[index + 1 :])
    return all(results_of(message) and not has_user_text(message) for message in rest)


def test_freed_shares(shared: Path) -> None:
    """What the package frees by simple rules is what a few lines of Python say that they free."""
    if not (shared / "transcripts").is_dir():
        pytest.skip("no transcripts among the shared data")
    for name, shares in measure(shared / "transcripts").items():
        assert shares.characters > 0, name
        for rule, one, other in zip(RULES, shares.by_package, shares.by_hand, strict=True):
            # a stub that saves less than a token of its message does not stand
            assert one == pytest.approx(other, rel=1e-4), (name, rule.name)
