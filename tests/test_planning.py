"""Planning a session: the block as it was asked for, where the figures come from, the verdict, the split."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxfast import (
    BudgetError,
    ContextBudget,
    Level,
    ReadLog,
    SessionPlan,
    Task,
    TokenCounter,
    count_tokens,
    plan_read,
    plan_session,
    prune_tool_outputs,
)
from ctxfast.logs import load
from ctxfast.planning import Session, TaskCost, averages_of, split, usual

ROOT = Path(__file__).parent.parent
BUDGET = ContextBudget(200_000)
COUNTER = TokenCounter.default()


def session() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = load(ROOT / "examples" / "session.json").messages
    return messages


def given_task(tokens: int, name: str = "work") -> Task:
    return Task(name, calls=0, output=tokens)


# ------------------------------------------------------------------------------------------------ the block


def test_the_block(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("total = 1\n" * 300)
    size = COUNTER.text(path.read_text())
    task = Task("fix", reads=(path,), calls=0, output=1_500)
    plan = plan_session(BUDGET, 100_000, [task, {"name": "more", "calls": {"Bash": 2}, "output": 0}])
    bash = usual(COUNTER).kinds["command"].tokens
    assert str(plan) == (
        "## Token Budget Estimate\n"
        "- Current usage: ~50% of context window\n"
        "- Available for this task: ~53,000 tokens\n"
        "- Estimated task cost:\n"
        f"  - File reads: 1 files x ~{size:,} tokens = {size:,}\n"
        f"  - Tool calls: 2 calls x ~{bash:,} tokens = {2 * bash:,}\n"
        "  - Output generation: ~1,500 tokens\n"
        "- **Verdict:** sufficient"
    )
    assert plan.tokens == size + 2 * bash + 1_500


@given(
    st.integers(1_000, 10**6),
    st.integers(0, 10**6),
    st.lists(
        st.builds(Task, st.text(), st.integers(0, 9), st.none() | st.integers(0, 99), st.integers(0, 10**5)), max_size=4
    ),
)
def test_the_block_always_has_its_form(window: int, used: int, tasks: list[Task]) -> None:
    plan = plan_session(ContextBudget(window), used, tasks)
    number = r"[\d,]+"
    form = (
        rf"## Token Budget Estimate\n- Current usage: ~\d+% of context window\n"
        rf"- Available for this task: ~{number} tokens\n- Estimated task cost:\n"
        rf"  - File reads: {number} files x ~{number} tokens = {number}\n"
        rf"  - Tool calls: {number} calls x ~{number} tokens = {number}\n"
        rf"  - Output generation: ~{number} tokens\n"
        r"- \*\*Verdict:\*\* (sufficient|tight|insufficient - compact first)"
    )
    assert re.fullmatch(form, str(plan))
    assert plan.tokens == plan.reads[1] + plan.calls[1] + plan.output == sum(task.tokens for task in plan.tasks)
    json.dumps(plan.as_dict())
    assert isinstance(plan.details(), str)


# ------------------------------------------------------------------------------------------------ the verdict


@pytest.mark.parametrize(
    ("used", "tokens", "verdict"),
    [
        (0, 134_999, "sufficient"),  # hard limit 180,000: SUMMARIZE from 135,000 on
        (0, 135_000, "tight"),
        (100_000, 34_999, "sufficient"),
        (100_000, 53_000, "tight"),
        (100_000, 53_001, "insufficient"),
        (160_000, 0, "insufficient"),
        (140_000, 0, "tight"),
        (0, 0, "sufficient"),
    ],
)
def test_the_verdict(used: int, tokens: int, verdict: str) -> None:
    plan = plan_session(BUDGET, used, [given_task(tokens)])
    assert plan.verdict == verdict
    assert plan.available == BUDGET.room(used)
    if verdict == "sufficient":
        assert BUDGET.level(used + tokens) < Level.SUMMARIZE
        assert (plan.compact_first, plan.sessions, plan.notes) == ((), (), ())
    if verdict == "tight":
        assert plan.sessions == ()


def test_a_soft_limit_and_no_margin() -> None:
    soft = ContextBudget(200_000, soft_limit=17_000)
    assert [plan_session(soft, 0, [given_task(tokens)]).verdict for tokens in (14_999, 15_000, 17_001)] == [
        "sufficient",
        "tight",
        "insufficient",
    ]
    bare = ContextBudget(100_000, 20_000, None, 0.0)
    assert [plan_session(bare, 0, [given_task(tokens)]).verdict for tokens in (59_999, 60_000, 80_001)] == [
        "sufficient",
        "tight",
        "insufficient",
    ]


def test_an_unknown_window_decides_nothing() -> None:
    plan = plan_session(ContextBudget(None), 12_345, [given_task(10**9)])
    assert (plan.verdict, plan.available, plan.sessions) == ("unknown", None, ())
    assert "- Current usage: ~12,345 tokens (context window not known)" in str(plan)
    assert "- Available for this task: not known" in str(plan)
    assert str(plan).endswith("- **Verdict:** unknown - the context window is not known")


# ------------------------------------------------------------------------------------------------ reads


def test_reads_are_looked_at(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "data.bin"
    page.write_text("# A\n" + "some words here\n" * 200 + "## Costs\nTwo days.\n")
    data.write_bytes(b"\0\1" * 500)
    reads = (page, {"path": page, "section": "Costs"}, str(tmp_path / "missing.py"), data)
    plan = plan_session(BUDGET, 0, [Task("read", reads=reads, calls=0, output=0)])
    whole, section, missing, binary = plan.tasks[0].reads
    assert whole.tokens == COUNTER.text(page.read_text())
    assert (section.part, section.tokens) == ("section Costs", COUNTER.text("## Costs\nTwo days.\n"))
    assert missing.tokens == usual(COUNTER).read.tokens
    assert missing.source == "987 sessions of coding agents"
    assert binary.tokens == 0
    assert [note for note in plan.notes if "does not exist" in note]
    assert [note for note in plan.notes if "is no text" in note]


def test_a_file_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 2_000)
    size = COUNTER.text(path.read_text())
    tasks = [Task("one", reads=(path, path), calls=0, output=0), Task("two", reads=(path,), calls=0, output=0)]
    plan = plan_session(BUDGET, 0, tasks)
    assert plan.reads == (1, size)
    assert [task.tokens for task in plan.tasks] == [size, size]
    assert plan.tokens == size


def test_what_was_read_before_costs_its_summary(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 2_000)
    log = ReadLog()
    log.record(path, summary="two thousand times the same")
    plan = plan_session(BUDGET, 0, [Task("one", reads=(path,), calls=0, output=0)], log=log)
    (read,) = plan.tasks[0].reads
    assert read.tokens == COUNTER.text("two thousand times the same")
    assert read.source == "read before, unchanged"
    assert read.anew == COUNTER.text("word " * 2_000)  # what a new session pays


def test_directories_are_errors(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        plan_session(BUDGET, 0, [Task("x", reads=(tmp_path,))])


# ------------------------------------------------------------------------------------------------ averages


def test_averages_of_other_sessions_are_in_tokens_of_the_counter() -> None:
    by_character = usual(TokenCounter.from_callable(len))
    assert by_character.read.tokens == 9_200 + 440
    assert by_character.call.tokens == 4_040 + 440
    assert by_character.output.tokens == 350 * 11
    assert by_character.turn_calls.tokens == 14
    assert by_character.of_tool("Bash").tokens == 3_000 + 440
    assert by_character.of_tool("something").tokens == 1_900 + 440
    claude = usual(TokenCounter.for_model("claude-opus-4-7"))
    assert claude.read.tokens > 1.3 * usual(COUNTER).read.tokens


def test_other_sessions_are_those_that_were_measured(shared: Path) -> None:
    profile = json.loads((shared / "transcripts" / "tools" / "profile_measured.json").read_text())
    agents = [profile[name]["counter"] for name in ("claude-code", "codex-rollout", "opencode")]

    def total(name: str) -> int:
        return sum(agent.get(name, 0) for agent in agents)

    assert pytest.approx(total("chars_tool") / total("tool_n"), rel=0.01) == 4_040
    assert pytest.approx(total("chars_call_args") / total("calls"), rel=0.01) == 440
    assert pytest.approx((total("chars_assistant") + total("chars_reasoning")) / total("asst"), rel=0.01) == 350
    assert pytest.approx(10.8 * total("calls") / total("asst"), rel=0.05) == 14


def test_averages_of_the_transcript() -> None:
    messages = session()
    averages = averages_of(COUNTER, messages, None)
    costs: dict[str, list[int]] = {}
    waiting: list[tuple[str, str, str]] = []  # id, tool, arguments; ids repeat, so the newest one counts
    for message in messages:
        for call in message.get("tool_calls") or ():
            waiting.append((call["id"], call["function"]["name"], call["function"]["arguments"]))
        if message["role"] == "tool":
            place = max(place for place, call in enumerate(waiting) if call[0] == message["tool_call_id"])
            _, name, words = waiting.pop(place)
            content = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
            costs.setdefault(name, []).append(COUNTER.text(content) + COUNTER.text(words))
    for tool, tokens in costs.items():
        if len(tokens) >= 5:
            assert averages.tools[tool].tokens == round(sum(tokens) / len(tokens))
            assert averages.tools[tool].source == f"transcript, {len(tokens)} calls"
        else:
            assert tool not in averages.tools
    assert averages.call.source == f"transcript, {sum(map(len, costs.values()))} calls"
    plan = plan_session(BUDGET, 0, ["as usual"], messages=messages)
    (calls,) = plan.tasks[0].calls
    assert (calls.calls, calls.average) == (averages.turn_calls.tokens, averages.call.tokens)
    assert plan.tasks[0].output == averages.output.tokens


def test_pruned_outputs_are_no_measure() -> None:
    messages = session()
    pruned = prune_tool_outputs(messages, protected_steps=1, protected_tokens=0, prices=None)
    assert pruned.report.items
    gone = len(pruned.report.items)
    before, after = (averages_of(COUNTER, list(given), None) for given in (messages, pruned.messages))
    assert int(before.call.source.split()[1]) - int(after.call.source.split()[1]) == gone


def test_a_cost_log_comes_first(tmp_path: Path) -> None:
    calls = [{"tool": "Read", "tokens": 1_000, "task": "a"}] * 3 + [{"tool": "Read", "tokens": 2_000, "task": "b"}] * 3
    answers: list[dict[str, Any]] = [{"usage": {"input_tokens": 9_000, "output_tokens": 300}, "task": "a"}] * 6
    few: list[dict[str, Any]] = [{"tool": "Grep", "tokens": 7}] * 4
    broken: list[dict[str, Any]] = [{"what": 1}, {"tool": "Read", "tokens": -5}, {"tool": "Read", "tokens": True}]
    records: list[dict[str, Any]] = [*calls, *answers, *few, *broken]
    path = tmp_path / "costs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + "{cut")
    tasks = [Task("x", reads=1, calls={"Read": 2, "Grep": 1})]
    for costs in (records, path):
        plan = plan_session(BUDGET, 0, tasks, costs=costs, messages=session())
        read, grep = plan.tasks[0].calls
        assert (read.average, read.source) == (1_500, "cost log, 6 calls")
        assert grep.source == "987 sessions of coding agents"  # four are too few, and the transcript has none
        assert plan.tasks[0].reads[0].tokens == 1_500
        assert plan.tasks[0].output == 6 * 300 // 2
        assert "3 records of the cost log hold neither a call nor an answer" in plan.notes
        assert any("damaged" in note for note in plan.notes) == (costs is path)


def test_no_cost_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plan_session(BUDGET, 0, [], costs=tmp_path / "missing.jsonl")
    with pytest.raises(TypeError, match="dicts"):
        plan_session(BUDGET, 0, [], costs=[1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="one record"):
        plan_session(BUDGET, 0, [], costs={"tool": "x"})  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ compaction


def test_what_to_compact_first() -> None:
    messages, budget = session(), ContextBudget(64_000)
    plan = plan_session(budget, count_tokens(messages), [given_task(20_000)], messages=messages)
    assert plan.verdict == "insufficient"
    report = prune_tool_outputs(messages, budget=budget.usable, prices=None).report
    assert plan.freed == report.saved > 0
    assert {output.index for output in plan.compact_first} == {edit.index for edit in report.items}
    stale = [output.reason in ("covered", "edited") for output in plan.compact_first]
    assert stale == sorted(stale, reverse=True)
    assert any(stale)
    details = plan.details()
    assert f"Compact first: frees ~{plan.freed:,} tokens" in details
    assert f"messages[{plan.compact_first[0].index}]" in details
    (only,) = plan.sessions  # compaction makes enough room
    assert only.running
    assert not only.too_large


def test_without_messages_nobody_knows_what_to_compact() -> None:
    plan = plan_session(BUDGET, 150_000, [given_task(10_000)])
    assert plan.compact_first == ()
    assert "what to compact first is not known without `messages`" in plan.notes


# ------------------------------------------------------------------------------------------------ the split


def test_a_split_by_hand() -> None:
    tasks = [given_task(tokens, name) for tokens, name in ((40_000, "a"), (20_000, "b"), (100_000, "c"), (60_000, "d"))]
    plan = plan_session(BUDGET, 100_000, tasks)
    assert plan.sessions == (
        Session((0,), 40_000, 53_000, True),
        Session((1, 2), 120_000, 150_000, False),
        Session((3,), 60_000, 150_000, False),
    )
    assert "a new session is assumed to begin with 3,000 tokens" in plan.notes
    other = plan_session(BUDGET, 100_000, tasks, start=53_000)
    assert [session.tasks for session in other.sessions] == [(0,), (1,), (2,), (3,)]
    assert [session.room for session in other.sessions] == [53_000, 100_000, 100_000, 100_000]


def test_a_task_that_is_too_large_is_named() -> None:
    plan = plan_session(BUDGET, 100_000, [given_task(10), given_task(200_000, "everything"), given_task(10)])
    assert [(session.tasks, session.too_large) for session in plan.sessions] == [
        ((0,), False),
        ((1,), True),
        ((2,), False),
    ]
    assert "'everything' is larger than a new session" in plan.notes
    assert "too large, make it smaller" in plan.details()


def test_a_new_session_has_what_the_list_does_not_show() -> None:
    messages = session()
    assert messages[0]["role"] == "system"
    used = count_tokens(messages) + 10_000  # the provider counts tools, too
    plan = plan_session(ContextBudget(64_000), used, [given_task(60_000)], messages=messages)
    expected = count_tokens(messages[:1]) + 10_000 + 3_000
    assert f"a new session is assumed to begin with {expected:,} tokens" in plan.notes


def test_a_file_is_read_again_in_a_new_session(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("word " * 20_000)
    tokens = plan_read(path, "all").tokens
    tasks = [Task(name, reads=(path,), calls=0, output=output) for name, output in (("a", 0), ("b", 0), ("c", 60_000))]
    budget = ContextBudget(100_000)
    plan = plan_session(budget, 0, tasks)
    assert plan.tokens == tokens + 60_000
    first, second = plan.sessions
    assert (first.tasks, first.tokens) == ((0, 1), tokens)
    assert (second.tasks, second.tokens) == ((2,), tokens + 60_000)


@given(st.lists(st.integers(0, 1_000), max_size=20), st.integers(0, 1_500), st.integers(0, 1_500))
def test_the_split_has_all_tasks_in_order_and_never_more_than_the_room(sizes: list[int], now: int, new: int) -> None:
    tasks = [TaskCost(given_task(size), (), (), size, "given") for size in sizes]
    sessions = split(tasks, now, new)
    assert [place for session in sessions for place in session.tasks] == list(range(len(sizes)))
    for number, session in enumerate(sessions):
        assert session.tasks
        assert session.running == (number == 0 and session.room == now and (not sizes or sizes[0] <= now))
        assert session.tokens == sum(sizes[place] for place in session.tasks)
        if session.too_large:
            assert len(session.tasks) == 1
            assert sizes[session.tasks[0]] > new
        if number:  # it could not have been done before
            before = sessions[number - 1]
            assert before.tokens + sizes[session.tasks[0]] > before.room


# ------------------------------------------------------------------------------------------------ what cannot be meant


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((200_000, 0, []), TypeError, "budget"),
        ((BUDGET, -1, []), BudgetError, "used"),
        ((BUDGET, float("nan"), []), BudgetError, "used"),
        ((BUDGET, 0, "one"), TypeError, "list of tasks"),
        ((BUDGET, 0, [5]), TypeError, "tasks"),
        ((BUDGET, 0, [{"reads": 1}]), ValueError, "no name"),
        ((BUDGET, 0, [{"name": "x", "files": 1}]), ValueError, "files"),
        ((BUDGET, 0, [{"name": "x", "reads": "a.py"}]), TypeError, "reads"),
        ((BUDGET, 0, [{"name": "x", "reads": (5,)}]), TypeError, "reads"),
        ((BUDGET, 0, [{"name": "x", "reads": -1}]), ValueError, "reads"),
        ((BUDGET, 0, [{"name": "x", "calls": 1.5}]), TypeError, "calls"),
        ((BUDGET, 0, [{"name": "x", "calls": {"Bash": -1}}]), ValueError, "calls"),
        ((BUDGET, 0, [{"name": "x", "output": True}]), TypeError, "output"),
        ((BUDGET, 0, [{"name": 1}]), TypeError, "name"),
    ],
)
def test_errors(arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plan_session(*arguments)


def test_plans_are_frozen_and_the_messages_are_not_changed() -> None:
    messages = session()
    before = json.dumps(messages)
    plan = plan_session(ContextBudget(50_000), 42_000, ["x"], messages=messages)
    assert json.dumps(messages) == before
    assert isinstance(plan, SessionPlan)
    with pytest.raises(AttributeError):
        plan.verdict = "tight"  # type: ignore[misc]


def test_anthropic_messages_and_nested_results() -> None:
    rng = random.Random(7)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(8):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"{number}.py"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "next"}, use]})
        text = "x = 1\n" * rng.randrange(10, 400)
        part = {"type": "tool_result", "tool_use_id": f"t{number}", "content": [{"type": "text", "text": text}]}
        messages.append({"role": "user", "content": [part]})
    averages = averages_of(COUNTER, messages, None)
    assert averages.read.source == "transcript, 8 calls"
    assert averages.turn_calls.tokens == 8
