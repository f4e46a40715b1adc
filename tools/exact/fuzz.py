"""Exact counts against the pinned tiktoken on generated texts, until the time is over or two counts differ.

    python tools/exact/fuzz.py

What it takes from the environment:

    FUZZ_SECONDS   for how long, 60
    FUZZ_SEED      the texts depend on it alone, and on the files
    FUZZ_TEXTS     files and folders of real text, separated by `:`; those of this repository are taken in any case
    FUZZ_KINDS     only these kinds of text, separated by `,`

Each text is counted twice in all three encodings, some as instances of a subclass, or up to random limits. The long
ones are counted by more threads at once than there are memories of pieces. The first difference is made as short as
it can be and printed; the exit status is 1.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import crafted
from pinned import NAMES, Name, tiktoken, tokens

from ctxfast import TokenCounter

ROOT = Path(__file__).parent.parent.parent
BLOCK = 1 << 14
"""Characters that the counter reads at a time, `BLOCK` in `exact.rs`."""

LONGEST = 300_000
UNLOCKED = 8_192
"""Characters from which on a text is counted without the interpreter's lock, so that threads count at once."""

THREADS = 7
"""More than there are memories of pieces."""

TOGETHER = 4
"""Texts that the threads count."""

SCRIPTS = {
    "Latin": (0xC0, 0x250),
    "Greek": (0x370, 0x400),
    "Cyrillic": (0x400, 0x530),
    "Hebrew": (0x590, 0x600),
    "Arabic": (0x600, 0x700),
    "Devanagari": (0x900, 0x980),
    "Indic": (0x980, 0xE00),
    "Thai": (0xE00, 0xE80),
    "Japanese": (0x3040, 0x3100),
    "Han": (0x4E00, 0xA000),
    "Korean": (0xAC00, 0xD7A4),
    "signs": (0x2000, 0x2C00),
    "astral": (0x10000, 0x110000),
}
SUFFIXES = {".md", ".rs", ".py", ".pyi", ".toml", ".json", ".jsonl", ".txt", ".c", ".lock", ".yaml"}


class Text(str):
    """A string that is not exactly a `str`."""


def missing(head: bytes) -> int:
    """How many bytes the last character lacks."""
    for place in range(1, min(4, len(head)) + 1):
        byte = head[-place]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return max(length - place, 0)
        if byte < 0x80:
            break
    return 0


def loose(tail: bytes) -> int:
    """How many bytes are before the first character."""
    return next((place for place, byte in enumerate(tail) if byte & 0xC0 != 0x80), len(tail))


def valid(glued: bytes) -> str:
    return glued.decode("utf-8", "ignore")


@dataclass
class Vocabulary:
    """Tokens, by what they can be glued to."""

    tokens: list[bytes]
    scripts: dict[str, list[bytes]] = field(default_factory=dict)
    by_loose: dict[int, list[bytes]] = field(default_factory=dict)
    sorted_: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sorted_ = sorted(self.tokens)
        self.scripts = {name: [] for name in SCRIPTS}
        self.scripts["ASCII"] = [token for token in self.tokens if token.isascii()]
        for token in self.tokens:
            self.by_loose.setdefault(loose(token), []).append(token)
            if token.isascii():
                continue
            # one that is no whole character belongs to those that it may be the start of
            whole = valid(token) or valid(token + b"\x80" * missing(token))
            here = {name for char in whole for name, (low, high) in SCRIPTS.items() if low <= ord(char) < high}
            for name in here:
                self.scripts[name].append(token)

    def glued(self, draw: Random) -> str:
        """Tokens of a script, some of others between them; what ends in a part of a character is mostly continued."""
        script = self.scripts[draw.choice([*self.scripts])]
        text = b""
        for _ in range(draw.choice([2, 3, 4, 8, 20, 60])):
            token = draw.choice(script if draw.random() < 0.9 else self.tokens)
            lacking = missing(text)
            if lacking and draw.random() < 0.9:
                token = draw.choice(self.by_loose.get(lacking, [b""]))
            elif draw.random() < 0.2:
                cut = draw.randrange(len(token) + 1)
                token = token[:cut] if draw.random() < 0.5 else token[cut:]
            text += token
        return valid(text)

    def chained(self, draw: Random) -> str:
        """Each token begins with what the one before ends with: many ways to merge."""
        script = self.scripts[draw.choice([*self.scripts])]
        text = draw.choice(script)
        for _ in range(draw.choice([1, 2, 4, 12, 40])):
            end = text[-draw.randint(1, min(len(text), 9)) :]
            first = bisect_left(self.sorted_, end)
            last = bisect_left(self.sorted_, end + b"\xff")
            next_ = self.sorted_[draw.randrange(first, last)] if first < last else draw.choice(script)
            text += next_[len(end) :] if first < last else next_
        return valid(text)

    def piece(self, draw: Random) -> str:
        """Letters without anything between them: one piece, often of several thousand bytes."""
        script = self.scripts[draw.choice([*self.scripts])]
        least = draw.choice([16, 31, 200, 1_020, 1_030, 3_000, 9_000])
        some = draw.choice([script, draw.choices(script, k=5), draw.choices(script, k=2), draw.choices(script, k=1)])
        text = ""
        while len(text) < least:
            more = "".join(char for char in valid(b"".join(draw.choices(some, k=50))) if char.isalpha())
            text += more or "a"
        return draw.choice(["", " ", "'", "!"]) + text[:least] + draw.choice(["", " ", "'s", "1", "!"])


@dataclass
class Generator:
    """Makes texts."""

    draw: Random
    files: list[str]
    vocabularies: list[Vocabulary]

    def kinds(self) -> dict[str, tuple[float, Callable[[], str]]]:
        """How often each is made, and how."""
        return {
            **{kind: (share / 10, self.one(make)) for kind, (share, make) in crafted.KINDS.items()},
            "real text": (20, self.real),
            "spliced": (30, self.spliced),
            "mutated": (30, self.mutated),
            "glued tokens": (30, self.glued),
            "chained tokens": (30, self.chained),
            "long pieces": (4, self.piece),
            "long texts": (0.25, self.long),
        }

    def texts(self, only: Sequence[str]) -> Iterator[tuple[str, str]]:
        kinds = {kind: of for kind, of in self.kinds().items() if not only or kind in only}
        shares = [share for share, _ in kinds.values()]
        while True:
            kind = self.draw.choices([*kinds], shares)[0]
            yield kind, kinds[kind][1]()

    def glued(self) -> str:
        return self.draw.choice(self.vocabularies).glued(self.draw)

    def chained(self) -> str:
        return self.draw.choice(self.vocabularies).chained(self.draw)

    def piece(self) -> str:
        return self.draw.choice(self.vocabularies).piece(self.draw)

    def real(self, most: int = 3_000) -> str:
        """A cut of a file; short ones are more frequent."""
        file = self.draw.choice(self.files)
        length = int(5 * (most / 5) ** self.draw.random())
        start = self.draw.randrange(max(len(file) - length, 1))
        return file[start : start + length]

    def short(self) -> str:
        """Any kind of text that is not long."""
        makers = [
            self.real,
            *(self.one(make) for _, make in crafted.KINDS.values()),
            self.glued,
        ]
        return self.draw.choice(makers)()

    def one(self, make: Callable[[Random], str]) -> Callable[[], str]:
        return lambda: make(self.draw)

    def spliced(self) -> str:
        return "".join(self.real(100) for _ in range(self.draw.randint(2, 12)))

    def mutated(self) -> str:
        draw, text = self.draw, list(self.real(400))
        other = [*self.short()] or ["'"]
        for _ in range(draw.randint(1, 12)):
            place = draw.randrange(len(text) + 1)
            change = draw.randrange(6)
            if change == 0:
                del text[place : place + draw.randint(1, 9)]
            elif change == 1:
                start = draw.randrange(len(other))
                text[place:place] = other[start : start + draw.randint(1, 9)]
            elif change == 2:
                text[place:place] = draw.choice(crafted.SOUP)
            elif change == 3:
                text[place : place + 20] = "".join(text[place : place + 20]).swapcase()
            elif change == 4:
                text[place:place] = text[place : place + 3] * draw.randint(1, 12)
            else:
                text[place : place + 2] = draw.choice(crafted.WHITE_SPACE) + draw.choice(crafted.CONTRACTIONS)
        return "".join(text)

    def long(self) -> str:
        """Of one storage width, with something of interest where blocks of characters end."""
        draw = self.draw
        least = int(2_000 * (LONGEST / 2_000) ** draw.random())
        points = draw.choice([0x80, 0x100, 0x10000, 0x110000])
        filler = draw.choice([self.real, self.spliced, self.short, self.seam])
        text = ""
        while len(text) < least:
            behind = BLOCK - len(text) % BLOCK - draw.randrange(40)
            part = narrow("".join(filler() for _ in range(20)), points) or "x"
            if len(part) >= behind > 0:
                part = part[:behind] + narrow(self.seam(), points)
            text += part
        if points > 0x80:
            place = draw.choice([0, len(text), draw.randrange(len(text))])
            text = text[:place] + chr(points - draw.randint(1, 32)) + text[place:]
        return text[:LONGEST]

    def seam(self) -> str:
        """What may be cut wrongly: words, white space, signs, pairs of surrogates; now and then without a border."""
        draw = self.draw
        unit = draw.choice(
            [*crafted.LONG, *crafted.SOUP, *crafted.CONTRACTIONS, "\ud83d\udc4d", "\ud83d", "\n/", "1'", "é"]
        )
        if draw.random() < 0.5:
            return unit * draw.choice([1, 2, 7, 40])
        if draw.random() < 0.9:
            return crafted.some(draw, draw.sample(crafted.SOUP, 3), 60)
        return (unit * draw.choice([3_000, 17_000, 40_000]))[:40_000]


def narrow(text: str, points: int) -> str:
    return "".join(char for char in text if ord(char) < points)


class Difference(Exception):
    """Two counts of a text differ."""

    def __init__(self, name: Name, text: str, how: str) -> None:
        super().__init__(name, text, how)
        self.name, self.text, self.how = name, text, how


class Refused(Exception):
    """tiktoken's engine gave up."""


def expected(name: Name, text: str) -> int:
    try:
        return len(tiktoken(name).encode_ordinary(text))
    except BaseException as error:  # its panics are no `Exception`
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Refused(repr(error)) from error


def check(draw: Random, text: str, counters: dict[Name, TokenCounter]) -> dict[Name, int]:
    """Counts a text in several ways; its right counts. Raises `Difference`."""
    right = {name: expected(name, text) for name in NAMES[:2]}
    right["o200k_harmony"] = right["o200k_base"]  # `check_harmony`
    for name, counter in counters.items():
        all_ = right[name]
        counts = {"first": counter.text(text), "again": counter.text(text)}
        if draw.random() < 0.2:
            counts["a subclass"] = counter.text(Text(text))
        if draw.random() < 0.2:
            counts["in a batch"] = counter.batch([text])[0]
        wrong = [f"{how}: {count}, not {all_}" for how, count in counts.items() if count != all_]
        if draw.random() < 0.3:
            near = draw.choice([0, 1, all_ - 1, all_, all_ + 1, draw.randrange(all_ + 2), draw.randrange(2 * all_ + 9)])
            limit = max(near, 0)
            if (count := counter.count_up_to(text, limit)) != min(all_, limit + 1):
                wrong.append(f"count_up_to {limit}: {count}, of {all_}")
            if counter.fits(text, limit) != (all_ <= limit):
                wrong.append(f"fits {limit}: not {all_ <= limit}, of {all_}")
        if wrong:
            raise Difference(name, text, "; ".join(wrong))
    return right


def check_threads(texts: Sequence[tuple[str, dict[Name, int]]], counters: dict[Name, TokenCounter]) -> None:
    """Fresh threads count all of them at once, each in an order of its own."""
    found: list[Difference] = []
    barrier = threading.Barrier(THREADS)

    def count(first: int) -> None:
        barrier.wait()
        for place in range(len(texts)):
            text, right = texts[(first + place) % len(texts)]
            for name, counter in counters.items():
                if (counted := counter.text(text)) != right[name]:
                    found.append(Difference(name, text, f"among threads: {counted}, not {right[name]}"))

    threads = [threading.Thread(target=count, args=(first,)) for first in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, counter in counters.items():
        counted = counter.batch([text for text, _ in texts], threads=THREADS)
        for (text, right), of_batch in zip(texts, counted, strict=True):
            if of_batch != right[name]:
                found.append(Difference(name, text, f"in a batch: {of_batch}, not {right[name]}"))
    if found:
        raise found[0]


def check_harmony() -> None:
    """Its ordinary tokens are those of `o200k_base`, so one count of tiktoken serves both."""
    one, two = tiktoken("o200k_base"), tiktoken("o200k_harmony")
    if (one._pat_str, one._mergeable_ranks) != (two._pat_str, two._mergeable_ranks):
        raise AssertionError("o200k_harmony is not o200k_base")


def shortest(text: str, differs: Callable[[str], bool]) -> str:
    """Some of the text's characters, which still differ: as few as are found in two minutes."""
    size, end = len(text) // 2, time.monotonic() + 120
    while size and time.monotonic() < end:
        place = 0
        while place < len(text):
            less = text[:place] + text[place + size :]
            if differs(less):
                text = less
            else:
                place += size
        size //= 2
    return text


def differs(name: Name, count: Callable[[str], int]) -> Callable[[str], bool]:
    def ask(text: str) -> bool:
        try:
            return count(text) != expected(name, text)
        except Refused:
            return False

    return ask


def fresh(name: Name) -> Callable[[str], int]:
    """Counts each text in a process of its own, which remembers nothing."""
    code = (
        "import sys; from ctxfast import TokenCounter; "
        "text = sys.stdin.buffer.read().decode('utf-8', 'surrogatepass'); "
        "print(TokenCounter.exact(sys.argv[1]).text(text))"
    )

    def count(text: str) -> int:
        given = text.encode("utf-8", "surrogatepass")
        return int(
            subprocess.run([sys.executable, "-c", code, name], input=given, capture_output=True, check=True).stdout
        )

    return count


def files() -> list[str]:
    """What is in the files of this repository, and in those of `FUZZ_TEXTS`."""
    places = [Path(place) for place in os.environ.get("FUZZ_TEXTS", "").split(os.pathsep) if place]
    found = [file for folder in ("rust", "python", "docs", "tests", "tools") for file in (ROOT / folder).rglob("*")]
    found += [*ROOT.glob("*.md"), *ROOT.glob("*.lock")]
    for place in places:
        found += place.rglob("*") if place.is_dir() else [place]
    texts = [
        file.read_text(encoding="utf-8", errors="surrogateescape")
        for file in sorted(found)
        if file.is_file() and (file.suffix in SUFFIXES or file in places)
    ]
    return [text for text in texts if text]


def main() -> int:
    seconds = float(os.environ.get("FUZZ_SECONDS", 60))
    seed = os.environ.get("FUZZ_SEED") or str(secrets.randbelow(10**9))
    only = [kind for kind in os.environ.get("FUZZ_KINDS", "").split(",") if kind]
    draw = Random(seed)
    print(f"FUZZ_SEED={seed}", flush=True)
    check_harmony()
    counters = {name: TokenCounter.exact(name) for name in NAMES}
    generator = Generator(draw, files(), [Vocabulary(tokens(name)) for name in NAMES[:2]])
    made: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    read = 0
    long: list[tuple[str, dict[Name, int]]] = []
    start = time.monotonic()
    try:
        for kind, text in generator.texts(only):
            if time.monotonic() - start > seconds:
                break
            made[kind] += 1
            read += len(text.encode("utf-8", "surrogatepass"))
            try:
                right = check(draw, text, counters)
            except Refused:
                refused[kind] += 1
                continue
            if len(text) >= UNLOCKED:
                long.append((text, right))
                if len(long) == TOGETHER:
                    check_threads(long, counters)
                    long.clear()
    except Difference as found:
        report(found, counters[found.name], seed, made.total())
        return 1
    finally:
        taken = time.monotonic() - start
    number = made.total()
    print(f"{number:,} texts, {read / 1e6:,.1f} MB in {taken:.0f} s, {number / taken:,.0f} a second: no difference")
    print(", ".join(f"{kind} {count:,}" for kind, count in made.most_common()))
    if refused:
        print(f"tiktoken could not count {refused.total()}: {dict(refused)}")
    return 0


def report(found: Difference, counter: TokenCounter, seed: str, number: int) -> None:
    name, text = found.name, found.text
    print(f"\ntext {number:,} of FUZZ_SEED={seed}, {name}, {len(text):,} characters: {found.how}", flush=True)
    for where, count in (("a fresh process", fresh(name)), ("this process, with what it remembers,", counter.text)):
        if differs(name, count)(text):
            short = shortest(text, differs(name, count))
            print(f"{where} counts {count(short)}, tiktoken {expected(name, short)}: {short!a}")
            return
    print(f"not in a plain count: {text[:10_000]!a}")


if __name__ == "__main__":
    sys.exit(main())
