"""The presets of `PrunePolicy` do what the programs with their names are known to do; policies are plain data."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cases import Message, blocks, counters, transcript_loaders

import ctxfast
from ctxfast import CachePrices, EstimatorConfig, PrunePolicy, TokenCounter
from ctxfast.policy import TOOL_KINDS

PRESETS = ("default", "careful", "thrifty", "seed", "opencode", "claude_code", "anthropic_api")
OLD = "[Old tool result content cleared]"


def preset(name: str) -> PrunePolicy:
    """The preset with a name."""
    policy = getattr(PrunePolicy, name)()
    assert isinstance(policy, PrunePolicy)
    return policy


def quarters(package: ModuleType) -> Any:
    """Four characters a token, as in OpenCode and Claude Code."""
    return counters(package).flat(EstimatorConfig(chars_per_token=4.0))


def step(number: int, tool: str, tokens: int, **arguments: Any) -> list[Message]:
    """A call and its result with so many tokens, in Anthropic's form."""
    call = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": arguments or {"path": f"f{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "x" * (4 * tokens)}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def session(*results: tuple[str, int]) -> list[Message]:
    """One user message and a step for each result."""
    steps = [step(number, tool, tokens) for number, (tool, tokens) in enumerate(results)]
    return [{"role": "user", "content": "fix it"}, *(message for one in steps for message in one)]


def shared_out(total: int, count: int) -> list[int]:
    """A total in so many nearly equal parts."""
    return [total // count + (place < total % count) for place in range(count)]


# ------------------------------------------------------------------------------------------------- Claude Code

# All recorded micro-compactions whose results are known: chars/4 of what was cleared, what was kept behind it, the
# same with the newest cleared result, tools of the cleared ones.
CLEARED = [
    (21_292, 39_067, 40_330, {"Read": 5, "Glob": 2, "Edit": 2}),
    (20_132, 36_816, 41_014, {"Read": 8, "Grep": 6, "Glob": 2, "Edit": 2}),
    (35_561, 39_660, 44_318, {"Bash": 18, "Read": 8, "Edit": 3}),
    (26_860, 38_388, 43_429, {"Bash": 37}),
    (45_148, 20_242, 40_520, {"Read": 7}),
    (26_741, 23_828, 43_188, {"Read": 4, "Glob": 1}),
    (20_798, 37_740, 42_140, {"Bash": 5, "Read": 3, "Grep": 3}),
]


def recorded(cleared: int, kept: int, with_newest: int, tools: dict[str, int]) -> tuple[list[Message], int]:
    """A session with these sums, and how many of its results were cleared."""
    newest = with_newest - kept
    names = [tool for tool, count in tools.items() for _ in range(count)]
    sizes = [*shared_out(cleared - newest, len(names) - 1), newest]
    behind = [("Read", tokens) for tokens in shared_out(kept, 12)]
    return session(*zip(names, sizes, strict=True), *behind), len(names)


def prune_like_claude_code(package: ModuleType, messages: list[Message], **options: Any) -> Any:
    return package.prune_tool_outputs(
        messages, policy=PrunePolicy.claude_code(), counter=quarters(package), prices=None, **options
    )


@pytest.mark.parametrize("row", CLEARED, ids=[str(row[0]) for row in CLEARED])
def test_claude_code_clears_what_was_recorded(package: ModuleType, row: tuple[int, int, int, dict[str, int]]) -> None:
    messages, count = recorded(*row)
    pruned = prune_like_claude_code(package, messages)
    assert [item.call_id for item in pruned.report.items] == [f"c{number}" for number in range(count)]
    assert sum(item.before for item in pruned.report.items) == row[0]
    assert all(blocks(pruned.messages[item.index], "tool_result")[0]["content"] == OLD for item in pruned.report.items)


@pytest.mark.parametrize("row", CLEARED, ids=[str(row[0]) for row in CLEARED])
def test_claude_code_waits_for_20_000_tokens(package: ModuleType, row: tuple[int, int, int, dict[str, int]]) -> None:
    _, kept, with_newest, tools = row
    with_newest = min(with_newest, kept + 15_000) if kept > 25_000 else 40_001  # the newest one alone stays below
    kept = max(kept, 25_001)
    for total in (19_999, 20_000):
        messages, _ = recorded(total, kept, with_newest, tools)
        report = prune_like_claude_code(package, messages).report
        assert (report.items, report.blocked_by) == ((), "prune_threshold")
    messages, count = recorded(20_001, kept, with_newest, tools)
    assert len(prune_like_claude_code(package, messages).report.items) == count


def test_claude_code_clears_errors_and_only_its_own_tools(package: ModuleType) -> None:
    messages = session(("Bash", 30_000), ("mcp__db__query", 5_000), ("Task", 5_000), ("Read", 41_000), ("Read", 100))
    blocks(messages[2], "tool_result")[0]["is_error"] = True
    pruned = prune_like_claude_code(package, messages)
    assert [item.tool for item in pruned.report.items] == ["Bash", "Read"]  # the second Read crosses the border


def test_claude_code_on_a_recorded_session(package: ModuleType, shared: Path) -> None:
    """The ids that a log says were cleared, twice in one session; what was cleared before it began is cleared first."""
    folder = shared / "transcripts" / "claude-code"
    compactions = 0
    for file in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        data = file.read_bytes()
        if b"microcompact_boundary" not in data:
            continue
        messages: list[Message] = []
        previous = None
        for _, record in transcript_loaders().jsonl(data):
            if record.get("type") in ("user", "assistant") and not record.get("isSidechain"):
                messages.append(record["message"])
            if record.get("subtype") != "microcompact_boundary":
                continue
            recorded_ids = record["microcompactMetadata"]["compactedToolIds"]
            if previous is None:
                messages = copy.deepcopy(messages)
                for block in (block for message in messages for block in blocks(message, "tool_result")):
                    if block["tool_use_id"] in recorded_ids:
                        break
                    block["content"] = OLD
            pruned = prune_like_claude_code(package, messages, previous=previous)
            assert {item.call_id for item in pruned.report.items if item.new} == set(recorded_ids)
            saved = sum(item.before for item in pruned.report.items if item.new)
            assert abs(saved - record["microcompactMetadata"]["tokensSaved"]) <= len(recorded_ids)
            previous = pruned.report
            compactions += 1
    if not compactions:
        pytest.skip("no log with a micro-compaction among the shared data")


# ---------------------------------------------------------------------------------------------------- OpenCode


GO_ON: list[Message] = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "done"}]


def test_opencode_frees_nothing_in_one_turn(package: ModuleType) -> None:
    messages = session(*[("bash", 1_000)] * 200)
    pruned = package.prune_tool_outputs(messages, policy=PrunePolicy.opencode(), counter=quarters(package), prices=None)
    assert not pruned.report.changed
    assert pruned.report.blocked_by == "protected_turns"
    assert pruned.messages == messages
    assert all(one is other for one, other in zip(pruned.messages, messages, strict=True))

    report = package.prune_tool_outputs(messages, counter=quarters(package)).report
    assert report.before - report.after >= 0.85 * report.before


def test_opencode_frees_what_is_older_than_two_turns_and_40_000_tokens(package: ModuleType) -> None:
    for old, freed in ((20, 0), (21, 21)):
        messages = session(*[("bash", 1_000)] * (old + 40)) + GO_ON + GO_ON
        report = package.prune_tool_outputs(
            messages, policy=PrunePolicy.opencode(), counter=quarters(package), prices=None
        ).report
        assert [item.call_id for item in report.items] == [f"c{number}" for number in range(freed)]


def test_opencode_keeps_errors_and_skills(package: ModuleType) -> None:
    old = session(("bash", 10_000), ("skill", 10_000), ("bash", 10_000), ("read", 15_000), ("read", 41_000))
    blocks(old[6], "tool_result")[0]["is_error"] = True
    messages = [*old, *GO_ON, *GO_ON]
    report = package.prune_tool_outputs(
        messages, policy=PrunePolicy.opencode(), counter=quarters(package), prices=None
    ).report
    assert [item.call_id for item in report.items] == ["c0", "c3", "c4"]


# ---------------------------------------------------------------------------------------------- Anthropic's API


def test_anthropic_api_keeps_three_from_100_000_tokens_on(package: ModuleType) -> None:
    for results, cleared in ((90, 0), (100, 97)):
        messages = session(*[("read_file", 1_000)] * results)
        counter = quarters(package)
        total = sum(counter.message(message) for message in messages)
        assert (total > 100_000) == bool(cleared)
        report = package.prune_tool_outputs(
            messages, policy=PrunePolicy.anthropic_api(), counter=counter, prices=None
        ).report
        assert [item.call_id for item in report.items] == [f"c{number}" for number in range(cleared)]
        assert report.blocked_by == (None if cleared else "trigger_tokens")


def test_anthropic_api_at_exactly_its_trigger(package: ModuleType) -> None:
    messages = session(*[("read_file", 1_000)] * 90)
    counter = quarters(package)
    total = sum(counter.message(message) for message in messages)
    for trigger, cleared in ((total, 0), (total - 1, 87)):
        policy = dataclasses.replace(PrunePolicy.anthropic_api(), trigger_tokens=trigger)
        report = package.prune_tool_outputs(messages, policy=policy, counter=counter, prices=None).report
        assert len(report.items) == cleared


# ------------------------------------------------------------------------------------------------ what is meant


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("protected_turns", -1, ValueError),
        ("protected_steps", 1.0, TypeError),
        ("protected_tokens", True, TypeError),
        ("protected_results", "3", TypeError),
        ("prune_threshold", -1, ValueError),
        ("prune_threshold", "never", ValueError),
        ("prune_threshold", None, TypeError),
        ("batch", "some", ValueError),
        ("trigger_tokens", -1, ValueError),
        ("trigger_tokens", 0.5, TypeError),
        ("min_batch", None, TypeError),
        ("horizon_share", -0.1, ValueError),
        ("horizon_share", float("nan"), ValueError),
        ("horizon_share", float("inf"), ValueError),
        ("horizon_share", "0.2", TypeError),
        ("horizon_share", True, TypeError),
        ("min_saved", -200, ValueError),
        ("superseded", True, ValueError),
        ("keep_errors", "some", ValueError),
        ("keep_tools", "agent", TypeError),
        ("keep_tools", ["agent"], TypeError),
        ("keep_paths", (1,), TypeError),
        ("only_tools", "Read", TypeError),
        ("only_tools", [], TypeError),
        ("tools", (("a", "b", "c"),), TypeError),
        ("tools", (("a", "reader"),), ValueError),
        ("tools", ("ab",), TypeError),
        ("stub", "", ValueError),
        ("stub", " \n", ValueError),
        ("stub", 5, TypeError),
    ],
)
def test_what_cannot_be_meant(field: str, value: object, error: type[Exception]) -> None:
    options: dict[str, Any] = {field: value}
    with pytest.raises(error, match=rf"^{field}: expected "):
        PrunePolicy(**options)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_plain_frozen_data(name: str) -> None:
    policy = preset(name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.min_saved = 1  # type: ignore[misc]
    assert policy == preset(name)
    assert hash(policy) == hash(preset(name))
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert PrunePolicy(**dataclasses.asdict(policy)) == policy
    assert copy.copy(policy) == dataclasses.replace(policy) == policy
    assert from_json(json.loads(json.dumps(dataclasses.asdict(policy)))) == policy


def from_json(data: dict[str, Any]) -> PrunePolicy:
    """A policy from JSON, which knows no tuples."""
    data["tools"] = [tuple(pair) for pair in data["tools"]]
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return PrunePolicy(**fields)


def test_presets_differ() -> None:
    assert len({preset(name) for name in PRESETS}) == len(PRESETS)
    assert PrunePolicy.default() == PrunePolicy()


def test_kinds_of_the_table_can_be_given_back() -> None:
    assert PrunePolicy(tools=TOOL_KINDS).tools == TOOL_KINDS
    messages = session(*[("bash", 1_000)] * 60)
    assert ctxfast.prune_tool_outputs(messages, policy=PrunePolicy(tools=TOOL_KINDS)) == ctxfast.prune_tool_outputs(
        messages
    )


# ------------------------------------------------------------------------------------------------- the defaults

LONG = [("bash", 1_000)] * 60
ERRORS = [("bash", 300)] * 14

# For each field: a value that is not the default, and a session on which that makes a difference.
FIELDS: dict[str, tuple[Any, list[Message]]] = {
    "protected_turns": (1, session(*LONG)),
    "protected_steps": (20, session(*[("bash", 1_000)] * 40)),
    "protected_tokens": (2_000, session(*LONG)),
    "protected_results": (30, session(*LONG)),
    "prune_threshold": (15_000, session(*LONG)),
    "trigger_tokens": (10**6, session(*LONG)),
    "min_batch": (100_000, session(*LONG)),
    "horizon_share": (100.0, session(*[("bash", 1_000)] * 24)),
    "min_saved": (5_000, session(*LONG)),
    "keep_errors": ("all", session(*LONG[:10], *ERRORS, *LONG)),
    "keep_tools": ((), session(*[("Task", 1_000)] * 5, *LONG)),
    "keep_paths": ((), session(*LONG[:-1], ("bash", 1_000))),
    "only_tools": (("read",), session(*LONG)),
    "tools": ((("bash", "agent"),), session(*LONG)),
    "stub": (OLD, session(*LONG)),
    "batch": ("all", session(*LONG)),
    "superseded": ("off", session(*LONG)),
}
for message in FIELDS["keep_errors"][1][22:50:2]:
    blocks(message, "tool_result")[0]["is_error"] = True
FIELDS["keep_paths"][1][1:3] = step(0, "read", 1_000, path="docs/adr/0001.md")
FIELDS["superseded"][1][-14:-12] = step(900, "read", 1_000, path="app.py")
FIELDS["superseded"][1][-12:-10] = step(901, "read", 1_000, path="app.py")


def test_every_field_is_looked_at() -> None:
    assert sorted(FIELDS) == sorted(field.name for field in dataclasses.fields(PrunePolicy))


@pytest.mark.parametrize("field", FIELDS)
def test_no_policy_is_the_default_policy(package: ModuleType, field: str) -> None:
    """A default of the core's that is not the one of `PrunePolicy` would show."""
    other, messages = FIELDS[field]
    threshold = 15_000 if field == "batch" else None  # what `batch` says is about a number
    options: dict[str, Any] = {"counter": quarters(package), "prune_threshold": threshold}
    without = package.prune_tool_outputs(messages, **options)
    assert package.prune_tool_outputs(messages, policy=PrunePolicy(), **options) == without
    assert package.prune_tool_outputs(messages, policy=PrunePolicy.default(), **options) == without
    changed = dataclasses.replace(PrunePolicy(), **{field: other})
    assert package.prune_tool_outputs(messages, policy=changed, **options) != without


def test_default_prices() -> None:
    messages = session(*LONG)
    assert ctxfast.prune_tool_outputs(messages) == ctxfast.prune_tool_outputs(messages, prices=CachePrices())
    assert TokenCounter.default()(messages[1]) == ctxfast.count_tokens(messages[1])
