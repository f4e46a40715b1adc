"""Running totals: always what a full recount gives, whatever is done to the list; and no message is kept.

A state machine does anything to a ledger, to that of the reference and to a list of messages, and compares the three.
"""

from __future__ import annotations

import copy
import functools
import gc
import math
import multiprocessing
import pickle
import re
import sys
import threading
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from cases import by_length, counters, talk
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import DrawFn
from strategies import Pair, perhaps_objects, texts
from strategies import counters as counter_pairs
from strategies import messages as message_dicts
from test_threads import let_others_run, outcome, run_all, transcript

import ctxfast
from ctxfast import (
    BudgetError,
    EstimatorConfig,
    MessageTypeError,
    MessageValueError,
    TokenCounter,
    TokenLedger,
    reference,
)

API: Any = ctxfast
COUNTERS = {
    "default": TokenCounter.default(),
    "picoclaw": TokenCounter.picoclaw("4.0"),
    "seed": TokenCounter.flat(EstimatorConfig.seed_rules()),
    "from_callable": TokenCounter.from_callable(len),
    "model": TokenCounter.for_model("claude-opus-4-7"),
}
SLOW = ("from_callable", "default", "model")  # what they have counted is recognised
BAD: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": 42}]}

place = st.integers(0, 20)


@st.composite
def any_message(draw: DrawFn) -> Any:
    """A message of any form. (Strategies without a name of their own have one that is pages long.)"""
    return draw(perhaps_objects(message_dicts))


@st.composite
def any_counter(draw: DrawFn) -> Pair:
    """A counter and its twin."""
    return draw(counter_pairs)


@st.composite
def any_value(draw: DrawFn) -> Any:
    """What a message may be edited to."""
    return draw(st.one_of(texts, st.integers(), st.none()))


def same(one: Any, other: Any) -> bool:
    """Whether two messages are the same to the letter: `1`, `1.0` and `True` are not."""
    return repr(one) == repr(other)


def slots(value: Any) -> list[tuple[Any, Any]]:
    """All places inside a message at which something can be put: a dict or list and a key of it."""
    own: list[tuple[Any, Any]]
    if isinstance(value, dict):
        own = [(value, key) for key in value]
    elif isinstance(value, list):
        own = [(value, index) for index in range(len(value))]
    else:
        return slots(vars(value)) if hasattr(value, "__dict__") else []
    return own + [slot for container, key in own for slot in slots(container[key])]


class Ledgers(RuleBasedStateMachine):
    """A ledger, its twin, and the messages that both should stand for."""

    @initialize(pair=any_counter(), messages=st.lists(any_message(), max_size=4))
    def begin(self, pair: Any, messages: list[Any]) -> None:
        self.counter, twin = pair
        self.messages = list(messages)
        self.ledger = TokenLedger(self.counter, messages)
        self.twin = reference.TokenLedger(twin, messages)
        self.knows_all = True

    @rule(message=any_message())
    def append(self, message: Any) -> None:
        self.ledger.append(message)
        self.twin.append(message)
        self.messages.append(message)

    @rule(messages=st.lists(any_message(), max_size=3), wrong=st.sampled_from([False, False, True]))
    def extend(self, messages: list[Any], wrong: bool) -> None:
        if wrong:
            for ledger in (self.ledger, self.twin):
                with pytest.raises(MessageTypeError) as caught:
                    ledger.extend([*messages, BAD])
                assert caught.value.path == f"messages[{len(messages)}].content[0].text"
            return
        self.ledger.extend(tuple(messages))
        self.twin.extend(messages)
        self.messages += messages

    @rule(place=st.integers(-12, 12), message=any_message())
    def replace(self, place: int, message: Any) -> None:
        errors = set()
        for change in (self.ledger.replace, self.twin.replace, self.messages.__setitem__):
            try:
                change(place, message)
            except IndexError:
                errors.add(True)
            else:
                errors.add(False)
        assert len(errors) == 1

    @rule(length=st.integers(0, 8))
    def truncate(self, length: int) -> None:
        self.ledger.truncate(length)
        self.twin.truncate(length)
        del self.messages[length:]

    @rule(
        edits=st.lists(st.tuples(place, place, any_value()), max_size=3),
        order=st.lists(place, max_size=8),
        new=st.lists(any_message(), max_size=2),
        fresh=st.booleans(),
    )
    def resync(self, edits: list[tuple[int, int, Any]], order: list[int], new: list[Any], fresh: bool) -> None:
        """Messages are edited in place, moved, lost, repeated; come as copies; and there are new ones."""
        before = copy.deepcopy(self.messages)
        for at, inside, value in edits:
            if self.messages:
                message = self.messages[at % len(self.messages)]
                places = slots(message)
                if places:
                    container, key = places[inside % len(places)]
                    container[key] = value
        if order and self.messages:
            self.messages = [self.messages[at % len(self.messages)] for at in order]
        messages = [*self.messages, *new]
        if fresh:
            messages = copy.deepcopy(messages)
        try:
            self.twin.resync(messages)
        except (MessageTypeError, MessageValueError) as expected:
            with pytest.raises(type(expected), match=f"^{re.escape(str(expected))}$"):
                self.ledger.resync(messages)
            self.messages = before  # and the counts as well
            return
        counted = self.ledger.resync(messages)
        if repr(self.counter).startswith(("TokenCounter.flat", "TokenCounter.picoclaw")):
            assert counted == len(messages)
        elif self.knows_all:
            unknown = [message for message in messages if not any(same(message, old) for old in before)]
            assert counted <= len(unknown)
        self.messages, self.knows_all = messages, True

    @rule()
    def take_a_copy(self) -> None:
        one = self.ledger.copy()
        one.append({"role": "user", "content": "only in the copy"})
        self.ledger, self.twin = copy.copy(self.ledger), self.twin.copy()

    @rule()
    def pickle(self) -> None:
        self.ledger, self.knows_all = pickle.loads(pickle.dumps(self.ledger)), False

    @invariant()
    def all_agree(self) -> None:
        if not hasattr(self, "ledger"):
            return
        expected = [self.twin.counter.messages_sum([message]) for message in self.messages]
        length = len(expected)
        assert len(self.ledger) == len(self.twin) == length
        assert self.ledger.total() == self.twin.total() == self.counter.messages(self.messages)
        assert self.ledger.total() >= sum(expected)
        for ledger in (self.ledger, self.twin):
            assert [ledger.tokens(index) for index in range(length)] == expected
            assert [ledger.tokens(index - length) for index in range(length)] == expected
        for budget in (0, sum(expected) // 2, sum(expected[-1:]), sum(expected[-2:]), sum(expected[1:]), sum(expected)):
            assert self.ledger.tail_within(budget) == self.twin.tail_within(budget)


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(stateful_step_count=8)


# --------------------------------------------------------------------------------------------------- one by one


def by_hand(package: ModuleType, notation: str) -> Any:
    """A ledger in which a message has the length of its text."""
    return package.TokenLedger(by_length(package), talk(notation))


def test_a_ledger_of_nothing(package: ModuleType) -> None:
    ledger = package.TokenLedger()
    assert (len(ledger), ledger.total(), ledger.tail_within(0), ledger.resync([])) == (0, 0, 0, 0)
    ledger.extend([])
    ledger.extend(())
    ledger.truncate(0)
    ledger.append({"role": "user", "content": "two words"})  # 2, and 4 for the frame; 3 % of the total
    assert (len(ledger), ledger.total(), ledger.tokens(0)) == (1, 7, 6)


def test_a_suffix_within_a_budget(package: ModuleType) -> None:
    ledger = by_hand(package, "U=10 A=20 U2=30 A2=40")
    assert ledger.total() == 100
    for budget, start in ((0, 4), (39, 4), (40, 3), (69, 3), (70, 2), (89, 2), (90, 1), (99, 1), (100, 0), (10**30, 0)):
        assert ledger.tail_within(budget) == start, budget
    assert ledger.tail_within(70.9) == 2
    assert by_hand(package, "U=10 A=0 U2=30 A2=0").tail_within(0) == 3


@pytest.mark.parametrize("wrong", [-1, -0.5, math.nan, math.inf, -math.inf, True, False])
def test_budgets_are_numbers_of_tokens(package: ModuleType, wrong: Any) -> None:
    with pytest.raises(BudgetError, match="budget: expected a number of tokens, 0 or more"):
        by_hand(package, "U").tail_within(wrong)


@pytest.mark.parametrize("wrong", ["10", None, [1], 1j])
def test_budgets_are_numbers(package: ModuleType, wrong: Any) -> None:
    with pytest.raises(TypeError, match="budget"):
        by_hand(package, "U").tail_within(wrong)


@pytest.mark.parametrize("index", [3, -4, 10**30, -(10**30), 2**63 - 1, -(2**63)])
def test_indices_that_are_none(package: ModuleType, index: int) -> None:
    ledger = by_hand(package, "U=1 A=2 U2=3")
    calls: list[Callable[[], object]] = [
        lambda: ledger.tokens(index),
        lambda: ledger.replace(index, talk("U=9")[0]),
    ]
    for call in calls:
        with pytest.raises(IndexError, match=r"index: expected one of 3 messages, got -?\d+") as caught:
            call()
        assert abs(index) > 2**63 - 2 or str(caught.value).endswith(f"got {index}")
    assert ledger.total() == 6
    with pytest.raises(IndexError, match="index: expected one of 0 messages, got 0"):
        by_hand(package, "").tokens(0)


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None])
def test_indices_and_lengths_are_whole_numbers(package: ModuleType, wrong: Any) -> None:
    ledger = by_hand(package, "U=1 A=2 U2=3")
    for call in (ledger.tokens, ledger.truncate, lambda index: ledger.replace(index, talk("U")[0])):
        with pytest.raises(TypeError, match="expected a whole number"):
            call(wrong)
    with pytest.raises(ValueError, match="length: expected 0 or more, got -1"):
        ledger.truncate(-1)
    ledger.truncate(10**30)
    assert ledger.total() == 6


def test_what_cannot_be_read_changes_nothing(package: ModuleType) -> None:
    good = {"role": "user", "content": "x"}
    calls: list[tuple[Callable[[Any], object], str]] = [
        (lambda ledger: ledger.append(BAD), "message.content[0].text"),
        (lambda ledger: ledger.replace(0, BAD), "message.content[0].text"),
        (lambda ledger: ledger.extend([good, good, BAD]), "messages[2].content[0].text"),
        (lambda ledger: ledger.resync([good, BAD]), "messages[1].content[0].text"),
        (lambda ledger: type(ledger)(ledger.counter, [good, BAD]), "messages[1].content[0].text"),
    ]
    for counter in (counters(package).default(), counters(package).from_callable(len)):
        ledger = package.TokenLedger(counter, [good, good])
        total = ledger.total()
        for call, where in calls:
            with pytest.raises(MessageTypeError) as caught:
                call(ledger)
            assert caught.value.path == where
        for wrong in ("text", {"role": "user"}, None, iter([good])):
            for take in (ledger.extend, ledger.resync):
                with pytest.raises(MessageTypeError, match="a list of messages"):
                    take(wrong)
        assert (len(ledger), ledger.total()) == (2, total)


@pytest.mark.parametrize("wrong", [5, "default", len, reference.default_counter()])
def test_the_counter_is_a_counter(wrong: Any) -> None:
    with pytest.raises(TypeError, match="counter"):
        API.TokenLedger(wrong)


def test_repr_and_counter() -> None:
    ledger = TokenLedger(messages=[{"role": "user", "content": "a secret text"}])
    assert repr(ledger) == "<TokenLedger of 1 messages, 8 tokens by TokenCounter.default()>"
    assert ledger.counter == TokenCounter.default()
    assert TokenLedger(COUNTERS["model"]).counter is COUNTERS["model"]
    with pytest.raises(AttributeError):
        ledger.counter = TokenCounter.default()  # type: ignore[misc]


# ------------------------------------------------------------------------------------------------------- resync


def calling(fn: Callable[[str], int] = len) -> tuple[TokenCounter, list[str]]:
    """A counter, and the texts that it was asked for."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return fn(text)

    return TokenCounter.from_callable(count), asked


def test_what_is_known_is_not_counted_again() -> None:
    counter, asked = calling()
    messages = transcript(3)
    ledger = TokenLedger(counter, messages[:10])
    asked.clear()
    assert ledger.resync(messages[:10]) == 0
    assert not asked
    assert ledger.resync(copy.deepcopy(messages)) == len(messages) - 10
    asked.clear()
    summary = {"role": "user", "content": "a summary of what came before"}
    assert ledger.resync([messages[0], summary, *messages[8:]]) == 1  # the others are known from another place
    assert asked == [summary["content"]]
    ledger.append(messages[1])
    ledger.replace(1, messages[2])
    assert ledger.resync([messages[0], messages[2], *messages[8:], messages[1]]) == 0
    assert ledger.total() == counter.messages([messages[0], messages[2], *messages[8:], messages[1]])
    assert ledger.copy().resync(messages[8:]) == 0
    assert pickle.loads(pickle.dumps(TokenLedger(COUNTERS["model"], messages))).resync(messages) == len(messages)


EDITS: dict[str, Callable[[list[Any]], None]] = {
    "a text": lambda ms: ms[1].update(content=ms[1]["content"] + "x"),
    "a text of the same length": lambda ms: ms[1].update(content="y" + ms[1]["content"][1:]),
    "the width of a text": lambda ms: ms[1].update(content="\u0e01"),
    "a role": lambda ms: ms[3].update(role="user"),
    "arguments": lambda ms: ms[2]["tool_calls"][0]["function"]["arguments"].update(path="y"),
    "a key of arguments": lambda ms: ms[2]["tool_calls"][0]["function"].update(arguments={"file": "é"}),
    "the name of a tool": lambda ms: ms[2]["tool_calls"][1]["function"].update(name="write"),
    "a call": lambda ms: ms[2]["tool_calls"].pop(),
    "a text of a part": lambda ms: ms[4]["content"][0].update(text="other"),
    "another part": lambda ms: ms[4]["content"].append({"type": "text", "text": ""}),
    "an image": lambda ms: ms[4]["content"].append({"type": "image", "source": {"type": "url", "url": "x"}}),
    "a number": lambda ms: ms[5]["content"][0]["input"]["k"].append(10**400),
    "one number for another": lambda ms: ms[5]["content"][0]["input"].update(k=[2**61 - 1]),
    "true for one": lambda ms: ms[5]["content"][0]["input"].update(k=[True]),
    "a float for an int": lambda ms: ms[5]["content"][0]["input"].update(k=[0.0]),
    "a list for its only item": lambda ms: ms[5]["content"][0]["input"].update(k=0),
    "a nested list": lambda ms: ms[5]["content"][0]["input"].update(k=[[0]]),
    "an unknown block": lambda ms: ms[6]["content"].append({"type": "new", "data": b"\x89PNG", "more": {"a": None}}),
    "reasoning": lambda ms: ms[2].update(reasoning_content="hm"),
    "system parts": lambda ms: ms[0].update(system_parts=[{"type": "text", "text": "Be very, very brief."}]),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("name", COUNTERS)
def test_an_edit_in_place_is_noticed(name: str, edit: str) -> None:
    messages = transcript(1)
    messages[5]["content"][0]["input"]["k"] = [0]
    counter = COUNTERS[name]
    ledger = TokenLedger(counter, messages)
    EDITS[edit](messages)
    assert ledger.resync(messages) == (1 if name in SLOW else len(messages))
    assert ledger.total() == counter.messages(messages)
    assert [ledger.tokens(index) for index in range(len(messages))] == [counter.message(m) for m in messages]


def test_an_empty_result_is_no_empty_message() -> None:
    """It has a frame that other messages have not."""
    counter = COUNTERS["model"]
    result: dict[str, Any] = {"role": "tool", "content": []}
    ledger = TokenLedger(counter, [result])
    result["role"] = "user"
    assert ledger.resync([result]) == 1
    assert ledger.total() == counter.messages([result])


def test_texts_with_the_same_hash_are_told_apart() -> None:
    """Python hashes the bytes of a text: of `"\\x01\\x0e"` they are those of a Thai letter."""
    one, other = {"role": "user", "content": "\x01\x0e"}, {"role": "user", "content": "\u0e01"}
    if sys.byteorder == "little":
        assert hash(one["content"]) == hash(other["content"])
    counter = TokenCounter.from_callable(lambda text: 7 if text == "\u0e01" else 1)
    ledger = TokenLedger(counter, [one])
    assert ledger.resync([other]) == 1
    assert ledger.total() == counter.message(other)


class Liar(str):
    """A text that has the hash of all others of its kind, and is equal to them."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return True


def test_the_hash_of_a_subclass_is_not_believed() -> None:
    messages: list[Any] = [{"role": "user", "content": Liar("one")}]
    ledger = TokenLedger(COUNTERS["from_callable"], messages)
    assert ledger.resync([{"role": "user", "content": Liar("one")}]) == 0
    messages[0]["content"] = Liar("three")
    assert ledger.resync(messages) == 1
    assert ledger.total() == COUNTERS["from_callable"].messages(messages)


def test_numbers_with_the_same_hash_are_told_apart() -> None:
    def message(number: object) -> dict[str, Any]:
        return {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"k": number}}]}

    numbers: list[Any] = [0, 1, True, False, 0.0, -0.0, 1.0, 2**61 - 1, 2**61, -1, -2, 2**64, 2**64 + 2**61 - 1, "0"]
    numbers += [None, [], {}, [0], [[]], {"0": 0}, {"0": [0]}, math.nan, math.inf, 1e300]
    counter = COUNTERS["model"]
    for old in numbers:
        for new in numbers:
            ledger = TokenLedger(counter, [message(old)])
            assert ledger.resync([message(new)]) == (0 if same(old, new) else 1)
            assert ledger.total() == counter.messages([message(new)])


RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "done"}
PICTURE = {"type": "new", "media_type": "image/png", "data": "A" * 1_000}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # the same texts in the same order; what differs is how many results have a frame
        ({"role": "user", "content": [RESULT]}, {"role": "assistant", "content": [RESULT]}),
        ({"role": "user", "content": "a", "tool_call_id": "b"}, {"role": "tool", "refusal": "a", "tool_call_id": "b"}),
        ({"role": "tool", "content": None}, {"role": "user", "content": []}),
        (
            {"role": "user", "content": [{"type": "tool_result"}, RESULT]},
            {"role": "user", "content": [{"type": "tool_result", "content": [RESULT]}]},
        ),
        # the same value; in arguments all of it is text, in a block that nobody knows the data are a picture
        (
            {"role": "assistant", "tool_calls": [{"function": {"arguments": PICTURE}}]},
            {"role": "assistant", "content": [PICTURE]},
        ),
    ],
)
def test_an_edit_that_leaves_the_texts_is_seen(old: dict[str, Any], new: dict[str, Any]) -> None:
    counter = COUNTERS["model"]
    assert counter.messages([old]) != counter.messages([new])
    for before, after in ((old, new), (new, old)):
        ledger = TokenLedger(counter, [before])
        assert ledger.resync([after]) == 1
        assert ledger.total() == counter.messages([after])


def test_no_message_is_kept() -> None:
    class Content(list[Any]):
        """A list that can be watched."""

    for counter in COUNTERS.values():
        content = Content([{"type": "text", "text": "x" * 100}])
        watched = weakref.ref(content)
        text = "a text that nobody else has " * 10
        references = sys.getrefcount(text)
        ledger = TokenLedger(counter)
        ledger.append({"role": "user", "content": content})
        ledger.extend([{"role": "user", "content": text}])
        ledger.resync([{"role": "user", "content": content}, {"role": "user", "content": text}])
        del content
        assert watched() is None
        assert sys.getrefcount(text) == references
        assert len(ledger) == 2


def test_a_cycle_through_the_counting_function_is_collected() -> None:
    class Tokenizer:
        """Holds the ledger that counts with it."""

        ledger: TokenLedger

        def __call__(self, text: str) -> int:
            return len(text)

    tokenizer = Tokenizer()
    tokenizer.ledger = TokenLedger(TokenCounter.from_callable(tokenizer), transcript(1))
    watched = weakref.ref(tokenizer)
    del tokenizer
    gc.collect()
    assert watched() is None


# ------------------------------------------------------------------------------------------ threads, callbacks


@pytest.mark.parametrize("name", [*COUNTERS, "lets others run"])
def test_threads_share_a_ledger(name: str) -> None:
    counter = COUNTERS.get(name) or TokenCounter.from_callable(let_others_run)
    messages = transcript(2)
    ledger = TokenLedger(counter)
    rounds, workers = 20, 6

    def work() -> bool:
        last = 0
        for _ in range(rounds):
            for message in messages[:5]:
                ledger.append(message)
            ledger.extend(messages[5:])
            total = ledger.total()
            if total < last or ledger.tail_within(total // 2) > len(ledger) or not len(ledger.copy()):
                return False
            last = total
        return True

    assert run_all([work] * workers) == [True] * workers
    assert len(ledger) == rounds * workers * len(messages)
    assert sorted(ledger.tokens(index) for index in range(len(ledger))) == sorted(
        rounds * workers * [counter.message(message) for message in messages]
    )
    assert ledger.resync(messages) <= len(messages)
    assert ledger.total() == counter.messages(messages)


def test_threads_change_and_resync_a_ledger() -> None:
    """Whatever the order, the total is the sum of what is there; and in the end `resync` sets it right."""
    messages = transcript(4)
    counter = TokenCounter.from_callable(let_others_run)
    ledger = TokenLedger(counter, messages)

    def work(change: Callable[[], object]) -> list[Any]:
        results = [outcome(change) for _ in range(40)]
        return [result for result in results if isinstance(result, BaseException) and type(result) is not IndexError]

    changes: list[Callable[[], object]] = [
        lambda: ledger.append(messages[1]),
        lambda: ledger.replace(5, messages[2]),
        lambda: ledger.truncate(20),
        lambda: ledger.resync(messages),
        lambda: ledger.resync(messages[::-1]),
        lambda: (ledger.total(), repr(ledger), pickle.dumps(ledger.copy().total())),
    ]
    assert run_all([functools.partial(work, change) for change in changes]) == [[]] * len(changes)
    assert ledger.total() == sum(ledger.tokens(index) for index in range(len(ledger)))
    ledger.resync(messages)
    assert ledger.total() == counter.messages(messages)


def test_a_counting_function_may_use_the_ledger() -> None:
    """It is called while the ledger waits for a count: nothing is locked then, and nothing half done."""
    ledgers: list[TokenLedger] = []
    depth = threading.local()

    def count(text: str) -> int:
        if ledgers and not getattr(depth, "inside", False):
            depth.inside = True
            ledger = ledgers[0]
            ledger.append({"role": "user", "content": "from inside"})
            ledger.replace(-1, {"role": "user", "content": "from within"})
            assert ledger.total() == sum(ledger.tokens(index) for index in range(len(ledger)))
            ledger.tail_within(10)
            ledger.copy()
            ledger.resync([{"role": "user", "content": "hello"}])
            repr(ledger)
            depth.inside = False
        return len(text)

    counter = TokenCounter.from_callable(count, message_overhead=0)
    ledgers.append(TokenLedger(counter))
    ledger = ledgers[0]
    ledger.append({"role": "user", "content": "abc"})
    assert [ledger.tokens(index) for index in range(len(ledger))] == [5, 3]
    ledger.replace(0, {"role": "user", "content": "abcd"})
    assert [ledger.tokens(index) for index in range(len(ledger))] == [4]
    ledger.extend([{"role": "user", "content": "ab"}, {"role": "user", "content": "a"}])
    assert [ledger.tokens(index) for index in range(len(ledger))] == [5, 2, 1]
    ledger.resync([{"role": "user", "content": "x"}, {"role": "user", "content": "xy"}])
    assert [ledger.tokens(index) for index in range(len(ledger))] == [1, 2]


def test_errors_of_a_counting_function_come_through() -> None:
    class OwnError(Exception):
        pass

    def count(text: str) -> int:
        if "bad" in text:
            raise OwnError
        return len(text)

    ledger = TokenLedger(TokenCounter.from_callable(count), talk("U=10 A=10"))
    bad = {"role": "user", "content": "bad"}
    for call in (
        lambda: ledger.append(bad),
        lambda: ledger.replace(0, bad),
        lambda: ledger.extend([*talk("U"), bad]),
        lambda: ledger.resync([*talk("U"), bad]),
    ):
        with pytest.raises(OwnError):
            call()
    assert (len(ledger), ledger.total()) == (2, 28)


def test_a_message_that_its_counting_changes_is_counted_again() -> None:
    message: dict[str, Any] = {"role": "user", "content": "x", "reasoning_content": "y"}

    def count(text: str) -> int:
        if text == "y":
            message["content"] = "changed"
        return len(text)

    ledger = TokenLedger(TokenCounter.from_callable(count), [message])
    assert ledger.resync([message]) == 1
    assert ledger.total() == ledger.counter.message(message)


def in_a_child(ledger: TokenLedger, messages: list[Any], queue: Any) -> None:
    queue.put((ledger.resync(messages), ledger.total()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
def test_a_forked_process_goes_on_with_the_ledger() -> None:
    messages = transcript(2)
    ledger = TokenLedger(COUNTERS["model"], messages)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=in_a_child, args=(ledger, messages, queue))
    child.start()
    assert queue.get() == (0, ledger.total())
    child.join(30)
    assert child.exitcode == 0


def test_pickled_ledgers_and_copies() -> None:
    messages = transcript(2)
    for counter in COUNTERS.values():
        ledger = TokenLedger(counter, messages)
        for again in (pickle.loads(pickle.dumps(ledger)), ledger.copy(), copy.copy(ledger), copy.deepcopy(ledger)):
            assert type(again) is TokenLedger
            assert again.counter == counter
            assert repr(again) == repr(ledger)
            again.append(messages[0])
            assert (len(again), again.total()) == (len(ledger) + 1, counter.messages([*messages, messages[0]]))
        assert len(ledger) == len(messages)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(TokenLedger(TokenCounter.from_callable(lambda text: 1)))
