"""The exact counter: equal to tiktoken on every text, quick to start, small, and never slow or raising."""

from __future__ import annotations

import gc
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal, get_args

import pytest
import unicode_classes
import vocabularies
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken import Encoding
from tiktoken_ext import openai_public

from ctxfast import TokenCounter, fit_messages

Name = Literal["cl100k_base", "o200k_base", "o200k_harmony"]
NAMES: tuple[Name, ...] = get_args(Name)
ROOT = Path(__file__).parent.parent


@cache
def tiktoken(name: str) -> Encoding:
    """The encoding as tiktoken defines it, with the vocabulary of this repository in place of the download."""
    tokens = vocabularies.packaged(name.replace("harmony", "base"))
    ranks = {token: rank for rank, token in enumerate(tokens)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks)
        return Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


def same(text: str) -> None:
    for name in NAMES[:2]:
        expected = len(tiktoken(name).encode_ordinary(text))
        assert TokenCounter.exact(name).text(text) == expected, (name, text)


@pytest.mark.parametrize("name", vocabularies.PUBLISHED)
def test_the_vocabulary_is_the_published_one(name: str) -> None:
    """Checked by its hash."""
    assert len(vocabularies.packaged(name)) in (100_256, 199_998)


def test_parts_are_those_that_merging_finds() -> None:
    tokens = vocabularies.packaged("cl100k_base")
    assert vocabularies.pack(tokens) == vocabularies.pack(vocabularies.read(vocabularies.write(tokens)))
    assert vocabularies.unpack(vocabularies.pack(tokens)) == tokens


def test_unicode_classes_are_tiktoken_s() -> None:
    unicode_classes.check_contractions()
    assert unicode_classes.FILE.read_bytes() == unicode_classes.probe()


WHITE_SPACE = [
    chr(point) for point in (9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C))
]
WHITE_SPACE += [*"\u2028\u2029\u202f\u205f\u3000\ufeff\u180e\0", "\r\n", "  "]
CONTRACTIONS = [
    "'s",
    "'S",
    "'t",
    "'re",
    "'RE",
    "'rE",
    "'ve",
    "'m",
    "'ll",
    "'lL",
    "'d",
    "’s",
    "'ſ",
    "'\u212a",
    "''",
    "'",
    "'l",
]
WORDS = ["don", "I", "HELLO", "Hello", "iPhone", "é", "中", "ส", "1", "_", " ", "\n", ".", "X", "ſ", "K", "!", "//"]
SPECIAL = ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>", "<|start|>", "<|channel|>", "</s>", "[INST]"]
EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👨🏽‍🚀", "🇹🇭", "❤️", "1️⃣", "\u200d", "\ufe0f", "😀", "🫠", "\U000e0067", "™", "█", "─"]
MARKS = [chr(point) for point in range(0x300, 0x1000) if unicodedata.category(chr(point)) in ("Mn", "Mc")]
LETTERS = ["ǅ", "ʰ", "ª", "Ω", "я", "Я", "अ", "ß", "A", "b"]
DIGITS = [*"0123456789", "٣", "Ⅷ", "½", "²", " ", ",", "a"]
SIGNS = list("abcXYZ019 \t\n\r'\"._-/\\!?(){}[]<>,;:=+*&^%$#@~`|sStTrReEvVmMlLdD")
LONG = [
    "a",
    "A",
    " ",
    "\n",
    "\t",
    "\r\n",
    "!",
    "-",
    "=",
    "é",
    "中",
    "ก",
    "ab",
    "aA",
    "\u0301",
    "👍",
    "\0",
    "_",
    "/",
    "' ",
]


def crafted() -> Iterator[str]:
    draw = random.Random(20)

    def some(alphabet: list[str], most: int) -> str:
        return "".join(draw.choices(alphabet, k=draw.randint(1, most)))

    for _ in range(800):
        yield some(CONTRACTIONS + WORDS, 12)
        yield some(WHITE_SPACE * 2 + WORDS, 14)
        yield some(WORDS, 1) + some(WHITE_SPACE, 6)
        yield some(SPECIAL * 2 + WORDS, 6)
        yield some(EMOJI * 3 + WORDS, 20)
        yield some(MARKS[:200] + WORDS * 20, 30)
        yield some(LETTERS * 3 + MARKS[:10] + [*"'sS /\n1"], 24)
        yield some(DIGITS, 24)
        yield some(SIGNS, 80)
    for _ in range(150):
        yield draw.choice(LONG) * draw.randint(20, 3_000) + draw.choice(["", "x", " ", "\n"])
        yield some([chr(point) for point in range(97, 123)], 4_000)
        yield some([*"กขคงจฉ่้ิี", "中", "国", "人"], 2_000)
        yield "".join(chr(draw.choice([draw.randrange(0xD800), draw.randrange(0xE000, 0x110000)])) for _ in range(40))


def test_crafted_texts() -> None:
    for text in crafted():
        same(text)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_any_text(text: str) -> None:
    same(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS + CONTRACTIONS + WHITE_SPACE + EMOJI + SPECIAL + MARKS[:20])).map("".join))
def test_any_mixture(text: str) -> None:
    same(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("a 'sé中👍\ud83d\udc4d\udfff\n")))
def test_lone_surrogates_are_as_in_tiktoken(text: str) -> None:
    same(text)


def test_files_of_this_repository() -> None:
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / "rust").rglob("*.rs")]:
        same(file.read_text())


def test_known_counts() -> None:
    o200k = TokenCounter.exact("o200k_base")
    assert o200k.text("hello world") == 2
    assert o200k.text("<|endoftext|>") == 7
    assert o200k.text("") == 0
    assert o200k.text("\ud83d") == o200k.text("\ufffd")
    assert o200k.text("\ud83d\udc4d") == o200k.text("👍")
    assert (o200k.text("internationa"), o200k.text("international")) == (3, 1)
    assert TokenCounter.exact("o200k_harmony").text("hello world") == 2


@pytest.mark.parametrize("name", NAMES)
def test_limits(name: Name) -> None:
    counter = TokenCounter.exact(name)
    text = "Some words, 12345 numbers; สวัสดี and\n\n  more 🧠.\n" * 30
    tokens = counter.text(text)
    assert counter.fits(text, tokens)
    assert not counter.fits(text, tokens - 1)
    assert not counter.fits(text, 0)
    assert counter.fits(text, 10**12)
    assert [counter.count_up_to(text, tokens + more) for more in (-1, 0, 1)] == [tokens] * 3
    assert [counter.count_up_to(text, most) for most in (0, 1, 10)] == [1, 2, 11]
    assert counter.head("hello 🧠", 2) == "hello "
    for most in (0, 1, 7, 100, tokens):
        for part in (counter.head(text, most), counter.tail(text, most)):
            assert counter.text(part) <= most
        assert text.startswith(counter.head(text, most))
        assert text.endswith(counter.tail(text, most))
    assert counter.head(text, tokens) == counter.tail(text, tokens) == text


def test_messages_have_frames() -> None:
    message = {"role": "user", "content": "hello world"}
    counter = TokenCounter.exact("o200k_base")
    assert counter.message(message) == 2 + 4
    assert counter.messages([message, message]) == 12
    assert TokenCounter.exact("o200k_base", message_overhead=0).messages([message]) == 2
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]}
    assert counter.message(image) == 256 + 4
    fitted = fit_messages([message] * 50, 100, counter=counter)
    assert counter.messages(fitted.messages) <= 100


def test_counters_are_values() -> None:
    for name in NAMES:
        counter = TokenCounter.exact(name)
        assert repr(counter) == f"TokenCounter.exact('{name}')"
        again = pickle.loads(pickle.dumps(counter))
        assert again == counter == eval(repr(counter))
        assert hash(again) == hash(counter)
        assert again.text("hello world") == 2
    assert len({TokenCounter.exact(name) for name in NAMES * 2}) == 3
    assert TokenCounter.exact("o200k_base") != TokenCounter.estimator("o200k")
    other = TokenCounter.exact("o200k_base", message_overhead=3, media_tokens=0)
    assert repr(other) == "TokenCounter.exact('o200k_base', message_overhead=3, media_tokens=0)"
    assert other != TokenCounter.exact("o200k_base")


def test_another_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match=r"encoding: expected one of cl100k_base, .*got 'o200k'"):
        TokenCounter.exact("o200k")  # type: ignore[arg-type]


def test_threads_count_alike() -> None:
    counter = TokenCounter.exact("o200k_base")
    texts = [f"{number} words, and {'x' * (number % 50)}\n" * 400 for number in range(8)]
    expected = [counter.text(text) for text in texts]
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append([counter.text(text) for text in texts])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_counts() -> None:
    code = (
        "import os\nfrom ctxfast import TokenCounter\ncounter = TokenCounter.exact('cl100k_base')\n"
        "counter.text('hello world')\nchild = os.fork()\n"
        "if child == 0: os._exit(counter.text('hello world'))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    assert run(code) == "2"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_it_starts_quickly_offline_and_stays_small() -> None:
    code = """
import resource, socket, time
def refuse(*_): raise AssertionError("a socket")
socket.socket = refuse
from ctxfast import TokenCounter
TokenCounter.picoclaw("4.0").text("hello world")
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
count = TokenCounter.exact("o200k_base").text("hello world")
took, used = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
TokenCounter.exact("o200k_harmony").text("hello world")
shared = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before - used
print(count, took * 1e3, used / 1024, shared / 1024)
"""
    count, took, used, shared = (float(word) for word in run(code).split())
    assert count == 2
    assert took < 50  # ms of CPU time
    assert used < 30  # MiB
    assert shared < 1


def test_memory_does_not_grow_with_unique_words() -> None:
    code = """
import resource
from ctxfast import TokenCounter
counter = TokenCounter.exact("o200k_base")
text = lambda n: " ".join(f"w{i:x}q{i * 7919 % 100003}" for i in range(n, n + 20_000))
counter.text(text(0)); part = text(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for i in range(60): counter.text(text(i * 20_000))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    assert float(run(code)) < 4  # MiB, on 16 MB of words


HOSTILE: dict[str, Callable[[int], str]] = {
    "one letter": lambda size: "a" * size,
    "dashes": lambda size: "-" * size,
    "spaces": lambda size: " " * size,
    "line ends": lambda size: "\n" * size,
    "NUL": lambda size: "\0" * size,
    "two letters": lambda size: "".join(random.Random(size).choices("ab", k=size)),
    "letters": lambda size: "".join(random.Random(size).choices("abcdefghijklmnopqrstuvwxyz", k=size)),
    "dashes and signs": lambda size: "".join(random.Random(size).choices("-=", k=size)),
    "hex": lambda size: "".join(random.Random(size).choices("0123456789abcdef", k=size)),
    "Thai": lambda size: "".join(random.Random(size).choices("กขคงจฉชซ่้ิี", k=size // 3)),
    "Han": lambda size: "".join(chr(random.Random(size + i).randrange(0x4E00, 0x9FA5)) for i in range(size // 3)),
    "emoji": lambda size: "👍" * (size // 4),
    "capitals": lambda size: "A" * size + "'",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_text_is_slow(kind: str) -> None:
    """At most 0.15 s of CPU time for a megabyte of a quiet core; twice that here, where others run as well."""
    for name in NAMES[:2]:
        counter = TokenCounter.exact(name)
        costs = []
        for size in (50_000, 400_000):
            text = HOSTILE[kind](size)
            gc.collect()
            start = time.process_time()
            counter.text(text)
            costs.append((time.process_time() - start) / len(text.encode()) * 1e6)
        assert costs[-1] < 0.3, costs
        assert costs[-1] < max(6 * costs[0], 0.05), costs
