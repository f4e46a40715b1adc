"""What matters of a conversation: each reason by hand, what holds of every list, real priorities of tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_sessions import sessions
from cases import has_user_text, results_of
from hypothesis import given
from strategies import Message

from ctxfast import MessageTypeError
from ctxfast.retention import Part, Priority, Segment, priorities, segments

TASK: Message = {"role": "user", "content": "Mend the tests."}
NEXT: Message = {"role": "user", "content": "And now the docs."}
DONE: Message = {"role": "assistant", "content": "Done."}


def step(call_id: str, name: str, output: str, **arguments: Any) -> list[Message]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": output},
    ]


def outputs(messages: list[Message], **options: Any) -> dict[str, str]:
    """Reasons of outputs by the ids of their calls."""
    return {part.call_id: part.reason for part in priorities(messages, **options) if part.place is not None}


FAILED = "Traceback (most recent call last):\nValueError: no\nExit code: 1"


def test_each_reason() -> None:
    messages = [
        {"role": "system", "content": "Be careful."},
        TASK,
        *step("covered", "read_file", "line\n" * 10, path="a.py", offset=1, limit=10),
        *step("whole", "read_file", "line\n" * 90, path="a.py"),
        *step("stale", "read_file", "text", path="b.py"),
        *step("edit", "edit_file", "ok", path="b.py", old="1", new="2"),
        *step("lost", "read_file", "text", path="never_again.py"),
        *step("found", "grep", "a.py:1: price", pattern="price"),
        *step("long", "glob", "x.py\n" * 60, pattern="*.py"),
        *step("red", "bash", FAILED, command="pytest -q tests"),
        *step("open", "bash", FAILED, command="make docs"),
        *step("green", "bash", "12 passed\nExit code: 0", command="pytest -q tests"),
        *step("asked", "ask_user", "Use tabs.", question="Tabs?"),
        {"role": "assistant", "content": "I look at a.py, x.py and b.py again, with pytest -q tests."},
        NEXT,
    ]
    assert outputs(messages) == {
        "covered": "repeat",
        "whole": "read",
        "stale": "outdated",
        "edit": "edit",
        "lost": "exploration",
        "found": "search",
        "long": "verbose",
        "red": "resolved_error",
        "open": "open_error",
        "green": "command",
        "asked": "decision",
    }
    texts = [(part.index, part.reason, part.priority) for part in priorities(messages) if part.place is None]
    assert texts[:3] == [(0, "system", 1), (1, "user", 1), (2, "said", 2)]
    assert texts[-1] == (len(messages) - 1, "task", 1)
    ranks = {part.reason: part.priority for part in priorities(messages)}
    assert ranks["open_error"] == ranks["decision"] == Priority.P1
    assert ranks["read"] == ranks["resolved_error"] == ranks["command"] == Priority.P2
    assert {ranks[name] for name in ("repeat", "outdated", "exploration", "verbose")} == {Priority.P3}


def test_pins_stay() -> None:
    messages = [TASK, *step("a", "read_file", "the secret sauce", path="x.py"), {**DONE, "content": "Sauce it is."}]
    assert outputs(messages) == {"a": "exploration"}
    assert outputs(messages, pins=["secret sauce"]) == {"a": "pinned"}
    assert [part.reason for part in priorities(messages, pins=["Sauce"])] == ["task", "said", "exploration", "pinned"]


def test_results_of_anthropic_have_their_ids() -> None:
    calls = [{"type": "tool_use", "id": name, "name": "bash", "input": {"command": "ls"}} for name in "ab"]
    results = [{"type": "tool_result", "tool_use_id": name, "content": "x"} for name in "ba"]
    text = {"type": "text", "text": "And the docs."}
    messages: list[Message] = [
        TASK,
        {"role": "assistant", "content": calls},
        {"role": "user", "content": [*results, text]},
    ]
    found = [(part.index, part.place, part.reason, part.call_id) for part in priorities(messages)]
    assert found == [
        (0, None, "user", ""),
        (1, None, "said", ""),
        (2, None, "task", ""),
        (2, 0, "command", "b"),
        (2, 1, "command", "a"),
    ]


def test_tasks() -> None:
    broken = step("a", "bash", FAILED, command="make docs")
    messages = [{"role": "system", "content": "s"}, TASK, *step("x", "bash", "ok", command="ls"), DONE, NEXT, *broken]
    assert segments(messages) == [Segment(1, 5, True), Segment(5, 8, False)]
    messages = [*messages, DONE, TASK, DONE]
    assert segments(messages) == [Segment(1, 5, True), Segment(5, 9, False), Segment(9, 11, False)]
    assert segments([]) == []


@given(sessions)
def test_what_holds_of_every_list(messages: list[Message]) -> None:
    parts = priorities(messages)
    assert [(part.index, -1 if part.place is None else part.place) for part in parts] == sorted(
        (part.index, -1 if part.place is None else part.place) for part in parts
    )
    found = [part for part in parts if part.place is not None]
    assert len(found) == sum(len(results_of(message)) for message in messages)
    for part in parts:
        assert part.priority in (1, 2, 3)
        assert part.tokens >= 0
    said = [part.index for part in parts if part.reason in ("user", "task", "pinned")]
    users = [index for index, message in enumerate(messages) if has_user_text(message)]
    assert set(said) <= set(users)
    tasks = [part for part in parts if part.reason == "task"]
    assert len(tasks) <= 1
    covered = [stop for segment in segments(messages) for stop in (segment.start, segment.stop)]
    assert covered == sorted(covered)


def test_nothing_is_no_list() -> None:
    assert priorities([]) == []
    assert priorities([TASK]) == [Part(0, None, Priority.P1, "task", 8, "")]
    with pytest.raises(MessageTypeError):
        priorities([5])
