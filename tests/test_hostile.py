"""Bad input gives a clear error that says where: never a panic, never a crash, never an answer that is made up.

A panic would be `pyo3_runtime.PanicException`, which is no `Exception` and passes through every `except Exception` of
an agent. So every public function is called with every hostile value in every place, and only errors with a clear type
may come out. Exceptions of the caller's own code (a counting function, a property) come through as they are.
"""

from __future__ import annotations

import copy
import enum
import math
import random
import signal
import types
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ctxfast
from ctxfast import (
    BudgetError,
    EstimatorConfig,
    MessageTypeError,
    MessageValueError,
    TokenCounter,
    TokenLedger,
    compat,
    reference,
)

API: Any = ctxfast  # called with what type checkers forbid
COUNTERS: dict[str, Any] = {
    "default": TokenCounter.default(),
    "picoclaw": TokenCounter.picoclaw("4.0"),
    "seed": TokenCounter.flat(EstimatorConfig.seed_rules()),
    "from_callable": TokenCounter.from_callable(len),
    "estimator": TokenCounter.estimator("gemma3"),
}


class HostileError(Exception):
    """Raised by the caller's own code."""


def raises(*args: object, **options: object) -> Any:
    raise HostileError


class NoGetItem(dict[str, Any]):
    __getitem__ = get = keys = values = items = __iter__ = __len__ = __contains__ = copy = raises


class NoAttributes:
    __getattr__ = raises


class NoAttributesAtAll:
    __getattribute__ = raises


class NoDict:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise HostileError


class OddDict:
    __dict__ = [("role", "user")]  # type: ignore[assignment]


class OddKeys:
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return {1: 2, "role": "user"}


class OddExtra:
    __pydantic_extra__ = 5

    def __init__(self) -> None:
        self.role = "user"


class Slots:
    __slots__ = ("role",)


class LiesAboutItself:
    __class__ = dict  # type: ignore[assignment]


class LongList(list[Any]):
    def __len__(self) -> int:
        return 10**9

    __iter__ = __getitem__ = raises


class Text(str):
    __slots__ = ()

    def __len__(self) -> int:
        return 10**9

    __getitem__ = __iter__ = __str__ = __repr__ = encode = strip = raises


class UnequalText(str):
    """A string that is equal to nothing; as a key of a dict it is not found."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise HostileError

    def __hash__(self) -> int:
        return 7


class Number(int):
    __gt__ = __lt__ = __index__ = __int__ = __float__ = __repr__ = __str__ = __bool__ = raises


class Real(float):
    __float__ = __repr__ = __gt__ = __int__ = raises


class NamelessMeta(type):
    @property
    def __name__(cls) -> Any:  # type: ignore[override]
        raise HostileError

    __repr__ = __instancecheck__ = __getattribute__ = raises


class Nameless(metaclass=NamelessMeta):
    pass


class Colour(str, enum.Enum):
    RED = "red"


def cyclic_list() -> list[Any]:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    return cycle


def cyclic_dict() -> dict[str, Any]:
    cycle: dict[str, Any] = {"role": "user", "type": "unknown"}
    cycle["content"] = cycle["function"] = cycle["source"] = cycle["self"] = cycle
    return cycle


def cyclic_block() -> dict[str, Any]:
    block: dict[str, Any] = {"role": "user", "type": "tool_result"}
    block["content"] = [block]
    return block


def cyclic_object() -> Any:
    cycle = types.SimpleNamespace(role="user", type="unknown")
    cycle.content = [cycle]
    return cycle


def deep(depth: int, wrap: Callable[[Any], Any], value: Any = "end") -> Any:
    for _ in range(depth):
        value = wrap(value)
    return value


def generator() -> Iterator[dict[str, str]]:
    yield {"role": "user", "content": "text"}


def evil_dict() -> NoGetItem:
    result = NoGetItem()
    dict.update(result, {"role": "user", "content": "text", "type": "unknown"})
    return result


Point = namedtuple("Point", "role content")

PLAIN_VALUES: tuple[Any, ...] = (
    *(None, 0, -1, 7, True, 2.5, math.nan, math.inf, 1j, ..., NotImplemented, 2**63),
    *("", "text", "\0", "\ud800", "ไทย", "😀", b"", b"bytes", bytearray(b"b")),
    *([], (), {}, [None], [[[]]], [[{}], [{}]]),
)
HOSTILE: dict[str, Any] = {repr(value): value for value in PLAIN_VALUES} | {
    "a set": {1},
    "a range": range(3),
    "a generator": generator(),
    "an iterator": iter([{}]),
    "a view": {}.keys(),
    "an object": object(),
    "a class": dict,
    "a module": types,
    "a function": len,
    "a lambda": lambda: 5,
    "an exception": ValueError("x"),
    "a namespace": types.SimpleNamespace(),
    "a proxy": types.MappingProxyType({}),
    "memory": memoryview(b"x"),
    "an enum": Colour.RED,
    "a user dict": UserDict(role="user"),
    "a tuple": Point("user", "x"),
    "10**400": 10**400,
    "-10**400": -(10**400),
    "10**5000": 10**5000,
    "a cyclic list": cyclic_list(),
    "a cyclic dict": cyclic_dict(),
    "a cyclic block": cyclic_block(),
    "a cyclic object": cyclic_object(),
    "a deep list": deep(10_000, lambda value: [value]),
    "a deep dict": deep(10_000, lambda value: {"role": "user", "type": "unknown", "content": value}),
    "a deep block": deep(10_000, lambda value: {"type": "tool_result", "role": "user", "content": [value]}, {}),
    "a deep document": deep(
        10_000, lambda value: {"type": "document", "source": {"type": "content", "content": [value]}}, {}
    ),
    "a deep object": deep(10_000, lambda value: types.SimpleNamespace(role="user", type="unknown", content=[value])),
    "odd keys": {1: 2, "role": "user"},
    "unhelpful keys": {UnequalText("role"): "user"},
    "text that lies": Text("text"),
    "a list that lies": LongList([{}]),
    "a dict that raises": evil_dict(),
    "a number that raises": Number(5),
    "a float that raises": Real(5),
    "no attributes": NoAttributes(),
    "no attributes at all": NoAttributesAtAll(),
    "no dict": NoDict(),
    "an odd dict": OddDict(),
    "a dict with odd keys": OddKeys(),
    "an odd extra": OddExtra(),
    "slots": Slots(),
    "a liar": LiesAboutItself(),
    "no name": Nameless(),
}


def at(path: str, value: Any, frame: Any) -> Any:
    """A copy of `frame` with `value` in place of the string `path`."""
    if isinstance(frame, dict):
        return {key: at(path, value, item) for key, item in frame.items()}
    if isinstance(frame, list):
        return [at(path, value, item) for item in frame]
    return value if frame == path else frame


FRAMES: list[dict[str, Any]] = [
    {"role": "$", "content": "text"},
    {"role": "user", "content": "$"},
    {"role": "tool", "content": "$", "tool_call_id": "a"},
    {"role": "user", "content": ["$"]},
    {"role": "user", "content": [{"type": "text", "text": "x"}, "$"]},
    {"role": "assistant", "tool_calls": "$"},
    {"role": "assistant", "tool_calls": ["$"]},
    {"role": "assistant", "tool_calls": [{"id": "$"}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "type": "$"}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": "$"}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "$"}}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "$"}}]},
    {
        "role": "assistant",
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"deep": ["$"]}}}],
    },
    {"role": "assistant", "tool_calls": [{"id": "a", "custom": "$"}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "custom": {"name": "f", "input": "$"}}]},
    {"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "args": "$"}]},
    {"role": "assistant", "function_call": "$"},
    {"role": "assistant", "function_call": {"name": "$", "arguments": "$"}},
    {"role": "tool", "content": "text", "tool_call_id": "$"},
    {"role": "assistant", "reasoning_content": "$"},
    {"role": "assistant", "reasoning": "$"},
    {"role": "assistant", "refusal": "$"},
    {"role": "assistant", "audio": "$"},
    {"role": "user", "media": "$"},
    {"role": "user", "media": ["$"]},
    {"role": "system", "system_parts": "$"},
    {"role": "system", "system_parts": ["$"]},
    {"role": "system", "system_parts": [{"text": "$"}]},
    {"role": "user", "content": [{"type": "$", "text": "x"}]},
    {"role": "user", "content": [{"type": "text", "text": "$"}]},
    {"role": "user", "content": [{"type": "refusal", "refusal": "$"}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "$", "signature": "$"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "$"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "$"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "$"}]},
    {
        "role": "assistant",
        "content": [{"type": "server_tool_use", "id": "a", "name": "f", "input": {"k": "$"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "$"}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "$"}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": ["$"]}]},
    {"role": "user", "content": [{"type": "image", "source": "$"}]},
    {"role": "user", "content": [{"type": "document", "source": "$"}]},
    {"role": "user", "content": [{"type": "document", "source": {"type": "$"}}]},
    {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": "$"}}]},
    {"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": "$"}}]},
    {"role": "user", "content": [{"type": "document", "title": "$", "context": "$"}]},
    {"role": "user", "content": [{"type": "unknown", "data": "$", "signature": "$"}]},
    {"role": "user", "content": [{"type": "unknown", "data": [{"more": "$"}]}]},
    {"role": "user", "content": "text", "extra": "$"},
]
TOOL_FRAMES: list[Any] = [
    "$",
    ["$"],
    [{"type": "function", "function": "$"}],
    [{"type": "function", "function": {"name": "$"}}],
    [{"type": "function", "function": {"name": "f", "description": "$"}}],
    [{"type": "function", "function": {"name": "f", "parameters": "$"}}],
    [{"type": "custom", "custom": {"name": "f", "format": {"grammar": "$"}}}],
    [{"name": "f", "input_schema": {"type": "object", "properties": "$"}}],
    [{"type": "web_search", "filters": "$"}],
]


def guarded(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Calls the function; its result, or the error, which must be one that callers can understand."""
    try:
        return function(*args, **options)
    except (TypeError, ValueError, HostileError) as error:
        return error
    except BaseException as error:
        if isinstance(error, IndexError) and str(error).startswith("index: expected one of"):
            return error  # the caller's index, none of ours
        raise AssertionError(f"{type(error).__name__} came out of {function!r}: {error}") from error


def call_with_messages(messages: Any) -> None:
    """Calls everything that takes a list of messages."""
    for name in ("atoms", "turn_starts", "step_starts", "safe_cuts", "select_fresh_tail", "count_tokens", "validate"):
        guarded(getattr(API, name), messages)
    for form in ("auto", "openai", "anthropic"):
        repaired = guarded(API.repair, messages, form)
        if isinstance(repaired, ctxfast.Repaired):
            assert {problem.code for problem in API.validate(repaired.messages, form)} <= {"no_user_message"}
    guarded(API.repair, messages, strict_predecessor=True)
    for mode in ("steps", "role"):
        guarded(API.find_safe_cut, messages, 1, mode)
    guarded(API.select_fresh_tail, messages, 1, min_turns=0, max_tokens=10**6, counter=COUNTERS["from_callable"])
    for counter in COUNTERS.values():
        guarded(counter.messages, messages)
        guarded(counter.fits, messages, 10)
        guarded(counter.request, {"messages": messages})
        guarded(counter, messages)
        ledger = guarded(API.TokenLedger, counter, messages)
        if isinstance(ledger, ctxfast.TokenLedger):
            guarded(ledger.extend, messages)
            guarded(ledger.resync, messages)


def call_with_message(message: Any) -> None:
    """Calls everything that takes a message, alone and among others."""
    for counter in COUNTERS.values():
        guarded(counter.message, message)
        guarded(counter, message)
        ledger = API.TokenLedger(counter, [{"role": "user"}])
        guarded(ledger.append, message)
        guarded(ledger.replace, 0, message)
        assert ledger.total() >= sum(ledger.tokens(index) for index in range(len(ledger)))
    guarded(compat.EstimateMessageTokens, message)
    step = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
    call_with_messages([message])
    call_with_messages([{"role": "system", "content": ""}, step, message, {"role": "user", "content": "text"}])
    call_with_messages((message, {"role": "tool", "tool_call_id": "nowhere", "content": ""}))


def call_with_anything(value: Any) -> None:
    """Calls everything with the value as each of its arguments."""
    text_functions = [method for counter in COUNTERS.values() for method in (counter.head, counter.tail)]
    for counter in COUNTERS.values():
        for name in ("text", "content", "message", "messages", "tools", "request", "__call__", "__eq__"):
            guarded(getattr(counter, name), value)
        guarded(counter.fits, value, 5)
        guarded(counter.fits, "text", value)
        guarded(counter.messages, [], value)
        guarded(API.count_tokens, "text", tools=value, counter=counter)
        guarded(counter.request, {"messages": [], "tools": value, "system": value})
    for function in text_functions:
        guarded(function, value, 5)
        guarded(function, "text", value)
    ledger = API.TokenLedger(messages=[{"role": "user"}])
    guarded(API.TokenLedger, value)
    for function in (ledger.append, ledger.extend, ledger.resync, ledger.tokens, ledger.truncate, ledger.tail_within):
        guarded(function, value)
    guarded(ledger.replace, value, {"role": "user"})
    guarded(API.count_tokens, value)
    guarded(API.count_tokens, "text", counter=value)
    guarded(API.fresh_tail_budget, value)
    guarded(API.find_safe_cut, [], value)
    guarded(API.find_safe_cut, [], 5, value)
    for option in ("budget", "min_turns", "max_tokens", "counter"):
        guarded(API.select_fresh_tail, [{"role": "user"}], **{option: value})
    guarded(API.TokenCounter.flat, value)
    guarded(API.TokenCounter.picoclaw, value)
    for option in ("message_overhead", "media_tokens"):
        guarded(API.TokenCounter.from_callable, len, **{option: value})
    counter = guarded(API.TokenCounter.from_callable, value)
    if isinstance(counter, TokenCounter) and value is not dict:
        guarded(counter.text, "text")
    for function in (compat.EstimateToolDefsTokens, API.select_fresh_tail, API.atoms, API.safe_cuts):
        guarded(function, value)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_value_makes_a_function_panic(name: str) -> None:
    value = HOSTILE[name]
    call_with_anything(value)
    call_with_messages(value)
    call_with_message(value)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_value_in_a_message_makes_a_function_panic(name: str) -> None:
    for frame in FRAMES:
        call_with_message(at("$", HOSTILE[name], frame))
    for tools in TOOL_FRAMES:
        for counter in COUNTERS.values():
            guarded(counter.tools, at("$", HOSTILE[name], tools))


# --------------------------------------------------------------------------------------------- what errors say

DICT = "a dict or an object with attributes"
CONTENT = "`str`, `None` or a list of parts"

MISTAKES: list[tuple[dict[Any, Any], str, str, str]] = [  # message with a mistake, expected, got, where
    ({"content": "text"}, "a message with a `role`", "`dict` without one", ""),
    ({"role": None}, "a message with a `role`", "`dict` without one", ""),
    ({"role": 5}, "`str`", "`int`", ".role"),
    ({"role": b"user"}, "`str`", "`bytes`", ".role"),
    ({"role": "user", 5: 5}, "string keys", "`int`", ""),
    ({"role": "user", "content": 5}, CONTENT, "`int`", ".content"),
    ({"role": "user", "content": b"x"}, CONTENT, "`bytes`", ".content"),
    ({"role": "user", "content": {"type": "text"}}, CONTENT, "`dict`", ".content"),
    ({"role": "user", "content": {1, 2}}, CONTENT, "`set`", ".content"),
    ({"role": "user", "content": ["x", 5]}, DICT, "`int`", ".content[1]"),
    ({"role": "user", "content": [None]}, DICT, "`NoneType`", ".content[0]"),
    ({"role": "user", "content": [["x"]]}, DICT, "`list`", ".content[0]"),
    ({"role": "user", "content": [{"type": "text", 5: 5}]}, "string keys", "`int`", ".content[0]"),
    ({"role": "user", "content": [{"type": "text", "text": 5}]}, "`str`", "`int`", ".content[0].text"),
    (
        {"role": "user", "content": [{"type": "refusal", "refusal": []}]},
        "`str`",
        "`list`",
        ".content[0].refusal",
    ),
    (
        {"role": "user", "content": [{"type": "thinking", "thinking": {}}]},
        "`str`",
        "`dict`",
        ".content[0].thinking",
    ),
    ({"role": "user", "content": [{"type": "tool_use", "id": 5}]}, "`str`", "`int`", ".content[0].id"),
    ({"role": "user", "content": [{"type": "tool_use", "name": 5}]}, "`str`", "`int`", ".content[0].name"),
    ({"role": "user", "content": [{"type": "tool_use", "input": {1}}]}, DICT, "`set`", ".content[0].input"),
    (
        {"role": "user", "content": [{"type": "tool_use", "input": {"a": [b""]}}]},
        DICT,
        "`bytes`",
        ".content[0].input.a[0]",
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 5}]},
        "`str`",
        "`int`",
        ".content[0].tool_use_id",
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "content": 5}]},
        CONTENT,
        "`int`",
        ".content[0].content",
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "content": [5]}]},
        DICT,
        "`int`",
        ".content[0].content[0]",
    ),
    (
        {"role": "user", "content": [{"type": "tool_result", "content": ["x", {"type": "text", "text": 5}]}]},
        *("`str`", "`int`", ".content[0].content[1].text"),
    ),
    ({"role": "user", "content": [{"type": "document", "title": 5}]}, "`str`", "`int`", ".content[0].title"),
    (
        {"role": "user", "content": [{"type": "document", "context": 5}]},
        "`str`",
        "`int`",
        ".content[0].context",
    ),
    ({"role": "user", "content": [{"type": "document", "source": 5}]}, DICT, "`int`", ".content[0].source"),
    (
        {"role": "user", "content": [{"type": "document", "source": {"type": "text", "data": 5}}]},
        *("`str`", "`int`", ".content[0].source.data"),
    ),
    (
        {"role": "user", "content": [{"type": "document", "source": {"type": "content", "content": [5]}}]},
        *(DICT, "`int`", ".content[0].source.content[0]"),
    ),
    ({"role": "user", "content": [{"type": "new", "a": {"b": {1}}}]}, DICT, "`set`", ".content[0].a.b"),
    ({"role": "user", "content": [{"type": "new", "a": {5: 5}}]}, "string keys", "`int`", ".content[0].a"),
    ({"role": "assistant", "tool_calls": 5}, "a list", "`int`", ".tool_calls"),
    ({"role": "assistant", "tool_calls": "call"}, "a list", "`str`", ".tool_calls"),
    ({"role": "assistant", "tool_calls": {"id": "a"}}, "a list", "`dict`", ".tool_calls"),
    ({"role": "assistant", "tool_calls": [{}, "call"]}, DICT, "`str`", ".tool_calls[1]"),
    ({"role": "assistant", "tool_calls": [{"id": 5}]}, "`str`", "`int`", ".tool_calls[0].id"),
    ({"role": "assistant", "tool_calls": [{"type": 5}]}, "`str`", "`int`", ".tool_calls[0].type"),
    ({"role": "assistant", "tool_calls": [{"function": "f"}]}, DICT, "`str`", ".tool_calls[0].function"),
    (
        {"role": "assistant", "tool_calls": [{"function": {"name": 5}}]},
        "`str`",
        "`int`",
        ".tool_calls[0].function.name",
    ),
    (
        {"role": "assistant", "tool_calls": [{"function": {"arguments": {"a": {1}}}}]},
        *(DICT, "`set`", ".tool_calls[0].function.arguments.a"),
    ),
    ({"role": "assistant", "tool_calls": [{"custom": "f"}]}, DICT, "`str`", ".tool_calls[0].custom"),
    (
        {"role": "assistant", "tool_calls": [{"custom": {"input": b""}}]},
        DICT,
        "`bytes`",
        ".tool_calls[0].custom.input",
    ),
    ({"role": "assistant", "tool_calls": [{"args": [{1}]}]}, DICT, "`set`", ".tool_calls[0].args[0]"),
    ({"role": "assistant", "function_call": "f"}, DICT, "`str`", ".function_call"),
    ({"role": "assistant", "function_call": {"name": 5}}, "`str`", "`int`", ".function_call.name"),
    ({"role": "tool", "tool_call_id": 5}, "`str`", "`int`", ".tool_call_id"),
    ({"role": "assistant", "reasoning_content": 5}, "`str`", "`int`", ".reasoning_content"),
    ({"role": "assistant", "refusal": 5}, "`str`", "`int`", ".refusal"),
    ({"role": "user", "media": 5}, "a list", "`int`", ".media"),
    ({"role": "user", "media": "media://1"}, "a list", "`str`", ".media"),
    ({"role": "system", "system_parts": 5}, "a list", "`int`", ".system_parts"),
    ({"role": "system", "system_parts": [5]}, DICT, "`int`", ".system_parts[0]"),
    ({"role": "system", "system_parts": [{"text": 5}]}, "`str`", "`int`", ".system_parts[0].text"),
]


@pytest.mark.parametrize(("message", "expected", "got", "path"), MISTAKES, ids=lambda value: str(value)[:70])
@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
def test_errors_say_what_was_expected_what_came_and_where(
    message: dict[str, Any], expected: str, got: str, path: str, counter: Any
) -> None:
    fine = {"role": "user", "content": "text"}
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: counter.message(message), "message"),
        (lambda: counter(message), "message"),
        (lambda: counter.messages([fine, message]), "messages[1]"),
        (lambda: counter((fine, fine, message)), "messages[2]"),
        (lambda: counter.fits([fine, message], 10**6), "messages[1]"),
        (lambda: counter.request({"messages": [message]}), "messages[0]"),
        (lambda: API.select_fresh_tail([fine, message], counter=counter), "messages[1]"),
        (lambda: API.TokenLedger(counter).append(message), "message"),
        (lambda: API.TokenLedger(counter, [fine]).replace(0, message), "message"),
        (lambda: API.TokenLedger(counter, [fine, message]), "messages[1]"),
        (lambda: API.TokenLedger(counter, [fine]).resync([fine, message]), "messages[1]"),
    ]
    for call, place in calls:
        with pytest.raises((MessageTypeError, MessageValueError)) as caught:
            call()
        error = caught.value
        assert (error.expected, error.got, error.path) == (expected, got, place + path)
        assert str(error) == f"Expected {expected}, got {got} - at `{place}{path}`"
        assert isinstance(error, ValueError if "role" in expected else TypeError)


@pytest.mark.parametrize(("message", "expected", "got", "path"), MISTAKES, ids=lambda value: str(value)[:70])
def test_structure_names_the_same_places(message: dict[str, Any], expected: str, got: str, path: str) -> None:
    """What is inside arguments and unknown blocks does not matter to the structure."""
    fine = {"role": "user", "content": "text"}
    try:
        reference.atoms([fine, message])
    except (MessageTypeError, MessageValueError):
        for name in ("atoms", "turn_starts", "step_starts", "safe_cuts", "validate", "repair"):
            with pytest.raises((MessageTypeError, MessageValueError)) as caught:
                getattr(API, name)([fine, message])
            assert (caught.value.expected, caught.value.got, caught.value.path) == (
                expected,
                got,
                f"messages[1]{path}",
            )
    else:
        assert API.atoms([fine, message])


@pytest.mark.parametrize(
    ("messages", "got"),
    [
        (None, "NoneType"),
        (5, "int"),
        ({"role": "user"}, "dict"),
        ({1}, "set"),
        (generator(), "generator"),
        ("text", "str"),
    ],
    ids=repr,
)
def test_lists_must_be_lists(messages: Any, got: str) -> None:
    functions = [
        getattr(API, name)
        for name in ("atoms", "turn_starts", "step_starts", "safe_cuts", "select_fresh_tail", "validate", "repair")
    ]
    functions += [COUNTERS["default"].messages, lambda value: API.find_safe_cut(value, 1)]
    functions += [lambda value: API.find_safe_cut(value, 1, "role")]
    for function in functions:
        with pytest.raises(MessageTypeError, match=rf"Expected a list of messages, got `{got}` - at `messages`"):
            function(messages)


def test_tools_and_requests_name_their_places() -> None:
    counter: Any = TokenCounter.default()
    for tools, message in [
        (5, "Expected a list, got `int` - at `tools`"),
        ([5], f"Expected {DICT}, got `int` - at `tools[0]`"),
        ([{"name": 5}], "Expected `str`, got `int` - at `tools[0].name`"),
        (
            [{}, {"function": {"name": "f", "description": 5}}],
            "Expected `str`, got `int` - at `tools[1].function.description`",
        ),
        (
            [{"custom": {"name": "f", "format": {1}}}],
            f"Expected {DICT}, got `set` - at `tools[0].custom.format`",
        ),
        (
            [{"name": "f", "input_schema": {"a": {1}}}],
            f"Expected {DICT}, got `set` - at `tools[0].input_schema.a`",
        ),
        ([{"type": "web_search", "a": {1}}], f"Expected {DICT}, got `set` - at `tools[0].a`"),
    ]:
        with pytest.raises(MessageTypeError) as caught:
            counter.tools(tools)
        assert str(caught.value) == message
        with pytest.raises(MessageTypeError) as caught:
            counter.request({"messages": [], "tools": tools})
        assert str(caught.value) == message
    for body, message in [
        (5, f"Expected {DICT}, got `int` - at `request`"),
        ({}, "Expected a request with `messages`, got none - at `request`"),
        ({"messages": 5}, "Expected a list of messages, got `int` - at `messages`"),
        ({"messages": [], "system": 5}, f"Expected {CONTENT}, got `int` - at `request.system`"),
        (
            {"messages": [], "system": [{"type": "text", "text": 5}]},
            "Expected `str`, got `int` - at `request.system[0].text`",
        ),
    ]:
        with pytest.raises((MessageTypeError, MessageValueError)) as error:
            counter.request(body)
        assert str(error.value) == message


# ------------------------------------------------------------------------------------------------ cycles and depth


class Interrupted(Exception):
    """Raised by the handler of a signal, as Ctrl-C is."""


@pytest.mark.skipif("not hasattr(signal, 'setitimer')", reason="no timers on this platform")
@pytest.mark.parametrize("name", COUNTERS)
def test_ctrl_c_ends_a_count(name: str) -> None:
    """A value that shares its parts is small in memory, and too long to be written out."""

    def interrupt(*_: object) -> None:
        raise Interrupted

    shared: list[Any] = [1]
    for _ in range(40):
        shared = [shared, shared]
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {"k": shared}}
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for call in (COUNTERS[name].message, ctxfast.TokenLedger(COUNTERS[name]).append):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Interrupted):
                call({"role": "assistant", "content": [block]})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize(
    "value", [cyclic_list(), {"a": cyclic_list()}, [{"a": cyclic_list()}]], ids=["[]", "{[]}", "[{[]}]"]
)
def test_cycles_are_errors(counter: Any, value: Any) -> None:
    for message, start in [
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": value}}]},
            "message.tool_calls[0].function.arguments",
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "input": value}]},
            "message.content[0].input",
        ),
        ({"role": "user", "content": [{"type": "new", "data": value}]}, "message.content[0].data"),
    ]:
        with pytest.raises(MessageValueError, match="got a cycle or more") as caught:
            counter.message(message)
        assert caught.value.expected == "JSON of at most 64 levels"
        assert caught.value.path.startswith(start)


def test_a_value_that_occurs_twice_is_no_cycle() -> None:
    value = {"a": [1, 2]}
    message = {"role": "user", "content": [{"type": "new", "one": value, "two": [value, value]}]}
    for name in COUNTERS:
        COUNTERS[name].message(message)
    assert COUNTERS["default"].message(message) == reference.default_counter().message(message)


@pytest.mark.parametrize("depth", [1, 60, *range(61, 70), 500, 10_000])
def test_nesting_ends_where_the_reference_ends(depth: int) -> None:
    slow = {
        "default": reference.default_counter(),
        "from_callable": reference.CallableCounter(len),
        "estimator": reference.EstimatorCounter("gemma3"),
    }
    values = [
        {
            "role": "assistant",
            "tool_calls": [{"function": {"arguments": deep(depth, lambda value: [value])}}],
        },
        {
            "role": "assistant",
            "tool_calls": [{"function": {"arguments": deep(depth, lambda value: {"a": value})}}],
        },
        {"role": "user", "content": [deep(depth, lambda value: {"type": "new", "a": value})]},
        {
            "role": "user",
            "content": [deep(depth, lambda value: {"type": "tool_result", "content": [value]}, {})],
        },
        {
            "role": "user",
            "content": deep(
                depth, lambda value: [{"type": "document", "source": {"type": "content", "content": value}}]
            ),
        },
    ]
    for name, twin in slow.items():
        for value in values:
            expected = guarded(twin.message, value)
            got = guarded(COUNTERS[name].message, value)
            if isinstance(expected, Exception):
                assert depth > 60
                assert type(got) is type(expected)
                assert str(got) == str(expected)
            else:
                assert got == expected


def test_the_structure_of_deep_values_is_of_no_interest() -> None:
    messages = [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": cyclic_list()}}]}]
    assert ctxfast.atoms(messages) == [(0, 1)]
    nested = deep(10_000, lambda value: {"type": "tool_result", "content": [value]}, {})
    with pytest.raises(MessageValueError, match="at most 64 levels of nested blocks"):
        ctxfast.atoms([{"role": "user", "content": [nested]}])


# --------------------------------------------------------------------- subclasses, odd keys, odd texts: what is read


class Role(str, enum.Enum):
    USER = "user"
    TOOL = "tool"


class Level(enum.IntEnum):
    HIGH = 3


PLAIN = {"role": "user", "content": [{"type": "text", "text": "some text"}]}


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
def test_subclasses_are_read_as_what_they_hold(counter: Any) -> None:
    """The core reads storage, not methods: what a subclass overrides is not asked."""
    expected = counter.message(PLAIN)
    message: Any = evil_dict()
    dict.update(message, PLAIN)
    assert counter.message(message) == expected
    assert counter.messages(LongList([message])) == counter.messages([PLAIN])
    assert counter.message(OrderedDict(PLAIN)) == counter.message(defaultdict(list, PLAIN)) == expected
    assert counter.message({**PLAIN, "role": Role.USER}) == expected
    assert counter.message({**PLAIN, "content": LongList(PLAIN["content"])}) == expected
    assert counter.message({UnequalText("role"): "user", "content": PLAIN["content"]}) == expected
    if counter is not COUNTERS["from_callable"]:  # whose function is given the caller's own object
        assert counter.message({**PLAIN, "content": [{"type": "text", "text": Text("some text")}]}) == expected
    assert ctxfast.atoms([{"role": Role.USER}, {"role": "assistant"}]) == [(0, 1), (1, 2)]


def test_enums_and_subclasses_in_json_count_as_their_values() -> None:
    class Money(float):
        def __repr__(self) -> str:
            return "much"

    values = {"a": Level.HIGH, "b": Role.TOOL, "c": Money(2.5), "d": True, "e": (1, 2), Role.USER: 5}
    message = {"role": "assistant", "tool_calls": [{"function": {"arguments": values}}]}
    assert COUNTERS["default"].message(message) == reference.default_counter().message(message)
    assert COUNTERS["from_callable"].message(message) == reference.CallableCounter(len).message(message)
    assert COUNTERS["picoclaw"].message(message) == reference.picoclaw("4.0").message(message)


@pytest.mark.parametrize(
    "text",
    ["\ud800", "\udfff" * 3, "\ud83d\ude00", "\0", "a\0b", "\0ไ\ud800", "\uffff😀\ud800\0", "\x1b[31m"],
    ids=ascii,
)
def test_lone_surrogates_and_nul_are_text(text: str) -> None:
    call_with_anything(text)
    for frame in FRAMES:
        call_with_message(at("$", text, frame))
    assert TokenCounter.from_callable(len).text(text) == len(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    assert TokenCounter.flat(EstimatorConfig(chars_per_token=1.0, unit="bytes")).text(text) == size
    messages: list[Any] = [
        {"role": "user", "content": text},
        {
            "role": "assistant",
            "tool_calls": [{"id": text, "function": {"name": text, "arguments": {text: text}}}],
        },
        {"role": "tool", "tool_call_id": text, "content": text},
    ]
    assert ctxfast.atoms(messages) == [(0, 1), (1, 3)]
    assert ctxfast.count_tokens(messages) == reference.count_tokens(messages)


def test_errors_can_hold_any_text() -> None:
    message = {"role": "user", "content": [{"type": "new", "\ud800": {"ไทย\0": {1}}}]}
    with pytest.raises(MessageTypeError) as caught:
        TokenCounter.default().message(message)
    assert "ไทย" in str(caught.value)


# ------------------------------------------------------------------------- numbers, options, functions, configuration

Call = Callable[[Any], object]
BUDGETS: dict[str, tuple[Call, int]] = {  # function of a budget, and the least that it takes
    "fits": (lambda budget: COUNTERS["default"].fits("text", budget), 0),
    "head": (lambda budget: COUNTERS["default"].head("text", budget), 0),
    "tail": (lambda budget: COUNTERS["from_callable"].tail("text", budget), 0),
    "fresh_tail_budget": (API.fresh_tail_budget, 1),
    "select_fresh_tail": (lambda budget: API.select_fresh_tail([PLAIN], budget), 1),
    "max_tokens": (lambda budget: API.select_fresh_tail([PLAIN], 1, max_tokens=budget), 1),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets(name: str) -> None:
    function, least = BUDGETS[name]
    for bad in (
        -1,
        -0.5,
        -(10**400),
        math.nan,
        math.inf,
        -math.inf,
        True,
        False,
        *((0, 0.0, 0.99) if least else ()),
    ):
        with pytest.raises(BudgetError, match="expected a number of tokens") as caught:
            function(bad)
        assert repr(bad) in str(caught.value)
    for wrong in ("8000", b"8", [8000], {}, 8j, object(), (1,)):
        with pytest.raises(TypeError, match=r"expected a number of tokens, got `\w+`"):
            function(wrong)
    for good in (
        1,
        3.7,
        1.0,
        2**31,
        2**63 - 1,
        2**63,
        2**64,
        10**400,
        1e300,
        *(() if least else (0, 0.0, -0.0, 0.99)),
    ):
        function(good)


def test_budgets_are_rounded_down() -> None:
    counter = TokenCounter.from_callable(len)
    assert counter.head("text", 3.99) == counter.head("text", 3) == "tex"
    assert counter.fits("text", 3.99) is False
    assert ctxfast.fresh_tail_budget(9.99) == ctxfast.fresh_tail_budget(9) == 4


def test_huge_budgets_are_endless() -> None:
    messages = [PLAIN] * 3
    for budget in (2**63, 2**64, 10**400, 1e300):
        assert ctxfast.select_fresh_tail(messages, budget).start == 0
        assert TokenCounter.default().head("text", budget) == "text"
        assert ctxfast.fresh_tail_budget(budget) == 8_000


def test_a_most_below_the_budget_is_an_error() -> None:
    with pytest.raises(BudgetError, match="max_tokens: expected at least the budget of 8000, got 7999"):
        ctxfast.select_fresh_tail([], max_tokens=7_999)
    ctxfast.select_fresh_tail([], max_tokens=8_000)


def test_min_turns_targets_and_modes() -> None:
    wrong: Any
    for wrong in ("2", 2.0, True, math.nan, [2]):
        with pytest.raises(TypeError, match="min_turns"):
            API.select_fresh_tail([], min_turns=wrong)
        with pytest.raises(TypeError, match="target"):
            API.find_safe_cut([], wrong)
    with pytest.raises(TypeError, match="target"):
        API.find_safe_cut([], None)
    for bad in (-1, -(10**400)):
        with pytest.raises(ValueError, match="min_turns: expected 0 or more"):
            API.select_fresh_tail([], min_turns=bad)
    for number in (0, 5, 2**63, 10**400):
        API.select_fresh_tail([PLAIN], min_turns=number)
        assert API.find_safe_cut([PLAIN] * 2, number) == min(2, number)
        assert API.find_safe_cut([PLAIN] * 2, -number) == 0
    with pytest.raises(ValueError, match="mode: expected 'steps' or 'role', got 'turns'"):
        API.find_safe_cut([], 1, "turns")
    with pytest.raises(TypeError):
        API.find_safe_cut([], 1, 5)
    for wrong in ("default", 5, len, TokenCounter, reference.default_counter()):
        with pytest.raises(TypeError, match="counter"):
            API.select_fresh_tail([], counter=wrong)
        with pytest.raises(TypeError, match="counter"):
            API.count_tokens([], counter=wrong)


def test_exceptions_of_a_counting_function_come_through() -> None:
    for error in (HostileError(), KeyError("x"), KeyboardInterrupt(), SystemExit()):

        def count(text: str, error: BaseException = error) -> int:
            raise error

        counter = TokenCounter.from_callable(count)
        for call in (
            lambda counter=counter: counter.text("text"),
            lambda counter=counter: counter.messages([PLAIN]),
            lambda counter=counter: counter.head("text", 1),
            lambda counter=counter: counter.fits(PLAIN, 1),
            lambda counter=counter: counter.tools([{"name": "f"}]),
            lambda counter=counter: ctxfast.select_fresh_tail([PLAIN], counter=counter),
        ):
            with pytest.raises(type(error)) as caught:
                call()
            assert caught.value is error


@pytest.mark.parametrize(
    ("count", "error"),
    [
        (True, TypeError),
        (2.0, TypeError),
        (None, TypeError),
        ("3", TypeError),
        (-1, ValueError),
        (2**64, ValueError),
    ],
    ids=repr,
)
def test_what_a_counting_function_returns_is_checked(count: Any, error: type[Exception]) -> None:
    counter = TokenCounter.from_callable(lambda text: count)
    for call in (lambda: counter.text("x"), lambda: counter.message(PLAIN), lambda: counter.head("text", 1)):
        with pytest.raises(error, match="the counting function must") as caught:
            call()
        assert repr(count) in str(caught.value)


@pytest.mark.parametrize("count", [2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1])
def test_huge_counts_do_not_wrap_round(count: int) -> None:
    """They are added up, or refused."""
    counter = TokenCounter.from_callable(lambda text: count, message_overhead=0)
    if isinstance(guarded(counter.text, "text"), ValueError):
        return
    for n in (2, 3, 4, 5, 9):
        assert counter.messages([PLAIN] * n) == counter.content(["text"] * n) == counter.tools([{"name": "f"}] * n)
        assert counter.messages([PLAIN] * n) == n * count
        assert ctxfast.select_fresh_tail([PLAIN] * n, 2**63, counter=counter).tokens == n * count
        assert not counter.fits([PLAIN] * n, 1000)
    assert ctxfast.select_fresh_tail([PLAIN] * 9, 1000, counter=counter).start == 8


@pytest.mark.parametrize("option", ["message_overhead", "media_tokens"])
@pytest.mark.parametrize("number", [10**6, 2**32, 2**63 - 1, 2**64, 10**400])
def test_huge_frames_do_not_wrap_round(option: str, number: int) -> None:
    counter = guarded(API.TokenCounter.from_callable, len, **{option: number})
    if isinstance(counter, ValueError):
        return
    message = {"role": "user", "content": [{"type": "image"}]}
    one = counter.message(message)
    assert one >= number
    assert [counter.messages([message] * n) for n in range(9)] == [one * n for n in range(9)]
    assert counter.content([{"type": "image"}] * 4) == 4 * counter.content([{"type": "image"}])


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-18, 1e-6, 0.01, 1, 1e6, 1e12, 1e300])
def test_extreme_rates_do_not_wrap_round(rate: float) -> None:
    try:
        config = EstimatorConfig(chars_per_token=rate, code_per_token=rate, thai_per_token=rate)
    except ValueError:
        return
    counter, twin = TokenCounter.flat(config), reference.FlatCounter(config)
    image = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "ไทย" * 1000}]}
    for messages in ([PLAIN], [PLAIN] * 4, [image] * 4):
        assert counter.messages(messages) == twin.messages(messages)
    for limit in (0, 1, 7, 2**62, 1e300):
        assert counter.head("ไทย text", limit) == twin.head("ไทย text", limit)


def test_options_of_from_callable() -> None:
    make = API.TokenCounter.from_callable
    wrong: Any
    assert make(len, message_overhead=4, media_tokens=256) == make(len)
    for option in ("message_overhead", "media_tokens"):
        for wrong in (True, 2.5, "4", [4]):
            with pytest.raises(TypeError, match=option):
                make(len, **{option: wrong})
        with pytest.raises(ValueError, match=option):
            make(len, **{option: -1})
    for wrong in (5, None, "len", [len]):
        with pytest.raises(TypeError, match="fn: expected a function"):
            make(wrong)
    with pytest.raises(TypeError):
        make(len, 4)


def test_other_constructors() -> None:
    for wrong in (None, 4.0, {"chars_per_token": 4.0}, EstimatorConfig):
        with pytest.raises(TypeError, match="config: expected an EstimatorConfig"):
            API.TokenCounter.flat(wrong)
    for version in ("3.0", "", "4", "\ud800", "ไทย"):
        with pytest.raises(ValueError):  # noqa: PT011 - a lone surrogate is a UnicodeEncodeError
            API.TokenCounter.picoclaw(version)
    with pytest.raises(TypeError):
        API.TokenCounter.picoclaw(4.0)
    with pytest.raises(TypeError):
        API.TokenCounter()


RATES = ("chars_per_token", "code_per_token", "thai_per_token")
COUNTS = ("message_overhead", "media_tokens", "tool_overhead")


@pytest.mark.parametrize("name", RATES)
def test_rates_are_checked(name: str) -> None:
    make: Any = EstimatorConfig
    for bad in (0, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, 10**400, -(10**400)):
        with pytest.raises(ValueError, match=f"{name}: expected"):
            make(**{name: bad})
    for wrong in ("4", True, [4], 4j, b"4"):
        with pytest.raises(TypeError, match=f"{name}: expected a number"):
            make(**{name: wrong})
    if name == "chars_per_token":
        with pytest.raises(TypeError, match=name):
            make(**{name: None})
    for good in (1, 2.5, 10**6):
        TokenCounter.flat(make(**{name: good})).text("text")


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_checked(name: str) -> None:
    make: Any = EstimatorConfig
    for bad in (-1, 1_000_001, 10**400, -(10**400)):
        with pytest.raises(ValueError, match=f"{name}: expected 0 to 1,000,000"):
            make(**{name: bad})
    for wrong in ("4", True, 4.0, None, [4]):
        with pytest.raises(TypeError, match=f"{name}: expected a whole number"):
            make(**{name: wrong})
    for good in (0, 1_000_000):
        TokenCounter.flat(make(**{name: good})).text("text")


def test_choices_of_the_configuration_are_checked() -> None:
    make: Any = EstimatorConfig
    bad: Any
    for bad in ("nearest", "", None, 5, [], "UP"):
        with pytest.raises(ValueError, match="rounding: expected 'up' or 'down'"):
            make(rounding=bad)
        with pytest.raises(ValueError, match="unit: expected 'chars', 'bytes' or 'mixed'"):
            make(unit=bad)
    with pytest.raises(TypeError):
        make(words_per_token=4)
    config: Any = make()
    with pytest.raises(AttributeError):
        config.unit = "bytes"


def test_counters_and_tails_are_frozen() -> None:
    counter: Any = TokenCounter.default()
    tail: Any = ctxfast.select_fresh_tail([PLAIN])
    with pytest.raises(AttributeError):
        counter.rate = 5
    for name in ("start", "pinned", "tokens", "turns", "split_turn", "over_budget", "messages"):
        with pytest.raises(AttributeError):
            setattr(tail, name, 5)
    with pytest.raises(TypeError):
        API.FreshTail()


# ------------------------------------------------------------------------------------------------------------- fuzz


def base_transcript() -> list[Any]:
    """A valid conversation with something of every form."""
    return [
        {
            "role": "system",
            "content": "Be brief.",
            "system_parts": [{"type": "text", "text": "Be very brief."}],
        },
        {
            "role": "user",
            "content": [{"type": "text", "text": "ไทย 😀"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "read", "arguments": {"path": "é", "n": [1, 2.5]}},
                },
                {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "done"},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "lines"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "so", "signature": "c2ln"},
                {"type": "tool_use", "id": "t1", "name": "grep", "input": {"pattern": "<x>"}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "content": [{"url": "u", "encrypted_content": "zz"}]},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "1: x"}]},
                {
                    "type": "document",
                    "title": "t",
                    "source": {"type": "content", "content": [{"type": "text", "text": "d"}]},
                },
                {"type": "text", "text": "go on"},
            ],
        },
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "5"},
        {"role": "assistant", "content": "Done.", "refusal": None, "audio": {"id": "x"}},
    ]


def containers(value: Any) -> Iterator[Any]:
    """All plain dicts and lists inside, each once."""
    stack, seen = [value], set()
    while stack:
        value = stack.pop()
        if type(value) in (dict, list) and id(value) not in seen:
            seen.add(id(value))
            yield value
            stack.extend(value.values() if type(value) is dict else value)


def mutate(messages: list[Any], chance: random.Random, junk: list[Any]) -> None:
    """Replaces, removes, repeats or adds something at a random place."""
    container = chance.choice([found for found in containers(messages) if found])
    keys: list[Any] = list(container) if isinstance(container, dict) else list(range(len(container)))
    key, other = chance.choice(keys), chance.choice(keys)
    what = chance.randrange(6)
    if what == 0:
        del container[key]
    elif what == 1:
        container[key], container[other] = container[other], container[key]
    elif what == 2 and isinstance(container, list):
        container.insert(other, container[key])
    elif what == 3 and isinstance(container, dict):
        container[chance.choice(["type", "id", "content", "role", 5, "ไทย", "text", "tool_calls"])] = chance.choice(
            junk
        )
    else:
        container[key] = chance.choice(junk)


def test_random_mutations_never_panic() -> None:
    chance = random.Random(20_240_229)
    junk = [value for name, value in HOSTILE.items() if "deep" not in name and "10**" not in name]
    junk += [
        "tool_use",
        "tool_result",
        "document",
        "text",
        "user",
        "tool",
        "assistant",
        "a",
        "b",
        "t1",
        [{}],
        {"type": "text"},
    ]
    original = base_transcript()
    counters = list(COUNTERS.values())
    read = 0
    for number in range(20_000):
        messages = copy_of_containers(original)
        for _ in range(chance.choice([1, 1, 2, 3])):
            mutate(messages, chance, junk)
        counter = counters[number % len(counters)]
        total = guarded(counter.messages, messages)
        guarded(counter.fits, messages, chance.randrange(200))
        guarded(API.atoms, messages)
        guarded(API.safe_cuts, messages)
        guarded(API.find_safe_cut, messages, chance.randrange(12), chance.choice(["steps", "role"]))
        tail = guarded(API.select_fresh_tail, messages, chance.randrange(1, 150), counter=counter)
        read += isinstance(total, int)
        if isinstance(total, int) and not isinstance(tail, Exception):
            assert tail.start <= len(messages)
    assert 2_000 < read < 18_000  # some mutations are harmless, some are not


def copy_of_containers(value: Any) -> Any:
    """A copy of plain dicts and lists; everything else stays the same object."""
    if type(value) is dict:
        return {key: copy_of_containers(item) for key, item in value.items()}
    if type(value) is list:
        return [copy_of_containers(item) for item in value]
    return value


def test_the_fuzzed_transcript_is_valid_and_not_changed() -> None:
    messages = base_transcript()
    before = copy.deepcopy(messages)
    assert ctxfast.count_tokens(messages) == reference.count_tokens(messages)
    assert ctxfast.atoms(messages) == reference.atoms(messages)
    assert messages == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_ctrl_c_gets_through_a_value_that_shares_its_parts() -> None:
    """Forty lists, each twice in the next: written out, 10^12 strings."""
    value: Any = "x"
    for _ in range(40):
        value = [value, value]
    message = {"role": "user", "content": [{"type": "new", "value": value}]}
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for counter in (TokenCounter.default(), TokenCounter.picoclaw("4.0")):
            for count in (counter.message, TokenLedger(counter).append):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                with pytest.raises(KeyboardInterrupt):
                    count(message)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
