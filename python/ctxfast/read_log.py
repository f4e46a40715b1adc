"""What has been read in a session, and whether it is still what the file says: `ReadLog`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ctxfast.policy import TOOL_KINDS
from ctxfast.text_files import Stamp, TextFile

__all__ = ["ReadEntry", "ReadLog", "ReadRange"]

HASHED = 16 << 20  # bytes of a file that are read to see whether lines are still the same
TRUSTED = 1 << 20  # bytes of a file from which on its size and its time of change are believed
NUMBERED = re.compile(r"^ *([0-9]{1,9})(?:[\t→]|[|:] ?)")  # how tools number the lines that they show


@dataclass(frozen=True)
class ReadRange:
    """Lines that were read."""

    first: int
    """From 1."""
    last: int
    """Inclusive."""
    digest: str
    """SHA-256 of the lines, without their ends."""
    summary: str = ""
    """What was found in them, if somebody has said it."""
    place: str = ""
    """Where they were read: `messages[12]`; empty if it was not in a transcript."""


@dataclass(frozen=True)
class ReadEntry:
    """What has been read of one file."""

    path: str
    """Absolute, links resolved."""
    ranges: tuple[ReadRange, ...]
    size: int | None = None
    """Bytes of the file when it was read last; `None`: not known, as in a transcript."""
    mtime_ns: int | None = None
    """When it had been changed, as `os.stat` says it; `None`: not known."""


@dataclass
class ReadLog:
    """Which lines of which files have been read, with a hash of each, so that nothing is read twice in vain.

    `record` after reading; `from_messages` takes it out of a transcript. `plan_read(..., log=log)` answers with the
    earlier summary what has not changed. `root` is where relative paths begin (default: the working directory).

    Not safe to be used by several threads at once.
    """

    root: str = ""
    entries: dict[str, ReadEntry] = field(default_factory=dict)
    """By absolute path."""

    def key(self, path: str | os.PathLike[str]) -> str:
        """The absolute path by which a file is known here."""
        return os.path.realpath(os.path.join(self.root or os.curdir, os.path.expanduser(os.fspath(path))))

    def get(self, path: str | os.PathLike[str]) -> ReadEntry | None:
        """What is known of a file, be it still true or not."""
        return self.entries.get(self.key(path))

    def record(
        self, path: str | os.PathLike[str], first: int = 1, last: int | None = None, *, summary: str = ""
    ) -> ReadEntry:
        """Remember that these lines have been read just now (`last=None`: to the end), and what they say.

        Earlier ranges of the file are kept if the file still says the same there. Raises `OSError` if it cannot be
        read, `ValueError` for lines that are none.
        """
        if first < 1 or (last is not None and last < first):
            raise ValueError(f"expected lines from 1 on, the last not before the first, got {first} to {last}")
        key = self.key(path)
        with TextFile(key) as file:
            digest, end = digest_of_lines(file, first, last)
            stamp = file.stamp
        new = ReadRange(first, end, digest, summary)
        kept = [old for old in self.unchanged(key) if (old.first, old.last) != (first, end)]
        entry = ReadEntry(key, tuple(sorted([*kept, new], key=by_line)), stamp.size, stamp.mtime_ns)
        self.entries[key] = entry
        return entry

    def unchanged(self, path: str | os.PathLike[str]) -> tuple[ReadRange, ...]:
        """The ranges that were read of a file and that it still says, in the order of their lines.

        Files above 1 MiB are believed to be the same if their size and their time of change are; of others, and where
        these differ, the lines are hashed again, up to 16 MiB of the file. A file that cannot be read any more has
        none.
        """
        entry = self.get(path)
        if entry is None:
            return ()
        try:
            with TextFile(entry.path) as file:
                same = Stamp(entry.size or 0, entry.mtime_ns or 0, 0) == file.stamp._replace(inode=0)
                if same and file.size > TRUSTED:
                    return entry.ranges
                return tuple(old for old in entry.ranges if says_the_same(file, old))
        except OSError:
            return ()

    def covering(self, path: str | os.PathLike[str], first: int, last: int) -> tuple[ReadRange, ...]:
        """Unchanged ranges that hold all lines from `first` to `last` between them; none if they do not."""
        needed, chosen = first, []
        for known in self.unchanged(path):
            if known.last < needed:
                continue
            if known.first > needed:
                return ()
            chosen.append(known)
            needed = known.last + 1
            if needed > last:
                return tuple(chosen)
        return ()

    def forget(self, path: str | os.PathLike[str]) -> None:
        """Take a file out, as when its text has left the conversation and there is no summary of it."""
        self.entries.pop(self.key(path), None)

    @classmethod
    def from_messages(cls, messages: Sequence[Any], *, root: str | os.PathLike[str] = "") -> ReadLog:
        """What a transcript has read: the outputs of reading tools and of `cat`, `head`, `sed -n` that are still there.

        Outputs that have become stubs are left out, as are failed reads and files that were edited later without
        error. Numbers that a tool has put in front of its lines say which they are. Whether a file still says the same
        is seen when it is asked for, by its lines. Raises what reading the messages raises (`MessageTypeError`,
        `MessageValueError`).
        """
        log = cls(os.fspath(root))
        for path, known in reads_of(messages):
            key = log.key(path)
            if known is None:
                log.entries.pop(key, None)
                continue
            before = log.entries.get(key, ReadEntry(key, ()))
            others = [old for old in before.ranges if (old.first, old.last) != (known.first, known.last)]
            log.entries[key] = replace(before, ranges=tuple(sorted([*others, known], key=by_line)))
        return log

    def to_dict(self) -> dict[str, Any]:
        """The log as plain data, fit for JSON."""
        return {"version": 1, "root": self.root, "entries": [asdict(entry) for entry in self.entries.values()]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReadLog:
        """The log of which `to_dict` gave this. Raises `ValueError` for anything else."""
        try:
            if data["version"] != 1:
                raise ValueError(f"version: expected 1, got {data['version']!r}")
            log = cls(checked(data["root"], str))
            for item in data["entries"]:
                ranges = tuple(range_from(known) for known in item["ranges"])
                size, time = (None if item[name] is None else checked(item[name], int) for name in ("size", "mtime_ns"))
                entry = ReadEntry(checked(item["path"], str), tuple(sorted(ranges, key=by_line)), size, time)
                log.entries[entry.path] = entry
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"expected what `ReadLog.to_dict` gives: {error!r}") from None
        return log

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, as JSON; the file is replaced whole. Raises `OSError`."""
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            draft.write_text(json.dumps(self.to_dict()), encoding="utf-8", errors="strict")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ReadLog:
        """Read it from a file that `save` has written. Raises `OSError`, or `ValueError` for another file."""
        return cls.from_dict(json.loads(Path(path).read_text(encoding="utf-8")))


def by_line(known: ReadRange) -> tuple[int, int]:
    """The order of ranges: those that begin first, of these the longest."""
    return known.first, -known.last


def checked(value: Any, kind: type) -> Any:
    """A value of plain data; `TypeError` if it is of another kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def range_from(data: Mapping[str, Any]) -> ReadRange:
    """A range from plain data."""
    first, last = checked(data["first"], int), checked(data["last"], int)
    texts = [checked(data[name], str) for name in ("digest", "summary", "place")]
    return ReadRange(first, last, *texts)


# ------------------------------------------------------------------------------------------------------------ hashing


def digest_of_lines(file: TextFile, first: int, last: int | None) -> tuple[str, int]:
    """The hash of some lines of a file, of its first 16 MiB, and the last of them."""
    digest, end, opened = hashlib.sha256(), first - 1, False
    for block in file.blocks(HASHED):
        lines = block.text.split("\n")
        if not lines[-1] and len(lines) > 1:
            lines.pop()  # what is behind the end of the last line
        for number, line in enumerate(lines, block.line):
            if number < first:
                continue
            if last is not None and number > last:
                return digest.hexdigest(), end
            if number > end:
                digest.update(b"\n" if opened else b"")
                opened, end = True, number
            digest.update(line.rstrip("\r").encode("utf-8", "surrogatepass"))
    return digest.hexdigest(), end


def digest_of(lines: Sequence[str]) -> str:
    """The same of lines that are at hand."""
    text = "\n".join(line.rstrip("\r") for line in lines)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def says_the_same(file: TextFile, known: ReadRange) -> bool:
    """Whether a file still has these lines."""
    return bool(known.digest) and digest_of_lines(file, known.first, known.last) == (known.digest, known.last)


# -------------------------------------------------------------------------------------------------------- transcripts


def reads_of(messages: Sequence[Any]) -> Iterator[tuple[str, ReadRange | None]]:
    """The files that were read, in order, and which lines; `None`: it was changed."""
    from ctxfast.reference.pruning import text_of
    from ctxfast.reference.reading import read_message
    from ctxfast.reference.structure import answered_calls, table
    from ctxfast.reference.stubs import body, is_stub
    from ctxfast.reference.tools import about, begins_as_failure, exit_code

    readings = [read_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    calls = answered_calls(table(messages))
    for index, reading in enumerate(readings):
        for place, holder in enumerate(reading.outputs):
            if (index, place) not in calls:
                continue
            caller, at = calls[index, place]
            name, arguments = readings[caller].called[at]
            call = about(name if isinstance(name, str) else "", arguments, TOOL_KINDS)
            text, attachments = text_of(holder.get("content"))
            failed = holder.get("is_error") is True or holder.get("status") == "error" or begins_as_failure(text)
            if failed or (call.kind == "command" and exit_code(text, of_files=True) not in (None, 0)):
                continue
            for path in call.edits:
                yield path, None
            if call.read is not None and text and not attachments and not is_stub(text):
                yield call.read[0], replace(lines_shown(body(text), call.read[1]), place=f"messages[{index}]")


def lines_shown(text: str, first: int) -> ReadRange:
    """Which lines of a file an output shows: as it numbers them, or from the first one on that was asked for."""
    lines = text.removesuffix("\n").split("\n")
    shown: list[str] = []
    start = 0
    for line in lines:
        match = NUMBERED.match(line)
        if match and (not shown or int(match[1]) == start + len(shown)):
            start = start if shown else int(match[1])
            shown.append(line[match.end() :])
        elif shown:
            break  # what a tool says behind the lines
    if start >= 1 and 2 * len(shown) >= len(lines):
        return ReadRange(start, start + len(shown) - 1, digest_of(shown))
    return ReadRange(first, first + len(lines) - 1, digest_of(lines))
