"""A file as text, read no further than asked: its encoding, blocks of whole lines, line numbers, samples.

Where it stops: what the lines mean is the business of `outlines`, what should be read of them that of `file_reading`.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from errno import EINVAL, EISDIR
from types import TracebackType
from typing import NamedTuple

from ctxfast._core import TokenCounter

__all__ = ["Block", "Index", "Stamp", "TextFile", "estimate", "index_lines", "tokens_of_file"]

BLOCK = 1 << 18  # bytes that are read at once
LEAST = 16  # bytes that are looked at in any case: a character
SNIFF = 8_192  # bytes in which a NUL means that a file is no text
COUNTED = 1 << 16  # characters of a text up to which all of it is counted
SAMPLES, SAMPLE = 32, 2_048  # pieces, evenly spread, of which the tokens of a longer one are estimated; their size

TEXT_BYTES = bytes({0, 8, 9, 10, 12, 13, 27, *range(32, 127), *range(128, 256)})

KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Stamp(NamedTuple):
    """By what a file is known again: if one of these differs, it has changed."""

    size: int
    """Bytes."""
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Of what `os.stat` says."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


class Block(NamedTuple):
    """A piece of a file: whole lines, or a part of a line that is longer than a block."""

    line: int
    """Number of the line in which it begins, from 1."""
    start: int
    """Its first byte, from 0."""
    raw: bytes
    text: str
    ends: bool
    """Whether it ends where a line ends, or with the file."""


class TextFile:
    """An open file. A context manager; nothing is read behind the size that the file had when it was opened."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens it and looks at its first bytes.

        Raises `OSError`: missing files, directories (`IsADirectoryError`), links in a circle, FIFOs and devices, which
        are not waited for.
        """
        self.path = os.fsdecode(path)
        refuse_special(self.path, os.stat(self.path))  # before it is opened: some devices act on that
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self.descriptor = os.open(self.path, flags)
        try:
            status = os.fstat(self.descriptor)
            refuse_special(self.path, status)  # it may be another file by now
            self.stamp = Stamp.of(status)
            self.size = status.st_size
            self.encoding, self.begin, self.binary = encoding_of(self.read(0, SNIFF))
        except BaseException:
            os.close(self.descriptor)
            raise
        self.width = 2 if self.encoding.startswith("utf-16") else 1

    def __enter__(self) -> TextFile:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        os.close(self.descriptor)

    @property
    def changed(self) -> bool:
        """Whether it has changed since it was opened, or another file has its name now."""
        try:
            return Stamp.of(os.fstat(self.descriptor)) != self.stamp or Stamp.of(os.stat(self.path)) != self.stamp
        except OSError:
            return True

    def read(self, start: int, stop: int) -> bytes:
        """Bytes of the file; fewer if it has become shorter."""
        stop = min(stop, self.size)
        pieces = []
        os.lseek(self.descriptor, start, os.SEEK_SET)
        while start < stop:
            piece = os.read(self.descriptor, min(stop - start, 1 << 24))
            if not piece:
                break
            pieces.append(piece)
            start += len(piece)
        return b"".join(pieces)

    def text(self, start: int, stop: int) -> str:
        """Bytes of the file as text; U+FFFD for what is none."""
        return self.decode(self.read(start, stop))

    def decode(self, raw: bytes) -> str:
        """Bytes as text."""
        return raw.decode(self.encoding, "replace")

    def encoded_length(self, text: str) -> int:
        """Bytes of a text of this file, if it held no invalid ones."""
        return len(text.encode(self.encoding, "surrogatepass"))

    def blocks(self, limit: int | None = None) -> Iterator[Block]:
        """The file from its start, at most `limit` bytes of it, cut at the ends of lines."""
        start, line = self.begin, 1
        end = self.size if limit is None else min(self.size, self.begin + max(limit, LEAST))
        rest = b""  # read already, the beginning of a line
        while start < end:
            raw = rest + self.read(start + len(rest), min(start + BLOCK, end))
            if len(raw) == len(rest) and start + len(rest) < end:
                return  # it has become shorter
            cut = len(raw) if start + len(raw) >= self.size else self.last_end(raw)
            ends = cut > 0
            if not ends:
                cut = self.whole(raw)
                if not cut:
                    return  # the limit falls into a character
            block, rest = raw[:cut], raw[cut:]
            text = self.decode(block)
            yield Block(line, start, block, text, ends)
            line += text.count("\n")
            start += len(block)
            if start + len(rest) >= end:
                return

    def line_sizes(self, raw: bytes) -> list[int]:
        """Bytes of each line of a piece, ends included."""
        if self.width == 1:
            parts = [len(part) + 1 for part in raw.split(b"\n")]
            return [*parts[:-1], *([parts[-1] - 1] if parts[-1] > 1 else [])]
        lines = self.decode(raw).split("\n")
        sizes = [self.encoded_length(line) + 2 for line in lines[:-1]]
        return [*sizes, *([len(raw) - sum(sizes)] if lines[-1] else [])]

    def whole_character(self, place: int) -> int:
        """The place, or the next one at which a character begins."""
        if self.width == 2:
            place += (self.begin - place) % 2
            unit = self.read(place, place + 2)
            return place + 2 if len(unit) == 2 and 0xDC <= unit[self.encoding.endswith("le")] <= 0xDF else place
        raw = self.read(place, place + 4)
        behind = len(raw) if len(raw) < 4 else 0  # the end of the file, or no character at all
        return place + next((skip for skip, byte in enumerate(raw) if byte & 0xC0 != 0x80), behind)

    def character_before(self, place: int) -> int:
        """The place, or the last one before it at which a character begins."""
        if self.width == 2:
            place -= (place - self.begin) % 2
            unit = self.read(place, place + 2)
            return place - 2 if len(unit) == 2 and 0xDC <= unit[self.encoding.endswith("le")] <= 0xDF else place
        raw = self.read(max(self.begin, place - 3), place + 1)
        return place - next((back for back, byte in enumerate(reversed(raw)) if byte & 0xC0 != 0x80), 0)

    def last_end(self, raw: bytes) -> int:
        """Behind the last end of a line; 0: there is none."""
        if self.width == 1:
            return raw.rfind(b"\n") + 1
        cut = len(raw) - len(raw) % 2
        return cut - self.encoded_length(self.decode(raw[:cut]).rpartition("\n")[2])

    def whole(self, raw: bytes) -> int:
        """How much of a piece of a line can be cut off without cutting a character in two."""
        if self.width == 2:
            cut = len(raw) - len(raw) % 2
            unit = raw[cut - 2 : cut] if cut else b""
            return cut - 2 if unit and 0xD8 <= unit[self.encoding.endswith("le")] <= 0xDB else cut
        for back, byte in enumerate(raw[:-4:-1], 1):
            if byte >= 0xC0:  # the first byte of a character
                return len(raw) - back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else len(raw)
            if byte < 0x80:
                break
        return len(raw)


def refuse_special(path: str, status: os.stat_result) -> None:
    """Raises `OSError` for what is no regular file."""
    if stat.S_ISREG(status.st_mode):
        return
    what = next((name for test, name in KINDS if test(status.st_mode)), "of an unknown kind")
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, "Expected a file, got a directory", path)
    raise OSError(EINVAL, f"Expected a regular file, got {what}", path)


def encoding_of(head: bytes) -> tuple[str, int, str | None]:
    """The encoding by the first bytes of a file, how many of them are a mark for it, and why it is no text."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)) and len(head) % 4 == 0:
        return "utf-8", 0, "UTF-32"
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8", 3, "NUL bytes" if b"\0" in head else None
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16-le" if head[0] == 0xFF else "utf-16-be", 2, None
    if b"\0" not in head:
        return "utf-8", 0, None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    for encoding, most, least in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if len(head) >= 8 and most > 0.7 * half and least == 0 and no_controls(head.decode(encoding, "ignore")):
            return encoding, 0, None
    if head.count(0) < 0.3 * len(head) and not head.translate(None, TEXT_BYTES):
        return "utf-8", 0, None  # a log in which a file system has lost a block
    return "utf-8", 0, "NUL bytes"


def no_controls(text: str) -> bool:
    """Whether a text has no characters that no text has."""
    return all(char >= " " or ord(char) in TEXT_BYTES for char in text)


# ------------------------------------------------------------------------------------------------------------ tokens


def estimate(text: str, counter: TokenCounter, limit: int | None = None) -> int:
    """Tokens of a text: counted up to 65,536 characters, of a longer one estimated from pieces of it.

    With a `limit`, what is above it is never said to be within it.
    """
    if len(text) <= COUNTED:
        return counter.text(text)
    step = (len(text) - SAMPLE) / (SAMPLES - 1)
    pieces = [text[int(number * step) : int(number * step) + SAMPLE] for number in range(SAMPLES)]
    tokens = round(sum(map(counter.text, pieces)) * len(text) / (SAMPLES * SAMPLE))
    if limit is not None and tokens <= limit and not counter.fits(text, limit):
        return limit + 1
    return tokens


def tokens_of_file(
    file: TextFile, counter: TokenCounter, start: int | None = None, stop: int | None = None
) -> tuple[int, bool]:
    """Tokens of a file, or of the bytes from `start` up to `stop`, and whether they are estimated from samples."""
    start = file.begin if start is None else start
    stop = file.size if stop is None else stop
    size = stop - start
    if size <= COUNTED:
        return counter.text(file.text(start, stop)), False
    tokens = read = 0
    step = (size - SAMPLE) / (SAMPLES - 1)
    for number in range(SAMPLES):
        place = start + int(number * step)
        place -= (place - file.begin) % file.width
        raw = file.read(place, place + SAMPLE)
        tokens += counter.text(raw.decode(file.encoding, "ignore"))  # ends of characters that were cut
        read += len(raw)
    return round(tokens * size / read) if read else 0, True


# ------------------------------------------------------------------------------------------------------------- lines


@dataclass(frozen=True)
class Index:
    """Where the lines of a file are."""

    every: int
    marks: tuple[int, ...]
    """The bytes at which the lines 1, 1 + every, 1 + 2 every, ... begin, as far as the file was looked at."""
    seen: int
    """The byte up to which it was looked at: where a line ends, but for `inside`."""
    seen_lines: int
    """Lines up to there."""
    lines: int
    """Lines of the file."""
    complete: bool
    """Whether it was looked at to its end; otherwise `lines` is estimated."""
    inside: bool
    """Whether that ended inside a line, which is longer than what was looked at."""
    invalid: int | None
    """The first byte that is no text in the file's encoding, if one was seen."""

    def start_of(self, file: TextFile, line: int) -> int:
        """The byte at which a line begins: at most `seen`."""
        if line > self.seen_lines:
            return self.seen
        mark = min((line - 1) // self.every, len(self.marks) - 1)
        start = self.marks[mark]
        stop = self.marks[mark + 1] if mark + 1 < len(self.marks) else self.seen
        skip = line - 1 - mark * self.every
        return start if skip <= 0 else start + behind_line(file, file.read(start, stop), skip)


def index_lines(file: TextFile, every: int, limit: int) -> Iterator[Block | Index]:
    """The blocks of a file, at most `limit` bytes of it, and behind them where its lines are."""
    marks, seen, breaks, invalid = [file.begin], file.begin, 0, None
    open_line = False
    for block in file.blocks(limit):
        yield block
        if invalid is None and "\ufffd" in block.text:
            invalid = first_invalid(file, block)
        seen = block.start + len(block.raw)
        after = breaks + block.text.count("\n")
        if len(marks) * every <= after:
            sizes, done, place = file.line_sizes(block.raw), 0, block.start
            while len(marks) * every <= after:
                until = len(marks) * every - breaks
                place += sum(sizes[done:until])
                done = until
                if place >= file.size:
                    break
                marks.append(place)
        breaks, open_line = after, bool(block.text) and not block.text.endswith("\n")
    complete = seen >= file.size
    seen_lines = breaks + open_line
    while len(marks) > 1 and marks[-1] >= seen:
        marks.pop()
    lines = seen_lines if complete else seen_lines + lines_in_rest(file, seen)
    yield Index(every, tuple(marks), seen, seen_lines, lines, complete, not complete and open_line, invalid)


def behind_line(file: TextFile, raw: bytes, number: int) -> int:
    """Bytes of so many lines at the start of a piece of the file; all of it if it has fewer."""
    if file.width == 1:
        parts = raw.split(b"\n", number)
        return len(raw) - len(parts[-1]) if len(parts) > number else len(raw)
    parts_of_text = file.decode(raw).split("\n", number)
    return len(raw) - file.encoded_length(parts_of_text[-1]) if len(parts_of_text) > number else len(raw)


def lines_in_rest(file: TextFile, start: int) -> int:
    """Lines behind a byte, estimated from samples."""
    size, read, breaks = file.size - start, 0, 0
    for number in range(SAMPLES):
        place = start + size * number // SAMPLES
        raw = file.read(place - (place - file.begin) % file.width, place + 8 * SAMPLE)
        read += len(raw)
        breaks += file.decode(raw).count("\n")
    return max(1, round(breaks * size / read)) if read else 0


def first_invalid(file: TextFile, block: Block) -> int | None:
    """The first byte of a block that is no text; `None` if the text has U+FFFD of its own."""
    try:
        block.raw.decode(file.encoding)
    except UnicodeDecodeError as error:
        return block.start + error.start
    return None
