"""Fits the table of a family to documents and the places where its tokens start.

    .truth/bin/python tools/estimator/fit.py FAMILY OUT.z SOURCE...

A source is a file of JSON lines (`text`, and a `weight` if it is not 1) or a folder of text files. The fit counts, it
does not search: the same documents give the same table, byte for byte, in any order.

1. The cost of a slot is the mean number of tokens that start at a character in it. Where few characters were seen it
   is drawn to the mean of its pair (the character before and the character itself), and that to the mean of all.
2. Half of the documents tell how wrong the other half's table is about them. The register of a slot is the mean of
   these errors over the documents that it occurs in; one line through the documents, error by mean register, gives
   the two coefficients of the correction.

A document weighs `weight / sqrt(tokens + 20)` a character: a long one more than a short one, not as much as it is long.
Plain Python: a megabyte takes about ten seconds.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import truth
from pack import pack, write

from ctxfast.reference.estimating import ASCII, COSTS, LINE_END, script, script_or_kind, slots, symbol

PAIRS = 96 * 96 + 40 * 32  # of ASCII: symbols; else: class or script before, and script
DRAWN = 0.5  # characters of an average document that the mean of a pair (or of all) weighs in a slot (or pair)
REGISTERS_DRAWN = 200.0  # likewise, characters without error that each register begins with
LONGEST = 200_000  # characters of a document that are used


class Document:
    """A text, its slots and pairs, and how many tokens start at each of its characters."""

    def __init__(self, text: str, starts: Iterable[int], weight: float = 1.0) -> None:
        self.places = array("I", slots(text))
        self.pairs = array("I", map(pair, [LINE_END, *map(ord, text)], map(ord, text)))
        self.starts = array("d", bytes(8 * len(text)))
        for start in starts:
            self.starts[start] += 1
        self.tokens = sum(self.starts)
        self.usage = weight
        self.digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        self.weight = weight / math.sqrt(self.tokens + 20)

    def __len__(self) -> int:
        return len(self.places)


@cache
def pair(before: int, here: int) -> int:
    """What a slot is drawn to, if it was rarely seen."""
    if here < 128:
        return symbol(before) * 96 + symbol(here)
    return 96 * 96 + script_or_kind(before) * 32 + script(here)


@dataclass
class Means:
    """Sums of weights and of weighted values, by slot or by pair."""

    values: array[float]
    weights: array[float]

    @classmethod
    def of(cls, count: int) -> Means:
        return cls(array("d", bytes(8 * count)), array("d", bytes(8 * count)))

    def drawn(self, place: int, to: float, by: float) -> float:
        return (self.values[place] + by * to) / (self.weights[place] + by)


def fit(documents: Sequence[Document]) -> bytes:
    """The table. Raises `ValueError` for fewer than four documents."""
    if len(documents) < 4:
        raise ValueError(f"expected four documents or more, got {len(documents)}")
    documents = sorted(documents, key=lambda document: document.digest)  # halves of chance, the same each time
    costs = bytes(min(255, round(cost * 64)) for cost in costs_of(documents))
    registers, offset, slope = correction(documents)
    return pack(costs, registers.tobytes(), offset, slope)


def costs_of(documents: Sequence[Document]) -> list[float]:
    """Of each slot, in tokens."""
    slot_means, pair_means = Means.of(COSTS), Means.of(PAIRS)
    pair_of = {place: place >> 4 for place in range(ASCII)}
    for document in documents:
        weight = document.weight
        for place, its_pair, starts in zip(document.places, document.pairs, document.starts, strict=True):
            value = weight * starts
            slot_means.values[place] += value
            slot_means.weights[place] += weight
            pair_means.values[its_pair] += value
            pair_means.weights[its_pair] += weight
            pair_of[place] = its_pair
    by = DRAWN * sum(document.weight for document in documents) / len(documents)
    overall = [
        sum(slot_means.values[part]) / (sum(slot_means.weights[part]) or 1.0)
        for part in (slice(0, ASCII), slice(ASCII, COSTS))
    ]
    costs = []
    for place in range(COSTS):
        mean = overall[place >= ASCII]
        if (known := pair_of.get(place)) is not None:
            mean = slot_means.drawn(place, pair_means.drawn(known, mean, by), by)
        costs.append(mean)
    return costs


def correction(documents: Sequence[Document]) -> tuple[array[int], float, float]:
    """Registers of the ASCII slots in 1/500, and the line's offset and slope."""
    halves = [costs_of(documents[0::2]), costs_of(documents[1::2])]
    errors = []
    for i, document in enumerate(documents):
        other = halves[1 - i % 2]
        predicted = sum(other[place] for place in document.places)
        errors.append(max(-0.4, min(0.4, math.log(max(document.tokens, 0.5) / max(predicted, 1e-9)))))
    registers = registers_of(documents, errors)
    # again halves, other ones: a document's mean register must not know its own error
    apart = [
        registers_of(documents, errors, [i for i in range(len(documents)) if i // 2 % 2 == half]) for half in (0, 1)
    ]
    points = []
    for i, (document, error) in enumerate(zip(documents, errors, strict=True)):
        table = apart[1 - i // 2 % 2]
        mean = sum(table[place] for place in document.places if place < ASCII) / 500 / (len(document) + 100)
        points.append((mean, max(-0.3, min(0.3, error)), document.usage * document.tokens / (document.tokens + 100)))
    return registers, *line(points)


def registers_of(documents: Sequence[Document], errors: Sequence[float], chosen: Sequence[int] = ()) -> array[int]:
    means, total = Means.of(ASCII), 0.0
    chosen = chosen or range(len(documents))
    for i in chosen:
        weight = documents[i].usage / (len(documents[i]) + 200) ** 0.75
        total += weight
        for place in documents[i].places:
            if place < ASCII:
                means.values[place] += weight * errors[i]
                means.weights[place] += weight
    by = REGISTERS_DRAWN * total / len(chosen)
    return array("b", (max(-127, min(127, round(500 * means.drawn(place, 0.0, by)))) for place in range(ASCII)))


def line(points: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Offset and slope of the line through weighted points (x, y, weight); level where all x are equal."""
    total = sum(weight for *_, weight in points)
    mean_x = sum(weight * x for x, _, weight in points) / total
    mean_y = sum(weight * y for _, y, weight in points) / total
    spread = sum(weight * (x - mean_x) ** 2 for x, _, weight in points)
    slope = sum(weight * (x - mean_x) * (y - mean_y) for x, y, weight in points) / spread if spread > 1e-12 else 0.0
    return mean_y - slope * mean_x, slope


def sources(path: Path) -> Iterator[tuple[str, float]]:
    """Texts with their weights."""
    if path.is_file():
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            yield row["text"][:LONGEST], row.get("weight", 1.0)
        return
    for file in sorted(path.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            try:
                yield data.decode("utf-8")[:LONGEST], 1.0
            except UnicodeDecodeError:
                continue


def main() -> None:
    family, out, *paths = sys.argv[1:]
    starts = truth.load(family)
    documents = [Document(text, starts(text), weight) for path in paths for text, weight in sources(Path(path)) if text]
    sys.stdout.write(f"{len(documents):,} documents, {sum(map(len, documents)):,} characters\n")
    write(fit(documents), Path(out))


if __name__ == "__main__":
    main()
