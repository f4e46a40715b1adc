"""How to read a file without filling the window: `plan_read` says which lines, and what they cost in tokens.

Where it stops: a plan is made from what the file is now; nothing is put into a conversation. `ReadLog` remembers what
has been read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from ctxfast._core import TokenCounter
from ctxfast.budget import ContextBudget
from ctxfast.errors import BudgetError, FileChangedError
from ctxfast.outlines import (
    Entry,
    FileKind,
    JsonEntry,
    json_entries,
    kind_of_file,
    name_of,
    outliner,
    record_keys,
)
from ctxfast.read_log import ReadEntry, ReadLog, ReadRange
from ctxfast.text_files import Block, Index, Stamp, TextFile, estimate, index_lines, tokens_of_file

__all__ = [
    "Choice",
    "ReadEntry",
    "ReadGoal",
    "ReadLog",
    "ReadPlan",
    "ReadRange",
    "ReadStep",
    "StepKind",
    "plan_read",
]

ReadGoal = Literal["structure", "section", "all", "tail"]
"""What is wanted of a file."""

StepKind = Literal["head", "outline", "section", "match", "all", "chunk", "rest", "tail", "reuse"]
"""What a step reads."""

T = TypeVar("T")

HEAD = 50  # lines that show what a file is
TAIL = 50  # lines at its end
RECORDS = 3  # records of JSON Lines that show what they are
CHUNK_LINES = 500  # lines from which on a file is large, and of a chunk of it
CHUNK_TOKENS = 10_000  # tokens of a chunk: as many of the newest tool outputs `prune_tool_outputs` protects
OUTLINE_TOKENS = 2_000  # tokens of an outline
STEPS = 64  # chunks that are planned one by one
MATCHES = 200  # matches that are looked at
AROUND = (5, 20)  # lines before and behind a match
AROUND_BYTES = 1_000  # bytes before and behind a match in a line that is too long
SCANNED = 8 << 20  # bytes of a file that are looked at
MEMBERS = 5_000  # members of JSON that are kept
NAMES = 5  # other sections that are named


class ReadStep(NamedTuple):
    """One thing to read, in order."""

    kind: StepKind
    unit: Literal["lines", "bytes"]
    """What `offset` and `limit` count. Bytes: where lines are too long or where nobody has counted them."""
    offset: int
    """The first line, from 1, or the first byte, from 0."""
    limit: int | None
    """How many; `None`: to the end of the file."""
    tokens: int
    """What it costs."""
    why: str
    start: int
    """The first byte of the file that it reads."""
    stop: int
    """The byte behind the last one."""
    text: str = ""
    """What it says, if that is not in the file like this: an outline, an earlier summary."""

    @property
    def last(self) -> int | None:
        """The last line, or the last byte; `None`: to the end."""
        return None if self.limit is None else self.offset + self.limit - 1

    def __str__(self) -> str:
        """One line."""
        where = f"{self.unit} {self.offset:,} to {'the end' if self.last is None else f'{self.last:,}'}"
        return f"{self.kind:8}{'' if self.text else where:26}~{self.tokens:,} tokens  {self.why}".rstrip()


class Choice(NamedTuple):
    """Another way to read the file, and what it costs."""

    goal: ReadGoal
    tokens: int
    """In all; of a file that is read in chunks, all of them."""
    fits: bool
    """Whether so many tokens are left."""


@dataclass(frozen=True)
class ReadPlan:
    """What `plan_read` proposes. Frozen; plain data but for `read`. Numbers are tokens of the counter in use."""

    path: str
    goal: ReadGoal
    kind: FileKind | Literal["binary"]
    """What the file is."""
    size: int
    """Bytes."""
    lines: int | None
    """Lines; `None`: it is no text."""
    lines_estimated: bool
    """Whether they were not counted: only the first 8 MiB (`scan_bytes`) are."""
    whole: int
    """Tokens of the whole file; of large files estimated from samples."""
    room: int | None
    """Tokens that are left for it; `None`: not known, or not asked."""
    steps: tuple[ReadStep, ...]
    """What to read, in this order. Empty if there is nothing to read, or no room for it."""
    found: bool
    """Whether the section was found, if one was asked for."""
    outline: tuple[Entry, ...]
    """Headings, definitions or keys, as far as the file was looked at."""
    choices: tuple[Choice, ...]
    """What the goals would cost, the cheapest first."""
    notes: tuple[str, ...]
    """What was not looked at, what is only estimated, what is odd about the file."""
    stamp: Stamp
    encoding: str
    """`utf-8`, `utf-16-le` or `utf-16-be`."""

    @property
    def tokens(self) -> int:
        """All steps together."""
        return sum(step.tokens for step in self.steps)

    @property
    def peak(self) -> int:
        """What must fit at once: the largest chunk, if each is summarised before the next one is read; else all."""
        if any(step.kind == "chunk" for step in self.steps):
            return max(step.tokens for step in self.steps if step.kind != "rest")
        return self.tokens

    @property
    def fits(self) -> bool:
        """Whether there is something to read and so many tokens are left."""
        return bool(self.steps) and (self.room is None or self.peak <= self.room)

    def read(self, *steps: ReadStep) -> Iterator[str]:
        """The text of these steps (default: of all), one by one, read when it is asked for.

        Raises `FileChangedError` (an `OSError`) if the file is not the same any more as when the plan was made, other
        `OSError`s if it cannot be read.
        """
        for step in steps or self.steps:
            if step.text:
                yield step.text
                continue
            with TextFile(self.path) as file:
                if file.stamp != self.stamp:
                    raise FileChangedError(self.path)
                text = file.read(step.start, step.stop).decode(self.encoding, "replace")
                if file.changed:
                    raise FileChangedError(self.path)
            yield text

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data, fit for JSON."""
        rows = {name: [row._asdict() for row in getattr(self, name)] for name in ("steps", "outline", "choices")}
        sums = {"tokens": self.tokens, "peak": self.peak, "fits": self.fits}
        return {**vars(self), **sums, **rows, "notes": list(self.notes), "stamp": self.stamp._asdict()}

    def __str__(self) -> str:
        """A few lines: the file, the steps, what else could be read, and what to know of it."""
        lines = "" if self.lines is None else f"{'about ' if self.lines_estimated else ''}{self.lines:,} lines, "
        tokens = "" if self.kind == "binary" else f", ~{self.whole:,} tokens"
        result = [f"{self.path}: {self.kind}, {lines}{self.size:,} bytes{tokens}"]
        if self.room is not None:
            result.append(f"room for {self.room:,} tokens")
        result += [f"  {step}" for step in self.steps] or ["  nothing to read"]
        others = [choice for choice in self.choices if choice.goal != self.goal]
        if others:
            words = [f"{choice.goal} ~{choice.tokens:,}{'' if choice.fits else ' (no room)'}" for choice in others]
            result.append(f"otherwise: {', '.join(words)}")
        return "\n".join([*result, *(f"note: {note}" for note in self.notes)])


def plan_read(
    path: str | os.PathLike[str],
    goal: ReadGoal = "structure",
    *,
    section: str | int | None = None,
    query: str | re.Pattern[str] | None = None,
    room: int | ContextBudget | None = None,
    used: float | None = None,
    log: ReadLog | None = None,
    counter: TokenCounter | None = None,
    chunk_lines: int = CHUNK_LINES,
    scan_bytes: int = SCANNED,
) -> ReadPlan:
    r"""What to read of a file for a goal, in which pieces, and how many tokens each costs against the room left.

    - `"structure"`: the first 50 lines and an outline (headings of Markdown, definitions of code); of JSON the keys of
      the outermost object with their sizes, of JSON Lines the first records and what they hold.
    - `"section"`: only the section. `section` names it: a heading, a definition, a key of JSON (in a list its number),
      exactly, or else by its beginning, or else by a part of it. `query` is searched for instead, a text (upper and
      lower case are the same) or a pattern for one line: the lines around each match, of JSON Lines the records that
      match. A `section` that is no heading is searched for, too. It is found when the plan is made; nothing else need
      be searched. Giving one of them means this goal.
    - `"all"`: the whole file, if it has at most 500 lines (`chunk_lines`) and 10,000 tokens; else in chunks of so many
      at most, each to be summarised before the next one is read. After 64 chunks the rest is one step.
    - `"tail"`: the last 50 lines, as of a log; fewer if there is no room for them.

    `room` is the number of tokens left, or a `ContextBudget` with `used`, the tokens of the prompt so far. No step has
    more than that, nor have all together that are not chunks; if nothing fits, there are no steps. What `log` knows and
    is unchanged comes as a step `"reuse"` with the earlier summary instead; without a summary it is still in the
    conversation and costs nothing.

    Only the first 8 MiB (`scan_bytes`) are looked at, and of what lies behind them samples; `notes` says so. Files that
    are no text give a plan without steps. Text may be UTF-8 or UTF-16, invalid bytes are read as U+FFFD. Tokens are of
    the file's text, without the line numbers that a tool may put in front.

    Raises `OSError` for what cannot be read (a missing file, a directory, a FIFO, a circle of links), `BudgetError` for
    a room that is no number of tokens, `TypeError` and `ValueError` for other settings that mean nothing.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.md"
    >>> _ = path.write_text("# Plan\nShip it.\n\n## Risks\nNone known.\n\n## Costs\nTwo days.\n")
    >>> plan = plan_read(path, section="risks")
    >>> plan.steps[0].offset, plan.steps[0].limit, list(plan.read())
    (4, 3, ['## Risks\nNone known.\n\n'])
    """
    if goal not in get_args(ReadGoal):
        raise ValueError(f"goal: expected one of {', '.join(map(repr, get_args(ReadGoal)))}, got {goal!r}")
    if section is not None or query is not None:
        if goal not in ("structure", "section"):
            raise ValueError(f"goal: expected 'section' where a section or a query is given, got {goal!r}")
        goal = "section"
    elif goal == "section":
        raise ValueError("goal: a 'section' needs `section`, its name, or `query`, what to search for")
    if section is not None and query is not None:
        raise ValueError("section, query: expected one of them, got both")
    if isinstance(section, bool) or not isinstance(section, (str, int, type(None))):
        raise TypeError(f"section: expected a name or a number, got `{type(section).__name__}`")
    if not isinstance(query, (str, re.Pattern, type(None))):
        raise TypeError(f"query: expected a text or a pattern of texts, got `{type(query).__name__}`")
    if (query is not None and not query) or (isinstance(section, str) and not section.strip()):
        raise ValueError("section, query: expected something to look for, got an empty text")
    if isinstance(query, re.Pattern) and not isinstance(query.pattern, str):
        raise TypeError("query: expected a pattern of texts, got one of bytes")
    for name, value in (("chunk_lines", chunk_lines), ("scan_bytes", scan_bytes)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name}: expected a whole number, got {value!r}")
        if value < 1:
            raise ValueError(f"{name}: expected 1 or more, got {value!r}")
    left = tokens_left(room, used)
    for attempt in range(2):
        with TextFile(path) as file:
            plan = Planning(file, goal, section, query, left, log, counter, chunk_lines, scan_bytes).plan()
            if not file.changed:
                return plan
        if attempt:
            return replace(plan, notes=(*plan.notes, "the file is being changed while it is looked at"))
    raise AssertionError  # both attempts return


def tokens_left(room: int | ContextBudget | None, used: float | None) -> int | None:
    """Tokens that are left; `None`: not known."""
    if isinstance(room, ContextBudget):
        if used is None:
            raise TypeError("used: expected the tokens of the prompt so far beside a ContextBudget, got None")
        return room.room(used)
    if used is not None:
        raise TypeError("used: expected a ContextBudget as `room` beside it")
    if room is None:
        return None
    if isinstance(room, bool) or not isinstance(room, int):
        raise TypeError(f"room: expected a number of tokens or a ContextBudget, got {room!r}")
    if room < 0:
        raise BudgetError(f"room: expected 0 tokens or more, got {room!r}")
    return room


class NoRoom(Exception):
    """Not even the least of it fits."""


class Match(NamedTuple):
    """A place where something was found."""

    line: int
    byte: int


class Span(NamedTuple):
    """A part of the file."""

    start: int
    stop: int
    line: int | None
    """Its first line; `None`: not known."""
    lines: int | None
    """How many lines it has, all of them whole; `None`: not known, or parts of lines."""


@dataclass
class Planning:
    """One call of `plan_read`."""

    file: TextFile
    goal: ReadGoal
    section: str | int | None
    query: str | re.Pattern[str] | None
    room: int | None
    log: ReadLog | None
    given: TokenCounter | None
    chunk_lines: int
    scan_bytes: int
    notes: list[str] = field(default_factory=list)
    found: bool = True

    def plan(self) -> ReadPlan:
        """Looks at the file and chooses."""
        file = self.file
        self.counter = self.given or TokenCounter.default()
        if file.binary is not None:
            note = f"no text ({file.binary}): it cannot be read in pieces"
            return self.result("binary", None, 0, (), (), [note])
        if file.size <= file.begin:
            return self.result("text", None, 0, (), (), ["the file is empty"])
        self.kind = kind_of_file(file.path, file.text(file.begin, min(file.size, 1 << 16)))
        if self.kind == "json" and file.width > 1:
            self.kind = "text"
            self.notes.append("JSON in UTF-16: its keys are not looked for")
        self.collector = outliner(self.kind, file.path)
        self.matches: list[Match] = []
        self.more_matches = 0
        self.index = self.look()
        self.whole, sampled = tokens_of_file(file, self.counter)
        if sampled:
            self.notes.append("the tokens of the whole file are estimated from samples")
        if not self.index.complete:
            seen = f"looked at the first {self.index.seen:,} of {file.size:,} bytes"
            self.notes.append(f"{seen}: what lies behind them is not in the outline, nor searched")
        if self.index.invalid is not None:
            self.notes.append(f"invalid {file.encoding.upper()} from byte {self.index.invalid:,} on, read as U+FFFD")
        self.members: tuple[JsonEntry, ...] = ()
        if self.kind == "json":
            self.members = self.find_members()
        entries = self.collector.entries() if self.collector else tuple(map(entry_of, self.members))
        if self.collector is not None and self.collector.left_out:
            self.notes.append(f"{self.collector.left_out:,} more entries are not in the outline")
        self.entries = entries
        steps = self.steps(self.goal)
        notes, self.notes = self.notes, []  # what is said of the other choices is of no interest
        choices = self.choices(steps)
        return self.result(self.kind, self.index, self.whole, self.with_log(steps), choices, notes)

    def result(
        self,
        kind: FileKind | Literal["binary"],
        index: Index | None,
        whole: int,
        steps: tuple[ReadStep, ...],
        choices: tuple[Choice, ...],
        notes: Sequence[str],
    ) -> ReadPlan:
        """The plan."""
        return ReadPlan(
            path=os.path.abspath(self.file.path),
            goal=self.goal,
            kind=kind,
            size=self.file.size,
            lines=index.lines if index else None if kind == "binary" else 0,
            lines_estimated=index is not None and not index.complete,
            whole=whole,
            room=self.room,
            steps=steps,
            found=self.found and (self.goal != "section" or index is not None),
            outline=self.entries if index else (),
            choices=choices,
            notes=tuple(dict.fromkeys(notes)),
            stamp=self.file.stamp,
            encoding=self.file.encoding,
        )

    # ------------------------------------------------------------------------------------------------ looking

    def look(self) -> Index:
        """One pass over the beginning of the file: where its lines are, its outline, what matches."""
        wanted = self.query
        if wanted is None and isinstance(self.section, str):
            wanted = self.section
        pattern = re.compile(re.escape(wanted), re.IGNORECASE) if isinstance(wanted, str) else wanted
        for piece in index_lines(self.file, self.chunk_lines, self.scan_bytes):
            if isinstance(piece, Index):
                return piece
            if self.collector is not None:
                self.collector.feed(piece)
            if pattern is not None:
                self.search(pattern, piece)
        raise AssertionError  # the last piece is the index

    def search(self, pattern: re.Pattern[str], block: Block) -> None:
        """What matches in a block, one match for each line; in a part of a line each of them."""
        text, line, before = block.text, block.line, 0
        place, end = 0, len(text)
        while place <= end:
            match = pattern.search(text, place)
            if match is None:
                return
            at = match.start()
            line += text.count("\n", before, at)
            before = at
            stop = text.find("\n", at)
            stop = end if stop < 0 else stop
            if at == end and text.endswith("\n"):
                return  # behind the last line
            if len(self.matches) >= MATCHES:
                self.more_matches += 1
            else:
                byte = block.start + len(text[:at].encode(self.file.encoding, "replace"))
                self.matches.append(Match(line, byte))
            place = stop + 1 if block.ends else max(match.end(), at + AROUND_BYTES)

    def find_members(self) -> tuple[JsonEntry, ...]:
        """The members of a JSON file, as far as it was looked at."""
        wanted = str(self.section) if self.section is not None else None
        begin = self.file.begin
        found = list(json_entries(self.file.read(begin, self.index.seen), MEMBERS + 1, wanted))
        if len(found) > MEMBERS:
            self.notes.append(f"only the first {MEMBERS:,} members are in the outline")
            found = [*found[:MEMBERS], *(entry for entry in found[MEMBERS:] if entry.key == wanted)]
        return tuple(entry._replace(start=entry.start + begin, stop=entry.stop + begin) for entry in found)

    # ------------------------------------------------------------------------------------------------ choosing

    def steps(self, goal: ReadGoal) -> tuple[ReadStep, ...]:
        """What to read for a goal."""
        try:
            if goal == "structure":
                return self.structure(self.room)
            if goal == "tail":
                return self.tail()
            return self.all() if goal == "all" else self.of_section()
        except NoRoom:
            self.notes.append(f"nothing of it fits {self.room:,} tokens")
            return ()

    def choices(self, chosen: tuple[ReadStep, ...]) -> tuple[Choice, ...]:
        """What the goals cost."""
        known = {self.goal: sum(step.tokens for step in chosen)} if chosen else {}
        known["all"] = known.get("all", self.whole)
        for goal in ("structure", "tail"):
            if goal not in known:
                steps = self.steps(goal)
                if steps:
                    known[goal] = sum(step.tokens for step in steps)
        listed = [Choice(goal, tokens, self.room is None or tokens <= self.room) for goal, tokens in known.items()]
        return tuple(sorted(listed, key=lambda choice: choice.tokens))

    def structure(self, room: int | None) -> tuple[ReadStep, ...]:
        """The first lines, as far as there is room for them, and an outline."""
        steps = []
        if not (self.kind == "json" and self.members):
            lines = RECORDS if self.kind == "jsonl" else HEAD
            span = self.lines(1, min(lines, self.index.seen_lines))
            most = CHUNK_TOKENS if room is None else min(CHUNK_TOKENS, max(room // 2, room - OUTLINE_TOKENS))
            head = next(self.pieces(span, "head", "", most))
            of_lines = head.unit == "lines" and head.limit is not None
            why = (
                f"the first {self.counted(head.limit or 0)}" if of_lines else "the beginning of a line that is too long"
            )
            steps.append(head._replace(why=why))
        outline = self.outline_step(None if room is None else room - sum(step.tokens for step in steps))
        return (*steps, *([outline] if outline else []))

    def outline_step(self, room: int | None) -> ReadStep | None:
        """The outline as a text of its own: of many entries those that lie highest."""
        limit = OUTLINE_TOKENS if room is None else min(room, OUTLINE_TOKENS)
        if self.kind == "jsonl":
            head = self.file.text(self.file.begin, min(self.file.size, 1 << 16)).split("\n", 1)[0]
            rows = [(1, f"each record: {keys}")] if (keys := record_keys(head)) else []
            why = "what the first record holds"
        else:
            rows = list(map(self.row, self.members)) if self.members else list(map(row_of, self.entries))
            why = f"{len(rows):,} {'members with their bytes' if self.members else 'headings or definitions'}"
        shown, left_out = rows, 0
        while shown:
            levels = sorted({level for level, _ in shown})
            text = "\n".join(row for _, row in shown) + (f"\n… and {left_out:,} more" if left_out else "")
            tokens = self.counter.text(text)
            if tokens <= limit:
                why = f"{why}, {left_out:,} of them left out" if left_out else why
                return ReadStep("outline", "bytes", 0, 0, tokens, why, 0, 0, text)
            if len(levels) > 1 and sum(level < levels[-1] for level, _ in shown) * 4 >= len(shown):
                shown = [row for row in shown if row[0] < levels[-1]]
            else:
                keep = min(len(shown) - 1, len(shown) * limit // tokens)
                shown = shown[:keep]
            left_out = len(rows) - len(shown)
        return None

    def row(self, member: JsonEntry) -> tuple[int, str]:
        """A member of JSON in the outline."""
        where = f"line {member.line}" if member.whole_lines else f"byte {member.start}"
        return 1, f"{member.key} ({where}, {member.stop - member.start:,} bytes)"

    def all(self) -> tuple[ReadStep, ...]:
        """The whole file at once, or in chunks."""
        span = Span(self.file.begin, self.file.size, 1, self.index.lines if self.index.complete else None)
        if self.index.complete and self.index.lines <= self.chunk_lines:
            tokens = estimate(self.file.text(span.start, span.stop), self.counter, self.cap)
            if tokens <= self.cap:
                return (self.step("all", span, tokens, "a small file"),)
        return self.chunks(
            self.blocks_of_lines(), self.file.size, "a large file: summarise each chunk before the next one"
        )

    @property
    def cap(self) -> int:
        """Tokens of a chunk at most."""
        return smaller(self.room, CHUNK_TOKENS)

    def blocks_of_lines(self) -> Iterator[Span]:
        """What was looked at, in pieces of `chunk_lines` lines."""
        index = self.index
        for number, start in enumerate(index.marks):
            line = 1 + number * index.every
            last = number + 1 == len(index.marks)
            stop = index.seen if last else index.marks[number + 1]
            lines = index.every
            if last:
                lines = index.seen_lines - line + 1
            yield Span(start, stop, line, None if last and index.inside else lines)

    def chunks(self, spans: Iterator[Span], stop: int, why: str) -> tuple[ReadStep, ...]:
        """Parts of the file in pieces that have room, and what is left of it up to `stop` in one."""
        steps: list[ReadStep] = []
        for span in spans:
            for step in self.pieces(span, "chunk", "", self.cap):
                if len(steps) == STEPS:
                    return (*self.numbered(steps, why), self.rest(step.start, stop, steps[-1]))
                steps.append(step)
        if steps[-1].stop < stop:
            return (*self.numbered(steps, why), self.rest(steps[-1].stop, stop, steps[-1]))
        return self.numbered(steps, why)

    def numbered(self, steps: Sequence[ReadStep], why: str) -> tuple[ReadStep, ...]:
        """Chunks that say which of how many they are."""
        return tuple(
            step._replace(why=f"{number} of {len(steps)}{f', {why}' if number == 1 else ''}")
            for number, step in enumerate(steps, 1)
        )

    def rest(self, start: int, stop: int, before: ReadStep) -> ReadStep:
        """What is left of the file, or of a section."""
        tokens, _ = tokens_of_file(self.file, self.counter, start, stop)
        why = "the rest, too much to be read: search it, or ask for a section"
        at_line = before.unit == "lines" and self.file.text(start - self.file.width, start) == "\n"
        if at_line and before.last is not None and stop == self.file.size:
            return ReadStep("rest", "lines", before.last + 1, None, tokens, why, start, stop)
        return ReadStep("rest", "bytes", start, stop - start, tokens, why, start, stop)

    def tail(self) -> tuple[ReadStep, ...]:
        """The last lines."""
        file, index = self.file, self.index
        lines = TAIL
        start = self.tail_start(lines)
        text = file.text(start, file.size)
        while (tokens := estimate(text, self.counter, self.cap)) > self.cap:
            lines = min(lines, text.count("\n") + (not text.endswith("\n")))
            if lines <= 1:
                return (self.end_of_line(start),)
            lines = max(1, min(lines - 1, lines * self.cap // tokens))
            start = self.tail_start(lines)
            text = file.text(start, file.size)
        count = text.count("\n") + (not text.endswith("\n"))
        at_line = start == file.begin or file.text(start - file.width, start) == "\n"
        known = index.complete and at_line
        span = Span(start, file.size, index.lines - count + 1 if known else None, count if known else None)
        return (self.step("tail", span, tokens, f"the last {self.counted(count)}"),)

    def tail_start(self, lines: int) -> int:
        """Where the last lines begin; not more than 1 MiB before the end."""
        file = self.file
        least = max(file.begin, file.size - (1 << 20))
        least += (file.begin - least) % file.width
        sizes = file.line_sizes(file.read(least, file.size))
        return file.size - sum(sizes[-lines:]) if len(sizes) > lines else least

    def end_of_line(self, start: int) -> ReadStep:
        """The end of a last line that is too long, as much as there is room for."""
        file = self.file
        size = min(file.size - start, 16 * self.cap)
        while size > 0:
            start = file.whole_character(file.size - size)
            tokens = self.counter.text(file.text(start, file.size))
            if tokens <= self.cap:
                break
            size = min(size - 1, size * self.cap // tokens)
        if size <= 0 or start == file.size:
            raise NoRoom
        return self.step("tail", Span(start, file.size, None, None), tokens, "the end of a last line that is too long")

    def of_section(self) -> tuple[ReadStep, ...]:
        """The section, or the lines around what was searched for; else the structure, to choose from."""
        if self.section is not None:
            span, title = self.find_section(str(self.section))
            if span is not None:
                steps = self.chunks(iter([span]), span.stop, f"{title}: summarise each chunk before the next one")
                return steps if len(steps) > 1 else (steps[0]._replace(kind="section", why=title),)
        if self.matches:
            return self.around_matches()
        self.found = False
        what = self.section if self.query is None else getattr(self.query, "pattern", self.query)
        where = "" if self.index.complete else f" in the first {self.index.seen:,} bytes"
        self.notes.append(f"{what!r} was not found{where}: this is the structure")
        return self.structure(self.room)

    def find_section(self, name: str) -> tuple[Span | None, str]:
        """The part of the file that has this name, and how it is called there."""
        if self.members:
            member = best(name, self.members, lambda entry: (entry.key,), last=True)
            if member is None:
                return None, ""
            lines = member.last - member.line + 1 if member.whole_lines else None
            if lines is None:
                return Span(member.start, member.stop, None, None), f"member {member.key}"
            return self.lines(member.line, member.last), f"member {member.key}"
        entry = best(name, self.entries, lambda entry: (entry.title, name_of(entry.title)))
        if entry is None:
            return None, ""
        same = [other for other in self.entries if other is not entry and name.lower() in other.title.lower()]
        if same:
            names = ", ".join(f"{other.title} (line {other.line:,})" for other in same[:NAMES])
            self.notes.append(f"also: {names}{' ...' if len(same) > NAMES else ''}")
        if entry.last is None and not self.index.complete:
            self.notes.append("the section may go on behind what was looked at")
        return self.lines(entry.line, entry.last or self.index.seen_lines), entry.title

    def around_matches(self) -> tuple[ReadStep, ...]:
        """The lines around each match, as many as there is room for."""
        before, behind = (0, 0) if self.kind == "jsonl" else AROUND
        windows: list[tuple[int, int]] = []
        for match in self.matches:
            first, last = max(1, match.line - before), min(match.line + behind, self.index.seen_lines)
            if windows and first <= windows[-1][1] + 1:
                windows[-1] = (windows[-1][0], max(last, windows[-1][1]))
            else:
                windows.append((first, last))
        steps: list[ReadStep] = []
        left, shown = self.cap, 0
        for first, last in windows:
            inside = [match for match in self.matches if first <= match.line <= last]
            for step, count in self.window(self.lines(first, last), inside, left):
                steps.append(step)
                left -= step.tokens
                shown += count
        total = len(self.matches) + self.more_matches
        if not shown:
            raise NoRoom
        if shown < total:
            self.notes.append(f"{total - shown:,} of {total:,} matches are left out: they do not fit")
        return tuple(steps)

    def window(self, span: Span, inside: Sequence[Match], left: int) -> Iterator[tuple[ReadStep, int]]:
        """Lines with matches, if there is room, else each match with what is beside it; and how many it shows."""
        lines = ", ".join(f"{line:,}" for line in dict.fromkeys(match.line for match in inside[:NAMES]))
        why = f"matches in line {lines}{' ...' if len(inside) > NAMES else ''}"
        if span.stop - span.start <= 64 * left + 1_024:
            tokens = estimate(self.file.text(span.start, span.stop), self.counter, left)
            if tokens <= left:
                yield self.step("match", span, tokens, why), len(inside)
                return
        behind = 0
        for match in inside:
            at = self.file.begin + (match.byte - self.file.begin) // self.file.width * self.file.width
            if at < behind:
                continue
            for size in (AROUND_BYTES, AROUND_BYTES // 8):
                start = self.file.whole_character(max(span.start, behind, at - size))
                stop = self.file.whole_character(min(span.stop, at + size))
                tokens = self.counter.text(self.file.text(start, stop))
                if tokens <= left:
                    part = Span(start, stop, None, None)
                    yield self.step("match", part, tokens, f"matches in line {match.line:,}"), 1
                    left, behind = left - tokens, stop
                    break

    # ------------------------------------------------------------------------------------------------ pieces

    def lines(self, first: int, last: int) -> Span:
        """Lines of the file, as far as it was looked at."""
        start = self.index.start_of(self.file, first)
        stop = self.index.start_of(self.file, last + 1)
        whole = not (self.index.inside and last >= self.index.seen_lines)
        return Span(start, stop, first, last - first + 1 if whole else None)

    def pieces(self, span: Span, kind: StepKind, why: str, cap: int) -> Iterator[ReadStep]:
        """A part of the file in pieces of at most so many tokens; whole lines, unless one is too long."""
        text = self.file.text(span.start, span.stop)
        tokens = estimate(text, self.counter, cap)
        if tokens <= cap:
            yield self.step(kind, span, tokens, why)
            return
        parts = self.parts(span, max(2, -(-tokens * 11 // (10 * max(cap, 1)))))
        if cap < 1 or len(parts) < 2:
            raise NoRoom
        for part in parts:
            yield from self.pieces(part, kind, why, cap)

    def parts(self, span: Span, count: int) -> list[Span]:
        """A part of the file in so many of about the same number of lines, or else of bytes; fewer if it is small."""
        sizes = self.file.line_sizes(self.file.read(span.start, span.stop))
        if len(sizes) == 1:
            step = max(self.file.width, -(-(span.stop - span.start) // count))
            places = [self.file.character_before(place) for place in range(span.start + step, span.stop, step)]
            if not places or places[0] <= span.start:  # the first character is longer
                places = [self.file.whole_character(span.start + 1)]
            borders = [span.start, *(place for place in places if span.start < place < span.stop), span.stop]
            return [Span(start, stop, None, None) for start, stop in pairwise(borders) if start < stop]
        step = -(-len(sizes) // count)
        parts, start, line = [], span.start, span.line
        for first in range(0, len(sizes), step):
            lines = len(sizes[first : first + step])
            stop = start + sum(sizes[first : first + step])
            known = line is not None and span.lines is not None
            parts.append(Span(start, stop, line if known else None, lines if known else None))
            start, line = stop, None if line is None else line + lines
        return parts

    def step(self, kind: StepKind, span: Span, tokens: int, why: str) -> ReadStep:
        """A part of the file as a step."""
        if span.line is not None and span.lines is not None:
            return ReadStep(kind, "lines", span.line, span.lines, tokens, why, span.start, span.stop)
        return ReadStep(kind, "bytes", span.start, span.stop - span.start, tokens, why, span.start, span.stop)

    def counted(self, lines: int) -> str:
        """So many lines, or records."""
        return f"{lines:,} {'record' if self.kind == 'jsonl' else 'line'}{'' if lines == 1 else 's'}"

    # ------------------------------------------------------------------------------------------------ the log

    def with_log(self, steps: tuple[ReadStep, ...]) -> tuple[ReadStep, ...]:
        """The steps, with the earlier summary in the place of what has been read before and is unchanged."""
        if self.log is None or self.log.get(self.file.path) is None:
            return steps
        result = []
        for step in steps:
            known = self.known(step)
            result.append(self.reuse(step, known) if known else step)
        return tuple(result)

    def known(self, step: ReadStep) -> tuple[ReadRange, ...]:
        """What has been read before of the lines of a step."""
        if self.log is None or step.text or step.unit == "bytes":
            return ()
        last = step.last if step.last is not None else self.index.lines if self.index.complete else None
        return () if last is None else self.log.covering(self.file.path, step.offset, last)

    def reuse(self, step: ReadStep, known: Sequence[ReadRange]) -> ReadStep:
        """A step that has been read before."""
        summary = "\n".join(dict.fromkeys(old.summary for old in known if old.summary))
        places = ", ".join(dict.fromkeys(old.place for old in known if old.place))
        why = f"read before{f' ({places})' if places else ''}, unchanged"
        text = summary or f"[{why}: lines {step.offset:,} to {step.last:,}]"
        tokens = self.counter.text(summary) if summary else 0
        if summary and tokens >= step.tokens:
            return step  # a summary that is no shorter than the lines
        return step._replace(kind="reuse", tokens=tokens, why=why, text=text)


def smaller(room: int | None, most: int) -> int:
    """The room, and at most so much."""
    return most if room is None else min(room, most)


def entry_of(member: JsonEntry) -> Entry:
    """A member of JSON as an entry of the outline."""
    return Entry(member.line, member.last, 1, member.key)


def row_of(entry: Entry) -> tuple[int, str]:
    """An entry in the outline: its level, and its line."""
    lines = f"{entry.line:,}" if entry.last is None else f"{entry.line:,}-{entry.last:,}"
    return entry.level, f"{'  ' * min(entry.level // 2, 6)}{entry.title} ({lines})"


def best(name: str, items: Sequence[T], names: Callable[[T], tuple[str, ...]], *, last: bool = False) -> T | None:
    """What has this name, exactly, or else begins with it, or else has it somewhere; the first one, or the last."""
    wanted = name.strip().lstrip("#").strip() or name.strip()
    small = wanted.lower()
    tests: tuple[Callable[[str], bool], ...] = (
        lambda own: own == wanted,
        lambda own: own.lower() == small,
        lambda own: own.lower().startswith(small),
        lambda own: small in own.lower(),
    )
    for test in tests:
        for item in reversed(items) if last else items:
            if any(map(test, names(item))):
                return item
    return None
