"""The exact counter: equal to tiktoken on every text, quick to start, small, and never slow or raising.

`make fuzz` compares with tiktoken for longer, on more kinds of text.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import crafted
import pytest
import unicode_classes
import vocabularies
from hypothesis import given
from hypothesis import strategies as st
from pinned import NAMES, Name, tiktoken

from ctxfast import TokenCounter, fit_messages

ROOT = Path(__file__).parent.parent


def same(text: str, where: object = None) -> None:
    for name in NAMES[:2]:
        expected = len(tiktoken(name).encode_ordinary(text))
        assert TokenCounter.exact(name).text(text) == expected, (name, where, text[:10_000])


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


def test_crafted_texts(thorough: bool) -> None:
    for kind, text in crafted.texts(random.Random(20), 36_000 if thorough else 6_000):
        same(text, kind)


@given(st.text())
def test_any_text(text: str) -> None:
    same(text)


@given(st.lists(st.sampled_from(crafted.SOUP + crafted.WHITE_SPACE + crafted.EMOJI + crafted.SPECIAL)).map("".join))
def test_any_mixture(text: str) -> None:
    same(text)


@given(st.text(st.sampled_from("a 'sé中👍\ud83d\udc4d\udfff\n")))
def test_lone_surrogates_are_as_in_tiktoken(text: str) -> None:
    same(text)


def test_files_of_this_repository() -> None:
    for file in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / "rust").rglob("*.rs")]:
        same(file.read_text())


def test_real_sessions(shared: Path, thorough: bool) -> None:
    """Whole files, raw: 1 MB of them, or 10."""
    folder = shared / "transcripts"
    if not folder.is_dir():
        pytest.skip("no transcripts among the shared data")
    files = [file for file in sorted(folder.rglob("*.json*")) if file.is_file()]
    random.Random(30).shuffle(files)
    left = 10_000_000 if thorough else 1_000_000
    for file in files:
        text = file.read_bytes()[: left // 8].decode(errors="replace")
        same(text, file.name)
        left -= len(text.encode())
        if left < 100_000:
            break


@pytest.mark.parametrize("folder", ["text", "adversarial"])
def test_a_corpus(folder: str, thorough: bool) -> None:
    """The texts of the benchmarks' corpus, in the directory that `CTXFAST_CORPUS` names."""
    files = sorted((Path(os.environ.get("CTXFAST_CORPUS", "")) / folder).glob("*.txt"))
    if "CTXFAST_CORPUS" not in os.environ or not files:
        pytest.skip("no corpus: set CTXFAST_CORPUS to its directory")
    for file in files:
        text = file.read_text(encoding="utf-8")
        same(text if thorough else text[:100_000], file.name)


def test_a_long_piece_is_counted_beside_short_ones() -> None:
    """Which wait to be merged in turn, while the long one is merged."""
    for number, blanks in enumerate((" " * 15_235, "\t" + " " * 15_235, "\t" * 9 + " " * 15_235)):
        same(f";\n//wordlyqz{'abc'[number]} {blanks}")


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
    "Han": lambda size: "".join(map(chr, random.Random(size).choices(range(0x4E00, 0x9FA5), k=size // 3))),
    "emoji": lambda size: "👍" * (size // 4),
    "capitals": lambda size: "A" * size + "'",
    "runs of full stops": lambda size: ("." * 2_033 + "a=") * (size // 2_035),
    "runs of spaces": lambda size: (" " * 1_223 + "\t") * (size // 1_224),
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
