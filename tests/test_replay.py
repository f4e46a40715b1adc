"""The bench that replays sessions (`benches/replay.py`) measures what it says; on real sessions its gates are met.

Most of it is about made-up sessions. The real ones are the optional data.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import growing_sessions
import pytest
from cases import Message

from benches.replay import (
    ANTHROPIC,
    FIT_ONLY,
    FRONT,
    NEVER,
    PRESETS,
    WIDE,
    Bench,
    Outcome,
    Way,
    gates,
    into_page,
    opencode_agrees,
    opencode_prunes,
    preset,
    replay,
    table,
    usable,
)
from benches.sessions import Need, Session, needs_of, quoted, requests_of, session, sessions
from ctxfast import CachePrices, PrunePolicy

ALL = PrunePolicy(protected_steps=1, protected_tokens=0, prune_threshold=0, batch="all", min_saved=0, superseded="off")
EAGER = Way(dataclasses.replace(ALL, keep_errors="none", keep_tools=(), keep_paths=()))
"""Each output that the model has seen becomes a stub at once."""
LATE = Way(dataclasses.replace(ALL, protected_tokens=20_000))
"""Each becomes one, alone, when there are 20,000 tokens behind it that have to be written again."""


@pytest.fixture(scope="module")
def real(shared: Path) -> list[Session]:
    """The real sessions."""
    found = list(sessions(shared / "transcripts"))
    if not found:
        pytest.skip("no transcripts among the shared data")
    return found


def made_up(steps: int, turns: int = 1, seed: int = 1, **changes: Any) -> Session:
    """A session of an agent; nothing in it is needed again."""
    messages = growing_sessions.session(steps, turns=turns, seed=seed)[1:]
    messages = [{**message, "position": at} for at, message in enumerate(messages)]
    return dataclasses.replace(Session("Claude Code", f"made up {seed}", messages, {}, 4.0), **changes)


def common(role: str, text: str, **more: Any) -> Message:
    """A message in the common form of the loaders."""
    empty: Message = {"calls": [], "reasoning": "", "call_id": None, "error": False, "images": []}
    return {**empty, "flags": [], "model": None, "role": role, "text": text, **more}


def step(number: int, tool: str, arguments: str, output: str, said: str = "") -> list[Message]:
    """A call and its output."""
    call = {"id": f"c{number}", "name": tool, "args": arguments}
    return [common("assistant", said, calls=[call]), common("tool", output, call_id=f"c{number}")]


def from_steps(*steps: list[Message]) -> Session:
    """A session from such steps."""
    part = [common("user", "go"), *(message for one in steps for message in one)]
    return session("Claude Code", "by hand", part, 1.0)


# ------------------------------------------------------------------------------------------------------------ cost


def test_pruning_nothing_costs_what_never_pruning_costs() -> None:
    one = made_up(60)
    nothing = replay(one, Way(PrunePolicy(only_tools=())), WIDE, ANTHROPIC)
    assert nothing == replay(one, NEVER, WIDE, ANTHROPIC)
    assert (nothing.requests, nothing.broken, nothing.pruned, nothing.lost) == (60, 0, 0, 0)
    assert Bench([one]).compare(Way(PrunePolicy(only_tools=())), WIDE, fit=True).share == 1.0


def test_cost_by_hand() -> None:
    """Two requests: the first is written, of the second what is new."""
    one = from_steps([common("assistant", "x" * 100)], [common("user", "x" * 40)], [common("assistant", "x" * 7)])
    first, new = FRONT + 2, 100 + 40  # "go"
    cost = replay(one, NEVER, WIDE, CachePrices(read=0.25, write=2.0)).cost
    assert cost == 2.0 * first + 0.25 * first + 2.0 * new
    assert replay(one, NEVER, WIDE, None).cost == first + first + new


def test_breaking_the_prefix_all_the_time_is_dear() -> None:
    one = made_up(100)
    never, late, default = (replay(one, way, WIDE, ANTHROPIC) for way in (NEVER, LATE, preset("default")))
    assert late.broken > 0.4 * late.requests
    assert late.pruned > 30
    assert 0 < default.broken < 0.1 * default.requests
    assert default.cost < 0.9 * never.cost
    assert late.cost > 1.1 * never.cost


def test_without_a_cache_every_stub_saves() -> None:
    one = made_up(60)
    never, late, default = (replay(one, way, WIDE, None).cost for way in (NEVER, LATE, preset("default")))
    eager = replay(one, EAGER, WIDE, None)
    assert eager.broken > 0.9 * eager.requests
    assert eager.cost < default < never
    assert late < never


def test_what_is_too_large() -> None:
    """A window that the session passes: fitting keeps to it, never pruning does not."""
    one, window = made_up(200), 64_000
    never, fitted = (replay(one, way, window, ANTHROPIC) for way in (NEVER, FIT_ONLY))
    assert never.over_window > 50
    assert never.over_usable > never.over_window
    assert (fitted.over_window, fitted.over_usable) == (0, 0)
    assert never.lost == 0
    assert fitted.pruned == 0
    assert fitted.lost > 50
    assert 0 < fitted.broken < 0.2 * fitted.requests
    both = replay(one, preset("default"), window, ANTHROPIC)
    assert (both.over_window, both.over_usable) == (0, 0)
    assert both.pruned > 0


def test_what_does_not_fit_is_counted() -> None:
    part = [common("user", "x" * 50_000), *step(1, "bash", "{}", "ok"), common("assistant", "done")]
    huge = session("Claude Code", "huge", part, 1.0)
    assert FRONT + 50_000 > 64_000 > usable(64_000)
    found = replay(huge, preset("default"), 64_000, ANTHROPIC)
    assert (found.requests, found.over_window, found.over_usable) == (2, 2, 2)


def test_sessions_are_compared_with_what_they_need() -> None:
    """Those that fit with never pruning, the others with fitting alone; a window decides."""
    small, large = made_up(20, seed=1), made_up(500, seed=2)
    bench = Bench([small, large])
    assert [bench.fits(at, WIDE) for at in (0, 1)] == [True, False]
    below, above = (bench.compare(preset("default"), WIDE, fit=fit) for fit in (True, False))
    assert list(below.shares) == [small.name]
    assert list(above.shares) == [large.name]
    assert below.base == replay(small, NEVER, WIDE, ANTHROPIC).cost
    assert above.base == replay(large, FIT_ONLY, WIDE, ANTHROPIC).cost
    assert Bench([]).compare(NEVER, WIDE, fit=True).one == Outcome()


# ----------------------------------------------------------------------------------------------------------- regrets

LINE = "the parser of headers reads one line"  # more than one quote
LONG = "\n".join(f"{number} {'word ' * 8}" for number in range(3_000))
OLD = LINE + "\n" + LONG


def test_a_quote_of_what_is_gone_is_a_regret() -> None:
    filler = [step(number, "bash", f'{{"command": "run {number}"}}', str(number) + LONG) for number in range(2, 6)]
    last = step(9, "bash", '{"command": "last"}', "", said=f"I saw: {LINE}.")
    gone = from_steps(step(1, "bash", '{"command": "first"}', OLD), *filler, last)
    at = requests_of(gone.messages)
    need = Need(request=len(at) - 1, sources=(2,), quotes=len(LINE) - 23)
    assert gone.needs == {need.request: [need]}
    found = replay(gone, EAGER, WIDE, ANTHROPIC)
    assert (found.pruned, found.regrets) == (4, 1)  # the newest one is whole
    assert replay(gone, NEVER, WIDE, ANTHROPIC).regrets == 0

    young = from_steps(*filler, step(1, "bash", '{"command": "first"}', OLD), last)
    assert replay(young, EAGER, WIDE, ANTHROPIC).regrets == 0  # the newest step is whole
    copied = from_steps(
        step(1, "bash", '{"command": "a"}', OLD), *filler, step(8, "bash", '{"command": "b"}', OLD), last
    )
    assert copied.needs[len(at)][0].sources == (2, 12)
    assert replay(copied, EAGER, WIDE, ANTHROPIC).regrets == 0  # the second copy is


def test_what_is_read_or_run_again_is_a_regret() -> None:
    numbered = "\n".join(f"{number:6d}\t    value_{number} = compute({number})" for number in range(1, 900))
    for tool, arguments in (("Read", '{"file_path": "a.py"}'), ("Bash", '{"command": "make"}')):
        filler = [step(number, "Bash", f'{{"command": "run {number}"}}', str(number) + LONG) for number in range(2, 6)]
        first, *more = (step(number, tool, arguments, numbered) for number in (1, 7, 8))
        again = from_steps(first, *filler[:2], *more, *filler[2:])
        assert replay(again, EAGER, WIDE, ANTHROPIC).regrets == 1, tool
        kept = from_steps(first, *more, *filler)
        assert replay(kept, EAGER, WIDE, ANTHROPIC).regrets == 0, tool


def test_what_a_quote_is() -> None:
    def found(*messages: Message) -> dict[tuple[int, tuple[int, ...]], int]:
        return dict(quoted(list(messages)))

    tool, agent, user = common("tool", LINE), common("assistant", LINE), common("user", LINE)
    many = len(LINE) - 23
    assert found(tool, agent) == {(1, (0,)): many}
    assert found(tool, tool, agent, agent) == {(2, (0, 1)): many}
    assert found(tool, user, agent) == {}  # a user has said it
    assert found(agent, tool, agent) == {}  # the agent had said it
    assert found(tool, agent, tool) == {(1, (0,)): many}
    assert found(common("tool", LINE[:23]), common("assistant", LINE[:23])) == {}
    assert found(common("tool", "-" * 40), common("assistant", "-" * 40)) == {}
    thought = common("assistant", "", reasoning=LINE)
    called = common("assistant", "", calls=[{"id": "a", "name": "edit", "args": '{"old": "' + LINE + '"}'}])
    assert found(tool, thought) == found(tool, called) == {(1, (0,)): many}


def test_a_call_that_has_another_output_now_needs_nothing() -> None:
    for output, needs in (("same", 1), ("other", 0)):
        part = [common("user", "go"), *step(1, "bash", "{}", "same"), *step(2, "bash", "{}", output)]
        assert len(list(needs_of(part, requests_of(part)))) == needs


# ---------------------------------------------------------------------------------------------------------- opencode


def test_opencode_by_hand() -> None:
    """61 outputs of 1,000 tokens: 40 stay, 21 are more than 20,000; in one turn, and with 60, nothing goes."""

    def messages(count: int, turns: int) -> list[Message]:
        steps = [step(number, "bash", "{}", "x" * 4_000) for number in range(count)]
        later = [common("user", "go on"), common("assistant", "done")] * turns
        return from_steps(*steps, later).messages

    assert opencode_prunes(messages(61, 2), set()) == {2 * number + 2 for number in range(21)}
    assert opencode_prunes(messages(61, 1), set()) == set()
    assert opencode_prunes(messages(61, 0), set()) == set()
    assert opencode_prunes(messages(60, 2), set()) == set()
    assert opencode_prunes(messages(61, 2), {2}) == set()  # 20 more
    assert opencode_prunes(messages(90, 2), {2}) == {2 * number + 2 for number in range(1, 50)}


def test_the_preset_clears_what_opencode_clears() -> None:
    several = [made_up(120, turns=12, seed=seed) for seed in range(3)]
    for message in (message for one in several for message in one.messages if message["role"] == "tool"):
        message["is_error"] = message["content"].endswith("exit code: 1")  # as the text says
    found = opencode_agrees(several)
    assert found.requests > 360
    assert found.cleared > 30
    assert found.cleared_by_both > 0.9 * found.cleared
    assert found.nearly >= 0.99 * found.requests


def test_the_preset_clears_what_opencode_clears_in_real_sessions(real: list[Session]) -> None:
    found = opencode_agrees(real)
    assert found.cleared > 100
    assert found.nearly >= 0.999 * found.requests  # half a token of rounding decides in the others


# ------------------------------------------------------------------------------------------------------------- gates


def test_gates(real: list[Session]) -> None:
    bench = Bench(real)
    assert [gate for gate in gates(bench) if not gate.met] == []
    below = {name: bench.compare(preset(name), WIDE, fit=True) for name in ("careful", "default", "thrifty")}
    assert below["default"].one.requests > 1_000
    assert below["thrifty"].share < below["default"].share < below["careful"].share < 1


def test_a_gate_can_fail() -> None:
    bench = Bench([made_up(60)])
    assert bench.compare(NEVER, WIDE, fit=True).share == 1.0 > 0.90
    assert bench.compare(EAGER, WIDE, fit=True).broken > 0.05
    met = {gate.what: gate.met for gate in gates(Bench([]))}
    assert not met["fits 200k: cost, of never pruning"]  # nothing measured is nothing met


def test_every_preset_is_replayed() -> None:
    policies = {getattr(PrunePolicy, name)() for name in PRESETS}
    of_class = [name for name, value in vars(PrunePolicy).items() if isinstance(value, classmethod)]
    assert sorted(PRESETS) == sorted(of_class)
    assert len(policies) == len(PRESETS)


def test_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- table: gates -->\n| old |\n<!-- end -->\nb\n", encoding="utf-8")
    into_page(page, "gates", table(["", "x"], [["a", "1"]]))
    text = "a\n<!-- table: gates -->\n|  | x |\n| --- | --: |\n| a | 1 |\n<!-- end -->\nb\n"
    assert page.read_text(encoding="utf-8") == text
    with pytest.raises(ValueError, match="no place"):
        into_page(page, "prices", "")
