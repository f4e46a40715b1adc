"""Version 2 of the tables: version 1 with box drawing, blocks and shapes (U+2500 to U+25FF) fitted anew.

    .truth/bin/python tools/estimator/revise.py FOLDER      # which has the tables FAMILY-1.z

The documents of version 1 had next to none of what terminals draw, so it took `────` for more than one token a
character. Here such drawings are generated from a seed, with texts between them, and the cost of each slot of these
characters that occurs in them is fitted as in `fit.py`. All other slots, the registers and the line stay.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import truth
from accuracy_set import Writer
from fit import Document, costs_of
from pack import TABLES, write

from ctxfast.reference.estimating import COSTS, script

SEED = 7
SEEN = 50  # characters of a slot, for it to be replaced
DRAWN_SCRIPT = script(0x2500)


def rules(w: Writer) -> str:
    """Lines between paragraphs."""
    line = w.pick(tuple("────━═▔▁"))
    width = w.pick(("3", "10", "24", "40", "60", "78", "80", "100", "120", "160"))
    return "\n".join(f"{w.sentence()}\n{line * int(width)}" for _ in range(6))


def bordered(w: Writer) -> str:
    """A table."""
    h, v, *corners = tuple(w.pick(("─│┌┬┐├┼┤└┴┘", "━┃┏┳┓┣╋┫┗┻┛", "═║╔╦╗╠╬╣╚╩╝")))
    widths = [6 + w.below(20) for _ in range(2 + w.below(4))]

    def edge(left: str, middle: str, right: str) -> str:
        return left + middle.join(h * (width + 2) for width in widths) + right

    rows = [v + v.join(f" {w.words(1, 1)[:width]:{width}} " for width in widths) + v for _ in range(4 + w.below(6))]
    top, inner, bottom = corners[0:3], corners[3:6], corners[6:9]
    return "\n".join([edge(*top), rows[0], edge(*inner), *rows[1:], edge(*bottom)])


def panel(w: Writer) -> str:
    """A box around text, with or without a title."""
    width = 40 + w.below(90)
    title = w.pick(("", f" {w.words(1, 2)} "))
    lines = [f"│ {w.sentence()[: width - 2]:{width - 2}} │" for _ in range(2 + w.below(5))]
    return "\n".join([f"╭─{title}{'─' * (width - 1 - len(title))}╮", *lines, f"╰{'─' * width}╯"])


def tree(w: Writer) -> str:
    lines = [w.words(1, 1)]
    for _ in range(8 + w.below(20)):
        lines.append("│   " * w.below(3) + w.pick(("├── ", "├── ", "└── ")) + w.words(1, 2, "_") + ".py")
    return "\n".join(lines)


def progress(w: Writer) -> str:
    lines = []
    for _ in range(10):
        done = w.below(31)
        bar = w.pick(("█░", "█▒", "■□", "▓░", "━─"))
        lines.append(f"{w.words(1, 1):12} {bar[0] * done}{bar[1] * (30 - done)} {done * 100 // 30}%")
    return "\n".join(lines)


def bullets(w: Writer) -> str:
    return "\n".join(f"{w.pick(tuple('●○▶▪■◆▼◦'))} {w.sentence()}\n  └ {w.words(2, 6)}" for _ in range(10))


DRAWINGS: list[Callable[[Writer], str]] = [rules, rules, bordered, panel, panel, tree, progress, bullets]


def drawings() -> list[str]:
    writer = Writer(SEED)
    return [draw(writer) for _ in range(40) for draw in DRAWINGS]


def revised(table: bytes, documents: list[Document], texts: list[str]) -> bytes:
    """The table with the costs of these characters' slots."""
    costs = costs_of(documents)
    seen = Counter(
        place
        for document, text in zip(documents, texts, strict=True)
        for place, char in zip(document.places, text, strict=True)
        if script(ord(char)) == DRAWN_SCRIPT
    )
    changed = bytearray(table)
    for place, times in seen.items():
        if times >= SEEN:
            changed[place] = min(255, round(costs[place] * 64))
    if changed[COSTS:] != table[COSTS:]:
        raise ValueError("a register was changed")
    return bytes(changed)


def main() -> None:
    texts = drawings()
    for family in truth.SOURCES:
        starts = truth.load(family)
        table = zlib.decompress((Path(sys.argv[1]) / f"{family}-1.z").read_bytes())
        documents = [Document(text, starts(text)) for text in texts]
        write(revised(table, documents, texts), TABLES / f"{family}-2.z")
    sys.stdout.write(f"{len(texts)} drawings\n")


if __name__ == "__main__":
    main()
