"""What a file consists of, as a list of entries with their lines: headings, definitions, keys of JSON, records.

Where it stops: nothing is parsed. Headings and definitions are lines that look like them; of JSON only strings and
brackets are looked at, so that what is broken off has an outline, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ctxfast.text_files import Block

__all__ = ["Entry", "FileKind", "Headings", "JsonEntry", "json_entries", "kind_of_file", "outliner", "record_keys"]

FileKind = Literal["markdown", "code", "json", "jsonl", "text"]
"""What a file is, by its name or else by how it begins."""

TITLE = 120  # characters of a title
MOST = 5_000  # entries that are kept
KINDS: dict[FileKind, tuple[str, ...]] = {
    "markdown": (".md", ".markdown", ".mdx", ".mdc"),
    "json": (".json", ".ipynb", ".geojson", ".webmanifest", ".har"),
    "jsonl": (".jsonl", ".ndjson", ".jsonlines"),
    "code": (
        *(
            ".py",
            ".pyi",
            ".rs",
            ".go",
            ".js",
            ".mjs",
            ".cjs",
            ".jsx",
            ".ts",
            ".tsx",
            ".java",
            ".kt",
            ".scala",
            ".swift",
        ),
        *(".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".php", ".rb", ".lua", ".zig", ".ex", ".exs", ".dart", ".jl"),
    ),
}


class Entry(NamedTuple):
    """A heading, a definition, a key: where something begins, and how far it goes."""

    line: int
    """The line in which it begins, from 1."""
    last: int | None
    """The last line that belongs to it; `None`: to the end of what was looked at, or of the file."""
    level: int
    """How deep it lies, from 1; what has a higher one belongs to it."""
    title: str


class JsonEntry(NamedTuple):
    """A member of the outermost object or list of a JSON file."""

    key: str
    """The name; of a list the number, from 0."""
    start: int
    """Its first byte, with the name."""
    stop: int
    """Behind its last byte."""
    line: int
    last: int
    whole_lines: bool
    """Whether it has its lines for itself."""


def kind_of_file(path: str, head: str) -> FileKind:
    """What kind of file it is, by its name, or else by how it begins.

    >>> kind_of_file("notes.MD", ""), kind_of_file("log", '{"a": 1}\\n{"a": 2}\\n'), kind_of_file("LICENSE", "MIT")
    ('markdown', 'jsonl', 'text')
    """
    name = path.lower()
    for kind, endings in KINDS.items():
        if name.endswith(endings):
            return kind
    begin = head.lstrip()[:1]
    if begin not in ("{", "["):
        return "text"
    lines = [line for line in head.split("\n") if line.strip()][:3]
    whole = [line for line in lines[:-1] if is_json(line)]
    if begin == "{" and len(lines) > 1 and len(whole) == len(lines) - 1 and lines[-1].lstrip().startswith("{"):
        return "jsonl"
    return "json" if re.match(r'[{\[]\s*["{}\[\]0-9tfn-]', head.lstrip()) else "text"


def is_json(line: str) -> bool:
    """Whether a line is a JSON value."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


# ------------------------------------------------------------------------------------------ headings and definitions

HEADING = re.compile(
    r"^(?: {0,3}(?P<fence>```+|~~~+)[^\n]*"
    r"|(?P<marks>#{1,6})[ \t]+(?P<title>[^\n]*)"
    r"|(?P<above>[^\s|>#*+-][^\n]*)\n(?P<under>={3,}|-{3,})[ \t\r]*$)",
    re.MULTILINE,
)
FRONT_MATTER = re.compile(r"^(?:---|\.\.\.)[ \t\r]*$", re.MULTILINE)
WORDS = (
    "export|default|pub(?:\\([^)\n]*\\))?|async|public|private|protected|internal|static|abstract|final|unsafe|sealed|"
    "open"
)
KEYWORDS = (
    "def|class|fn|func|fun|function\\*?|struct|enum|trait|impl|interface|type|mod|module|defmodule|namespace|record|union|"
    "macro_rules!|object|protocol|extension"
)
DEFINITION = re.compile(
    rf"^(?P<indent>[ \t]*)(?:(?:{WORDS})[ \t]+)*(?:(?:{KEYWORDS})\b[^\n]*|"
    r"const[ \t]+\w+[ \t]*=[ \t]*(?:async[ \t]*)?(?:\(|function)[^\n]*)",
    re.MULTILINE,
)
PYTHON = re.compile(r"^(?P<indent>[ \t]*)(?:async[ \t]+)?(?:def|class)[ \t]+\w+[ \t]*[(:\[][^\n]*", re.MULTILINE)
NAME = re.compile(rf"(?:{KEYWORDS}|const)(?:<[^>\n]*>)?[ \t]*(?:\([^)\n]*\)[ \t]*)?([\w$.:]+)")


class Headings:
    """Collects the headings or definitions of a file, block by block."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        """Of lines that match this."""
        self.pattern = pattern
        self.found: list[tuple[int, int, str]] = []  # line, level, title
        self.fence = ""
        self.body = 1  # the line behind the front matter
        self.left_out = 0

    def feed(self, block: Block) -> None:
        """The next block of the file."""
        text, line, before = block.text, block.line, 0
        if line == 1 and self.pattern is HEADING and text.startswith("---"):
            end = FRONT_MATTER.search(text, 4)
            self.body = text.count("\n", 0, end.end()) + 1 if end else 1
        for match in self.pattern.finditer(text):
            line += text.count("\n", before, match.start())
            before = match.start()
            entry = self.heading(match, line) if self.pattern is HEADING else self.definition(match)
            if entry is None:
                continue
            if len(self.found) < MOST:
                self.found.append((line, entry[0], clean(entry[1])))
            else:
                self.left_out += 1

    def heading(self, match: re.Match[str], line: int) -> tuple[int, str] | None:
        """Level and title of a heading, if it is one and stands in no code."""
        fence = match["fence"]
        if fence:
            if not self.fence:
                self.fence = fence
            elif fence.startswith(self.fence):
                self.fence = ""
            return None
        if self.fence or line < self.body:  # the end of a front matter looks like a heading with a line under it
            return None
        if match["marks"]:
            return len(match["marks"]), match["title"].rstrip().rstrip("#")
        return (1 if match["under"].startswith("=") else 2), match["above"]

    def definition(self, match: re.Match[str]) -> tuple[int, str]:
        """Level and title of a definition: the deeper, the further it stands from the margin."""
        return 1 + len(match["indent"].expandtabs(4)), match[0]

    def entries(self) -> tuple[Entry, ...]:
        """What was found, each up to the next one that does not belong to it."""
        lasts: list[int | None] = [None] * len(self.found)
        waiting: list[int] = []
        for number, (line, level, _) in enumerate(self.found):
            while waiting and self.found[waiting[-1]][1] >= level:
                lasts[waiting.pop()] = line - 1
            waiting.append(number)
        return tuple(
            Entry(line, last, level, title) for (line, level, title), last in zip(self.found, lasts, strict=True)
        )


def outliner(kind: FileKind, path: str) -> Headings | None:
    """What collects the outline of such a file, if it has one that goes by lines."""
    if kind == "markdown":
        return Headings(HEADING)
    if kind == "code":
        return Headings(PYTHON if path.lower().endswith((".py", ".pyi")) else DEFINITION)
    return None


def clean(title: str) -> str:
    """A title on one line, without control characters."""
    title = "".join(char if char.isprintable() else " " for char in title[: TITLE + 1]).strip()
    return title if len(title) <= TITLE else title[: TITLE - 1] + "…"


def name_of(title: str) -> str:
    """The name that a definition defines; else the title.

    >>> name_of("def total(prices):"), name_of("impl Display for Total {"), name_of("func (t *Table) Row() {")
    ('total', 'Display', 'Row')
    """
    match = NAME.search(title)
    return match[1] if match else title


# --------------------------------------------------------------------------------------------------------------- JSON

STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
IN_OBJECT = re.compile(STRING + rb'|[{}\[\]"]', re.DOTALL)
IN_LIST = re.compile(STRING + rb'|[{}\[\],"]', re.DOTALL)
COLON = re.compile(rb"[ \t\r\n]*:")
REST_OF_LINE = re.compile(rb"[ \t\r]*,?[ \t\r]*(?:\n|$)")
INDENT = 200  # bytes before a member in which its line must begin for it to have lines of its own


def json_entries(data: bytes, most: int | None = None, wanted: str | None = None) -> Iterator[JsonEntry]:
    """The members of the outermost object or list of JSON in UTF-8, or of its beginning; one that is cut is left out.

    After so many (`most`) only those that are called `wanted`.

    >>> [(entry.key, entry.stop - entry.start) for entry in json_entries(b'{"a": [1, "}"], "b": {"c": 2}, "d": "cu')]
    [('a', 13), ('b', 13)]
    """
    lines = LineCounter(data)
    for number, (token, start, stop) in enumerate(members_of(data)):
        is_late = most is not None and number >= most
        if is_late and wanted is None:
            return
        key = str(number) if token is None else text_of(token)
        if not is_late or key == wanted:
            yield lines.entry(key, start, stop)


def members_of(data: bytes) -> Iterator[tuple[bytes | None, int, int]]:
    """Each member's name, as it is written (in a list `None`), and where it begins and ends, with what is around it."""
    opening = re.match(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*([{\[])", data)
    if opening is None:
        return
    in_list = opening[1] == b"["
    depth, key, start = 1, None, opening.end() if in_list else -1
    for match in (IN_LIST if in_list else IN_OBJECT).finditer(data, opening.end()):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                if start >= 0 and data[start : match.start()].strip():
                    yield key, start, match.start()
                return
        elif token == b'"':  # a text that does not end
            return
        elif depth == 1 and token == b",":
            yield None, start, match.start()
            start = match.end()
        elif depth == 1 and not in_list and COLON.match(data, match.end()):
            if start >= 0:
                yield key, start, match.start()
            key, start = token, match.start()


def text_of(token: bytes) -> str:
    """A string of JSON as text."""
    try:
        return clean(str(json.loads(token.decode("utf-8", "replace"), strict=False)))
    except ValueError:
        return clean(token[1:-1].decode("utf-8", "replace"))


class LineCounter:
    """Knows in which line a byte is, for bytes that come in order."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place, self.line = data, 0, 1

    def entry(self, key: str, start: int, stop: int) -> JsonEntry:
        """An entry between two bytes, without the white space and the comma around it."""
        data = self.data
        while start < stop and data[start] in b" \t\r\n":
            start += 1
        while stop > start and data[stop - 1] in b" \t\r\n,":
            stop -= 1
        self.line += data.count(b"\n", self.place, start)
        self.place = start
        last = self.line + data.count(b"\n", start, stop)
        behind = data.rfind(b"\n", max(0, start - INDENT), start) + 1
        alone = behind > 0 and not data[behind:start].strip() and REST_OF_LINE.match(data, stop) is not None
        return JsonEntry(key, start, stop, self.line, last, alone)


def record_keys(line: str) -> str:
    """What a record of JSON Lines holds: its keys with the kinds of their values.

    >>> record_keys('{"id": 7, "tags": ["a"], "note": null}')
    'id: number, tags: list of 1, note: null'
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(record, dict):
        return kind_of_value(record)
    return ", ".join(f"{clean(key)}: {kind_of_value(value)}" for key, value in record.items())


def kind_of_value(value: object) -> str:
    """What a value of JSON is."""
    if isinstance(value, dict):
        return f"object of {len(value)}"
    if isinstance(value, list):
        return f"list of {len(value)}"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "yes or no" if isinstance(value, bool) else "number"
