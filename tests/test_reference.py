"""The Rust core gives the answers of `ctxfast.reference`, for every function and counter, on generated transcripts.

Then what must hold whatever the reference says: properties of atoms, cuts and tails, checked by a pairing of calls and
results that shares no line with either. `strategies.py` says how transcripts are made and how to run many more of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import (
    MISSING,
    Message,
    Pair,
    Record,
    as_object,
    broken_conversations,
    configs,
    contents,
    conversations,
    counters,
    from_word,
    messages,
    perhaps_objects,
    requests,
    terse_conversations,
    texts,
    tools,
    valid_conversations,
)

import ctxfast
from ctxfast import TokenCounter, reference
from ctxfast.errors import MessageTypeError, MessageValueError
from ctxfast.reference.reading import PAYLOAD_KEYS

Outcome = tuple[str, Any]


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> Outcome:
    """What a call returns, or the class and the text of its error."""
    try:
        return "value", function(*args, **options)
    except (MessageTypeError, MessageValueError) as error:
        return type(error).__name__, str(error)  # what was expected, what came, and where
    except (TypeError, ValueError) as error:
        return type(error).__name__, None


limits = st.one_of(st.integers(0, 40), st.integers(0, 10**6), st.floats(0, 1e9), st.sampled_from([2**63, 10**30]))
structured = st.one_of(valid_conversations, broken_conversations, terse_conversations)
anything_said = st.one_of(conversations, perhaps_objects(conversations), conversations.map(tuple))

# -------------------------------------------------------------------------------------------------------- counting


@given(counters, texts, limits)
def test_texts(pair: Pair, text: str, limit: float) -> None:
    fast, slow = pair
    assert fast.text(text) == fast(text) == ctxfast.count_tokens(text, counter=fast) == slow.text(text)
    assert fast.fits(text, limit) == slow.fits(text, limit)
    assert fast.head(text, limit) == slow.head(text, limit)
    assert fast.tail(text, limit) == slow.tail(text, limit)


@given(counters, texts, st.integers(-3, 3))
@example((TokenCounter.for_model("gpt-5"), reference.for_model("gpt-5")), ":=?", -1)  # `=?` is a token, but not of this
@example((TokenCounter.for_model("gpt-5"), reference.for_model("gpt-5")), ":<<", -1)
def test_heads_and_tails_at_the_border(pair: Pair, text: str, distance: int) -> None:
    fast, slow = pair
    limit = max(0, fast.text(text) + distance)
    assert fast.head(text, limit) == slow.head(text, limit)
    assert fast.tail(text, limit) == slow.tail(text, limit)
    assert fast.fits(text, limit) == (distance >= 0 or fast.text(text) == 0)


@given(st.one_of(configs.map(TokenCounter.flat), st.just(TokenCounter.default())), texts, limits)
def test_heads_and_tails_are_the_longest_that_fit(counter: TokenCounter, text: str, limit: float) -> None:
    head, tail = counter.head(text, limit), counter.tail(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert head == "" or counter.text(head) <= limit
    assert tail == "" or counter.text(tail) <= limit
    assert head == text or counter.text(text[: len(head) + 1]) > limit
    assert tail == text or counter.text(text[-len(tail) - 1 :]) > limit


@given(counters, st.one_of(contents, contents.map(as_object)))
def test_contents(pair: Pair, content: Any) -> None:
    fast, slow = pair
    assert fast.content(content) == slow.content(content)


@given(counters, perhaps_objects(messages), limits)
def test_messages(pair: Pair, message: Any, limit: float) -> None:
    fast, slow = pair
    expected = slow.message(message)
    assert fast.message(message) == fast(message) == expected
    assert fast.messages([message]) == slow.messages([message])
    assert ctxfast.count_tokens(message, counter=fast) == expected
    assert fast.fits(message, limit) == slow.fits(message, limit)


@given(counters, anything_said, st.one_of(st.none(), tools), limits)
def test_lists(pair: Pair, messages: Any, tools: Any, limit: float) -> None:
    fast, slow = pair
    expected = slow.messages(messages)
    assert fast.messages(messages) == fast(messages) == expected
    assert fast.messages(messages, tools) == fast.messages(messages, tools=tools) == slow.messages(messages, tools)
    assert ctxfast.count_tokens(messages, tools=tools, counter=fast) == slow.messages(messages, tools)
    assert expected == slow.total(slow.messages_sum(messages))
    for border in (limit, expected, max(0, expected - 1)):
        assert fast.fits(messages, border) == (expected <= border)


@given(conversations)
def test_the_default_counter(messages: list[Message]) -> None:
    expected = reference.count_tokens(messages)
    assert ctxfast.count_tokens(messages) == expected
    assert TokenCounter.default().messages(messages) == expected


@given(counters, st.one_of(tools, tools.map(tuple), st.just(None)))
def test_tools(pair: Pair, tools: Any) -> None:
    fast, slow = pair
    assert fast.tools(tools) == slow.tools(tools)


@given(counters, st.one_of(requests, requests.map(as_object)))
def test_requests(pair: Pair, body: Any) -> None:
    fast, slow = pair
    assert fast.request(body) == slow.request(body)


@given(messages, st.sampled_from(["role", "content", "tool_calls", "reasoning_content"]))
def test_a_dict_and_an_object_with_the_same_fields_count_alike(message: Message, extra: str) -> None:
    """An attribute that is `None` was not sent; a key that is `None` was."""
    counter = TokenCounter.default()
    message = without_none(message)
    assert (
        counter.message(as_object(message)) == counter.message(as_object(message, (extra,))) == counter.message(message)
    )


def without_none(value: Any) -> Any:
    if isinstance(value, list):
        return [without_none(item) for item in value]
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value


NESTED_CALL = {"type": "tool_use", "id": "inner", "name": "read", "input": {"path": "a.py"}}
CALLS = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
CORNERS: dict[str, Any] = {
    "a call in a document beside tool_calls": {
        "role": "assistant",
        "content": [{"type": "document", "source": {"type": "content", "content": [NESTED_CALL]}}],
        "tool_calls": CALLS,
    },
    "a call in a result beside tool_calls": {
        "role": "assistant",
        "content": [NESTED_CALL, {"type": "tool_result", "tool_use_id": "a", "content": [NESTED_CALL]}],
        "tool_calls": CALLS,
    },
    "a call in a result": {"role": "user", "content": [{"type": "tool_result", "content": [NESTED_CALL]}]},
    "a result in a result": {
        "role": "user",
        "content": [{"type": "tool_result", "content": [{"type": "tool_result", "tool_use_id": "b"}]}],
    },
    "a result of an assistant": {"role": "assistant", "content": [{"type": "tool_result", "tool_use_id": "b"}]},
    "calls of a user": {"role": "user", "content": [NESTED_CALL], "tool_calls": CALLS},
    "a tool message with blocks": {"role": "tool", "content": [{"type": "tool_result", "tool_use_id": "b"}]},
    "an extra field that hides another": Record({"role": "user", "content": "text"}, {"content": None}),
    "an extra role that hides another": Record({"role": "user", "content": "text"}, {"role": "assistant"}),
    "two forms of a system prompt": {"role": "system", "content": "x" * 20, "system_parts": [{"text": ""}]},
    "a longer form of a system prompt": {"role": "system", "content": ["x" * 19], "system_parts": [{}]},
    "media in both forms": {"role": "user", "content": [{"type": "image"}], "system_parts": [{"text": "long"}]},
    "reasoning under both names": {"role": "assistant", "reasoning_content": "", "reasoning": "hidden"},
    "a type that is no text": {"role": "user", "content": [{"type": 5, "text": "x"}, {"type": None, "text": "x"}]},
    "minus zero and large numbers": {
        "role": "user",
        "content": [{"type": "new", "n": [-0.0, 0, -0, 2**53 + 1, 10**22, -(10**400), 1e21, 1e-7, float("nan")]}],
    },
    "nothing but keys that nobody knows": {"role": "assistant", "steps": [1]},
    "keys nobody knows beside a rare one without a value": {"role": "assistant", "steps": [1], "function_call": None},
    "keys nobody knows beside many without a value": {
        "role": "assistant",
        "steps": [1],
        **dict.fromkeys(sorted(PAYLOAD_KEYS)),
    },
    "a call inside a result, beside a listed call with its id": {
        "role": "assistant",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "content": [{"type": "tool_use", "id": "a", "input": {"x": "y" * 99}}],
            }
        ],
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
    },
    "opaque keys in arguments": {"role": "assistant", "content": [{"type": "tool_use", "input": {"signature": "x"}}]},
    "opaque keys in a new block": {"role": "assistant", "content": [{"type": "new", "a": [{"signature": "x"}]}]},
}
PAIRS: dict[str, Pair] = {
    "default": (TokenCounter.default(), reference.default_counter()),
    "picoclaw": (TokenCounter.picoclaw("4.0"), reference.picoclaw("4.0")),
    "from_callable": (TokenCounter.from_callable(len), reference.CallableCounter(len)),
    "estimator": (TokenCounter.estimator("claude_v3"), reference.EstimatorCounter("claude_v3")),
}


@pytest.mark.parametrize("message", CORNERS.values(), ids=CORNERS)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_corners(pair: Pair, message: Any) -> None:
    """Messages that two readings of the rules could take differently."""
    fast, slow = pair
    assert fast.message(message) == slow.message(message)
    messages = [{"role": "user", "content": "x"}, message, {"role": "tool", "tool_call_id": "b", "content": ""}]
    for name in ("atoms", "turn_starts", "step_starts", "safe_cuts"):
        assert getattr(ctxfast, name)(messages) == getattr(reference, name)(messages)
    got = ctxfast.select_fresh_tail(messages, 1, counter=fast)
    expected = reference.select_fresh_tail(messages, 1, counter=slow)
    assert {name: getattr(got, name) for name in ATTRIBUTES} == {name: getattr(expected, name) for name in ATTRIBUTES}


# ------------------------------------------------------------------------------------------------------- structure


@given(st.one_of(structured, anything_said))
def test_structure(messages: Any) -> None:
    assert ctxfast.atoms(messages) == reference.atoms(messages)
    assert ctxfast.turn_starts(messages) == reference.turn_starts(messages)
    assert ctxfast.step_starts(messages) == reference.step_starts(messages)
    assert ctxfast.safe_cuts(messages) == reference.safe_cuts(messages)


@given(st.one_of(structured, anything_said))
def test_safe_cuts_near_every_target(messages: Any) -> None:
    n = len(messages)
    for target in (*range(-1, n + 2), -(10**30), 10**30):
        assert ctxfast.find_safe_cut(messages, target) == reference.find_safe_cut(messages, target)
        assert ctxfast.find_safe_cut(messages, target, "steps") == reference.find_safe_cut(messages, target)
        assert ctxfast.find_safe_cut(messages, target, mode="role") == reference.find_safe_cut(messages, target, "role")


# -------------------------------------------------------------------------------------------------- the fresh tail


@given(
    st.one_of(
        st.integers(1, 100_000),
        st.integers(1),
        st.floats(1, 1e300),
        st.sampled_from([2**63 - 1, 2**63, 2**64]),
    )
)
def test_fresh_tail_budget(usable: float) -> None:
    assert ctxfast.fresh_tail_budget(usable) == reference.fresh_tail_budget(usable)


ATTRIBUTES = ("start", "pinned", "tokens", "turns", "split_turn", "over_budget", "messages")


class Limits:
    """Limits of a tail, aimed at the cost of some part of the conversation: that is where decisions change."""

    def __init__(self, place: int, distance: int, more: float | None, min_turns: int) -> None:
        self.place, self.distance, self.more, self.min_turns = place, distance, more, min_turns

    def __repr__(self) -> str:
        return f"Limits({self.place}, {self.distance}, {self.more}, {self.min_turns})"

    def options(self, messages: Any, counter: TokenCounter) -> dict[str, Any]:
        """The arguments for `select_fresh_tail`."""
        place = self.place % (len(messages) + 1)
        budget = max(1, counter.messages(messages[place:]) + self.distance)
        most = None if self.more is None else budget + int(self.more * counter.messages(messages[:place]))
        return {"budget": budget, "max_tokens": most, "min_turns": self.min_turns}


tail_limits = st.builds(
    Limits,
    st.integers(0, 40),
    st.one_of(st.integers(-2, 2), st.integers(-60, 200)),
    st.one_of(st.none(), st.none(), st.floats(0, 1.2)),
    st.integers(0, 4),
)


@given(st.one_of(structured, structured, anything_said), tail_limits, counters)
def test_fresh_tails(messages: Any, limits: Limits, pair: Pair) -> None:
    fast, slow = pair
    options = limits.options(messages, fast)
    got = ctxfast.select_fresh_tail(messages, **options, counter=fast)
    expected = reference.select_fresh_tail(messages, **options, counter=slow)
    assert {name: getattr(got, name) for name in ATTRIBUTES} == {name: getattr(expected, name) for name in ATTRIBUTES}
    assert type(got.pinned) is tuple
    assert type(got.messages) is list
    own = {id(message) for message in messages}
    for one, other in zip(got.messages, expected.messages, strict=True):
        assert one is other or id(other) not in own  # only a pinned message without its results is a new one
        assert type(one) is type(other)


@given(structured, st.integers(1, 5000), st.integers(0, 3))
def test_fresh_tails_of_the_default_counter(messages: list[Message], budget: int, min_turns: int) -> None:
    got = ctxfast.select_fresh_tail(messages, budget, min_turns=min_turns)
    expected = reference.select_fresh_tail(messages, budget, min_turns=min_turns)
    assert {name: getattr(got, name) for name in ATTRIBUTES} == {name: getattr(expected, name) for name in ATTRIBUTES}
    assert ctxfast.select_fresh_tail(messages).messages == reference.select_fresh_tail(messages).messages


# ---------------------------------------------------------------------------------------------------------- errors

ODD_KEY = object()  # not put in the place of a dict, but into it
JUNK: tuple[Any, ...] = (5, 2.5, True, b"bytes", {1, 2}, object(), "text", "", [], {}, [5], [None], [[]], None, ODD_KEY)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to all values inside."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """A copy in which something else stands at the end of the path."""
    if not path:
        return {**value, 1: 2} if junk is ODD_KEY and isinstance(value, dict) else junk
    result = copy.copy(value)
    result[path[0]] = replaced(value[path[0]], path[1:], junk)
    return result


def spoilt(value: Any, place: int, junk: Any) -> Any:
    """A copy in which one value is junk."""
    paths = list(places(value))
    return replaced(value, paths[place % len(paths)], junk)


junk = st.sampled_from(JUNK)
any_place = st.integers(0, 1000)


@given(counters, messages, any_place, junk)
def test_errors_in_messages(pair: Pair, message: Message, place: int, junk: Any) -> None:
    fast, slow = pair
    bad = spoilt(message, place, junk)
    assert outcome(fast.message, bad) == outcome(slow.message, bad)
    assert outcome(fast, bad) == outcome(slow, bad)
    assert outcome(fast.content, bad) == outcome(slow.content, bad)


@given(counters, conversations, any_place, junk)
def test_errors_in_lists(pair: Pair, messages: list[Message], place: int, junk: Any) -> None:
    fast, slow = pair
    bad = spoilt(messages, place, junk)
    assert outcome(fast.messages, bad) == outcome(slow.messages, bad)
    assert outcome(fast, bad) == outcome(slow, bad)


@given(counters, tools, any_place, junk)
def test_errors_in_tools(pair: Pair, tools: list[Message], place: int, junk: Any) -> None:
    fast, slow = pair
    bad = spoilt(tools, place, junk)
    assert outcome(fast.tools, bad) == outcome(slow.tools, bad)
    assert outcome(fast.messages, [], bad) == outcome(slow.messages, [], bad)


@given(counters, requests, any_place, junk)
def test_errors_in_requests(pair: Pair, body: Message, place: int, junk: Any) -> None:
    fast, slow = pair
    bad = spoilt(body, place, junk)
    assert outcome(fast.request, bad) == outcome(slow.request, bad)


@given(conversations, any_place, junk)
def test_errors_in_structure(messages: list[Message], place: int, junk: Any) -> None:
    bad = spoilt(messages, place, junk)
    for name in ("atoms", "turn_starts", "step_starts", "safe_cuts"):
        assert outcome(getattr(ctxfast, name), bad) == outcome(getattr(reference, name), bad)
    assert outcome(ctxfast.find_safe_cut, bad, 1) == outcome(reference.find_safe_cut, bad, 1)


@given(conversations, any_place, junk, st.integers(1, 2000))
def test_errors_in_tails_are_those_of_the_reference(
    messages: list[Message], place: int, junk: Any, budget: int
) -> None:
    """Messages that are not needed are not read, so an error may stay unseen; none is made up.

    The core reads from the end, the reference from the start: of two errors each meets another one first. And where a
    result has no call the core counts more messages than the reference, which counts only what it keeps.
    """
    bad = spoilt(messages, place, junk)
    kind, _ = outcome(ctxfast.select_fresh_tail, bad, budget)
    if kind != "value":
        kinds = {outcome(reference.select_fresh_tail, bad, budget)[0], outcome(reference.count_tokens, bad)[0]}
        assert kind in kinds


hostile_numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=2),
    st.sampled_from([10**400, -(10**400)]),
)


@given(hostile_numbers)
@example(10**400)
@example(-(10**400))
def test_errors_in_limits(number: Any) -> None:
    fast, slow = TokenCounter.default(), reference.default_counter()
    assert outcome(ctxfast.fresh_tail_budget, number) == outcome(reference.fresh_tail_budget, number)
    assert outcome(fast.fits, "text", number) == outcome(slow.fits, "text", number)
    assert outcome(fast.head, "text", number) == outcome(slow.head, "text", number)
    assert outcome(fast.tail, "text", number) == outcome(slow.tail, "text", number)


@given(hostile_numbers, hostile_numbers, hostile_numbers)
def test_errors_in_options_of_tails(budget: Any, most: Any, min_turns: Any) -> None:
    messages = [from_word(word) for word in ("S", "U", "Aa", "Ta", "U", "A")]
    for options in ({"budget": budget}, {"max_tokens": most}, {"min_turns": min_turns}):
        kind, got = outcome(ctxfast.select_fresh_tail, messages, **options)
        expected_kind, expected = outcome(reference.select_fresh_tail, messages, **options)
        assert kind == expected_kind
        if kind == "value":
            assert got.messages == expected.messages
        else:
            assert got == expected


@given(hostile_numbers)
def test_errors_in_targets(target: Any) -> None:
    messages = [from_word(word) for word in ("S", "U", "Aa", "Ta", "U", "A")]
    for mode in ("steps", "role"):
        got = outcome(ctxfast.find_safe_cut, messages, target, mode)
        assert got == outcome(reference.find_safe_cut, messages, target, mode)


@pytest.mark.parametrize("count", [True, 2.0, None, "3", -1, -(10**30), [4]], ids=repr)
def test_errors_in_counting_functions(count: Any) -> None:
    def count_anyhow(text: str) -> Any:
        return count

    fast, slow = TokenCounter.from_callable(count_anyhow), reference.CallableCounter(count_anyhow)
    message = {"role": "user", "content": "text"}
    kind, _ = outcome(fast.message, message)
    assert kind in ("TypeError", "ValueError")
    assert outcome(fast.message, message)[0] == outcome(slow.message, message)[0]
    assert outcome(fast.text, "text")[0] == outcome(slow.text, "text")[0]


# --------------------------------------------------------------------- what must hold whatever the reference says

Place = tuple[int, int]  # a message, and which of its calls or results


def own_calls(message: Any) -> list[Any]:
    """Ids of the calls of an assistant message, in order; blank ones as `None`."""
    fields = vars(message) if isinstance(message, Record) else message
    if fields["role"] != "assistant":
        return []
    found = [call.get("id") for call in fields.get("tool_calls") or ()]
    if fields.get("function_call") is not None:
        found.append(None)
    content = fields.get("content")
    if isinstance(content, list):
        uses = [part.get("id") for part in content if isinstance(part, dict) and part.get("type") == "tool_use"]
        listed = {call_id for call_id in found if call_id and call_id.strip()}
        found += [call_id for call_id in uses if call_id not in listed]
    return [call_id if call_id and call_id.strip() else None for call_id in found]


def own_results(message: Any) -> list[Any]:
    """Ids that a message holds results for, in order; blank ones as `None`."""
    if message["role"] in ("tool", "function"):
        found = [message.get("tool_call_id")]
    elif message["role"] == "user" and isinstance(message.get("content"), list):
        found = [
            part.get("tool_use_id")
            for part in message["content"]
            if isinstance(part, dict) and part.get("type") == "tool_result"
        ]
    else:
        found = []
    return [call_id if call_id and call_id.strip() else None for call_id in found]


def speaks(message: Message) -> bool:
    """A real user message: no tool results, or text beside them."""
    if message["role"] != "user":
        return False
    if not own_results(message):
        return True
    texts = [part if isinstance(part, str) else part.get("text") for part in message["content"] if is_text(part)]
    return any(isinstance(text, str) and text.strip() for text in texts)


def is_text(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") in ("text", "input_text")


def paired(messages: list[Message]) -> dict[Place, Place]:
    """For each result the call that it answers: the nearest earlier open one with its id, by searching for it."""
    answered: dict[Place, Place] = {}
    for index, message in enumerate(messages):
        for number, wanted in enumerate(own_results(message)):
            for earlier in range(index - 1, -1, -1):
                open_calls = [
                    (earlier, place)
                    for place, call_id in enumerate(own_calls(messages[earlier]))
                    if call_id == wanted and (earlier, place) not in answered.values()
                ]
                if open_calls:
                    answered[index, number] = open_calls[0]
                    break
    return answered


def running(messages: list[Message]) -> list[int]:
    """Messages with calls that may still be running: nothing but results after the newest message with calls."""
    end = len(messages)
    while end and own_results(messages[end - 1]) and not speaks(messages[end - 1]):
        end -= 1
    start = end
    while start and own_calls(messages[start - 1]):
        start -= 1
    calls = [(index, place) for index in range(start, end) for place in range(len(own_calls(messages[index])))]
    answered = paired(messages).values()
    return [index for index, place in calls if (index, place) not in answered]


def expected_safe_cuts(messages: list[Message]) -> list[int]:
    n = len(messages)
    spans = [(call, result) for (result, _), (call, _) in paired(messages).items()]
    spans += [(call, n) for call in running(messages)]
    return [cut for cut in range(n + 1) if not any(call < cut <= result for call, result in spans)]


@given(structured)
def test_safe_cuts_part_no_call_from_its_result(messages: list[Message]) -> None:
    assert ctxfast.safe_cuts(messages) == expected_safe_cuts(messages)


@given(structured)
def test_atoms_partition_the_list(messages: list[Message]) -> None:
    atoms = ctxfast.atoms(messages)
    assert [index for start, stop in atoms for index in range(start, stop)] == list(range(len(messages)))
    assert all(start < stop for start, stop in atoms)
    starts = [start for start, _ in atoms]
    cuts = ctxfast.safe_cuts(messages)
    turns, steps = ctxfast.turn_starts(messages), ctxfast.step_starts(messages)
    assert set(starts) <= set(cuts)
    assert set(turns) | set(steps) <= set(starts)
    assert not set(turns) & set(steps)
    assert all(messages[index]["role"] == "user" and not own_results(messages[index]) for index in turns)
    assert all(messages[index]["role"] == "assistant" for index in steps)
    for index, message in enumerate(messages):
        if message["role"] == "user" and not own_results(message) and index in cuts:
            assert index in turns
    for index in set(cuts) - set(starts) - {len(messages)}:  # not every cut is a border: runs and stray results
        assert messages[index]["role"] in ("system", "developer") or own_results(messages[index])


@given(structured, st.integers(0, 40))
def test_a_cut_near_a_target_is_safe(messages: list[Message], target: int) -> None:
    cut = ctxfast.find_safe_cut(messages, target)
    cuts = expected_safe_cuts(messages)
    assert cut in cuts
    if target:
        below = [other for other in cuts if 0 < other <= target]
        above = [other for other in cuts if target < other < len(messages)]
        assert cut == (max(below) if below else min(above, default=0))


@given(structured)
def test_appending_a_message_moves_no_cut_before_the_last_step(messages: list[Message]) -> None:
    """Answers about the past stay as they are, unless what comes is a result or a call was still running."""
    if running(messages):
        return
    more = [*messages, {"role": "user", "content": "and now?"}]
    assert ctxfast.safe_cuts(more) == [*ctxfast.safe_cuts(messages), len(more)]
    assert ctxfast.atoms(more) == [*ctxfast.atoms(messages), (len(messages), len(more))]


def leading(messages: list[Message]) -> int:
    roles = [message["role"] in ("system", "developer") for message in messages]
    return roles.index(False) if False in roles else len(messages)


def opens_a_turn(messages: list[Message], index: int) -> bool:
    """A user message that came between steps: it holds no results, and none follow directly."""
    if not speaks(messages[index]):
        return False
    for message in messages[index:]:
        if own_results(message):
            return False
        if not speaks(message):
            return True
    return True


def without_results(message: Message) -> Message:
    if not own_results(message):
        return message
    rest = [part for part in message["content"] if not (isinstance(part, dict) and part.get("type") == "tool_result")]
    return {**message, "content": rest}


@given(structured, tail_limits, counters)
def test_what_a_tail_keeps(messages: list[Message], limits: Limits, pair: Pair) -> None:
    counter = pair[0]
    options = limits.options(messages, counter)
    before, identities = copy.deepcopy(messages), [id(message) for message in messages]
    tail = ctxfast.select_fresh_tail(messages, **options, counter=counter)
    assert messages == before
    assert [id(message) for message in messages] == identities

    front, start = min(leading(messages), tail.start), tail.start
    assert tail.messages is not messages
    suffix = tail.messages[len(tail.messages) - (len(messages) - start) :]
    pins = tail.messages[front : len(tail.messages) - len(suffix)]
    assert [id(message) for message in tail.messages[:front]] == identities[:front]
    assert [id(message) for message in suffix] == identities[start:]
    assert start in (*(start for start, _ in ctxfast.atoms(messages)), len(messages))
    assert list(tail.pinned) == sorted(set(tail.pinned))
    assert all(front <= index < start and speaks(messages[index]) for index in tail.pinned)
    assert pins == [without_results(messages[index]) for index in tail.pinned]
    assert all(
        own_results(messages[index]) or pin is messages[index] for index, pin in zip(tail.pinned, pins, strict=True)
    )

    spoken = [index for index, message in enumerate(messages) if speaks(message)]
    if spoken:
        assert spoken[-1] >= start or spoken[-1] in tail.pinned  # the task
    if messages[leading(messages) :]:
        assert suffix  # the newest atom

    assert tail.tokens == counter.messages([*pins, *suffix])
    most = options["max_tokens"] if tail.turns <= options["min_turns"] else None
    assert tail.over_budget == (tail.tokens > (options["budget"] if most is None else most))


@given(structured, tail_limits, counters)
def test_a_tail_is_the_longest_that_fits(messages: list[Message], limits: Limits, pair: Pair) -> None:
    counter = pair[0]
    options = limits.options(messages, counter)
    tail = ctxfast.select_fresh_tail(messages, **options, counter=counter)
    older = [start for start, _ in ctxfast.atoms(messages) if leading(messages) <= start < tail.start]
    plain = [index for index in range(tail.start) if opens_a_turn(messages, index)]
    head_left_out = tail.split_turn and plain and plain[-1] not in tail.pinned
    if not older or tail.over_budget or head_left_out:
        return
    start = older[-1]
    heads = [index for index in plain if index < start]
    spoken = [index for index, message in enumerate(messages) if speaks(message)]
    pins = {index for index in spoken[-1:] if index < start}
    turns = sum(start <= index for index in ctxfast.turn_starts(messages))
    opener = next(
        i for i, _ in ctxfast.atoms(messages) if i >= start and messages[i]["role"] not in ("system", "developer")
    )
    if heads and opener not in ctxfast.turn_starts(messages):
        pins.add(heads[-1])
        turns += 1
    cost = counter.messages([*(without_results(messages[index]) for index in pins), *messages[start:]])
    most = options["max_tokens"] if turns <= options["min_turns"] else None
    assert cost > (options["budget"] if most is None else most)


@given(structured, tail_limits, counters)
def test_a_tail_of_a_tail_keeps_everything(messages: list[Message], limits: Limits, pair: Pair) -> None:
    options = limits.options(messages, pair[0])
    del options["max_tokens"]  # with two limits, a stripped message that becomes a head can change which one holds
    once = ctxfast.select_fresh_tail(messages, **options, counter=pair[0]).messages
    again = ctxfast.select_fresh_tail(once, **options, counter=pair[0]).messages
    assert [id(message) for message in again] == [id(message) for message in once]


def faults(messages: list[Message]) -> tuple[list[Place], list[Place]]:
    """Results without a call, and calls without a result: each as (its message object, which one)."""
    answers = paired(messages)
    orphans = [
        (id(message), number)
        for index, message in enumerate(messages)
        for number in range(len(own_results(message)))
        if (index, number) not in answers
    ]
    unanswered = [
        (id(message), number)
        for index, message in enumerate(messages)
        for number in range(len(own_calls(message)))
        if (index, number) not in answers.values()
    ]
    return orphans, unanswered


@given(structured, tail_limits, counters)
def test_a_tail_adds_no_fault(messages: list[Message], limits: Limits, pair: Pair) -> None:
    messages = [dict(message) for message in messages]  # each its own object
    tail = ctxfast.select_fresh_tail(messages, **limits.options(messages, pair[0]), counter=pair[0])
    orphans, unanswered = faults(messages)
    orphans_now, unanswered_now = faults(tail.messages)
    assert set(orphans_now) <= set(orphans)
    assert set(unanswered_now) <= set(unanswered)


@given(valid_conversations, tail_limits)
def test_a_tail_of_a_valid_conversation_is_valid(messages: list[Message], limits: Limits) -> None:
    counter = TokenCounter.default()
    messages = [dict(message) for message in messages]
    assume(faults(messages) == ([], []))
    tail = ctxfast.select_fresh_tail(messages, **limits.options(messages, counter), counter=counter)
    assert faults(tail.messages) == ([], [])


def test_the_twins_of_these_tests_are_not_empty() -> None:
    """The checks above see what they are for."""
    talk = [from_word(word) for word in ("S", "U", "Aab", "Tb", "Ma", "Aa", "Ta", "Tc", "U")]
    assert paired(talk) == {(3, 0): (2, 1), (4, 0): (2, 0), (6, 0): (5, 0)}
    assert faults(talk) == ([(id(talk[7]), 0)], [])
    assert expected_safe_cuts(talk) == [0, 1, 2, 5, 7, 8, 9]
    assert running([from_word(word) for word in ("U", "Aab", "Tb")]) == [1]
    assert own_calls({"role": "assistant", "tool_calls": [{"id": " "}, {}]}) == [None, None]
    assert MISSING not in talk[2].values()
