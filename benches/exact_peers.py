"""Exact counts of real text, ctxfast and other tokenizers beside tiktoken: tables of how many times faster each one is.

    taskset -c 1 python benches/exact_peers.py CORPUS               all peers that are installed, both encodings
    python benches/exact_peers.py CORPUS --only ctxfast --encoding o200k_base --categories rust thai
    python benches/exact_peers.py CORPUS --limits                   limits and memory instead

CORPUS holds `text/CATEGORY.txt` and `short50.jsonl`, a JSON string a line. Peers, each left out if it is not there:
`pip install tiktoken fastokens gigatoken toktok-rs rs-bpe quicktok-v1`. Nothing is downloaded: all that need a
vocabulary get the package's own, and tiktoken compares its hash.

Each peer has a process of its own. It counts slices that neither it nor tiktoken has seen, tiktoken just before it, CPU
time of all threads; the first slice is not timed. A cell is the median of the ratios; `*` marks wrong counts. With
`--warm` tiktoken counts all slices of a category first, so that it does not push the peer's tables out of the
processor's caches before each slice.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import multiprocessing
import os
import random
import string
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "exact"))
sys.path.append(str(ROOT / "python"))  # unless ctxfast is installed

vocabularies: Any = import_module("vocabularies")

CATEGORIES = (
    "prose_en",
    "python",
    "rust",
    "javascript",
    "json",
    "logs",
    "transcripts",
    "chinese",
    "japanese",
    "thai",
    "russian",
    "arabic",
)
SHORT = "50 bytes"
ROUNDS = 7
LONGEST = 512 * 1024  # characters of a slice
STRINGS = 2_000  # short ones of a slice
LIMIT = 8_192  # tokens
FITS = (1_000_000, 4_000_000)  # characters; so many as the second could not fit, whatever they are
TAILS = (1_000_000, 100_000_000)
UNIQUE = 24_000_000  # bytes of words that do not repeat
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

Count = Callable[[str], int]
T = TypeVar("T")


@dataclass(frozen=True)
class Speed:
    """A peer in a category: how many times faster than tiktoken, tiktoken's own MB/s, whether all counts were equal."""

    ratio: float
    tiktoken: float
    equal: bool


# ---------------------------------------------------------------------------------------------------------- peers


def write_vocabulary(name: str, folder: Path) -> None:
    """Under its own name, and under the one that tiktoken looks for before it downloads."""
    file = vocabularies.write(vocabularies.packaged(name))
    for name_of_file in (f"{name}.tiktoken", hashlib.sha1(vocabularies.ADDRESS.format(name).encode()).hexdigest()):
        (folder / name_of_file).write_bytes(file)


def tiktoken(name: str, folder: Path) -> Count:
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    encode = import_module("tiktoken").get_encoding(name).encode_ordinary
    return lambda text: len(encode(text))


def ctxfast(name: str, _: Path) -> Count:
    count: Count = import_module("ctxfast").TokenCounter.exact(name).text
    return count


def fastokens(name: str, folder: Path) -> Count:
    tokenizer = import_module("fastokens").Tokenizer.from_tiktoken(str(folder / f"{name}.tiktoken"), encoding=name)
    encode = tokenizer.encode_batch_flat  # the fastest that it has
    return lambda text: len(encode([text], split_special_tokens=True)[0]) // 4


def gigatoken(name: str, folder: Path) -> Count:
    encode = import_module("gigatoken").Tokenizer.from_tiktoken(folder / f"{name}.tiktoken").encode
    return lambda text: len(encode(text))


def toktok(name: str, _: Path) -> Count:
    count = import_module("toktok").batch_count
    return lambda text: int(count([text], name, 1)[0])


def toktok_private(name: str, _: Path) -> Count:
    """Not its public interface, but what it can do with short texts."""
    count: Count = import_module("toktok")._encoding(name).count
    return count


def quicktok(name: str, _: Path) -> Count:
    count: Count = import_module("quicktok").get_encoding(name).count
    return count


def rs_bpe(name: str, _: Path) -> Count:
    count: Count = getattr(import_module("rs_bpe.bpe").openai, name)().count
    return count


PEERS: dict[str, Callable[[str, Path], Count]] = {
    "ctxfast": ctxfast,
    "fastokens": fastokens,
    "gigatoken": gigatoken,
    "toktok-rs": toktok,
    "toktok-rs, private": toktok_private,
    "quicktok": quicktok,
    "rs-bpe": rs_bpe,
}

# ---------------------------------------------------------------------------------------------------------- speed


def slices(corpus: Path, category: str) -> list[list[str]]:
    """One text each, or short strings that are counted one by one."""
    if category == SHORT:
        lines = (corpus / "short50.jsonl").read_text(encoding="utf-8").splitlines()[: STRINGS * (ROUNDS + 1)]
        strings = [json.loads(line) for line in lines]
        return [strings[start : start + STRINGS] for start in range(0, len(strings), STRINGS)]
    text = (corpus / "text" / f"{category}.txt").read_text(encoding="utf-8")
    size = min(len(text) // (ROUNDS + 1), LONGEST)
    return [[text[start * size : (start + 1) * size]] for start in range(ROUNDS + 1)]


def timed(count: Count, texts: list[str]) -> tuple[float, list[int]]:
    start = time.process_time()
    counts = [count(text) for text in texts]
    return time.process_time() - start, counts


def measure(peer: str, encoding: str, options: argparse.Namespace, folder: Path) -> dict[str, Speed]:
    both = tiktoken(encoding, folder), PEERS[peer](encoding, folder)
    gc.disable()
    found = {}
    for category in options.categories:
        parts = slices(options.corpus, category)
        if options.warm:
            theirs, mine = ([timed(count, texts) for texts in parts] for count in both)
        else:
            turns = [[timed(count, texts) for count in both] for texts in parts]
            theirs, mine = ([turn[who] for turn in turns] for who in (0, 1))
        sizes = [sum(len(text.encode()) for text in texts) for texts in parts]
        found[category] = Speed(
            ratio=median(their[0] / my[0] for their, my in zip(theirs[1:], mine[1:], strict=True)),
            tiktoken=median(size / their[0] / 1e6 for size, their in zip(sizes[1:], theirs[1:], strict=True)),
            equal=all(their[1] == my[1] for their, my in zip(theirs, mine, strict=True)),
        )
    return found


def row(name: str, numbers: dict[str, float], wrong: set[str], digits: int) -> list[str]:
    """A cell for each category, and the geometric mean of those that are text of some length."""
    cells = [f"{number:.{digits}f}{'*' * (category in wrong)}" for category, number in numbers.items()]
    long = [number for category, number in numbers.items() if category != SHORT]
    return [name, *cells, f"{geometric_mean(long):.{digits}f}" if long else ""]


def speeds(options: argparse.Namespace, folder: Path) -> None:
    for encoding in options.encoding:
        found: dict[str, dict[str, Speed]] = {}
        for peer in options.only:
            speed = apart(measure, peer, encoding, options, folder)
            found.update({peer: speed} if speed is not None else {})
        rates = {one: median(all_[one].tiktoken for all_ in found.values()) for one in options.categories if found}
        rows = [row("tiktoken, MB/s", rates, set(), 1)]
        for peer, of in found.items():
            wrong = {category for category, speed in of.items() if not speed.equal}
            rows.append(row(peer, {category: speed.ratio for category, speed in of.items()}, wrong, 2))
        show(f"{encoding}, times tiktoken", [encoding, *options.categories, "mean"], rows)


# --------------------------------------------------------------------------------------------------------- limits


def seconds(function: Callable[[], object]) -> float:
    """CPU time of a call, the median."""
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return median(taken)


def long_text(corpus: Path, size: int) -> str:
    """The end is the same for all sizes."""
    text = (corpus / "text" / "python.txt").read_text(encoding="utf-8")
    return (text * (size // len(text) + 1))[-size:]


def fits(encoding: str, corpus: Path, folder: Path) -> list[list[str]]:
    counter, count = import_module("ctxfast").TokenCounter.exact(encoding), tiktoken(encoding, folder)
    rows = []
    for size in FITS:
        text = long_text(corpus, size)
        if counter.fits(text, LIMIT) != (count(text) <= LIMIT):
            raise AssertionError("the answers differ")
        mine, theirs = seconds(partial(counter.fits, text, LIMIT)), seconds(partial(count, text))
        rows.append([f"fits, {size:,} characters", duration(mine), duration(theirs)])
    return rows


def tails(encoding: str, corpus: Path, folder: Path) -> list[list[str]]:
    counter, count = import_module("ctxfast").TokenCounter.exact(encoding), tiktoken(encoding, folder)
    texts = [long_text(corpus, size) for size in TAILS]
    short, long = (counter.tail(text, LIMIT) for text in texts)
    if short != long or count(short) > LIMIT:
        raise AssertionError("not the tail")
    return [
        [f"tail, {len(text):,} characters", duration(seconds(partial(counter.tail, text, LIMIT))), ""] for text in texts
    ]


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def growth(peer: str, encoding: str, folder: Path) -> float:
    """MiB that a peer holds after words that it never saw again."""
    count = (PEERS | {"tiktoken": tiktoken})[peer](encoding, folder)
    count("warm up text")
    before, done, chance = resident(), 0, random.Random(1)
    while done < UNIQUE:
        words = ("".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 12))) for _ in range(12_000))
        text = " ".join(words)
        count(text)
        done += len(text)
    return (resident() - before) / 2**20


def limits(options: argparse.Namespace, folder: Path) -> None:
    for encoding in options.encoding:
        parts = [apart(question, encoding, options.corpus, folder) for question in (fits, tails)]
        rows = [row for part in parts for row in part or ()]
        show(f"{encoding}, {LIMIT:,} tokens", ["", "ctxfast", "tiktoken, all counted"], rows)
        grown = {peer: apart(growth, peer, encoding, folder) for peer in ["tiktoken", *options.only]}
        rows = [[peer, f"{mib:.1f} MiB"] for peer, mib in grown.items() if mib is not None]
        show(f"{encoding}, memory", ["", f"growth on {UNIQUE // 1_000_000} MB of unique words"], rows)


def duration(taken: float) -> str:
    return f"{taken * 1e3:.3g} ms" if taken > 1e-4 else f"{taken * 1e6:.2g} µs"


# --------------------------------------------------------------------------------------------------------- running


def apart(function: Callable[..., T], *given: Any) -> T | None:
    """What a function says in a process of its own; `None`, and a line of it, if a peer is missing."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, *given).result()
        except ImportError as error:
            print(f"left out: {given[0]}: {error}", file=sys.stderr)
            return None


def show(title: str, head: list[str], rows: list[list[str]]) -> None:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    print(f"\n**{title}**\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Exact counts: ctxfast and its peers beside tiktoken.")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--encoding", nargs="+", choices=vocabularies.PUBLISHED, default=["o200k_base", "cl100k_base"])
    parser.add_argument("--categories", nargs="+", choices=[*CATEGORIES, SHORT], default=[*CATEGORIES, SHORT])
    parser.add_argument("--warm", action="store_true", help="tiktoken first counts all slices of a category")
    parser.add_argument("--limits", action="store_true", help="limits and memory instead of speed")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    with tempfile.TemporaryDirectory() as folder:
        for encoding in options.encoding:
            write_vocabulary(encoding, Path(folder))
        (limits if options.limits else speeds)(options, Path(folder))


if __name__ == "__main__":
    main()
