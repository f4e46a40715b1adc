"""`CompactionPolicy`: presets with the constants of others, plain data, what cannot be meant."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from ctxfast import CachePrices, CompactionPolicy, PrunePolicy
from ctxfast.policy import FitPolicy

PRESETS: dict[str, Callable[[], CompactionPolicy]] = {
    name: getattr(CompactionPolicy, name)
    for name in ("default", "careful", "thrifty", "seed", "opencode", "claude_code", "codex", "anthropic_api")
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_plain_data(name: str) -> None:
    policy = PRESETS[name]()
    data = json.loads(json.dumps(policy.to_dict()))
    assert CompactionPolicy.from_dict(data) == policy
    assert data["version"] == 1


def test_a_policy_of_ones_own_is_plain_data() -> None:
    prune = PrunePolicy(keep_tools=("read", "my_*"), only_tools=("bash",), tools=(("my_*", "search"),), stub="gone")
    policy = CompactionPolicy(
        auto="prune",
        fit=FitPolicy(prune, pin_first=False, clamp_user=True),
        prices=CachePrices(0.5, 1.0, horizon=7.0, cold=True),
        compact_at=0.5,
        trigger_tool_calls=3,
    )
    assert CompactionPolicy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert CompactionPolicy.from_dict(CompactionPolicy(prices=None).to_dict()).prices is None


def test_the_constants_of_others() -> None:
    """Sources: OpenCode's `overflow.ts`, Claude Code's log (167,000 of 180,000), Codex's 90 %, the first design."""
    assert PRESETS["seed"]().trigger_tool_calls == 20
    assert PRESETS["seed"]().prune_at == "level"
    assert PRESETS["opencode"]().compact_at == 1.0
    assert PRESETS["opencode"]().fit.prune == PrunePolicy.opencode()
    assert round(180_000 * (PRESETS["claude_code"]().compact_at or 0)) == 167_000
    assert PRESETS["codex"]().compact_at == 0.9
    assert PRESETS["codex"]().fit.prune.only_tools == ()
    assert PRESETS["anthropic_api"]().fit.prune.trigger_tokens == 100_000
    assert PRESETS["default"]() == CompactionPolicy()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"auto": "on"}, ValueError),
        ({"prune_at": 5}, ValueError),
        ({"fit": PrunePolicy()}, TypeError),
        ({"prices": 0.1}, TypeError),
        ({"tail_tokens": 0}, ValueError),
        ({"tail_tokens": True}, TypeError),
        ({"summary_tokens": None}, TypeError),
        ({"trigger_tool_calls": 1.5}, TypeError),
        ({"low_water": 0}, ValueError),
        ({"low_water": math.nan}, ValueError),
        ({"compact_at": 1.5}, ValueError),
        ({"summarize_timeout": "1"}, TypeError),
        ({"cache_ttl": -1}, ValueError),
        ({"use_structured_summaries": 1}, TypeError),
    ],
)
def test_what_cannot_be_meant(options: dict[str, Any], error: type[Exception]) -> None:
    (name,) = options
    with pytest.raises(error, match=f"^{name}: "):
        CompactionPolicy(**options)


@pytest.mark.parametrize("change", [{"version": 2}, {"version": True}, {"more": 1}])
def test_what_is_no_policy(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"version: expected 1|expected the keys"):
        CompactionPolicy.from_dict({**CompactionPolicy().to_dict(), **change})
    with pytest.raises(TypeError, match="expected a dict, got list"):
        CompactionPolicy.from_dict([])  # type: ignore[arg-type]
