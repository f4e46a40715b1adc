"""JSON Lines as they lie on disks: everything that can be read is read, everything else is named with its line.

A log is written while programs crash, disks fill up and two processes append at once. So lines may be blank, end
in CRLF, begin with a byte order mark, hold several records (`{..}{..}`), hold a record that breaks off with
another one behind it, hold NULs where a file system lost a block; and the last line may be cut. Time is linear in
the size of the file, whatever stands in it.
Where it stops: what a record means is the business of the format's own file.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Damage", "Lines", "decode", "read_jsonl", "read_lines"]

Record = dict[str, Any]


class Damage(NamedTuple):
    """A piece of a file that could not be read."""

    line: int
    """Number of the line in which it begins, from 1."""
    problem: str
    """What is wrong with it."""


@dataclass
class Lines:
    """What a file of JSON Lines holds."""

    records: list[Record] = field(default_factory=list)
    """The objects, in the order of the file."""
    numbers: list[int] = field(default_factory=list)
    """For each record the number of its line, from 1."""
    damaged: list[Damage] = field(default_factory=list)
    """One entry for each piece that could not be read."""
    glued: list[int] = field(default_factory=list)
    """Numbers of lines that held more than one record. Nothing of them is lost."""


def read_jsonl(data: bytes) -> tuple[list[Record], list[Damage]]:
    r"""All JSON objects of a file, and what could not be read.

    >>> read_jsonl(b'{"a": 1}\n{"b": "cut{"c": 2}{"d": 3}\n')
    ([{'a': 1}, {'c': 2}, {'d': 3}], [Damage(line=2, problem="a record breaks off: Expecting ',' delimiter")])
    """
    lines = read_lines(data)
    return lines.records, lines.damaged


def read_lines(data: bytes) -> Lines:
    """The same with the numbers of the lines, and those that hold several records."""
    lines = Lines()
    raw_lines = in_utf8(data).split(b"\n")
    first_keys = functools.cache(lambda: {match[1] for line in raw_lines if (match := FIRST_KEY.match(line))})
    for number, line in enumerate(raw_lines, 1):
        if not line:
            continue
        text, invalid = decode(line)
        records, pieces = len(lines.records), len(lines.damaged)
        read_line(text, number, lines, first_keys)
        if invalid and len(lines.damaged) == pieces:  # else it is part of the damage that is named already
            lines.damaged.append(Damage(number, f"invalid UTF-8 at byte {invalid}, read as U+FFFD"))
        if len(lines.records) > records + 1:
            lines.glued.append(number)
    return lines


def in_utf8(data: bytes) -> bytes:
    """The data in UTF-8: Windows PowerShell redirects output in UTF-16 with a byte order mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data


def decode(data: bytes) -> tuple[str, int]:
    """The text, with U+FFFD for what is no UTF-8, and the number of the first such byte, from 1; 0: none."""
    try:
        return data.decode("utf-8"), 0
    except UnicodeDecodeError as error:
        return data.decode("utf-8", "replace"), error.start + 1


# ------------------------------------------------------------------------------------------------------ one line

GAP = re.compile(r"[ \t\r\n,\ufeff]*")  # what may stand between records: the comma, if it is a list's line
BLANKS = re.compile(r"[ \t\r\n]*")
NULS = re.compile(r"\0+")
OPENING = re.compile(r'\{[ \t\r\n]*"')  # how every record begins
FIRST_KEY = re.compile(rb'[ \t\r,\0\xef\xbb\xbf]*\{[ \t\r]*"([^"\\]*)"')  # of a line

STRICT = json.JSONDecoder()
TOLERANT = json.JSONDecoder(strict=False)  # reads raw control characters in strings, as careless writers leave them


def read_line(text: str, number: int, lines: Lines, first_keys: Callable[[], set[bytes]]) -> None:
    """Append the records of one line and what is wrong with it; `first_keys`: with which keys lines begin."""
    read = (STRICT if "\0" in text else TOLERANT).raw_decode
    finder = None
    position = 0
    while True:
        position = skip(GAP, text, position)
        if position == len(text):
            return
        if text[position] == "\0":
            end = skip(NULS, text, position)
            lines.damaged.append(Damage(number, f"{end - position:,} NUL characters"))
            position = end
            continue
        excerpt = text[position : position + 20]
        try:
            value, end = read(text, position)
        except ValueError as error:
            what = "a record breaks off" if excerpt[0] == "{" else f"no record, but {excerpt!r}"
            problem = f"{what}: {getattr(error, 'msg', error)}"
            end = getattr(error, "pos", position)  # an integer of too many digits has no position
        except RecursionError:
            problem = "a record is nested too deeply"
            end = position
        else:
            if isinstance(value, dict):
                lines.records.append(value)
                lines.numbers.append(number)
                position = end
                continue
            problem = f"no record, but {excerpt!r}"
        lines.damaged.append(Damage(number, problem))
        finder = finder or Finder(text, read, first_keys)
        position = finder.next_record(position + 1, end)


def skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Where a pattern that matches everywhere stops."""
    match = pattern.match(text, position)
    return match.end() if match else position


class Finder:
    """Finds the next whole record behind a damaged one, in time linear in the line.

    A damaged record holds whole objects too, nested ones, which must not be taken for records: see `is_record`.
    """

    def __init__(self, text: str, read: Any, first_keys: Callable[[], set[bytes]]) -> None:
        self.text = text
        self.read = read
        self.first_keys = first_keys
        self.work = 16 * len(text) + 1_000_000  # so many characters failed attempts may read; then the rest is lost

    def next_record(self, position: int, violation: int) -> int:
        """Where the next record from `position` on begins, or the line's end; `violation`: where damage shows."""
        while self.work > 0:
            opening = OPENING.search(self.text, position)
            if opening is None:
                break
            start = opening.start()
            position = start + 1
            try:
                value, end = self.read(self.text, start)
            except ValueError as error:
                # making the error counts the newlines up to its position, so an attempt costs that much
                self.work -= getattr(error, "pos", len(self.text)) + 64
            except RecursionError:
                self.work -= len(self.text)
            else:
                position = end
                if self.is_record(value, start, end, violation):
                    return start
        return len(self.text)

    def is_record(self, value: Record, start: int, end: int, violation: int) -> bool:
        """Whether a whole object is a record, and not one that is nested in the damaged record."""
        if start <= violation < end:
            return True  # JSON breaks off where it begins: the cut lies directly before it
        behind = skip(BLANKS, self.text, end)
        if self.text[behind : behind + 1] in (",", "]", "}"):
            return False
        # an object directly before the damage may be either; records of a file begin alike
        return start > violation or next(iter(value), "").encode("utf-8", "replace") in self.first_keys()
