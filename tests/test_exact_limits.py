"""Exact counts that stop: limits, heads, tails, and texts that grow, each against full counts of tiktoken."""

from __future__ import annotations

import asyncio
import copy
import pickle
import random
import threading
import time
from collections.abc import Callable

import crafted
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinned import NAMES, Name, tiktoken

from ctxfast import TextLedger, TokenCounter

PIECES = ["don", "'t", "'ll", " ", "  ", "\n", "\r\n", "Hello", "CamelCase", "ก", "ที่", "中", "国", "。", "é", "🧠"]
PIECES += ["\u0301", "123", "4", "!", "//", "{", "ſ", "\u3000", "\ud83d", "\udc4d", "-" * 30, "internationalisation"]


def texts(seed: int, number: int) -> list[str]:
    draw = random.Random(seed)
    made = ["".join(draw.choices(PIECES, k=draw.randint(0, 60))) for _ in range(number // 2)]
    return made + [text for _, text in crafted.texts(draw, number - len(made))]


def tokens(name: Name, text: str) -> int:
    return len(tiktoken(name).encode_ordinary(text))


@pytest.mark.parametrize("name", NAMES[:2])
def test_limits_heads_and_tails_are_those_of_full_counts(name: Name) -> None:
    """12 questions about each of 900 texts: 10,800 for each encoding."""
    counter = TokenCounter.exact(name)
    draw = random.Random(name)
    for text in texts(3, 900):
        everything = tokens(name, text)
        for limit in (*draw.choices(range(everything + 2), k=2), everything):
            assert counter.fits(text, limit) == (everything <= limit)
            assert counter.count_up_to(text, limit) == min(everything, limit + 1)
            head, tail = counter.head(text, limit), counter.tail(text, limit)
            assert text.startswith(head)
            assert text.endswith(tail)
            assert max(tokens(name, head), tokens(name, tail)) <= limit
            if everything <= limit:
                assert head == tail == text


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_head_has_all_whole_characters_of_the_first_tokens(name: Name) -> None:
    """Unless a cut there makes more tokens, which is rare."""
    counter, encoding = TokenCounter.exact(name), tiktoken(name)
    fewer = 0
    for text in texts(4, 600):
        ids = encoding.encode_ordinary(text)
        limit = len(ids) // 2
        expected = encoding.decode_bytes(ids[:limit]).decode(errors="ignore")
        shown = counter.head(text, limit).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        longest = encoding.decode_bytes(encoding.encode_ordinary(text)).decode()
        assert longest.startswith(shown)
        if len(shown) < len(expected):
            fewer += 1
            assert tokens(name, expected) > limit
    assert fewer < 30


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=12))
def test_a_growing_text_has_the_count_of_its_parts_joined(name: Name, parts: list[str]) -> None:
    ledger, text = TextLedger(TokenCounter.exact(name)), ""
    for part in parts:
        ledger.append(part)
        text += part
        assert ledger.total() == tokens(name, text)


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_long_text_may_grow_in_any_steps(name: Name) -> None:
    """20,000 steps."""
    draw = random.Random(5)
    for text in ["".join(draw.choices(PIECES, k=5_000)), "".join(texts(6, 200))]:
        ledger, place, step = TextLedger(TokenCounter.exact(name), ""), 0, 0
        while place < len(text):
            size = draw.choice([1, 1, 2, 5, 40])
            ledger.append(text[place : place + size])
            place, step = place + size, step + 1
            if step % 500 == 0:
                assert ledger.total() == tokens(name, text[:place])
        assert ledger.total() == tokens(name, text)


@pytest.mark.parametrize(
    "counter",
    [
        TokenCounter.default(),
        TokenCounter.picoclaw("4.0"),
        TokenCounter.from_callable(len),
        TokenCounter.exact("cl100k_base"),
    ],
)
def test_every_counter_has_growing_texts(counter: TokenCounter) -> None:
    ledger = TextLedger(counter, "Some words")
    assert ledger.counter == counter
    for part in (", and more", "", "'s of them\n" * 300):
        ledger.append(part)
    text = "Some words, and more" + "'s of them\n" * 300
    assert ledger.total() == ledger.total() == counter.text(text)
    assert repr(ledger) == f"<TextLedger of {counter.text(text)} tokens by {counter!r}>"
    ledger.append("!")
    assert ledger.total() == counter.text(text + "!")
    ledger.reset()
    assert ledger.total() == counter.text("")
    for refuse in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            refuse(ledger)
    with pytest.raises(TypeError, match="str"):
        ledger.append(b"bytes")  # type: ignore[arg-type]


def test_what_is_appended_while_a_total_is_counted_stays() -> None:
    def count(text: str) -> int:
        if text == "abc":
            ledger.reset()
            for part in ("wide", "wider", "widest"):
                ledger.append(part)
        return len(text)

    ledger = TextLedger(TokenCounter.from_callable(count))
    for part in "abc":
        ledger.append(part)
    assert ledger.total() == 3
    assert ledger.total() == 15


def test_threads_may_share_a_growing_text() -> None:
    ledger = TextLedger(TokenCounter.exact("o200k_base"))
    line = "a line of some words\n"

    def work() -> None:
        for number in range(200):
            ledger.append(line * (1 + number % 50 * 10))
            ledger.total()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = 4 * sum(1 + number % 50 * 10 for number in range(200))
    assert ledger.total() == TokenCounter.exact("o200k_base").text(line * lines)


def test_an_event_loop_goes_on_while_a_text_is_counted() -> None:
    counter = TokenCounter.exact("o200k_base")
    text = "".join(random.Random(8).choices("abcdefgh ", k=2_000_000))
    expected = counter.text(text)

    async def main() -> float:
        longest, last, done = 0.0, time.perf_counter(), asyncio.Event()

        async def tick() -> None:
            nonlocal longest, last
            while not done.is_set():
                await asyncio.sleep(0.001)
                now = time.perf_counter()
                longest, last = max(longest, now - last), now

        ticking = asyncio.create_task(tick())
        await asyncio.sleep(0.01)
        assert await counter.atext(text) == expected
        assert await counter.abatch([text, "hello world"]) == [expected, 2]
        done.set()
        await ticking
        return longest

    start = time.perf_counter()
    longest = asyncio.run(main())
    assert longest < max(0.05, (time.perf_counter() - start) / 4)


def test_a_message_is_read_up_to_the_limit() -> None:
    counter = TokenCounter.exact("o200k_base")
    text = "".join(random.Random(9).choices("abcdefgh ", k=1_000_000))
    message = {"role": "user", "content": text}
    assert not counter.fits(message, 1_000)
    assert not counter.fits([message], 1_000)
    assert counter.fits([message], counter([message]))
    assert not counter.fits([message], counter([message]) - 1)
    fastest = {}
    questions: dict[str, Callable[[], object]] = {
        "fits": lambda: counter.fits([message], 1_000),
        "all": lambda: counter([message]),
    }
    for name, question in questions.items():
        times = []
        for _ in range(5):
            start = time.process_time()
            question()
            times.append(time.process_time() - start)
        fastest[name] = min(times)
    assert fastest["fits"] < fastest["all"] / 10


def test_an_estimate_is_rounded_once_at_a_limit_too() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "Aa"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    for model in ("gemini-2.5-pro", "claude-opus-4-7", "gpt-5"):
        counter = TokenCounter.for_model(model, exact=False, safety=0.5)
        tokens = counter.messages(messages)
        assert [counter.fits(messages, limit) for limit in range(tokens + 2)] == [False] * tokens + [True] * 2


def test_a_tail_takes_as_long_whatever_is_before_it() -> None:
    counter = TokenCounter.exact("o200k_base")
    short = "Some words, 12345 numbers; and\n\n  a few more signs!\n" * 5_000
    tails = {}
    for text in (short, short * 40):
        times = []
        for _ in range(7):
            start = time.process_time()
            assert counter.text(counter.tail(text, 2_000)) <= 2_000
            times.append(time.process_time() - start)
        tails[len(text)] = min(times)
    assert tails[len(short * 40)] < 3 * tails[len(short)]
