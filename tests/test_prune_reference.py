"""`prune_tool_outputs` of the Rust core gives what `ctxfast.reference` gives, on generated sessions of agents.

Then what must hold whatever the reference says, derived again by code that shares no line with either: nothing is
mutated, nothing gets larger, what is protected stays, what is a stub stays a stub. `agent_sessions.py` says how
sessions are made, `strategies.py` how to run many more of them.
"""

from __future__ import annotations

import copy
import dataclasses
import fnmatch
import json
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from agent_sessions import (
    ALL_AT_ONCE,
    LINE_ARGUMENTS,
    PATHS,
    Step,
    Use,
    anything,
    kinds_of_objects,
    output_texts,
    pruning_counters,
    pruning_options,
    session,
    sessions,
    tool_names,
    tool_uses,
    whole_sessions,
)
from cases import pairing
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import Message, Pair, Record, as_object, counters, json_values, same, short_texts
from test_reference import any_place, junk, outcome, spoilt

import ctxfast
from ctxfast import EstimatorConfig, TokenCounter, reference
from ctxfast.policy import TOOL_KINDS, PrunePolicy
from ctxfast.shrinking import Report

SOME = settings(max_examples=settings().max_examples * 2 // 5)  # sessions are large

Options = dict[str, Any]
Both = tuple[ctxfast.Pruned[Any], reference.Pruned]

REPORT = (
    *("changed", "before", "after", "earliest_changed_index", "tokens_rewritten", "blocked_by", "reread_of_pruned"),
    "items",
)
ITEM = (
    *("index", "place", "call_id", "tool", "kind", "reason", "before", "after", "new", "stub", "characters", "sample"),
)
MARK = "[Tool output pruned"
BY_LENGTH: Pair = same(len, 0, 300)


def plain(report: Any) -> Options:
    """A report as plain data, whoever has written it."""
    fields: Options = {name: getattr(report, name) for name in REPORT}
    return fields | {"items": [tuple(getattr(item, name) for name in ITEM) for item in report.items]}


def prune(messages: Any, pair: Pair, options: Options, previous: Both | None = None) -> Both:
    """What the core gives and what the reference gives, which must be the same."""
    fast, slow = pair
    one, two = (None, None) if previous is None else (previous[0].report, previous[1].report)
    got = ctxfast.prune_tool_outputs(messages, counter=fast, previous=one, **options)
    expected = reference.prune_tool_outputs(messages, counter=slow, previous=two, **options)
    assert plain(got.report) == plain(expected.report)
    assert got.messages == expected.messages
    assert [type(message) for message in got.messages] == [type(message) for message in expected.messages]
    return got, expected


def with_objects(messages: list[Message], kind: tuple[str, ...] | None) -> list[Any]:
    """The session as it is, or with objects instead of dicts."""
    return messages if kind is None else [as_object(message, kind) for message in messages]


def policy_of(options: Options) -> PrunePolicy:
    """The rules that hold, from the policy and what is given beside it."""
    policy = options.get("policy") or PrunePolicy()
    names = ("protected_turns", "protected_steps", "protected_tokens", "prune_threshold")
    given = {name: options[name] for name in names if options.get(name) is not None}
    fields = {name: getattr(policy, name) for name in PrunePolicy.__dataclass_fields__} | given
    return PrunePolicy(**fields)


def is_a_stub(text: str, own: str | None = None) -> bool:
    """Whether it begins as our stubs do and is as short, or is a fixed text, of other agents or the policy's."""
    return (text.startswith(MARK) and len(text) <= 600) or text in ("[Old tool result content cleared]", own)


# ------------------------------------------------------------------------------------- outputs, read independently


@dataclass(frozen=True)
class Found:
    """A tool output, as these tests read it."""

    index: int
    place: int
    holder: Message
    tokens: int

    @property
    def text(self) -> str:
        content = self.holder.get("content")
        if content is None or isinstance(content, str):
            return content or ""
        return "\n".join(part if isinstance(part, str) else part["text"] for part in content if is_text(part))

    @property
    def attachments(self) -> int:
        content = self.holder.get("content")
        return sum(not is_text(part) for part in content) if isinstance(content, (list, tuple)) else 0


def is_text(part: Any) -> bool:
    return isinstance(part, str) or part["type"] in ("text", "input_text")


def outputs(messages: list[Message], counter: TokenCounter) -> list[Found]:
    """All tool outputs of a list of dicts; tokens are those of their content alone."""
    found = []
    for index, message in enumerate(messages):
        holders = []
        if message["role"] in ("tool", "function"):
            holders = [message]
        elif message["role"] == "user" and isinstance(message["content"], list):
            holders = [block for block in message["content"] if block["type"] == "tool_result"]
        for place, holder in enumerate(holders):
            found.append(Found(index, place, holder, output_tokens(holder.get("content"), counter)))
    return found


def output_tokens(content: Any, counter: TokenCounter) -> int:
    return counter.content([{"type": "tool_result", "content": content}])


def unwrapped(value: Any) -> Any:
    """Objects as dicts again."""
    if isinstance(value, Record):
        fields = {**vars(value), **(value.__pydantic_extra__ or {})}
        return {key: unwrapped(item) for key, item in fields.items()}
    if isinstance(value, (list, tuple)):
        return [unwrapped(item) for item in value]
    return value


# ------------------------------------------------------------------------------------------ the same as the reference


@SOME
@given(sessions, kinds_of_objects, pruning_options, st.one_of(pruning_counters, counters))
def test_the_core_gives_what_the_reference_gives(
    messages: list[Message], kind: tuple[str, ...] | None, options: Options, pair: Pair
) -> None:
    given = with_objects(messages, kind)
    before, identities = copy.deepcopy(given), [id(message) for message in given]
    got, expected = prune(given, pair, options)
    assert prune(tuple(given), pair, options)[0].report == got.report
    assert ctxfast.prune_tool_outputs(given, counter=pair[0], **options) == got  # the same again
    assert given == before
    assert [id(message) for message in given] == identities
    for result in (got.messages, expected.messages):
        assert type(result) is list
        assert result is not given


@SOME
@given(sessions, pruning_options)
def test_the_default_counter_is_the_default(messages: list[Message], options: Options) -> None:
    got = ctxfast.prune_tool_outputs(messages, **options)
    assert got == ctxfast.prune_tool_outputs(messages, counter=TokenCounter.default(), **options)
    assert plain(got.report) == plain(reference.prune_tool_outputs(messages, **options).report)


@SOME
@given(whole_sessions, any_place, junk, pruning_options)
def test_errors_are_those_of_the_reference(messages: list[Message], place: int, junk: Any, options: Options) -> None:
    bad = spoilt(messages, place, junk)
    kind, got = outcome(ctxfast.prune_tool_outputs, bad, **options)
    expected_kind, expected = outcome(reference.prune_tool_outputs, bad, **options)
    assert kind == expected_kind
    if kind == "value":
        assert plain(got.report) == plain(expected.report)
        assert got.messages == expected.messages
    else:
        assert got == expected


# ----------------------------------------------------------------------------------------------- what must hold


@SOME
@given(sessions, kinds_of_objects, pruning_options, st.one_of(pruning_counters, counters))
def test_only_old_outputs_are_changed(
    messages: list[Message], kind: tuple[str, ...] | None, options: Options, pair: Pair
) -> None:
    given = with_objects(messages, kind)
    got = ctxfast.prune_tool_outputs(given, counter=pair[0], **options)
    report, items = got.report, {(item.index, item.place): item for item in got.report.items}
    assert list(items) == sorted(items)
    assert len(items) == len(report.items)
    assert len(got.messages) == len(given)
    changed = {index for index, _ in items}
    assert report.changed == bool(items)
    assert report.earliest_changed_index == min(changed, default=None)
    assert all(item.new for item in report.items)
    places = {(found.index, found.place) for found in outputs(messages, pair[0])}
    assert items.keys() <= places
    for index, (old, new) in enumerate(zip(given, got.messages, strict=True)):
        if index not in changed:
            assert new is old
            continue
        assert type(new) is dict
        was, now = unwrapped(old), unwrapped(new)
        assert list(now) == list(was)
        assert {key: now[key] for key in now if key != "content"} == {key: was[key] for key in was if key != "content"}
        if now["role"] in ("tool", "function"):
            check_content(was["content"], now["content"], items[index, 0].stub)
            continue
        place = -1
        parts = fields_of(old)["content"]
        for part, before, after in zip(parts, new["content"], now["content"], strict=True):
            raw, part = part, unwrapped(part)
            place += part["type"] == "tool_result"
            if part["type"] != "tool_result" or (index, place) not in items:
                assert before is raw
                continue
            assert {**after, "content": 0} == {**part, "content": 0}
            check_content(part["content"], after["content"], items[index, place].stub)


def fields_of(message: Any) -> Message:
    return message if isinstance(message, dict) else {**vars(message), **(message.__pydantic_extra__ or {})}


def check_content(old: Any, new: Any, stub: str) -> None:
    """A stub has the shape of the content that it replaces; a part keeps its other keys."""
    if isinstance(old, str):
        assert new == stub
        return
    assert isinstance(new, list)
    (part,) = new
    first = next((part for part in old if is_text(part)), {"type": "text"})
    assert part == (stub if isinstance(first, str) else {**first, "text": stub})


@SOME
@given(sessions, pruning_options, pruning_counters)
def test_nothing_gets_larger(messages: list[Message], options: Options, pair: Pair) -> None:
    (counter, slow), policy = pair, policy_of(options)
    got = ctxfast.prune_tool_outputs(messages, counter=counter, **options)
    report = got.report
    assert (report.before, report.after) == (counter.messages(messages), counter.messages(got.messages))
    assert 0 <= report.saved == report.before - report.after
    saved = slow.messages_sum(messages) - slow.messages_sum(got.messages)
    assert sum(item.before - item.after for item in report.items) == saved <= report.saved
    before = {(found.index, found.place): found for found in outputs(messages, counter)}
    for item in report.items:
        old, stub = before[item.index, item.place], output_tokens(item.stub, counter)
        assert item.before == old.tokens
        assert old.tokens - stub >= max(policy.min_saved, 1)
        assert item.characters == len(old.text)
        assert old.attachments or len(item.stub) < len(old.text)
        assert item.after <= item.before
    for old_message, new_message in zip(messages, got.messages, strict=True):
        assert counter.message(new_message) <= counter.message(old_message)
    after = {(found.index, found.place): found for found in outputs(got.messages, counter)}
    assert before.keys() == after.keys()
    assert all(after[item.index, item.place].text == item.stub for item in report.items)
    assert all(after[item.index, item.place].attachments == 0 for item in report.items)


@SOME
@given(sessions, pruning_options)
def test_no_fault_is_added(messages: list[Message], options: Options) -> None:
    got = ctxfast.prune_tool_outputs(messages, counter=BY_LENGTH[0], **options).messages
    for form, provider in (("auto", None), ("openai", None), ("anthropic", None), ("openai", "anthropic")):
        rules: Any = {"form": form, "provider": provider}
        before = {(problem.code, problem.index, problem.detail) for problem in ctxfast.validate(messages, **rules)}
        assert {(found.code, found.index, found.detail) for found in ctxfast.validate(got, **rules)} <= before
    assert pairing(got).pairs == pairing(messages).pairs
    for name in ("atoms", "turn_starts", "step_starts", "safe_cuts"):
        assert getattr(ctxfast, name)(got) == getattr(ctxfast, name)(messages)


def responses(messages: list[Message]) -> list[int]:
    """Where the model answers; messages of its that stand one after the other are one response."""
    roles = [message["role"] for message in messages]
    return [at for at, role in enumerate(roles) if role == "assistant" and (at == 0 or roles[at - 1] != "assistant")]


def turns(messages: list[Message]) -> list[int]:
    """User messages that hold no results and came while no call was waiting for one."""
    pairs = pairing(messages).pairs
    holders = {found.index for found in outputs(messages, BY_LENGTH[0])}
    return [
        at
        for at, message in enumerate(messages)
        if message["role"] == "user" and at not in holders and not any(call < at <= result for call, result in pairs)
    ]


@SOME
@given(sessions, pruning_options, pruning_counters)
def test_what_is_protected_stays(messages: list[Message], options: Options, pair: Pair) -> None:
    (counter, slow), policy = pair, policy_of(options)
    report = ctxfast.prune_tool_outputs(messages, counter=counter, **options).report
    if policy.trigger_tokens is not None and report.before <= policy.trigger_tokens:
        assert not report.changed
    zone, budget = policy.protected_tokens, options.get("budget")
    if budget is not None:
        zone = min(zone, int(budget) // 4)
    found = outputs(messages, counter)
    answers, opened = responses(messages), turns(messages)
    for item in report.items:
        number = next(at for at, old in enumerate(found) if (old.index, old.place) == (item.index, item.place))
        assert sum(answer > item.index for answer in answers) >= max(policy.protected_steps, 1)
        assert number < len(found) - policy.protected_results
        assert sum(turn > item.index for turn in opened) >= policy.protected_turns
        if item.reason in ("aged", "error") or policy.superseded == "off":
            assert sum(old.tokens for old in found[number:]) > zone
        assert not is_a_stub(found[number].text)
        assert not is_on(policy.keep_tools, item.tool, item.kind)
        assert policy.only_tools is None or is_on(policy.only_tools, item.tool, item.kind)
        if found[number].holder.get("is_error") is True or found[number].holder.get("status") == "error":
            assert policy.keep_errors != "all"
            assert item.reason == "error"
    sent = answers[-1] if answers else 0
    first = report.earliest_changed_index
    got = ctxfast.prune_tool_outputs(messages, counter=counter, **options).messages
    assert report.tokens_rewritten == (0 if first is None else slow.messages_sum(got[first:sent]))


def is_on(patterns: tuple[str, ...], tool: str, kind: str) -> bool:
    return kind in patterns or any(fnmatch.fnmatchcase(tool.lower(), pattern.lower()) for pattern in patterns)


@SOME
@given(sessions, pruning_options)
def test_what_blocks_a_call(messages: list[Message], options: Options) -> None:
    """A rule is named only if nothing was replaced, and only one that is in use."""
    policy = policy_of(options)
    report = ctxfast.prune_tool_outputs(messages, counter=BY_LENGTH[0], **options).report
    block = report.blocked_by
    assert block is None or not report.changed
    if block is None and not report.changed:
        least = max(policy.min_saved, 1)
        found = outputs(messages, BY_LENGTH[0])
        large = [old for old in found if old.tokens >= least and not is_a_stub(old.text, policy.stub)]
        assert not large or policy.trigger_tokens is not None
    if block == "protected_turns":
        assert policy.protected_turns
    if block == "trigger_tokens":
        assert policy.trigger_tokens is not None
        assert report.before <= policy.trigger_tokens
    if block == "protected_tokens":
        assert policy.protected_tokens


@SOME
@given(sessions, pruning_options, pruning_counters)
def test_pruning_twice_changes_nothing(messages: list[Message], options: Options, pair: Pair) -> None:
    counter = pair[0]
    once = ctxfast.prune_tool_outputs(messages, counter=counter, **options)
    again = ctxfast.prune_tool_outputs(once.messages, counter=counter, **options)
    assert not again.report.changed
    assert [id(message) for message in again.messages] == [id(message) for message in once.messages]
    assert again.messages is not once.messages
    with_report = ctxfast.prune_tool_outputs(messages, counter=counter, previous=once, **options)
    assert with_report.messages == once.messages
    assert with_report.report.earliest_changed_index is None
    assert not any(item.new for item in with_report.report.items)
    assert [item.stub for item in with_report.report.items] == [item.stub for item in once.report.items]


def wide(results: int, characters: int) -> list[Message]:
    """A response with so many calls, whose results are in one message."""
    uses = [{"type": "tool_use", "id": f"c{i}", "name": "read", "input": {}} for i in range(results)]
    texts = [{"type": "tool_result", "tool_use_id": f"c{i}", "content": "x" * characters} for i in range(results)]
    return [{"role": "assistant", "content": uses}, {"role": "user", "content": texts}, {"role": "assistant"}]


@pytest.mark.parametrize(("results", "stub"), [(10, "y" * 800), (20, "y" * 900), (20, None)])
def test_savings_add_up_where_counts_are_coarse(results: int, stub: str | None) -> None:
    """Each output has two tokens and its stub one, but a message is rounded once."""
    config = EstimatorConfig(chars_per_token=1000, message_overhead=0)
    pair: Pair = TokenCounter.flat(config), reference.FlatCounter(config)
    got, _ = prune(wide(results, 1001), pair, {"policy": dataclasses.replace(ALL_AT_ONCE, stub=stub)})
    assert sum(item.before - item.after for item in got.report.items) == got.report.saved
    assert all(item.after <= item.before for item in got.report.items)


# --------------------------------------------------------------------------------------------- lists that grow


def growing(messages: list[Message], stride: int) -> Iterator[list[Message]]:
    """The session as it was a while ago, and then, up to now."""
    yield from (messages[:end] for end in range(len(messages) % stride or stride, len(messages) + 1, stride))


def stubs_of(report: Any) -> set[tuple[int, int, str]]:
    return {(item.index, item.place, item.stub) for item in report.items}


@SOME
@given(sessions, st.sampled_from([1, 2, 3, 5]), pruning_options, pruning_counters)
def test_with_the_last_report_stubs_stay(messages: list[Message], stride: int, options: Options, pair: Pair) -> None:
    last: Both | None = None
    for part in growing(messages, stride):
        got, expected = prune(part, pair, options, last)
        if last is not None:
            old, first = last[0].messages, got.report.earliest_changed_index
            same = len(old) if first is None else min(first, len(old))
            assert got.messages[:same] == old[:same]
            assert stubs_of(last[0].report) <= stubs_of(got.report)
            assert {(item.index, item.place) for item in got.report.items if not item.new} == {
                (item.index, item.place) for item in last[0].report.items
            }
        assert got.report.earliest_changed_index == min((i.index for i in got.report.items if i.new), default=None)
        last = got, expected


@pytest.mark.parametrize(
    ("first", "faults"), [("decision.md", {}), ("b.py", {"is_error": True})], ids=["a path that is kept", "an error"]
)
def test_equal_outputs_of_different_calls(first: str, faults: Message) -> None:
    """Ids repeat, and the same text came twice; the first of the two stays by a rule."""
    texts: list[tuple[str, Message]] = [(first, faults), ("a.py", {})]
    messages = [
        message
        for path, more in texts
        for message in answered(called("read", {"path": path}), "the same text\n" * 50, more)
    ]
    policy = PrunePolicy(protected_steps=1, protected_tokens=0, prune_threshold=0, batch="all", min_saved=0)
    once = prune(messages, BY_LENGTH, {"policy": policy})
    again = prune([*messages, {"role": "user", "content": "go on"}], BY_LENGTH, {"policy": policy}, once)
    assert [item.index for item in once[0].report.items] == [4]
    assert [item.index for item in again[0].report.items] == [4]
    assert again[0].messages[:-1] == once[0].messages


@SOME
@given(sessions, st.sampled_from([1, 2, 3, 5]), pruning_options, pruning_counters)
def test_going_on_with_the_new_list(messages: list[Message], stride: int, options: Options, pair: Pair) -> None:
    kept: list[Any] = []
    for part in growing(messages, stride):
        given = kept + part[len(kept) :]
        got, _ = prune(given, pair, options)
        first = got.report.earliest_changed_index
        same = len(given) if first is None else first
        assert all(one is other for one, other in zip(given[:same], got.messages, strict=False))
        kept = got.messages
    assert len(kept) == len(messages)


@SOME
@given(
    sessions,
    st.sampled_from([1, 1, 2, 3]),
    pruning_options,
    st.sampled_from([0, 1, 20, 100, 500, 2000]),
    pruning_counters,
)
def test_a_number_finds_the_same_batches_on_every_call(
    messages: list[Message], stride: int, options: Options, threshold: int, pair: Pair
) -> None:
    """Without a report: stubs are only ever added, and their texts stay.

    With protected turns that holds for lists without open calls: a user message that comes while a call is open begins
    a turn, until the result comes.
    """
    assume(policy_of(options).batch == "grid" and policy_of(options).trigger_tokens is None)
    options = {**options, "prune_threshold": threshold}
    last: set[tuple[int, int, str]] = set()
    pairs = pairing(messages).pairs if policy_of(options).protected_turns else []
    for part in growing(messages, stride):
        if any(call < len(part) <= result for call, result in pairs):
            continue
        now = stubs_of(ctxfast.prune_tool_outputs(part, counter=pair[0], **options).report)
        assert last <= now
        last = now


# ------------------------------------------------------------------------------------------------------- reports


@SOME
@given(sessions, pruning_options)
def test_reports_can_be_kept(messages: list[Message], options: Options) -> None:
    counter = BY_LENGTH[0]
    pruned = ctxfast.prune_tool_outputs(messages, counter=counter, **options)
    report, data = pruned.report, pruned.report.as_dict()
    assert {name: data[name] for name in REPORT[:-2]} == {name: getattr(report, name) for name in REPORT[:-2]}
    assert data["saved"] == report.saved
    assert [tuple(item[name] for name in ITEM) for item in data["items"]] == plain(report)["items"]
    text = json.dumps(data)
    text.encode()
    json.dumps(data, ensure_ascii=False).encode()  # no lone surrogate is in it
    copies = [Report.from_dict(data), Report.from_dict(json.loads(text)), copy.deepcopy(report)]
    copies += [pickle.loads(pickle.dumps(report, protocol)) for protocol in (0, 2, pickle.HIGHEST_PROTOCOL)]
    for again in copies:
        assert again == report
        assert plain(again) == plain(report)
        assert str(again) == str(report)
        assert repr(again) == repr(report)
    once = ctxfast.prune_tool_outputs(messages, counter=counter, previous=report, **options)
    assert all(
        ctxfast.prune_tool_outputs(messages, counter=counter, previous=other, **options) == once
        for other in (pruned, copies[1])
    )


# --------------------------------------------------------------------------------- stubs: what a call was about

LIKE_A_CALL = ("<tool_call", "<function", "<invoke", "[tool_use", '"name":', "```")


def check_stub(stub: str) -> None:
    """What is true of every stub that says facts."""
    assert stub.startswith(f"{MARK}: ")
    assert len(stub) <= 400
    facts, *lines = stub.split("\n")
    assert facts.endswith("]")
    assert len(lines) <= 3
    assert all(0 < len(line) <= 80 for line in lines)
    assert not any(part in stub for part in LIKE_A_CALL)
    assert not any(char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029" for char in stub.replace("\n", ""))
    stub.encode()


@SOME
@given(sessions, pruning_options)
def test_stubs_are_short_and_plain(messages: list[Message], options: Options) -> None:
    policy = policy_of(options)
    assume(policy.stub is None)
    for item in ctxfast.prune_tool_outputs(messages, counter=BY_LENGTH[0], **options).report.items:
        check_stub(item.stub)


def answered(call: Message, text: str, faults: Message) -> list[Message]:
    """A call, its output, and what the model says to it."""
    holder = call["tool_calls"][0]
    result = {"role": "tool", "tool_call_id": holder.get("id"), "content": text, **faults}
    return [call, result, {"role": "assistant", "content": "I see"}]


def called(name: Any, arguments: Any) -> Message:
    """A response that calls a tool."""
    return {
        "role": "assistant",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}],
    }


def only_stub(messages: list[Any], policy: PrunePolicy = ALL_AT_ONCE) -> Any:
    """What has become of the one output."""
    got, _ = prune(messages, BY_LENGTH, {"policy": policy})
    (item,) = got.report.items
    return item


FILLER = "\n" + "filler\n" * 100  # makes an output longer than any stub


@given(
    tool_names,
    tool_uses,
    st.lists(output_texts, min_size=2, max_size=2),
    st.sampled_from([{}, {}, {}, {"is_error": True}, {"status": "error"}]),
    st.booleans(),
)
def test_stubs_of_every_kind_of_tool(
    name: str, use: tuple[str, Any], texts: list[str], faults: Message, own_name: bool
) -> None:
    assume(not texts[0].startswith("["))
    call = called(use[0] if own_name else name, use[1])
    item = only_stub(answered(call, FILLER.join(texts), faults))
    check_stub(item.stub)
    assert item.stub.count("attachment") == 0
    shown = call["tool_calls"][0]["function"]["name"]
    expected = next((kind for pattern, kind in TOOL_KINDS if is_on((pattern,), shown, "")), "other")
    viewed = expected == "edit" and isinstance(use[1], dict) and (use[1].get("command") or use[1].get("cmd")) == "view"
    assert item.kind == ("read" if viewed else expected)


KINDS = dict(reversed(TOOL_KINDS))


@pytest.mark.parametrize("pattern", KINDS)
def test_every_pattern_is_met(pattern: str) -> None:
    """A name made from a pattern is of its kind, unless an earlier pattern matches it too; capitals do not matter."""
    for word in ("", "x", "mcp__x__"):
        name = pattern.replace("*", word)
        expected = next(kind for other, kind in TOOL_KINDS if fnmatch.fnmatchcase(name, other))
        for written in (name, name.upper(), name.title()):
            item = only_stub(answered(called(written, {"path": "a.py", "command": "ls"}), FILLER, {}))
            assert (item.tool, item.kind) == (written, expected)
            assert item.stub.startswith(f"{MARK}: {written} ")


keys_of_calls = st.sampled_from(
    [
        *("file_path", "filePath", "absolute_path", "notebook_path", "path", "file", "filename", "target_file"),
        *("command", "cmd", "pattern", "query", "regex", "input", "patch", "patchText", "offset", "limit"),
        *("start_line", "end_line", "view_range", "url", "description", "path", "command", "old"),
    ]
)
values_of_calls = st.one_of(
    json_values,
    json_values,
    st.sampled_from(PATHS),
    short_texts,
    st.sampled_from([1, 5, "7", -1, [1, 5], ["a", "b"], 5.0, True, "", None]),
)
JSON_SPLINTERS = (
    *(
        '"',
        "\\",
        "\\ud83d",
        "\\ud83d\\ude00",
        "\\u0000",
        "\\x",
        "\\/",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "NaN",
        "Infinity",
        "-",
    ),
    *(
        "1e400",
        "-0",
        "01",
        "1.",
        ".5",
        "5.0",
        "1E2",
        "12345678901",
        "9" * 5000,
        "null",
        "true",
        "tru",
        " ",
        "\n",
        "\t",
        "\r",
    ),
    *(
        "\0",
        "\x0b",
        "\xa0",
        "\ufeff",
        "\ud800",
        "/**/",
        '"path": "z.py",',
        '"path": null, ',
        '"a": [[[[]]]],',
        "'",
        "ไ",
        "😀",
    ),
)


def splintered(text: str, splinters: list[tuple[int, int, str]]) -> str:
    """The text with something else here and there."""
    for place, length, splinter in splinters:
        at = place % (len(text) + 1)
        text = text[:at] + splinter + text[at + length :]
    return text


splinters = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from([0, 0, 1, 2, 30]), st.sampled_from(JSON_SPLINTERS)), max_size=2
)
NO_FLOAT = re.compile("[0-9]{309}|[eE][+]?[0-9]{3}")  # perhaps more than a float can hold; see the test below
names_of_calls = st.sampled_from(["read", "edit", "bash", "grep", "ls", "web_fetch", "task", "todo"])


@given(
    names_of_calls,
    st.dictionaries(keys_of_calls, values_of_calls, max_size=4),
    st.sampled_from(["dict", "ascii", "compact", "indented"]),
    splinters,
)
def test_stubs_read_arguments_as_the_reference_does(
    name: str, arguments: Message, written: str, splinters: list[tuple[int, int, str]]
) -> None:
    """JSON that is written in every way, or damaged: both read the same in it."""
    fields: Any = arguments
    if written != "dict":
        form: Any = {
            "ascii": {},
            "compact": {"ensure_ascii": False, "separators": (",", ":")},
            "indented": {"ensure_ascii": False, "indent": 1},
        }[written]
        fields = splintered(json.dumps(arguments, **form), splinters)
        assume(not NO_FLOAT.search(fields))
    check_stub(only_stub(answered(called(name, fields), FILLER, {})).stub)


@pytest.mark.parametrize("number", ["1e309", "-1e309", "1e99999", "1" + "0" * 309])
@pytest.mark.parametrize("key", ["offset", "filePath", "url"])
def test_numbers_that_no_float_can_hold(key: str, number: str) -> None:
    """Then nothing is read of the JSON."""
    item = only_stub(answered(called("read", f'{{"path": "a.py", "{key}": {number}}}'), FILLER, {}))
    assert item.stub.startswith(f"{MARK}: read, 101 lines")


@given(
    st.lists(
        st.sampled_from([*" \t\n0159-cdehit'\"./p", "cat ", "sed -n ", "head ", "nl -ba ", "a.py", ",5p"]), max_size=8
    )
)
def test_commands_that_read_files(parts: list[str]) -> None:
    """Lines that are read by a shell are named as those that a tool for reading reads."""
    item = only_stub(answered(called("bash", {"command": "".join(parts)}), "def f():" + FILLER, {}))
    check_stub(item.stub)


@given(
    st.lists(
        st.sampled_from(
            ["exit", "Exit", "code", "status", ":", " ", "=", "-", "1", "0", "23", "_", "x", "é", "\n", '"']
        ),
        max_size=10,
    ),
    st.booleans(),
    st.sampled_from(["bash", "todo", "read"]),
)
def test_exit_codes(parts: list[str], last: bool, name: str) -> None:
    code, filler = "".join(parts), "filler line\n" * 30
    text = filler + code if last else f"{code}\n{filler}"
    check_stub(only_stub(answered(called(name, {}), text, {})).stub)


@SOME
@given(
    st.lists(anything, min_size=1, max_size=6),
    st.sampled_from(["a.py", "src/b.md"]),
    st.lists(st.tuples(st.booleans(), st.sampled_from(LINE_ARGUMENTS)), min_size=2, max_size=12),
    st.sampled_from(["join", "start", "off"]),
    st.sampled_from(["auto", 1, 400]),
    st.sampled_from([0, 500, 3_000]),
)
def test_reads_and_edits_of_one_file(
    rest: list[Step | Message], path: str, uses: list[tuple[bool, Message]], superseded: Any, threshold: Any, zone: int
) -> None:
    """What covers what, what is edited, and what is remarked."""
    steps: list[Step | Message] = [
        Step(
            ("openai", "openai"),
            [
                Use(
                    ("edit" if edits else "read", {"path": path, **lines}),
                    "def f():" + FILLER,
                    "#",
                    "text",
                    "",
                    "plain",
                )
            ],
            turned=False,
            wait=None,
            says=None,
        )
        for edits, lines in uses
    ]
    messages = session([], [*steps[:2], *rest, *steps[2:]])
    policy = PrunePolicy(
        protected_steps=1,
        protected_tokens=zone,
        prune_threshold=threshold,
        min_batch=1,
        min_saved=1,
        superseded=superseded,
    )
    last: Both | None = None
    for part in growing(messages, 3):
        last = prune(part, BY_LENGTH, {"policy": policy, "prices": None}, last)
        for item in last[0].report.items:
            remarks = item.stub.count("edited later"), item.stub.count("read again later")
            reasons = item.reason == "edited", item.reason == "covered"
            assert item.reason == "error" or remarks in (reasons, (0, 0))  # none where it makes the stub too long
