"""Text is read where it lies: right for every storage width, no copy left behind in a string, no reference leaked.

Python stores a string in one, two or four bytes a character, and keeps a UTF-8 copy inside it once somebody has asked
for one (`sys.getsizeof` shows it). ctxfast never asks. These tests also stand for the one `unsafe` line of the binding.
"""

from __future__ import annotations

import copy
import gc
import sys
import tracemalloc
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ctxfast
from ctxfast import EstimatorConfig, TokenCounter, compat, reference

API: Any = ctxfast
CHARS = TokenCounter.flat(EstimatorConfig(chars_per_token=1.0, message_overhead=0))
BYTES = TokenCounter.flat(EstimatorConfig(chars_per_token=1.0, message_overhead=0, unit="bytes"))
THAI = TokenCounter.flat(EstimatorConfig(chars_per_token=1e9, thai_per_token=1.0, rounding="down"))
COUNTERS = {
    "default": TokenCounter.default(),
    "picoclaw": TokenCounter.picoclaw("4.0"),
    "seed": TokenCounter.flat(EstimatorConfig.seed_rules()),
    "bytes": BYTES,
    "from_callable": TokenCounter.from_callable(len),
    "estimator": TokenCounter.estimator("o200k"),
}

WIDTHS = {
    "ASCII": "plain text ",
    "Latin-1": "déjà vu ÿ ",
    "NUL": "a\0b",
    "Thai": "สวัสดีครับ ",
    "CJK": "漢字かな ",
    "emoji": "😀👩‍👩‍👧 ",
    "Thai and emoji": "ไทย😀 ",
    "lone surrogates": "\ud83d x \udfff",
    "surrogates and emoji": "\ud83d\ude00😀",
    "edges": "\x7f\x80\xff\u0100\u07ff\u0800\u0dff\u0e00\u0e7f\u0e80\ud7ff\ue000\uffff",
    "edges of four bytes": "\uffff\U00010000\U0010ffff\u0e00",
}


def fresh(text: str) -> str:
    """An equal string that nothing else holds: without a UTF-8 copy inside, not interned."""
    return "".join(list(text + " "))[:-1]


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize("unit", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 31, 32, 33, 255, 1000])
def test_every_width_is_read(unit: str, count: int) -> None:
    text = fresh(unit * count)
    assert CHARS.text(text) == len(text)
    assert BYTES.text(text) == len(utf8(text))
    assert THAI.text(text) == sum("\u0e00" <= char <= "\u0e7f" for char in text)
    assert CHARS.content([{"type": "text", "text": text}, text]) == 2 * len(text)
    for limit in {0, 1, len(text) // 2, len(text)}:
        assert CHARS.head(text, limit) == text[:limit]
        assert CHARS.tail(text, limit) == text[len(text) - limit :]


@pytest.mark.parametrize("unit", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("version", ["4.0", "2.5"])
def test_picoclaw_counts_bytes_of_ids_names_and_arguments(unit: str, version: Any) -> None:
    rate = float(version)

    def tokens(units: int) -> int:
        return int(-(-units // rate) if version == "4.0" else units // rate)

    counter = TokenCounter.picoclaw(version)
    for count in (1, 3, 50):
        text = fresh(unit * count)
        size = len(utf8(text))
        assert counter.text(text) == tokens(len(text))
        assert counter.message({"role": "user", "content": text}) == tokens(len(text) + 12)
        assert counter.message({"role": "assistant", "reasoning_content": text}) == tokens(len(text) + 12)
        assert counter.message({"role": "tool", "tool_call_id": text, "content": ""}) == tokens(size + 12)
        call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
        assert counter.message({"role": "assistant", "tool_calls": [call]}) == tokens(3 * size + 8 + 12)


@pytest.mark.parametrize("unit", [*WIDTHS.values(), '"\\\n\t\x1f\x7f', "<a>&b;", "\u2028\u2029<ไ>"], ids=ascii)
def test_json_inside_a_message_has_the_length_that_python_writes(unit: str) -> None:
    for count in (1, 17, 300):
        text = fresh(unit * count)
        message = {"role": "assistant", "tool_calls": [{"function": {"arguments": {text: [text, {"k": text}]}}}]}
        for fast, slow in [
            (CHARS, EstimatorConfig(chars_per_token=1.0, message_overhead=0)),
            (BYTES, EstimatorConfig(chars_per_token=1.0, message_overhead=0, unit="bytes")),
            (TokenCounter.picoclaw("4.0"), EstimatorConfig(unit="mixed")),
        ]:
            assert fast.message(message) == reference.FlatCounter(slow).message(message)


def test_every_code_point_is_read() -> None:
    """One text with all of them, and one of each block that begins or ends where a kernel might look."""
    everything = "".join(map(chr, range(0x110000)))
    assert CHARS.text(everything) == 0x110000
    assert BYTES.text(everything) == len(utf8(everything))
    assert THAI.text(everything) == 0x80
    for start in (*range(0, 0x3000, 0x80), *range(0xD700, 0xE100, 0x80), 0xFF00, 0xFF80, 0x10000, 0x10FF80):
        text = "".join(map(chr, range(start, start + 0x80)))
        assert BYTES.text(text) == len(utf8(text))


def test_white_space_in_ids_is_what_python_strips() -> None:
    """An id of nothing but white space is blank, whatever kind of white space it is: it pairs with a missing one."""
    for point in range(0x110000):
        call_id = chr(point)
        if not call_id.strip() or call_id.isspace() or point in (0x180E, 0x200B, 0x2060, 0xFEFF):
            messages = [
                {"role": "assistant", "tool_calls": [{"id": call_id + call_id}]},
                {"role": "user", "content": "between"},
                {"role": "tool", "content": ""},
            ]
            assert (ctxfast.atoms(messages) == [(0, 3)]) == (not call_id.strip()), hex(point)


def test_equal_ids_pair_however_they_came_to_be() -> None:
    for call_id in ("é", "ไทย", "😀", "\ud83d", "a\0", "é" * 40):
        other = utf8(call_id).decode("utf-8", "surrogatepass")
        wide = (call_id + "😀")[: len(call_id)]
        for result_id in (other, wide, fresh(call_id)):
            messages = [
                {"role": "assistant", "tool_calls": [{"id": call_id}, {"id": call_id + "x"}]},
                {"role": "user", "content": "between"},
                {"role": "tool", "tool_call_id": result_id, "content": ""},
                {"role": "user", "content": "after"},
            ]
            assert ctxfast.atoms(messages) == [(0, 3), (3, 4)]


# ------------------------------------------------------------------------------------- what is left in the strings


def transcript(unit: str) -> list[Any]:
    """A conversation in which every string is of one width, keys of arguments and other fields included."""

    def text() -> str:
        return fresh(unit + "x")

    one, two = text() + "1", text() + "2"
    return [
        {"role": "system", "content": text(), "system_parts": [{"type": "text", "text": text()}], text(): text()},
        {"role": "user", "content": [{"type": "text", "text": text()}, {"type": "document", "title": text()}, text()]},
        {
            "role": "assistant",
            "content": text(),
            "reasoning_content": text(),
            "tool_calls": [
                {"id": one, "type": text(), "function": {"name": text(), "arguments": text()}},
                {"id": two, "function": {"name": text(), "arguments": {text(): [text(), 5], "k": {text(): None}}}},
            ],
        },
        {"role": "tool", "tool_call_id": fresh(two), "content": text()},
        {"role": "tool", "tool_call_id": fresh(one), "content": [{"type": "text", "text": text()}]},
        {"role": text(), "content": text()},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": text(), "signature": text()},
                {"type": "tool_use", "id": one, "name": text(), "input": {text(): text()}},
                {"type": text(), text(): {text(): text()}, "data": text()},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": fresh(one), "content": [{"type": "text", "text": text()}]},
                {"type": "text", "text": text()},
            ],
        },
        types.SimpleNamespace(role="assistant", content=text(), refusal=text(), reasoning=text()),
        {"role": "assistant", "function_call": {"name": text(), "arguments": text()}, "content": None},
    ]


def tool_list(unit: str) -> list[Any]:
    schema = {"type": "object", "properties": {fresh(unit): {"description": fresh(unit)}}}
    return [
        {"type": "function", "function": {"name": fresh(unit), "description": fresh(unit), "parameters": schema}},
        {"name": fresh(unit), "input_schema": fresh(unit)},
        {"type": fresh(unit), fresh(unit): fresh(unit)},
    ]


def strings(value: Any) -> Iterator[str]:
    """Every string inside, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings(item)
    elif isinstance(value, types.SimpleNamespace):
        yield from strings(vars(value))


def calls(messages: list[Any], tools: list[Any]) -> dict[str, Callable[[], object]]:
    """Every public function, called with the messages."""
    found: dict[str, Callable[[], object]] = {
        "atoms": lambda: ctxfast.atoms(messages),
        "turn_starts": lambda: ctxfast.turn_starts(messages),
        "step_starts": lambda: ctxfast.step_starts(messages),
        "safe_cuts": lambda: ctxfast.safe_cuts(messages),
        "find_safe_cut": lambda: ctxfast.find_safe_cut(messages, 4),
        "find_safe_cut by role": lambda: ctxfast.find_safe_cut(messages, 4, "role"),
        "count_tokens": lambda: ctxfast.count_tokens(messages, tools=tools),
        "compat": lambda: [compat.EstimateMessageTokens(messages[2]), compat.EstimateToolDefsTokens(tools)],
    }
    for name, counter in COUNTERS.items():
        for method, call in calls_of_counter(counter, messages, tools).items():
            found[f"{name} {method}"] = call
    return found


def calls_of_counter(counter: TokenCounter, messages: list[Any], tools: list[Any]) -> dict[str, Callable[[], object]]:
    texts = [text for message in messages for text in strings(message)]
    return {
        "messages": lambda: counter.messages(messages, tools),
        "message": lambda: [counter.message(message) for message in messages],
        "content": lambda: counter.content(messages[1]["content"]),
        "request": lambda: counter.request({"messages": messages, "tools": tools}),
        "fits": lambda: [counter.fits(messages, limit) for limit in (5, 10**6)],
        "texts": lambda: [counter.text(text) + counter(text) for text in texts],
        "head": lambda: [len(counter.head(text, 3)) for text in texts],
        "tail": lambda: [len(counter.tail(text, 3)) for text in texts],
        "select": lambda: [
            len(ctxfast.select_fresh_tail(messages, budget, counter=counter).messages) for budget in (1, 60, 10**6)
        ],
    }


CALLS = list(calls(transcript("x"), tool_list("x")))
MARKED = {name: unit for name, unit in WIDTHS.items() if name not in ("ASCII", "NUL")}


@pytest.mark.parametrize("unit", MARKED.values(), ids=MARKED)
def test_asking_for_utf8_would_show(unit: str) -> None:
    """What the tests below look at does change when somebody asks Python for UTF-8."""
    text = fresh(unit)
    before = sys.getsizeof(text)
    try:
        sys.intern(text)  # takes no copy
        assert sys.getsizeof(text) == before
        compile(text, "x", "eval")  # takes one, where that is possible
    except (SyntaxError, ValueError):
        pass
    lone = any("\ud800" <= char <= "\udfff" for char in text)
    assert sys.getsizeof(text) > before or lone or sys.implementation.name != "cpython"


@pytest.mark.parametrize("unit", MARKED.values(), ids=MARKED)
@pytest.mark.parametrize("name", CALLS)
def test_no_copy_is_left_in_a_string(name: str, unit: str) -> None:
    messages, tools = transcript(unit), tool_list(unit)
    every = [*strings(messages), *strings(tools)]
    before = [sys.getsizeof(text) for text in every]
    calls(messages, tools)[name]()
    assert [sys.getsizeof(text) for text in every] == before


@pytest.mark.parametrize("unit", MARKED.values(), ids=MARKED)
def test_errors_leave_no_copy_either(unit: str) -> None:
    """An error names the way to a mistake, which can lead through keys that are not ASCII."""
    bad = {fresh(unit): [{fresh(unit): {1}}]}
    messages = [
        {"role": "user", "content": [{"type": "new", fresh(unit): bad}]},
        {"role": fresh(unit), "content": 5},
        {"role": "assistant", "tool_calls": [{"id": fresh(unit), "function": {"name": fresh(unit), "arguments": bad}}]},
    ]
    every = list(strings(messages))
    before = [sys.getsizeof(text) for text in every]
    for counter in COUNTERS.values():
        for message in messages:
            with pytest.raises(TypeError):
                counter.message(message)
    assert [sys.getsizeof(text) for text in every] == before


def test_input_stays_as_it_is() -> None:
    for unit in WIDTHS.values():
        messages, tools = transcript(unit), tool_list(unit)
        before = copy.deepcopy((messages, tools))
        for call in calls(messages, tools).values():
            call()
        assert (messages, tools) == before


# ------------------------------------------------------------------------------------------------------ references


def objects(value: Any) -> list[Any]:
    """Every object inside that is not shared with the rest of the program."""
    found: list[Any] = []
    if isinstance(value, dict):
        found.append(value)
        for item in value.values():
            found += objects(item)
    elif isinstance(value, (list, tuple)):
        found.append(value)
        for item in value:
            found += objects(item)
    elif isinstance(value, types.SimpleNamespace):
        found += [value, *objects(vars(value))]
    elif isinstance(value, str) and not value.isascii():
        found.append(value)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_references_are_given_back(name: str) -> None:
    messages, tools = transcript("ไทย"), tool_list("é")
    every = objects([messages, tools])[1:]
    call = calls(messages, tools)[name]
    call()
    before = [sys.getrefcount(item) for item in every]
    none, empty = sys.getrefcount(None), sys.getrefcount(())
    for _ in range(100):
        call()
    assert [sys.getrefcount(item) for item in every] == before
    assert abs(sys.getrefcount(None) - none) < 50
    assert abs(sys.getrefcount(()) - empty) < 50


def test_references_are_given_back_after_a_thousand_calls() -> None:
    messages, tools = transcript("漢字"), tool_list("😀")
    every = objects([messages, tools])[1:]
    before = [sys.getrefcount(item) for item in every]
    counter = COUNTERS["default"]
    for _ in range(1000):
        counter.messages(messages, tools)
        ctxfast.atoms(messages)
        ctxfast.select_fresh_tail(messages, 60)
    assert [sys.getrefcount(item) for item in every] == before


def test_errors_give_references_back() -> None:
    bad_inside = {"ไทย": [{1}]}
    messages: list[Any] = [
        *transcript("ไทย"),
        {"role": "user", "content": [{"type": "new", "data": bad_inside}, {"type": "text", "text": 5}]},
    ]
    every = objects(messages)
    before = [sys.getrefcount(item) for item in every]
    for _ in range(200):
        for function in (ctxfast.count_tokens, ctxfast.atoms, ctxfast.select_fresh_tail, API.find_safe_cut):
            with pytest.raises(TypeError):
                function(messages) if function is not API.find_safe_cut else function(messages, 1)
    gc.collect()
    assert [sys.getrefcount(item) for item in every] == before


def test_results_hold_what_they_say_and_nothing_else() -> None:
    messages = transcript("é")
    counts = [sys.getrefcount(messages[-1])]  # outside of `assert`, which would hold a reference of its own
    tail = ctxfast.select_fresh_tail(messages, 10**6)
    counts.append(sys.getrefcount(messages[-1]))
    kept, same_again = tail.messages, tail.messages
    counts.append(sys.getrefcount(messages[-1]))
    del tail
    kept.clear()
    counts.append(sys.getrefcount(messages[-1]))
    assert kept is same_again
    assert counts == [counts[0], counts[0] + 1, counts[0] + 1, counts[0]]


def test_cycles_through_results_and_counters_are_collected() -> None:
    class Message(dict[str, Any]):
        """A dict that can be watched."""

    class Counting:
        """Holds the counter that calls it."""

        def __call__(self, text: str) -> int:
            return len(text)

    message, function = Message(role="user", content="text"), Counting()
    tail = ctxfast.select_fresh_tail([message])
    message["tail"] = tail
    function.counter = TokenCounter.from_callable(function)  # type: ignore[attr-defined]
    watched: list[weakref.ref[Any]] = [weakref.ref(message), weakref.ref(function)]
    del message, function, tail
    gc.collect()
    assert [watch() for watch in watched] == [None, None]


def memory() -> int:
    """Bytes of this process that are in memory."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        pytest.skip("no /proc")


def test_memory_does_not_grow() -> None:
    """Python's allocator, and (by the size of the process) Rust's."""
    messages, tools = transcript("ไทย " * 50), tool_list("é")
    everything = calls(messages, tools)
    bad = [*messages, {"role": "user", "content": [{"type": "new", "data": [{1}]}]}]

    def work(rounds: int) -> None:
        for _ in range(rounds):
            for call in everything.values():
                call()
            with pytest.raises(TypeError):
                ctxfast.count_tokens(bad)

    work(30)
    gc.collect()
    size = memory()
    work(150)
    gc.collect()
    assert memory() - size < 4_000_000
    tracemalloc.start()
    try:
        work(2)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(10)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
