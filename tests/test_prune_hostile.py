"""Bad input to `prune_tool_outputs`: a clear error that says where, never a panic or a crash, never too much time.

The values and places are those of `test_hostile.py`, put into sessions in which outputs are pruned, so that messages
are read a second time, for their stubs, and written. Lists that change meanwhile are those of `test_threads.py`.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import multiprocessing
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from agent_sessions import ALL_AT_ONCE as ALL
from test_complexity import grows_linearly
from test_hostile import (
    COUNTERS,
    FRAMES,
    HOSTILE,
    MISTAKES,
    HostileError,
    at,
    base_transcript,
    copy_of_containers,
    deep,
    guarded,
    mutate,
)
from test_threads import ALLOWED, CHANGES, N_THREADS, Reader, let_others_run, outcome, run_all

import ctxfast
from ctxfast import BudgetError, CachePrices, MessageTypeError, MessageValueError, TokenCounter, reference
from ctxfast.policy import PrunePolicy
from ctxfast.shrinking import Pruned, Report

API: Any = ctxfast  # called with what type checkers forbid
Message = dict[str, Any]

GRID = PrunePolicy(protected_steps=1, protected_tokens=300, prune_threshold=50, min_saved=1)
POLICIES = {"all": ALL, "grid": GRID, "auto": PrunePolicy(protected_steps=1, protected_tokens=100, min_batch=0)}
TEXT = "some line of text\n" * 40
FINE: Message = {"role": "user", "content": "text"}


def call(call_id: Any, name: Any = "read", arguments: Any = '{"path": "a.py"}') -> Message:
    """A response in OpenAI's form that calls a tool."""
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: Any, content: Any = TEXT, **more: Any) -> Message:
    """An output."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def around(message: Any) -> list[Any]:
    """A session around a message: calls before it that it may answer, outputs, and responses behind it."""
    blocks = [
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "cat a.py"}},
        {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "a.py", "offset": 3}},
    ]
    return [
        FINE,
        call("x"),
        result("x", is_error=True),
        {"role": "assistant", "content": blocks},
        message,
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": TEXT}]}],
        },
        call("y", "edit_file"),
        result("y"),
        call("z"),
        result("z"),
        {"role": "assistant", "content": "done"},
        FINE,
    ]


def prune_in_every_way(messages: Any) -> list[Any]:
    """Every policy, and again with the report."""
    answers = []
    for policy in POLICIES.values():
        got = guarded(API.prune_tool_outputs, messages, policy=policy, prices=None)
        if isinstance(got, Pruned):
            guarded(API.prune_tool_outputs, messages, policy=policy, previous=got)
            guarded(API.prune_tool_outputs, got.messages, policy=policy)
        answers.append(got)
    return answers


# ---------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("messages", [None, 5, {"role": "user"}, {1}, "text", b"x", iter([FINE])], ids=repr)
def test_lists_must_be_lists(messages: Any) -> None:
    with pytest.raises(MessageTypeError, match=r"Expected a list of messages, got `\w+` - at `messages`"):
        API.prune_tool_outputs(messages)


@pytest.mark.parametrize("name", ["protected_turns", "protected_steps", "protected_tokens", "prune_threshold"])
def test_counts(name: str) -> None:
    wrong: Any
    for wrong in (
        0.5,
        2.0,
        math.nan,
        math.inf,
        True,
        False,
        b"1",
        [1],
        1j,
        object(),
        *(() if "thr" in name else ("1",)),
    ):
        with pytest.raises(TypeError, match=rf"{name}: expected .*a whole number, got "):
            API.prune_tool_outputs([FINE], **{name: wrong})
        with pytest.raises(TypeError, match=rf"{name}: expected .*a whole number, got "):
            PrunePolicy(**{name: wrong})
    for bad in (-1, -(2**63), -(10**400)):
        with pytest.raises(ValueError, match=f"{name}: expected 0 or more, got -"):
            API.prune_tool_outputs([FINE], **{name: bad})
    for good in (None, 0, 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400):
        for policy in POLICIES.values():
            got = API.prune_tool_outputs(around(FINE), policy=policy, prices=None, **{name: good})
            assert len(got.messages) == 12


@pytest.mark.parametrize("word", ["x", "", "Auto", "AUTO", "auto ", "\ud800", "\0", "10"], ids=ascii)
def test_thresholds_that_are_words(word: Any) -> None:
    with pytest.raises(ValueError, match="prune_threshold: expected 'auto' or a whole number, got "):
        API.prune_tool_outputs([FINE], prune_threshold=word)


def test_budgets() -> None:
    wrong: Any
    for bad in (0, 0.0, 0.99, -1, -0.5, -(10**400), math.nan, math.inf, -math.inf, True, False):
        with pytest.raises(BudgetError, match="budget: expected a number of tokens, 1 or more, got"):
            API.prune_tool_outputs([FINE], budget=bad)
    for wrong in ("8000", b"8", [8000], {}, 8j, object()):
        with pytest.raises(TypeError, match=r"budget: expected a number of tokens, got `\w+`"):
            API.prune_tool_outputs([FINE], budget=wrong)
    for good in (None, 1, 1.0, 3.7, 2**63, 10**400, 1e300):
        API.prune_tool_outputs(around(FINE), policy=ALL, budget=good)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("policy", "policy: expected a PrunePolicy, got"),
        ("previous", "previous: expected the Report of an earlier call, got"),
        ("prices", "prices: expected CachePrices or None, got"),
        ("counter", "counter"),
    ],
)
def test_objects_of_other_classes(name: str, expected: str) -> None:
    others: tuple[Any, ...] = (
        *(0, "x", {}, [], object(), len, PrunePolicy, CachePrices, Report, TokenCounter, FINE, True),
        *(
            reference.default_counter(),
            reference.prune_tool_outputs([FINE]),
            reference.prune_tool_outputs([FINE]).report,
        ),
    )
    for other in others:
        with pytest.raises(TypeError, match=expected):
            API.prune_tool_outputs([FINE], **{name: other})


def test_arguments_that_there_are_not() -> None:
    options: Message
    for options in ({"threshold": 5}, {"messages": []}, {"form": "openai"}):
        with pytest.raises(TypeError):
            API.prune_tool_outputs([FINE], **options)
    with pytest.raises(TypeError):
        API.prune_tool_outputs()
    with pytest.raises(TypeError):
        API.prune_tool_outputs([FINE], 1, 1, 1)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_argument_makes_it_panic(name: str) -> None:
    value = HOSTILE[name]
    guarded(API.prune_tool_outputs, value)
    for option in (
        *("protected_turns", "prune_threshold", "protected_tokens", "protected_steps", "budget", "prices"),
        *("policy", "previous", "counter"),
    ):
        guarded(API.prune_tool_outputs, around(FINE), **{option: value})
    for option in ("read", "write", "horizon", "cold"):
        guarded(CachePrices, **{option: value})


@pytest.mark.parametrize("name", [name for name in HOSTILE if "10**" not in name])
def test_no_broken_policy_makes_it_panic(name: str) -> None:
    """A frozen policy that somebody has changed all the same."""
    value = HOSTILE[name]
    if name in ("a list that lies", "a range", "a generator", "an iterator"):
        value = [value]
    for field in PrunePolicy.__dataclass_fields__:
        policy = PrunePolicy()
        object.__setattr__(policy, field, value)
        guarded(API.prune_tool_outputs, around(FINE), policy=policy)
        object.__setattr__(policy, field, (value,))
        guarded(API.prune_tool_outputs, around(FINE), policy=policy)
        object.__setattr__(policy, field, ((value, value),))
        guarded(API.prune_tool_outputs, around(FINE), policy=policy)


def test_a_policy_with_a_class_that_raises() -> None:
    class Odd(PrunePolicy):
        @property
        def superseded(self) -> Any:
            raise HostileError

    policy = object.__new__(Odd)
    with pytest.raises(HostileError):
        API.prune_tool_outputs([FINE], policy=policy)


def pruned_session() -> Pruned[Any]:
    return ctxfast.prune_tool_outputs(around(FINE), policy=ALL)


def test_prices() -> None:
    make: Any = CachePrices
    wrong: Any
    for name in ("read", "write", "horizon"):
        for bad in (-1, -0.1, math.nan, math.inf, -math.inf):
            with pytest.raises(ValueError, match="expected a finite number, 0 or more, got"):
                make(**{name: bad})
        for wrong in ("1", True, [1], 1j, *(() if name == "horizon" else (None,))):
            with pytest.raises(TypeError, match="expected a number, got"):
                make(**{name: wrong})
    for extreme in (0.0, 5e-324, 1e308):
        for other in (0.0, 1e308):
            prices = CachePrices(read=extreme, write=other, horizon=1e308)
            assert ctxfast.prune_tool_outputs(around(FINE), policy=POLICIES["auto"], prices=prices).messages


REPORT_FIELDS = (
    "before",
    "after",
    "items",
    "earliest_changed_index",
    "tokens_rewritten",
    "blocked_by",
    "reread_of_pruned",
)
ITEM_FIELDS = (
    *("index", "place", "call_id", "tool", "kind", "reason", "before", "after", "new", "stub", "characters", "sample"),
)
NUMBERS = ("before", "after", "tokens_rewritten", "earliest_changed_index", "index", "place", "characters")


def test_reports_from_data_that_are_none() -> None:
    data = pruned_session().report.as_dict()
    assert Report.from_dict(data) == pruned_session().report
    for name in REPORT_FIELDS:
        with pytest.raises(KeyError, match=name):
            Report.from_dict({key: value for key, value in data.items() if key != name})
    for name in ITEM_FIELDS:
        items = [{key: value for key, value in item.items() if key != name} for item in data["items"]]
        with pytest.raises(KeyError, match=name):
            Report.from_dict({**data, "items": items})
    for key, value in (("blocked_by", "x"), ("blocked_by", "")):
        with pytest.raises(ValueError, match=key):
            Report.from_dict({**data, key: value})
    for key in ("kind", "reason"):
        with pytest.raises(ValueError, match=key):
            Report.from_dict({**data, "items": [{**data["items"][0], key: "x"}]})
    wrong: Any
    for wrong in (None, 5, [], "x"):
        with pytest.raises(TypeError):
            Report.from_dict(wrong)


@pytest.mark.parametrize("name", [name for name in HOSTILE if "10**" not in name and name not in ("-1", str(2**63))])
def test_no_data_of_a_report_makes_it_panic(name: str) -> None:
    value = HOSTILE[name]
    data = pruned_session().report.as_dict()
    reports = [guarded_key(Report.from_dict, {**data, key: value}) for key in REPORT_FIELDS]
    items = [{**data["items"][0], key: value} for key in ITEM_FIELDS]
    reports += [guarded_key(Report.from_dict, {**data, "items": [item, data["items"][1]]}) for item in items]
    reports += [guarded_key(Report.from_dict, value)]
    for report in reports:
        if isinstance(report, Report):
            for text in (str(report), repr(report)):
                assert text
            report.as_dict()
            guarded(API.prune_tool_outputs, around(FINE), policy=ALL, previous=report)


def guarded_key(function: Callable[..., Any], *args: Any) -> Any:
    """Like `guarded`; a missing key is a `KeyError`."""
    try:
        return guarded(function, *args)
    except AssertionError as error:
        if isinstance(error.__cause__, KeyError):
            return error.__cause__
        raise


@pytest.mark.parametrize(
    "number",
    [-1, 2**63, 2**64, 10**400, -(10**400)],
    ids=lambda number: f"{number:.3g}" if abs(number) < 10**300 else "huge",
)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_reports_that_are_too_large(name: str, number: int) -> None:
    """As documented: an error of a known class, or a report that works."""
    data = pruned_session().report.as_dict()
    if name in data:
        data[name] = number
    else:
        data["items"][0][name] = number
    try:
        report = Report.from_dict(data)
    except (TypeError, ValueError, OverflowError):
        return
    assert str(report)
    assert report.saved >= 0
    got = ctxfast.prune_tool_outputs(around(FINE), policy=ALL, previous=report).report
    assert {(item.index, item.place) for item in got.items} == {
        (i.index, i.place) for i in pruned_session().report.items
    }


def test_a_report_of_somebody_else_is_no_harm() -> None:
    """Edits whose stubs are larger than the outputs, or of outputs that are not there, are left out."""
    data = pruned_session().report.as_dict()
    for stub in ("x" * 10**6, TEXT, TEXT[1:], "", "ไทย" * 500, "\0", "[Tool output pruned: x]"):
        changed = {**data, "items": [{**item, "stub": stub} for item in data["items"]]}
        got = ctxfast.prune_tool_outputs(around(FINE), previous=Report.from_dict(changed))
        assert got.report.after <= got.report.before
        assert all(len(item.stub) < len(TEXT) for item in got.report.items)
    doubled = Report.from_dict({**data, "items": data["items"] * 50})
    assert ctxfast.prune_tool_outputs(around(FINE), policy=ALL, previous=doubled).messages == pruned_session().messages
    assert not ctxfast.prune_tool_outputs([], previous=doubled).report.changed
    assert not ctxfast.prune_tool_outputs([FINE] * 9, previous=doubled).report.changed


# ------------------------------------------------------------------------------------------------ messages


@pytest.mark.parametrize(("message", "expected", "got", "path"), MISTAKES, ids=lambda value: str(value)[:70])
@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
def test_errors_say_what_was_expected_what_came_and_where(
    message: dict[str, Any], expected: str, got: str, path: str, counter: Any
) -> None:
    for messages, index in (([message], 0), ([FINE, FINE, FINE, message], 3), (around(message), 4)):
        for policy in (None, ALL):
            with pytest.raises((MessageTypeError, MessageValueError)) as caught:
                API.prune_tool_outputs(messages, counter=counter, policy=policy)
            error = caught.value
            assert (error.expected, error.got, error.path) == (expected, got, f"messages[{index}]{path}")
            assert str(error) == f"Expected {expected}, got {got} - at `messages[{index}]{path}`"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_makes_it_panic(name: str) -> None:
    value = HOSTILE[name]
    prune_in_every_way(around(value))
    prune_in_every_way([value] * 3)
    for frame in FRAMES:
        prune_in_every_way(around(at("$", value, frame)))


RESULTS: list[Message] = [
    {"role": "tool", "tool_call_id": "a", "content": "$"},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": TEXT}, "$"]},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "$"}, {"type": "text", "text": TEXT}]},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "$", "text": TEXT}, TEXT]},
    {"role": "tool", "tool_call_id": "a", "content": TEXT, "name": "$", "is_error": "$", "status": "$"},
    {"role": "tool", "tool_call_id": "nowhere", "content": TEXT, "name": "$"},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": TEXT, "is_error": "$", "name": "$"}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": TEXT, "status": "$"}, "$"]},
    {"role": "user", "content": ["$", {"type": "tool_result", "tool_use_id": "a", "content": [TEXT, "$"]}]},
]
KEYS = ("path", "file_path", "command", "pattern", "input", "offset", "limit", "start_line", "view_range", "url")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_output_and_no_argument_of_a_call_makes_it_panic(name: str) -> None:
    value = HOSTILE[name]
    for frame in RESULTS:
        prune_in_every_way(around(at("$", value, frame)))
    for tool in ("read", "edit", "bash", "grep", value):
        messages = around(FINE)
        messages[1] = call("x", tool, value)
        prune_in_every_way(messages)
        for key in KEYS:
            messages[1] = call("x", tool, {"path": "a.py", key: value})
            prune_in_every_way(messages)
            messages[1] = call("x", tool, {key: [value, value]})
            guarded(API.prune_tool_outputs, messages, policy=ALL)


def test_a_message_whose_fields_raise() -> None:
    """Fields are read more than once: for the counts, for the stub, for the new message."""
    for raising_read in range(1, 12):
        reads = iter(range(1, 100))

        def act(reads: Any = reads, raising_read: int = raising_read) -> None:
            if next(reads) == raising_read:
                raise HostileError

        class Result(Reader):
            @property
            def __dict__(self) -> Any:  # type: ignore[override]
                object.__getattribute__(self, "act")()
                return {"role": "tool", "tool_call_id": "a", "content": TEXT}

        got = guarded(API.prune_tool_outputs, around(Result(act)), policy=ALL)
        assert isinstance(got, (HostileError, Pruned))


def test_a_property_may_change_what_is_read() -> None:
    for place in range(13):
        for act in ("clear", "reverse", "pop"):
            for policy in POLICIES.values():
                messages: list[Any] = around(FINE)
                messages.insert(place, Reader(getattr(messages, act)))
                answer = outcome(functools.partial(API.prune_tool_outputs, messages, policy=policy, prices=None))
                assert isinstance(answer, (*ALLOWED, Pruned)), repr(answer)


def test_random_mutations_never_panic() -> None:
    chance = random.Random(7)
    junk = [value for name, value in HOSTILE.items() if "deep" not in name and "10**" not in name]
    junk += ["tool_use", "tool_result", "text", "user", "tool", "a", "t1", TEXT, [{}], {"type": "text"}, '{"path": 5}']
    original = [*base_transcript()[:5], *around(result("a")), *base_transcript()[5:]]
    counters, policies = list(COUNTERS.values()), list(POLICIES.values())
    pruned = 0
    for number in range(6_000):
        messages = copy_of_containers(original)
        for _ in range(chance.choice([1, 1, 2, 3])):
            mutate(messages, chance, junk)
        options = {"policy": policies[number % 3], "counter": counters[number % 4], "prices": None}
        got = guarded(API.prune_tool_outputs, messages, **options)
        if isinstance(got, Pruned):
            pruned += got.report.changed
            assert got.report.after <= got.report.before
            again = guarded(API.prune_tool_outputs, messages, previous=got, **options)
            assert again.messages == got.messages or "nan" in repr(messages)
    assert 1_000 < pruned < 5_900


# ----------------------------------------------------------------------------------- names, arguments, texts


def stub_of(name: Any, arguments: Any, text: Any = TEXT) -> str:
    """What stands in the place of the only output; the reference says the same."""
    messages = [call("a", name, arguments), result("a", text), {"role": "assistant", "content": "ok"}]
    got = API.prune_tool_outputs(messages, policy=ALL)
    expected = reference.prune_tool_outputs(messages, policy=ALL)
    assert got.messages == expected.messages
    (item,) = got.report.items
    assert len(item.stub) <= 400
    return str(item.stub)


@pytest.mark.parametrize(
    "name",
    ["x" * 10_000, "ไทย" * 4_000, "\x1b[31m" * 3_000, "\0" * 10_000, "a b\n" * 3_000],
    ids=["ASCII", "Thai", "ANSI", "NUL", "lines"],
)
def test_long_names(name: str) -> None:
    head = stub_of(name, "{}").split(",")[0]
    assert len(head) < 70
    assert stub_of("read", json.dumps({"path": name}))
    assert stub_of("grep", json.dumps({"pattern": name, "path": name}))
    assert stub_of("bash", json.dumps({"command": name}))


ODD_ARGUMENTS = {
    "nothing": "",
    "null": "null",
    "a list": "[1]",
    "a text": '"a.py"',
    "cut off": '{"path": "a.py"',
    "more behind": '{"path": "a.py"} x',
    "no quotes": "{path: a.py}",
    "a comma too many": '{"path": "a.py",}',
    "single quotes": "{'path': 'a.py'}",
    "equal keys": '{"path": "b.py", "path": "a.py"}',
    "equal keys, null": '{"path": "b.py", "path": null}',
    "a lone surrogate in a path": '{"path": "\\ud800.py"}',
    "a lone surrogate elsewhere": '{"path": "a.py", "other": "\\udfff"}',
    "a lone surrogate in a key": '{"path": "a.py", "\\ud83d": 1}',
    "a pair of surrogates": '{"path": "\\ud83d\\ude00.py"}',
    "a real lone surrogate": '{"path": "\ud800.py"}',
    "NUL": '{"path": "a\\u0000.py"}',
    "a real NUL": '{"path": "a\0.py"}',
    "NaN": '{"path": "a.py", "offset": NaN}',
    "infinity": '{"path": "a.py", "x": -Infinity}',
    "a huge integer": '{"path": "a.py", "offset": ' + "9" * 300 + "}",
    "an integer of 5,000 digits": '{"path": "a.py", "offset": ' + "9" * 5_000 + "}",
    "the least integer": '{"path": "a.py", "offset": -9223372036854775808, "limit": -9223372036854775808}',
    "a leading zero": '{"path": "a.py", "offset": 01}',
    "a byte order mark": '\ufeff{"path": "a.py"}',
    "odd white space": '\xa0{"path": "a.py"}',
    "white space": ' \t\r\n{ "path"\n:\t"a.py" } \n',
    "control characters": '{"path": "a\tb.py"}',
    "bad escapes": '{"path": "\\x41"}',
    "60 levels": '{"path": "a.py", "x": ' + "[" * 60 + "]" * 60 + "}",
    "60 levels under a key that counts": '{"path": "a.py", "url": ' + '{"a":' * 60 + "1" + "}" * 60 + "}",
    "endless": '{"path": "a.py", "url": ' + "[" * 100_000,
    "long": json.dumps({"path": "a.py", "content": "ไทย" * 100_000}),
}


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS)
@pytest.mark.parametrize("name", ["read", "edit", "bash", "grep"])
def test_odd_arguments(name: str, arguments: str) -> None:
    stub_of(name, arguments)


@pytest.mark.parametrize("levels", [126, 200, 1_000, 5_000, 100_000])
@pytest.mark.parametrize("key", ["url", "other"])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_deep_arguments(key: str, levels: int, bracket: str) -> None:
    """How deep is read is not the same in the reference, whose JSON reader stops at Python's own depth."""
    begin = "[" if bracket == "[]" else '{"a":'
    arguments = f'{{"path": "a.py", "{key}": {begin * levels}1{bracket[1] * levels}}}'
    messages = [call("a", "read", arguments), result("a"), {"role": "assistant", "content": "ok"}]
    (item,) = ctxfast.prune_tool_outputs(messages, policy=ALL).report.items
    assert item.stub.startswith("[Tool output pruned: read")
    if key == "other":
        assert item.stub.startswith("[Tool output pruned: read a.py, ")


@pytest.mark.parametrize(("levels", "subject"), [(126, "read a.py, "), (127, "read, "), (200, "read, ")])
def test_arguments_of_some_depth_are_read(levels: int, subject: str) -> None:
    arguments = f'{{"path": "a.py", "url": {"[" * levels}{"]" * levels}}}'
    assert stub_of("read", arguments).startswith(f"[Tool output pruned: {subject}")


def test_deep_dicts_as_arguments_are_errors_of_counting() -> None:
    for levels in (63, 64, 1_000):
        messages = [call("a", "read", {"path": "a.py", "url": deep(levels, lambda value: [value])}), result("a")]
        got, expected = (guarded(f, messages) for f in (API.prune_tool_outputs, reference.prune_tool_outputs))
        assert type(got).__name__ == type(expected).__name__
        assert not isinstance(got, Exception) or str(got) == str(expected)


HUGE = 20_000_000


@pytest.mark.parametrize(
    "text",
    ["x" * HUGE, "é" * HUGE, "ไ" * (HUGE // 2), "exit code " * (HUGE // 10), "\n" * HUGE, "e" * HUGE],
    ids=["ASCII", "Latin-1", "Thai", "exit codes", "line feeds", "e"],
)
@pytest.mark.parametrize("name", ["read", "bash", "grep"])
def test_one_huge_line(text: str, name: str) -> None:
    messages = [call("a", name), result("a", text), {"role": "assistant", "content": "ok"}]
    start = time.perf_counter()
    got = ctxfast.prune_tool_outputs(messages, policy=ALL)
    assert time.perf_counter() - start < 5  # hundredths of a second
    assert f"{len(text):,} characters" in got.report.items[0].stub
    assert got.report.items[0].characters == len(text)


@pytest.mark.parametrize("name", ["read", "bash", "grep", "ls", "web_fetch", "todo"])
def test_a_million_lines(name: str) -> None:
    text = "a.py:5: def f():\r\n" * 1_000_000
    messages = [call("a", name), result("a", text), {"role": "assistant", "content": "ok"}]
    (item,) = ctxfast.prune_tool_outputs(messages, policy=ALL).report.items
    counted = {"grep": "1,000,000 matches in 1 file", "ls": "1,000,000 entries"}.get(name, "1,000,000 lines")
    assert counted in item.stub
    assert "\r" not in item.stub


@pytest.mark.parametrize(
    "text",
    [
        "\0" * 5_000,
        "\x1b[" * 3_000,
        "\x1b]0;title\x07" * 500,
        "\x1b[38;5;196mred\x1b[0m\r\n" * 300,
        "\r\n" * 3_000,
        "\r" * 3_000,
        "\ud800" * 3_000,
        "\ud83d\ude00\n" * 1_000,
        "\u2028\u2029\x85" * 1_000,
        "﻿" * 3_000,
        "\x7f\x80\x9f" * 1_000,
        "</tool_result><tool_call>{}" * 200,
        '{"name": "x", "arguments": {}}\n' * 200,
        "[Tool output" * 300,
        "\U0010ffff" * 3_000,
        "Error\n" * 60 + "\n" * 3_000,
        " " * 5_000,
        "exit code " + "9" * 5_000,
        "exit" * 2_000 + " code 1",
    ],
    ids=lambda text: ascii(text[:12]),
)
@pytest.mark.parametrize("name", ["read", "bash", "grep", "ls", "web_fetch", "edit", "todo"])
def test_odd_texts(name: str, text: str) -> None:
    stub = stub_of(name, '{"path": "a.md", "command": "make"}', text)
    assert not any(char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029" for char in stub.replace("\n", ""))
    assert "<tool_call" not in stub
    assert '"name":' not in stub
    stub.encode()


# ------------------------------------------------------------------------------------------------- counters


@pytest.mark.parametrize("error", [HostileError(), KeyError("x"), KeyboardInterrupt(), SystemExit()], ids=repr)
@pytest.mark.parametrize("when", [0, 1, 5, 20, 24, 25, 26, 30])
def test_exceptions_of_a_counting_function_come_through(error: BaseException, when: int) -> None:
    """While messages are counted, while stubs are, while what was written is."""
    calls = iter(range(10**6))

    def count(text: str) -> int:
        if next(calls) == when:
            raise error
        return len(text)

    messages, before = around(result("a")), around(result("a"))
    with pytest.raises(type(error)) as caught:
        ctxfast.prune_tool_outputs(messages, policy=ALL, counter=TokenCounter.from_callable(count))
    assert caught.value is error
    assert messages == before


@pytest.mark.parametrize("count", [True, 2.0, None, "3", -1, 2**64, -(10**30), [4]], ids=repr)
def test_what_a_counting_function_returns_is_checked(count: Any) -> None:
    for stubs_only in (False, True):

        def count_anyhow(text: str, stubs_only: bool = stubs_only) -> Any:
            return len(text) if stubs_only and not text.startswith("[Tool") else count

        with pytest.raises((TypeError, ValueError), match="the counting function must"):
            ctxfast.prune_tool_outputs(around(FINE), policy=ALL, counter=TokenCounter.from_callable(count_anyhow))


def test_counts_that_make_no_sense() -> None:
    """Random counts, the same text never the same: sizes may be anything, the list that comes out is a whole one."""
    chance = random.Random(5)
    for counts in ([0], [1], [2**32 - 1], [0, 2**32 - 1], list(range(1000))):

        def count(text: str, counts: list[int] = counts) -> int:
            return chance.choice(counts)

        counter = TokenCounter.from_callable(count)
        for policy in POLICIES.values():
            for _ in range(20):
                got = ctxfast.prune_tool_outputs(around(result("a")), policy=policy, counter=counter, prices=None)
                assert len(got.messages) == 12
                again = ctxfast.prune_tool_outputs(around(result("a")), policy=policy, counter=counter, previous=got)
                assert len(again.messages) == 12
                assert str(again.report)


def test_huge_counts_do_not_wrap_round() -> None:
    counter = TokenCounter.from_callable(lambda text: 2**32 - 1 if len(text) > 400 else 0, message_overhead=0)
    messages = [m for n in range(40) for m in (call(f"{n}", arguments={"path": f"{n}.py"}), result(f"{n}"))]
    for policy in (*POLICIES.values(), PrunePolicy(protected_steps=1, prune_threshold=2**62)):
        report = ctxfast.prune_tool_outputs(messages, policy=policy, counter=counter).report
        assert report.before == 40 * (2**32 - 1)
        assert report.saved == len(report.items) * (2**32 - 1)
    assert not ctxfast.prune_tool_outputs(messages, policy=policy, counter=counter).report.changed


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_counting_function_may_change_what_is_counted(change: Callable[[list[Any], int], None]) -> None:
    for policy in POLICIES.values():
        for first in range(0, 40, 3):
            messages = copy.deepcopy(around(result("a")))
            steps = iter(range(10**9))

            def count(text: str, messages: list[Any] = messages, steps: Any = steps, first: int = first) -> int:
                step = next(steps)
                if step >= first and 0 < len(messages) < 100:
                    change(messages, step)
                return len(text)

            counter = TokenCounter.from_callable(count)
            prune = functools.partial(ctxfast.prune_tool_outputs, messages, policy=policy, counter=counter, prices=None)
            answer = outcome(prune)
            assert isinstance(answer, (*ALLOWED, Pruned)), repr(answer)


@pytest.mark.parametrize("when", range(40))
def test_everything_may_vanish_while_it_is_counted(when: int) -> None:
    """The list, a message, its content, a block, its arguments: emptied in the middle of pruning."""
    picks: list[Callable[[list[Any]], Any]] = [
        lambda messages: messages,
        lambda messages: messages[1],
        lambda messages: messages[1]["tool_calls"],
        lambda messages: messages[1]["tool_calls"][0]["function"],
        lambda messages: messages[1]["tool_calls"][0]["function"]["arguments"],
        lambda messages: messages[2],
        lambda messages: messages[3]["content"],
        lambda messages: messages[3]["content"][0]["input"],
        lambda messages: messages[5],
        lambda messages: messages[5]["content"],
        lambda messages: messages[5]["content"][0],
        lambda messages: messages[5]["content"][0]["content"],
        lambda messages: messages[5]["content"][0]["content"][0],
    ]
    for pick in picks:
        for act in ("clear", "change"):
            messages = copy.deepcopy(around(result("a")))
            messages[1]["tool_calls"][0]["function"]["arguments"] = {"path": "a.py"}
            target, calls = pick(messages), iter(range(10**9))

            def count(text: str, target: Any = target, calls: Any = calls, act: str = act) -> int:
                if next(calls) == when:
                    if act == "clear":
                        target.clear()
                    elif isinstance(target, list):
                        target.insert(
                            0, {"type": "tool_result", "role": "user", "content": [{"type": "text", "text": "y"}]}
                        )
                    else:
                        target.update(role="user", content=[5], type="text", text=[], path=5)
                return len(text)

            counter = TokenCounter.from_callable(count)
            answer = outcome(functools.partial(ctxfast.prune_tool_outputs, messages, policy=ALL, counter=counter))
            assert isinstance(answer, (*ALLOWED, Pruned)), repr(answer)


def test_a_counting_function_may_prune() -> None:
    messages = around(result("a"))
    expected = ctxfast.prune_tool_outputs(messages, policy=ALL, counter=TokenCounter.from_callable(len))

    def count(text: str) -> int:
        ctxfast.prune_tool_outputs(messages, policy=GRID)
        return len(text)

    assert ctxfast.prune_tool_outputs(messages, policy=ALL, counter=TokenCounter.from_callable(count)) == expected


# -------------------------------------------------------------------------------------- threads and processes


def long_session(steps: int) -> list[Any]:
    """Reads, edits, commands and errors, in both forms."""
    messages: list[Any] = [FINE]
    for number in range(steps):
        name = ("read", "edit_file", "bash", "grep")[number % 4]
        path = f"{number % 5}.py"
        if number % 3:
            messages += [call(f"c{number}", name, json.dumps({"path": path, "command": f"cat {path}"}))]
            messages += [result(f"c{number}", TEXT * (1 + number % 3), is_error=number % 7 == 0)]
        else:
            use = {"type": "tool_use", "id": f"c{number}", "name": name, "input": {"path": path}}
            block = {"type": "tool_result", "tool_use_id": f"c{number}", "content": [{"type": "text", "text": TEXT}]}
            messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
    return messages


def test_threads_agree() -> None:
    messages = long_session(60)
    options: list[Any] = [
        {"policy": policy, "counter": counter, "prices": None}
        for policy in POLICIES.values()
        for counter in (*COUNTERS.values(), TokenCounter.from_callable(let_others_run))
    ]
    expected = [ctxfast.prune_tool_outputs(messages, **option) for option in options]
    assert all(pruned.report.changed for pruned in expected)

    def work() -> bool:
        return all(
            [ctxfast.prune_tool_outputs(messages, **option) for option in options] == expected
            and ctxfast.prune_tool_outputs(messages, previous=expected[0], **options[0]).messages
            == expected[0].messages
            for _ in range(3)
        )

    assert run_all([work] * N_THREADS) == [True] * N_THREADS


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_lists_may_change_while_they_are_pruned(change: Callable[[list[Any], int], None]) -> None:
    messages = copy.deepcopy(long_session(30))
    done = threading.Event()
    slow = TokenCounter.from_callable(let_others_run)
    functions = [
        functools.partial(ctxfast.prune_tool_outputs, messages, policy=policy, counter=counter, prices=None)
        for policy in POLICIES.values()
        for counter in (TokenCounter.default(), slow)
    ]

    def write() -> None:
        until, step = time.monotonic() + 0.4, 0
        while time.monotonic() < until:
            change(messages, step)
            step += 1
        done.set()

    def read() -> str | None:
        while not done.is_set():
            for function in functions:
                answer = outcome(function)
                if not isinstance(answer, (*ALLOWED, Pruned)):
                    return f"{answer!r} came out"
        return None

    assert run_all([write, read, read, read]) == [None] * 4


def answer_in_a_child(messages: list[Any], previous: Report, queue: Any) -> None:
    got = ctxfast.prune_tool_outputs(messages, policy=GRID, previous=previous)
    queue.put((got.messages, got.report.as_dict()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_forked_processes_agree() -> None:
    messages = long_session(40)
    before = ctxfast.prune_tool_outputs(messages[:50], policy=GRID).report
    expected = ctxfast.prune_tool_outputs(messages, policy=GRID, previous=before)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=answer_in_a_child, args=(messages, before, queue))
    child.start()
    got, data = queue.get()
    child.join(30)
    assert child.exitcode == 0
    assert (got, Report.from_dict(data)) == (expected.messages, expected.report)


def test_results_are_frozen() -> None:
    pruned: Any = pruned_session()
    for thing, names in (
        (pruned, ("messages", "report")),
        (pruned.report, (*REPORT_FIELDS, "saved", "changed")),
        (pruned.report.items[0], ITEM_FIELDS),
        (CachePrices(), ("read", "write", "horizon", "cold")),
        (ALL, tuple(PrunePolicy.__dataclass_fields__)),
    ):
        for name in names:
            with pytest.raises(AttributeError):
                setattr(thing, name, 5)
    made: Any
    for made in (Report, Pruned, type(pruned.report.items[0])):
        with pytest.raises(TypeError):
            made()


# ------------------------------------------------------------------------------------------------ time is taken


def reads_of_one_file(n: int) -> list[Message]:
    """Each covers all before it."""
    return [m for i in range(n // 2) for m in (call(f"c{i}"), result(f"c{i}"))]


def ranges_of_one_file(n: int) -> list[Message]:
    """None covers another."""
    arguments = ({"path": "a.py", "offset": 10 * i + 1, "limit": 10} for i in range(n // 2))
    return [m for i, lines in enumerate(arguments) for m in (call(f"c{i}", arguments=lines), result(f"c{i}"))]


def edits_of_one_file(n: int) -> list[Message]:
    """A read, an edit, a read ..."""
    return [
        m
        for i in range(n // 2)
        for m in (
            call(f"c{i}", ("read", "edit")[i % 2], {"path": "a.py", "offset": i + 1, "limit": 1}),
            result(f"c{i}"),
        )
    ]


def errors_only(n: int) -> list[Message]:
    """No error is made up for."""
    return [
        m
        for i in range(n // 2)
        for m in (call(f"c{i}", "bash", {"command": f"make {i}"}), result(f"c{i}", f"{TEXT}exit code 1"))
    ]


def errors_of_one_command(n: int) -> list[Message]:
    """Every second one is made up for."""
    return [
        m
        for i in range(n // 2)
        for m in (call(f"c{i}", "bash", {"command": "make x"}), result(f"c{i}", f"{TEXT}exit code {i % 2}"))
    ]


def many_turns(n: int) -> list[Message]:
    """A user message before each call."""
    return [m for i in range(n // 3) for m in (FINE, call(f"c{i}", "bash", {"command": f"ls {i}"}), result(f"c{i}"))]


def a_patch_of_many_files(n: int) -> list[Message]:
    """And reads of all of them."""
    patch = "".join(f"*** Update File: {i}.py\n" for i in range(n // 2))
    reads = (m for i in range(n // 2) for m in (call(f"c{i}", arguments={"path": f"{i}.py"}), result(f"c{i}")))
    return [*reads, call("p", "apply_patch", patch), result("p"), call("q"), result("q")]


def crossed_results(n: int) -> list[Message]:
    """All calls first and then all results, the last first."""
    calls = [call(f"c{i}") for i in range(n // 2)]
    return [*calls, *(result(f"c{i}") for i in reversed(range(n // 2))), call("x"), result("x")]


def equal_ids(n: int) -> list[Message]:
    """Every id the same."""
    return [m for _ in range(n // 2) for m in (call("x"), result("x"))]


def one_wide_response(n: int) -> list[Message]:
    """One response with all calls, one message for each result."""
    calls = [call(f"c{i}")["tool_calls"][0] for i in range(n)]
    wide = {"role": "assistant", "tool_calls": calls}
    return [wide, *(result(f"c{i}") for i in range(n)), {"role": "assistant", "content": "ok"}]


SHAPES: dict[str, Callable[[int], list[Message]]] = {
    function.__name__: function
    for function in (
        *(reads_of_one_file, ranges_of_one_file, edits_of_one_file, errors_only, errors_of_one_command, many_turns),
        *(a_patch_of_many_files, crossed_results, equal_ids, one_wide_response),
    )
}
HOW: dict[str, Callable[[int], Any]] = {
    "nothing to do": lambda n: {},
    "all at once": lambda n: {"policy": ALL},
    "what pays": lambda n: {"policy": PrunePolicy(protected_steps=1, min_batch=1, min_saved=1), "prices": None},
    "superseded reads start": lambda n: {
        "policy": PrunePolicy(
            protected_steps=1, protected_tokens=100 * n, min_batch=1, min_saved=1, superseded="start"
        ),
        "prices": None,
    },
    "tiny batches": lambda n: {"policy": PrunePolicy(protected_steps=1, prune_threshold=1, min_saved=1)},
    "tiny batches, no errors kept": lambda n: {
        "policy": PrunePolicy(protected_steps=1, prune_threshold=1, min_saved=1, keep_errors="none", superseded="off")
    },
    "half of the turns protected": lambda n: {
        "policy": PrunePolicy(protected_turns=n // 6, protected_results=n // 6, prune_threshold=100, min_saved=1)
    },
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", HOW)
def test_twice_the_messages_take_twice_the_time(how: str, shape: str) -> None:
    def make(n: int) -> Callable[[], object]:
        messages, options = SHAPES[shape](n), HOW[how](n)
        return lambda: ctxfast.prune_tool_outputs(messages, **options)

    grows_linearly(make, (1_000, 4_000))


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_messages_take_no_time(shape: str) -> None:
    messages = SHAPES[shape](10_000)
    for how in HOW.values():
        start = time.perf_counter()
        ctxfast.prune_tool_outputs(messages, **how(10_000))
        assert time.perf_counter() - start < 2  # hundredths of a second


@pytest.mark.parametrize("shape", ["equal_ids", "errors_of_one_command", "one_wide_response"])
def test_a_report_of_many_edits_is_put_in_again_in_linear_time(shape: str) -> None:
    """Equal ids, lengths and texts too: 4,000 edits that can be told apart by nothing but their order."""

    def make(n: int) -> Callable[[], object]:
        messages = SHAPES[shape](2 * n)
        previous = ctxfast.prune_tool_outputs(messages, policy=ALL)
        assert len(previous.report.items) >= n - 1
        return lambda: ctxfast.prune_tool_outputs(messages, policy=ALL, previous=previous)

    grows_linearly(make, (1_000, 4_000))


def test_twice_the_text_takes_twice_the_time() -> None:
    for name, line in (
        *(("read", "plain text\n"), ("read", "  12\tdef f():\n"), ("bash", "ไทย error\n"), ("grep", "a.py:5:x\n")),
        *(("bash", "exit code 5 "), ("todo", "\n"), ("ls", "a😀\r\n"), ("web_fetch", "\x1b[31m")),
    ):

        def make(n: int, name: str = name, line: str = line) -> Callable[[], object]:
            messages = [call("a", name), result("a", line * n), call("b"), result("b")]
            return lambda: ctxfast.prune_tool_outputs(messages, policy=ALL)

        grows_linearly(make, (5_000, 80_000))


def test_long_names_paths_arguments_and_patterns() -> None:
    policy = PrunePolicy(
        protected_steps=1, prune_threshold=0, batch="all", protected_tokens=0, keep_tools=("*a*a*a*b", "*" * 50 + "b"),
        keep_paths=("*a*a*b*a*c",), min_saved=0,
    )  # fmt: skip

    def long(n: int) -> Callable[[], object]:
        arguments = json.dumps({"path": "a" * n, "x": [n] * n, "url": [[1]] * n})
        messages = [call("a", "read_file" + "a" * n, arguments), result("a"), call("b"), result("b")]
        return lambda: ctxfast.prune_tool_outputs(messages, policy=policy)

    def equal_keys(n: int) -> Callable[[], object]:
        arguments = "{" + '"path": "a.py", "command": "x", ' * n + '"path": "b.py"}'
        messages = [call("a", "read", arguments), result("a"), call("b"), result("b")]
        return lambda: ctxfast.prune_tool_outputs(messages, policy=ALL)

    def parts(n: int) -> Callable[[], object]:
        content = [{"type": "text", "text": "some text"}, {"type": "image"}] * n
        messages = [call("a"), result("a", content), call("b"), result("b")]
        return lambda: ctxfast.prune_tool_outputs(messages, policy=ALL)

    for make in (long, equal_keys, parts):
        grows_linearly(make, (2_000, 16_000))


def joining_reads_in_tiny_batches(n: int) -> Callable[[], object]:
    """Many batches, and a protected zone of tokens that is as long as they are many."""
    policy = PrunePolicy(protected_steps=1, protected_tokens=50 * n, prune_threshold=1, min_saved=1)
    messages = reads_of_one_file(n)
    return lambda: ctxfast.prune_tool_outputs(messages, policy=policy)


def one_message_with_all_results(n: int) -> Callable[[], object]:
    """Anthropic's form of a wide response."""
    uses = [{"type": "tool_use", "id": f"c{i}", "name": "read", "input": {"path": f"{i}.py"}} for i in range(n)]
    results = [{"type": "tool_result", "tool_use_id": f"c{i}", "content": TEXT} for i in range(n)]
    messages = [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    return lambda: ctxfast.prune_tool_outputs(messages, policy=PrunePolicy(min_saved=1))


def a_wide_response_that_reads(n: int) -> Callable[[], object]:
    """Half of the reads are old, the other half stand in the newest step: is it a reread?"""
    paths = [json.dumps({"path": f"{i}.py"}) for i in range(n)]
    calls = [call(f"c{i}", arguments=paths[i])["tool_calls"][0] for i in range(n // 2)]
    old = [m for i in range(n // 2) for m in (call(f"o{i}", arguments=paths[i - n // 2]), result(f"o{i}"))]
    messages = [*old, {"role": "assistant", "tool_calls": calls}, *(result(f"c{i}") for i in range(n // 2))]
    return lambda: ctxfast.prune_tool_outputs(messages)


def half_of_a_list_with_equal_ids(n: int) -> Callable[[], object]:
    """The report is of a list that was longer at its start."""
    texts = [f"{i:8}{TEXT}" for i in range(n)]
    messages = [m for text in texts for m in (call("x"), result("x", text))]
    previous = ctxfast.prune_tool_outputs(messages, policy=ALL)
    return lambda: ctxfast.prune_tool_outputs(messages[n:], policy=ALL, previous=previous)


@pytest.mark.parametrize(
    ("make", "size"),
    [
        pytest.param(
            joining_reads_in_tiny_batches, 200, marks=pytest.mark.xfail(reason="batches times outputs in the zone")
        ),
        (one_message_with_all_results, 1_000),
        (a_wide_response_that_reads, 1_000),
        (half_of_a_list_with_equal_ids, 2_000),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_wide_messages_and_lost_heads(make: Callable[[int], Callable[[], object]], size: int) -> None:
    """Eight times the size: 8 times the time if it is linear, 64 times if it is quadratic."""
    times = []
    for n in (size, 8 * size):
        prune = make(n)
        prune()
        times.append(min(seconds(prune) for _ in range(3)))
    assert times[1] < 30 * times[0]


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
