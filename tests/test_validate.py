"""What a provider would refuse: each code by example, the core against the reference, and real sessions."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cases import raw_claude_code, sessions
from hypothesis import given
from hypothesis import strategies as st
from strategies import broken_conversations, conversations, perhaps_objects, terse_conversations, valid_conversations

import ctxfast
from ctxfast import reference, validate

Message = dict[str, Any]
UA: Message = {"role": "user", "content": "fix it"}
DONE: Message = {"role": "assistant", "content": "done"}


def call(*ids: str, name: str = "bash") -> Message:
    calls = [{"id": one, "type": "function", "function": {"name": name, "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def use(*ids: str, name: str = "bash", front: Message | None = None) -> Message:
    calls = [{"type": "tool_use", "id": one, "name": name, "input": {}} for one in ids]
    return {"role": "assistant", "content": [front, *calls] if front else calls}


def answer(*ids: str, before: str = "", after: str = "") -> Message:
    results = [{"type": "tool_result", "tool_use_id": one, "content": "ok"} for one in ids]
    front = [{"type": "text", "text": before}] if before else []
    return {"role": "user", "content": [*front, *results, *([{"type": "text", "text": after}] if after else [])]}


EXAMPLES: dict[str, tuple[list[Message], list[tuple[str, int]]]] = {
    "nothing wrong": ([UA, call("a", "b"), result("b"), result("a"), DONE, UA], []),
    "nothing wrong in the other form": ([UA, use("a", "b"), answer("b", "a", after="and the docs"), DONE], []),
    "a call that is still running": ([UA, call("a", "b"), result("a")], []),
    "ids that repeat": ([UA, call("x"), result("x"), call("x"), result("x"), DONE], []),
    "hosted calls": (
        [UA, {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web", "input": {}}]}],
        [],
    ),
    "orphan": ([result("gone"), UA, DONE], [("orphan_result", 0)]),
    "duplicate": ([UA, call("a"), result("a"), result("a"), DONE], [("duplicate_result", 3)]),
    "interrupted": ([UA, call("a"), UA, DONE], [("unanswered_call", 1)]),
    "a user message in between": ([UA, call("a"), UA, result("a"), DONE], [("result_out_of_order", 3)]),
    "half late": ([UA, call("a", "b"), result("a"), UA, result("b"), DONE], [("split_parallel_group", 4)]),
    "two messages of results": ([UA, use("a", "b"), answer("a"), answer("b"), DONE], [("split_parallel_group", 3)]),
    "blank id": ([UA, call(" "), result(" "), DONE], [("blank_id", 1), ("blank_id", 2)]),
    "blank name": ([UA, call("a", name=""), result("a"), DONE], [("blank_name", 1)]),
    "blank name in the other form": ([UA, use("a", name=" "), answer("a"), DONE], [("blank_name", 1)]),
    "one id twice": ([UA, use("a", "a"), answer("a", "a"), DONE], [("duplicate_call_id", 1)]),
    "one id twice, OpenAI": ([UA, call("a", "a"), result("a"), result("a"), DONE], []),
    "nobody asks": ([{"role": "system", "content": "be kind"}, DONE], [("no_user_message", 1)]),
    "an empty list": ([], [("no_user_message", 0)]),
    "the model speaks first": ([DONE, UA, use("a"), answer("a")], [("first_not_user", 0)]),
    "empty": ([UA, use("a"), answer("a"), {"role": "assistant", "content": []}, UA], [("empty_message", 3)]),
    "an empty last answer": ([UA, use("a"), answer("a"), {"role": "assistant", "content": []}], []),
    "empty text": (
        [UA, use("a", front={"type": "text", "text": ""}), answer("a")],
        [("empty_text", 1)],
    ),
    "text before results": ([UA, use("a"), answer("a", before="well"), DONE], [("result_after_text", 2)]),
    "thinking without signature": (
        [UA, use("a", front={"type": "thinking", "thinking": "hm"}), answer("a")],
        [("thinking_without_signature", 1)],
    ),
    "forms mixed": (
        [UA, call("a"), result("a"), use("b"), answer("b"), DONE],
        [("mixed_forms", 3), ("mixed_forms", 4)],
    ),
    "a role that nobody knows": ([{"role": "critic", "content": "hm"}, UA], [("unknown_role", 0)]),
    "a tool's role in the other form": (
        [UA, use("a"), answer("a"), result("a")],
        [("unknown_role", 3), ("duplicate_result", 3)],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("module", [ctxfast, reference])
def test_codes(module: Any, name: str) -> None:
    messages, expected = EXAMPLES[name]
    assert [(problem.code, problem.index) for problem in module.validate(messages)] == expected


def test_every_code_has_an_example_and_is_documented() -> None:
    shown = {code for _, expected in EXAMPLES.values() for code, _ in expected}
    documented = set(validate.__doc__.split("`")) if validate.__doc__ else set()
    assert shown <= documented
    names = {"orphan_result", "duplicate_result", "unanswered_call", "result_out_of_order", "split_parallel_group"}
    names |= {"blank_id", "blank_name", "duplicate_call_id", "no_user_message", "first_not_user", "empty_message"}
    names |= {"empty_text", "result_after_text", "thinking_without_signature", "mixed_forms", "unknown_role"}
    assert shown == names


def test_a_gateway_to_anthropic_has_its_rules() -> None:
    messages = [DONE, UA, call("a"), result("a"), {"role": "assistant", "content": ""}, UA]
    assert validate(messages) == []
    codes = [(problem.code, problem.index) for problem in validate(messages, provider="anthropic")]
    assert codes == [("first_not_user", 0), ("empty_message", 4)]


def test_a_form_can_be_demanded() -> None:
    messages = [UA, call("a"), result("a"), DONE]
    assert {problem.code for problem in validate(messages, form="anthropic")} == {"mixed_forms", "unknown_role"}
    with pytest.raises(ValueError, match="form: expected 'auto'"):
        validate(messages, form="gemini")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="provider: expected"):
        validate(messages, provider="bedrock")  # type: ignore[arg-type]


def test_problems_read_well() -> None:
    (problem,) = validate([result("call_ü"), UA])
    assert str(problem) == 'messages[0]: the result with id "call_ü" answers no open call (orphan_result)'
    assert problem == validate([result("call_ü"), UA])[0]
    assert len({problem, *validate([result("call_ü"), UA])}) == 1
    assert repr(problem).startswith("Problem(code='orphan_result', index=0")
    with pytest.raises(AttributeError):
        problem.code = "fine"  # type: ignore[misc]
    with pytest.raises(TypeError):
        pickle.dumps(problem)


ANY = st.one_of(
    conversations, valid_conversations, broken_conversations, terse_conversations, perhaps_objects(conversations)
)


@given(ANY, st.sampled_from(["auto", "openai", "anthropic"]), st.sampled_from([None, "openai", "anthropic"]))
def test_the_core_finds_what_the_reference_finds(messages: list[Any], form: Any, provider: Any) -> None:
    found = [(problem.code, problem.index) for problem in validate(messages, form, provider)]
    expected = [(problem.code, problem.index) for problem in reference.validate(messages, form, provider)]
    assert sorted(found) == sorted(expected)
    assert [index for _, index in found] == sorted(index for _, index in found)


@given(
    st.one_of(valid_conversations, broken_conversations, terse_conversations),
    st.integers(1, 400),
    st.sampled_from(["openai", "anthropic"]),
)
def test_a_fresh_tail_brings_no_new_kind_of_fault(messages: list[Any], budget: int, form: Any) -> None:
    """Faults of pairs: what a tail cuts away may mend some, and adds none."""
    pairs = {"unanswered_call", "result_out_of_order", "split_parallel_group"}
    before = {problem.code for problem in validate(messages, form)} & pairs
    tail = ctxfast.select_fresh_tail(messages, budget)
    assert {problem.code for problem in validate(tail.messages, form)} & pairs <= before


HEALTH = {
    "claude-code": {"orphan_result": 1, "unanswered_call": 2},  # a file that begins with a result; interrupted calls
    "codex-rollout": {"blank_id": 6, "unanswered_call": 6},  # hosted searches, which the loader shows as calls
    "copilot-cli": {},
    "opencode": {},
    "pi": {"unanswered_call": 24},
    "tau-bench": {},  # 73 repeated ids in 200 trajectories, and none of them a fault
}


@pytest.mark.parametrize("name", HEALTH)
def test_real_sessions_have_the_faults_that_are_known(shared: Path, name: str) -> None:
    """The faults that were counted in these files by hand before there was a `validate`."""
    found: Counter[str] = Counter()
    for file in sorted((shared / "transcripts" / name).iterdir()):
        for messages in sessions(file):
            found.update(problem.code for problem in validate(messages))
    assert found == HEALTH[name]


def test_raw_logs_are_read(shared: Path) -> None:
    for file in sorted((shared / "transcripts" / "claude-code").glob("*.jsonl"))[:10]:
        messages = raw_claude_code(file)
        found = sorted((problem.code, problem.index) for problem in validate(messages))
        assert found == sorted((problem.code, problem.index) for problem in reference.validate(messages))
