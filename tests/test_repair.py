"""Mending lists: each rule by hand in both forms, the core against the reference, what holds for every list."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from agent_sessions import sessions as agent_sessions
from cases import load_vectors, pairing, raw_claude_code, sessions, talk
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    broken_conversations,
    conversations,
    perhaps_objects,
    terse_conversations,
    valid_conversations,
)
from test_validate import DONE, UA, Message, answer, call, result, use

import ctxfast
from ctxfast import RepairReport, reference, validate

NO_RESULT = "[No result: the call was interrupted]"
OPENING: Message = {"role": "user", "content": "[The conversation begins here]"}
STOP: Message = {"role": "user", "content": "stop"}
MORE: Message = {"role": "user", "content": "more"}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def made_up(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": NO_RESULT}


def made_up_block(call_id: str) -> Message:
    return {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT, "is_error": True}


def blocks(message: Message) -> list[Any]:
    """The blocks of a message."""
    return [*message["content"]]


Expected = tuple[list[Message], list[Message], list[tuple[str, int, str]]]

TWO_WITHOUT_ID = call("", " ")
HALF_NAMED = call("a", "b")
HALF_NAMED["tool_calls"][0]["function"]["name"] = " "

OPENAI: dict[str, Expected] = {
    "an orphan": ([result("gone"), UA, DONE], [UA, DONE], [("orphan_result", 0, "dropped")]),
    "a duplicate": (
        [UA, call("a"), result("a"), {**result("a"), "content": "again"}, DONE],
        [UA, call("a"), result("a"), DONE],
        [("duplicate_result", 3, "dropped")],
    ),
    "an interrupted call": (
        [UA, call("a"), STOP, DONE],
        [UA, call("a"), made_up("a"), STOP, DONE],
        [("unanswered_call", 1, "synthesised")],
    ),
    "an interrupted parallel call": (
        [UA, call("a", "b"), result("b"), STOP],
        [UA, call("a", "b"), result("b"), made_up("a"), STOP],
        [("unanswered_call", 1, "synthesised")],
    ),
    "a user who spoke while a tool ran": (
        [UA, call("a"), STOP, result("a"), DONE],
        [UA, call("a"), result("a"), STOP, DONE],
        [("result_out_of_order", 3, "moved")],
    ),
    "a group that is split": (
        [UA, call("a", "b"), result("a"), STOP, result("b"), DONE],
        [UA, call("a", "b"), result("a"), result("b"), STOP, DONE],
        [("split_parallel_group", 4, "moved")],
    ),
    "interleaved steps": (
        [UA, call("a"), call("b"), result("a"), result("b"), DONE],
        [UA, call("a"), result("a"), call("b"), result("b"), DONE],
        [("result_out_of_order", 3, "moved")],
    ),
    "a running call before an answered one": (
        [UA, call("a", "x"), call("b"), result("a")],
        [UA, call("a", "x"), result("a"), made_up("x"), call("b")],
        [("unanswered_call", 1, "synthesised"), ("result_out_of_order", 3, "moved")],
    ),
    "a call without a name": (
        [UA, call("a", name=""), result("a"), DONE],
        [UA, DONE],
        [("blank_name", 1, "dropped"), ("empty_message", 1, "dropped"), ("blank_name", 2, "dropped")],
    ),
    "a call without a name beside a text": (
        [UA, {**call("a", name=""), "content": "I look"}, result("a"), DONE],
        [UA, said("I look"), DONE],
        [("blank_name", 1, "dropped"), ("blank_name", 2, "dropped")],
    ),
    "a call without a name beside reasoning": (
        [UA, {**call("a", name=""), "reasoning_content": "hm"}, DONE],
        [UA, DONE],
        [("blank_name", 1, "dropped"), ("empty_message", 1, "dropped")],
    ),
    "one of two calls without a name": (
        [UA, HALF_NAMED, result("a"), result("b"), DONE],
        [UA, call("b"), result("b"), DONE],
        [("blank_name", 1, "dropped"), ("blank_name", 2, "dropped")],
    ),
    "blank ids": (
        [UA, TWO_WITHOUT_ID, result(""), result(" "), result(""), DONE],
        [UA, call("call_1_0", "call_1_1"), result("call_1_0"), result("call_1_1"), DONE],
        [
            *[("blank_id", 1, "renamed"), ("blank_id", 1, "renamed"), ("blank_id", 2, "renamed")],
            *[("blank_id", 3, "renamed"), ("duplicate_result", 4, "dropped")],
        ],
    ),
    "an id that is taken": (
        [UA, call("call_3_0"), result("call_3_0"), call(""), result(""), DONE],
        [UA, call("call_3_0"), result("call_3_0"), call("call_3_0_1"), result("call_3_0_1"), DONE],
        [("blank_id", 3, "renamed"), ("blank_id", 4, "renamed")],
    ),
    "a blank id without a result": (
        [UA, call(""), STOP],
        [UA, call("call_1_0"), made_up("call_1_0"), STOP],
        [("blank_id", 1, "renamed"), ("unanswered_call", 1, "synthesised")],
    ),
    "results that have lost their ids": (
        [UA, call("a", "b"), result(""), result(""), DONE],
        [UA, call("a", "b"), result("a"), result("b"), DONE],
        [("blank_id", 2, "renamed"), ("blank_id", 3, "renamed")],
    ),
    "a call that has lost its id": (
        [UA, call(""), result("a"), DONE],
        [UA, call("call_1_0"), result("call_1_0"), DONE],
        [("blank_id", 1, "renamed"), ("orphan_result", 2, "renamed")],
    ),
    "too few results without ids": (
        [UA, call("a", "b"), result(""), DONE],
        [UA, call("a", "b"), made_up("a"), made_up("b"), DONE],
        [("unanswered_call", 1, "synthesised"), ("unanswered_call", 1, "synthesised"), ("orphan_result", 2, "dropped")],
    ),
    "the older form of calls": (
        [
            UA,
            {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}},
            {"role": "function", "name": "ls", "content": "x"},
            DONE,
        ],
        [
            UA,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1_0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            {"role": "tool", "name": "ls", "content": "x", "tool_call_id": "call_1_0"},
            DONE,
        ],
        [("blank_id", 1, "renamed"), ("blank_id", 2, "renamed")],
    ),
    "an unknown role": (
        [UA, {"role": "critic", "content": "no"}, {"role": "model", "content": "well"}, DONE],
        [UA, {"role": "user", "content": "no"}, said("well"), DONE],
        [("unknown_role", 1, "converted"), ("unknown_role", 2, "converted")],
    ),
    "blocks of the other form": (
        [UA, call("a"), result("a"), use("b", front={"type": "text", "text": "hm"}), answer("b", after="go"), DONE],
        [
            *[UA, call("a"), result("a")],
            {**call("b"), "content": [{"type": "text", "text": "hm"}]},
            result("b"),
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            DONE,
        ],
        [("mixed_forms", 3, "converted"), ("mixed_forms", 4, "converted")],
    ),
    "nobody asks": (
        [DONE, call("a"), result("a"), result("a"), DONE],
        [DONE, call("a"), result("a"), DONE],
        [("no_user_message", 0, "left"), ("duplicate_result", 3, "dropped")],
    ),
    "nobody asks and all else is fine": ([DONE], [DONE], [("no_user_message", 0, "left")]),
}

ANTHROPIC: dict[str, Expected] = {
    "an orphan": (
        [answer("gone"), UA, use("a"), answer("a")],
        [UA, use("a"), answer("a")],
        [("orphan_result", 0, "dropped")],
    ),
    "an orphan beside a text": (
        [answer("gone", after="go on"), use("a"), answer("a")],
        [{"role": "user", "content": [{"type": "text", "text": "go on"}]}, use("a"), answer("a")],
        [("orphan_result", 0, "dropped")],
    ),
    "a duplicate in one message": (
        [UA, use("a"), answer("a", "a"), DONE],
        [UA, use("a"), answer("a"), DONE],
        [("duplicate_result", 2, "dropped")],
    ),
    "an interrupted call": (
        [UA, use("a"), STOP, DONE],
        [UA, use("a"), {"role": "user", "content": [made_up_block("a")]}, STOP, DONE],
        [("unanswered_call", 1, "synthesised")],
    ),
    "an interrupted parallel call": (
        [UA, use("a", "b"), answer("b", after="stop"), DONE],
        [
            *[UA, use("a", "b")],
            {
                "role": "user",
                "content": [*answer("b")["content"], made_up_block("a"), {"type": "text", "text": "stop"}],
            },
            DONE,
        ],
        [("unanswered_call", 1, "synthesised")],
    ),
    "two messages of results": (
        [UA, use("a", "b"), answer("a"), answer("b"), DONE],
        [UA, use("a", "b"), answer("a", "b"), DONE],
        [("split_parallel_group", 3, "moved")],
    ),
    "a late result beside a text": (
        [UA, use("a"), STOP, answer("a", after="and this"), DONE],
        [UA, use("a"), answer("a"), STOP, {"role": "user", "content": [{"type": "text", "text": "and this"}]}, DONE],
        [("result_out_of_order", 3, "moved")],
    ),
    "text before results": (
        [UA, use("a"), answer("a", before="well"), DONE],
        [UA, use("a"), answer("a", after="well"), DONE],
        [("result_after_text", 2, "moved")],
    ),
    "a response over two messages": (
        [UA, use("a"), use("b"), answer("a", "b"), DONE],
        [UA, use("a"), answer("a"), use("b"), answer("b"), DONE],
        [("result_out_of_order", 3, "moved")],
    ),
    "one id twice": (
        [UA, use("a", "a"), answer("a", "a"), DONE],
        [UA, use("a", "call_1_1"), answer("a", "call_1_1"), DONE],
        [("duplicate_call_id", 1, "renamed"), ("duplicate_call_id", 2, "renamed")],
    ),
    "blank ids": (
        [UA, use(" "), answer(" "), DONE],
        [UA, use("call_1_0"), answer("call_1_0"), DONE],
        [("blank_id", 1, "renamed"), ("blank_id", 2, "renamed")],
    ),
    "a call without a name": (
        [UA, use("a", name=""), answer("a", after="go on"), use("b"), answer("b")],
        [UA, {"role": "user", "content": [{"type": "text", "text": "go on"}]}, use("b"), answer("b")],
        [("blank_name", 1, "dropped"), ("empty_message", 1, "dropped"), ("blank_name", 2, "dropped")],
    ),
    "empty things": (
        [
            *[UA, {"role": "user", "content": ""}, use("a", front={"type": "text", "text": ""}), answer("a")],
            *[{"role": "assistant", "content": []}, MORE],
        ],
        [UA, use("a"), answer("a"), MORE],
        [("empty_message", 1, "dropped"), ("empty_text", 2, "dropped"), ("empty_message", 4, "dropped")],
    ),
    "thinking without signature": (
        [
            UA,
            use("a", front={"type": "thinking", "thinking": "hm"}),
            answer("a"),
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "so"}]},
            MORE,
        ],
        [UA, use("a"), answer("a"), MORE],
        [
            ("thinking_without_signature", 1, "dropped"),
            ("thinking_without_signature", 3, "dropped"),
            ("empty_message", 3, "dropped"),
        ],
    ),
    "the model speaks first": (
        [{"role": "system", "content": "be kind"}, DONE, UA, use("a"), answer("a")],
        [{"role": "system", "content": "be kind"}, OPENING, DONE, UA, use("a"), answer("a")],
        [("first_not_user", 1, "inserted")],
    ),
    "messages of the other form": (
        [UA, use("a"), answer("a"), {**call("b", "c"), "content": "hm"}, result("b"), result("c"), DONE],
        [UA, use("a"), answer("a"), use("b", "c", front={"type": "text", "text": "hm"}), answer("b", "c"), DONE],
        [
            *[("mixed_forms", 3, "converted"), ("unknown_role", 4, "converted"), ("unknown_role", 5, "converted")],
            ("split_parallel_group", 5, "moved"),
        ],
    ),
}


def check(package: ModuleType, messages: list[Message], form: Any, expected: Expected) -> None:
    _, new, done = expected
    before = copy.deepcopy(messages)
    repaired = package.repair(messages, form)
    assert repaired.messages == new
    assert sorted((fix.code, fix.index, fix.action) for fix in repaired.report.items) == sorted(done)
    assert [fix.index for fix in repaired.report.items] == sorted(fix.index for fix in repaired.report.items)
    assert messages == before
    left = {fix.code for fix in repaired.report.items if fix.action == "left"}
    assert {problem.code for problem in validate(new, form)} == left
    assert repaired.report.changed == (new != messages)


@pytest.mark.parametrize("name", OPENAI)
def test_rules_of_openai(package: ModuleType, name: str) -> None:
    check(package, OPENAI[name][0], "auto", OPENAI[name])


@pytest.mark.parametrize("name", ANTHROPIC)
def test_rules_of_anthropic(package: ModuleType, name: str) -> None:
    check(package, ANTHROPIC[name][0], "anthropic", ANTHROPIC[name])


def test_what_is_fine_stays(package: ModuleType) -> None:
    live = [UA, call("a", "b"), result("a")]
    user_in_front = [UA, use("a"), answer("a", after="and the docs"), use("b")]
    same_ids = [UA, call("x"), result("x"), call("x"), result("x"), call("x", "x"), result("x"), result("x"), DONE]
    for messages in (live, user_in_front, same_ids, talk("S U A U", "anthropic")):
        for either in (messages, tuple(messages)):
            repaired = package.repair(either)
            assert repaired.messages == messages
            assert repaired.messages is not either
            assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))
            assert not repaired.report.changed
            assert repaired.report.items == ()


def test_a_live_list_stays_live(package: ModuleType) -> None:
    """Faults elsewhere do not close it; and what is no longer its end is closed."""
    repaired = package.repair([result("z"), UA, call("a", "b"), result("a")])
    assert repaired.messages == [UA, call("a", "b"), result("a")]
    repaired = package.repair([UA, call("a"), call("b", name=""), call("c")])
    assert repaired.messages == [UA, call("a"), made_up("a"), call("c")]
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    with_image = {"role": "user", "content": [*blocks(answer("z")), image]}
    repaired = package.repair([UA, use("a"), with_image])  # its result was to come, but the image is a user's now
    assert repaired.messages == [UA, use("a"), {"role": "user", "content": [made_up_block("a"), image]}]


def test_a_gateway_to_anthropic(package: ModuleType) -> None:
    messages = [DONE, UA, {"role": "user", "content": ""}, call("a"), result("a"), said(""), MORE]
    assert package.repair(messages).messages == messages
    repaired = package.repair(messages, provider="anthropic")
    assert repaired.messages == [OPENING, DONE, UA, call("a"), result("a"), MORE]
    assert validate(repaired.messages, provider="anthropic") == []


def test_another_form_is_a_translation(package: ModuleType) -> None:
    """Calls, results and their texts are the same in both forms."""
    calls = call("a")
    calls["tool_calls"][0]["function"] = {"name": "read", "arguments": '{"path": "ไทย.py"}'}
    messages = [UA, calls, result("a"), DONE, MORE]
    there = package.repair(messages, "anthropic").messages
    assert there[1]["content"] == [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "ไทย.py"}}]
    assert there[2] == answer("a")
    back = package.repair(there, "openai").messages
    arguments = back[1]["tool_calls"][0]["function"].pop("arguments")
    assert json.loads(arguments) == {"path": "ไทย.py"}
    assert back[2] == result("a")
    assert back[0] is UA
    assert back[3] is DONE


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ("", {}),
        (None, {}),
        ("{", {"arguments": "{"}),
        ("[1]", {"arguments": "[1]"}),
        ("[" * 100_000, {"arguments": "[" * 100_000}),
        ("1" * 5_000, {"arguments": "1" * 5_000}),
        ({"a": 1}, {"a": 1}),
        ([1], {"arguments": [1]}),
    ],
    ids=["empty", "none", "cut", "list", "deep", "long number", "object", "value"],
)
def test_arguments_become_an_object(package: ModuleType, arguments: Any, given: Any) -> None:
    calls = call("a")
    calls["tool_calls"][0]["function"]["arguments"] = arguments
    (block,) = package.repair([UA, calls, result("a")], "anthropic").messages[1]["content"]
    assert block["input"] == given


def test_a_call_that_stands_there_twice_goes_twice(package: ModuleType) -> None:
    """Frameworks keep the blocks of a response beside its `tool_calls`."""
    both = {**call("a", name=""), "content": blocks(use("a"))}
    assert package.repair([UA, both, result("a"), DONE]).messages == [UA, DONE]
    both = {**call("a"), "content": blocks(use("a"))}
    assert package.repair([UA, both, STOP]).messages == [UA, both, made_up("a"), STOP]
    assert package.repair([UA, both, STOP], "anthropic").messages[1] == use("a")
    both = {**call("a"), "content": blocks(use("b"))}  # another one
    assert package.repair([UA, both, STOP]).messages[1] == call("a", "b")


def test_unknown_keys_and_parts_stay(package: ModuleType) -> None:
    """What is changed keeps all that we do not know, and its untouched parts are the same objects."""
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    late = {"role": "user", "content": [picture, *blocks(answer("a"))], "uuid": "17"}
    repaired = package.repair([UA, use("a"), late, DONE]).messages
    assert repaired[2] == {"role": "user", "content": [*blocks(answer("a")), picture], "uuid": "17"}
    assert repaired[2]["content"][1] is picture
    assert repaired[2]["content"][0] is late["content"][1]
    calls = {**call("", "b"), "uuid": "18"}
    repaired = package.repair([UA, calls, result(""), result("b"), DONE]).messages
    assert repaired[1]["uuid"] == "18"
    assert repaired[1]["tool_calls"][1] is calls["tool_calls"][1]


def test_objects_come_back_as_dicts_where_they_are_changed(package: ModuleType) -> None:
    class Thing:
        def __init__(self, **fields: Any) -> None:
            self.__dict__.update(fields)

    function = Thing(name="ls", arguments="{}")
    calls = Thing(role="assistant", content=None, tool_calls=[Thing(id="", type="function", function=function)])
    user, tool = Thing(role="user", content="hi"), Thing(role="tool", content="x", tool_call_id=None)
    repaired = package.repair([user, calls, tool]).messages
    assert repaired[0] is user
    assert repaired[1]["tool_calls"] == [{"id": "call_1_0", "type": "function", "function": function}]
    assert repaired[2] == {"role": "tool", "content": "x", "tool_call_id": "call_1_0"}


def test_the_report_reads_well() -> None:
    repaired = ctxfast.repair([result("é"), UA, call(""), STOP])
    report = repaired.report
    assert str(report).splitlines() == [
        'messages[0]: dropped "é" (orphan_result)',
        'messages[2]: renamed as "call_2_0" (blank_id)',
        'messages[2]: synthesised as "call_2_0" (unanswered_call)',
    ]
    assert repr(report) == "RepairReport(changed=True, items=<3 fixes>)"
    assert repr(repaired) == f"Repaired(messages=<4 messages>, report={report!r})"
    assert repr(report.items[1]) == (
        "Fix(code='blank_id', index=2, call_id=\"\", action='renamed', new_id=\"call_2_0\")"
    )
    assert str(ctxfast.repair([UA]).report) == "nothing to repair"
    data = report.as_dict()
    assert json.loads(json.dumps(data)) == data
    assert RepairReport.from_dict(data) == report == pickle.loads(pickle.dumps(report))
    assert len({*report.items, *report.items}) == 3
    assert repaired == ctxfast.repair([result("é"), UA, call(""), STOP])
    assert repaired != ctxfast.repair([UA])
    broken: Any
    for broken in ({}, {"items": [{}]}, {"items": [{**data["items"][0], "index": -1}]}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            RepairReport.from_dict(broken)
    with pytest.raises(AttributeError):
        report.items = ()  # type: ignore[misc]


def test_arguments_that_mean_nothing(package: ModuleType) -> None:
    with pytest.raises(ValueError, match="form: expected 'auto'"):
        package.repair([UA], form="gemini")
    with pytest.raises(ValueError, match="provider: expected"):
        package.repair([UA], provider="bedrock")
    with pytest.raises(ctxfast.MessageTypeError, match="a list of messages, got `str`"):
        package.repair("hello")
    with pytest.raises(ctxfast.MessageTypeError, match=r"at `messages\[1\]`"):
        package.repair([UA, 5])
    with pytest.raises(TypeError):
        package.repair([UA], "auto", "anthropic")


# ------------------------------------------------------------------------------------------ PicoClaw's own way


TURNS: list[Message] = load_vectors("picoclaw_turns.json")


@pytest.mark.parametrize("entry", TURNS, ids=[entry["name"] for entry in TURNS])
def test_strict_predecessor_is_picoclaws_sanitizer(package: ModuleType, entry: Message) -> None:
    messages = entry["messages"]
    repaired = package.repair(messages, strict_predecessor=True)
    kept = [next(index for index, message in enumerate(messages) if message is new) for new in repaired.messages]
    assert kept == entry["sanitized"]
    dropped = {fix.index for fix in repaired.report.items if fix.action == "dropped"}
    assert dropped == set(range(len(messages))) - set(kept)


@pytest.mark.parametrize("entry", TURNS, ids=[entry["name"] for entry in TURNS])
def test_our_own_way_keeps_rounds_that_are_complete(package: ModuleType, entry: Message) -> None:
    """Valid, with every round, and every text, that PicoClaw keeps or drops without need."""
    messages = entry["messages"]
    repaired = package.repair(messages)
    codes = {problem.code for problem in validate(repaired.messages)}
    assert codes == (set() if any(message["role"] == "user" for message in messages) else {"no_user_message"})
    paired = pairing(messages)
    callers = {index for index, _ in paired.pairs} - {index for index, _ in paired.unanswered}
    complete = callers | {result for call, result in paired.pairs if call in callers}
    if not any(name in entry["name"] for name in ("empty_id", "same_id")):
        assert all(any(new is messages[index] for new in repaired.messages) for index in complete)
    for message in messages:
        if message["role"] in ("user", "system") or (message["role"] == "assistant" and not message.get("tool_calls")):
            assert any(new is message for new in repaired.messages)


# ----------------------------------------------------------------------------------------- what holds for every list

structured = st.one_of(valid_conversations, broken_conversations, terse_conversations)
ANY = st.one_of(
    conversations,
    structured,
    agent_sessions,
    perhaps_objects(conversations),
)
FORMS = st.sampled_from(["auto", "openai", "anthropic"])
PROVIDERS = st.sampled_from([None, "openai", "anthropic"])


def listed(repaired: Any) -> list[tuple[Any, ...]]:
    fixes = repaired.report.items
    return [(fix.code, fix.index, fix.call_id, fix.action, fix.new_id) for fix in fixes]


def objects_of(messages: list[Any], old: list[Any]) -> list[int | None]:
    """Which of the old objects each message is."""
    places = {id(message): index for index, message in enumerate(old)}
    return [places.get(id(message)) for message in messages]


@given(ANY, FORMS, PROVIDERS, st.booleans())
def test_the_core_does_what_the_reference_does(messages: list[Any], form: Any, provider: Any, strict: bool) -> None:
    before = copy.deepcopy(messages)
    options: dict[str, Any] = {"provider": provider, "strict_predecessor": strict}
    one, other = (module.repair(messages, form, **options) for module in (ctxfast, reference))
    assert same(one.messages, other.messages)
    assert listed(one) == listed(other)
    assert one.report.changed == other.report.changed
    assert objects_of(one.messages, messages) == objects_of(other.messages, messages)
    assert same(messages, before)


def same(one: Any, other: Any) -> bool:
    """Equal, and NaN is NaN."""
    return bool(one == other) or repr(one) == repr(other)


def user_texts(messages: list[Any]) -> Counter[str]:
    """What users say."""
    texts: Counter[str] = Counter()
    for message in messages:
        fields = message if isinstance(message, dict) else {**vars(message), **(message.__pydantic_extra__ or {})}
        if fields["role"] != "user":
            continue
        content = fields.get("content")
        for part in content if isinstance(content, (list, tuple)) else [content]:
            text = part
            if not isinstance(part, str) and part is not None:
                part = part if isinstance(part, dict) else {**vars(part), **(part.__pydantic_extra__ or {})}
                text = part.get("text") if part.get("type") in ("text", "input_text") else None
            if isinstance(text, str) and text:
                texts[text] += 1
    return texts


@given(ANY, FORMS, PROVIDERS)
def test_what_comes_out_is_valid_and_stays_so(messages: list[Any], form: Any, provider: Any) -> None:
    faults = {problem.code for problem in validate(messages, form, provider)}
    repaired = ctxfast.repair(messages, form, provider=provider)
    after = {problem.code for problem in validate(repaired.messages, form, provider)}
    if user_texts(messages):
        assert after == set()
    assert after <= {"no_user_message"}
    assert {fix.code for fix in repaired.report.items if fix.action == "left"} == after

    # a list without faults is not touched, any other is
    assert repaired.report.changed == bool(faults - {"no_user_message"})
    if not repaired.report.changed:
        assert all(new is old for new, old in zip(repaired.messages, messages, strict=True))
    again = ctxfast.repair(repaired.messages, form, provider=provider)
    assert not again.report.changed
    assert all(one is other for one, other in zip(again.messages, repaired.messages, strict=True))

    texts = user_texts(messages)
    assert texts & user_texts(repaired.messages) == texts


OWN_FAULTS = {"blank_name", "empty_message", "empty_text", "thinking_without_signature"}
OTHER_FORM = {"mixed_forms", "unknown_role"}


@given(structured)
def test_faults_of_a_message_are_in_the_report(messages: list[Any]) -> None:
    """Those that it has by itself, each under its code and index; those of pairs can go with what else is done."""
    faults = validate(messages)
    fixes = ctxfast.repair(messages).report.items
    fixed = {(fix.code, fix.index) for fix in fixes}
    is_mixed = any(problem.code in OTHER_FORM for problem in faults)
    for problem in faults:
        assert fixed
        if problem.code in OTHER_FORM or (problem.code in OWN_FAULTS and not is_mixed):
            assert (problem.code, problem.index) in fixed
    assert all(f"`{fix.code}`" in (ctxfast.repair.__doc__ or "") for fix in fixes)
    assert {fix.action for fix in fixes} <= set((ctxfast.Fix.action.__doc__ or "").split("`"))


@given(structured, st.sampled_from(["openai", "anthropic"]))
def test_complete_rounds_are_never_dropped(messages: list[Any], form: Literal["openai", "anthropic"]) -> None:
    """As many results as calls that had one, whatever the form."""
    paired = pairing(messages)
    repaired = ctxfast.repair(messages, form).messages
    dropped = [fix for fix in ctxfast.repair(messages, form).report.items if fix.code == "blank_name"]
    if not dropped:
        assert len(pairing(repaired).pairs) >= len(paired.pairs)


# ---------------------------------------------------------------------------------------------- real sessions


@pytest.mark.parametrize("name", ["claude-code", "codex-rollout", "pi", "tau-bench"])
def test_real_sessions_are_mended(shared: Path, name: str) -> None:
    for file in sorted((shared / "transcripts" / name).iterdir())[:20]:
        for messages in sessions(file):
            repaired = ctxfast.repair(messages)
            assert {problem.code for problem in validate(repaired.messages)} <= {"no_user_message"}
            assert user_texts(messages) == user_texts(repaired.messages)
            there = ctxfast.repair(messages, "anthropic").messages
            assert {problem.code for problem in validate(there, "anthropic")} <= {"no_user_message"}
            assert len(pairing(there).pairs) == len(pairing(repaired.messages).pairs)


def test_raw_logs_are_mended(shared: Path) -> None:
    """Anthropic's form, a response split over lines."""
    for file in sorted((shared / "transcripts" / "claude-code").glob("*.jsonl"))[:10]:
        messages = raw_claude_code(file)
        repaired = ctxfast.repair(messages)
        assert {problem.code for problem in validate(repaired.messages)} <= {"no_user_message"}
        assert listed(repaired) == listed(reference.repair(messages))
