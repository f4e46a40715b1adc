"""What a tool call is about: which kind of tool, which file and lines, which command; and whether it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from ctxfast.reference.reading import dump

READ, EDIT, COMMAND, OTHER = "read", "edit", "command", "other"

END = 2**31 - 1  # the last line of a file, however long it is
PATH_KEYS = ("file_path", "filePath", "absolute_path", "notebook_path", "path", "file", "filename", "target_file")
COMMAND_KEYS = ("command", "cmd")
PATTERN_KEYS = ("pattern", "query", "regex")
PATCH_KEYS = ("input", "patch", "patchText")
LINE_KEYS = ("offset", "limit", "start_line", "end_line", "view_range")
OTHER_KEYS = ("url", "description")
WANTED = (*PATH_KEYS, *COMMAND_KEYS, *PATTERN_KEYS, *PATCH_KEYS, *LINE_KEYS, *OTHER_KEYS)


@dataclass(frozen=True)
class Call:
    """What a call is about."""

    kind: str = OTHER
    path: str | None = None
    read: tuple[str, int, int] | None = None  # the file whose lines it reads, the first and the last of them
    edits: tuple[str, ...] = ()  # the files that it changes
    command: str | None = None
    pattern: str | None = None
    other: str | None = None  # a URL or a description

    @property
    def target(self) -> str | None:
        """What a later success of the same tool must be about to make up for an error."""
        if self.path is not None or self.command is None:
            return self.path
        return " ".join(words(self.command)[:2])


def kind_of(name: str, kinds: Sequence[tuple[str, str]]) -> str:
    """The kind of the first pattern that the name of a tool matches."""
    return next((kind for pattern, kind in kinds if matches(pattern, name)), OTHER)


def is_listed(patterns: Sequence[str], name: str, kind: str | None = None) -> bool:
    """Whether a name, or a kind of tool, is on a list of patterns."""
    return any(entry == kind or matches(entry, name) for entry in patterns)


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern, in which `*` is anything, matches a whole name; the case of A to Z does not matter."""
    parts = [re.escape(part) for part in lower(pattern).split("*")]
    return re.fullmatch(".*".join(parts), lower(name), re.DOTALL) is not None


def lower(text: str) -> str:
    """Small letters for A to Z."""
    return "".join(chr(ord(char) + 32) if "A" <= char <= "Z" else char for char in text)


def words(text: str) -> list[str]:
    """The words between ASCII white space."""
    return [word for word in re.split("[ \t\n\r\f\v]+", text) if word]


def about(name: str, arguments: object, kinds: Sequence[tuple[str, str]]) -> Call:
    """What a call is about, from the tool's name and its arguments: JSON, or something with fields."""
    kind = kind_of(name, kinds)
    fields = {key: value for key, value in fields_of(arguments).items() if key in WANTED and value is not None}
    path = first_text(fields, PATH_KEYS) if kind != COMMAND else None
    command = first_text(fields, COMMAND_KEYS)
    if kind == EDIT and command == "view":  # of Anthropic's text editor
        kind = READ
    elif kind == EDIT:
        command = None
    read = None
    if kind == READ and path is not None:
        read = (path, *lines_of(fields))
    elif kind == COMMAND and command is not None:
        read = shell_read(command)
    edits: tuple[str, ...] = ()
    if kind == EDIT:
        patch = arguments if isinstance(arguments, str) else None
        edits = (path,) if path is not None else patched(first_text(fields, PATCH_KEYS) or patch or "")
        path = edits[0] if edits else None
    return Call(kind, path, read, edits, command, first_text(fields, PATTERN_KEYS), first_text(fields, OTHER_KEYS))


def fields_of(arguments: object) -> dict[str, Any]:
    """The members of arguments; nothing if they are not JSON, or not an object."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(well_formed(arguments), parse_constant=refuse)
        except (ValueError, RecursionError):
            return {}
        if isinstance(arguments, dict):
            wanted = dump([list(arguments), [arguments.get(key) for key in WANTED]])
            return arguments if well_formed(wanted) == wanted else {}
    return arguments if isinstance(arguments, dict) else {}


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def refuse(constant: str) -> None:
    """NaN and infinities are no JSON."""
    raise ValueError(constant)


def first_text(fields: dict[str, Any], keys: Sequence[str]) -> str | None:
    """The first of these members that is a text; a list of texts is a command: its words, or a shell's script."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str) and value:
            return well_formed(value)
        if keys is COMMAND_KEYS and is_texts(value):
            if len(value) == 3 and value[0] in ("bash", "sh", "zsh") and value[1] in ("-c", "-lc"):
                value = value[2:]
            return well_formed(" ".join(value))
    return None


def is_texts(value: object) -> TypeGuard[Sequence[str]]:
    """Whether a value is a list of texts with something in it."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) for word in value)


def lines_of(fields: dict[str, Any]) -> tuple[int, int]:
    """The first and the last line that a read asks for."""
    view = fields.get("view_range")
    if isinstance(view, (list, tuple)) and len(view) == 2:
        first, last = number(view[0]), number(view[1])
        return max(first or 1, 1), last if last is not None and last > 0 else END
    first, last = number(fields.get("start_line")), number(fields.get("end_line"))
    if first is not None or last is not None:
        return max(first or 1, 1), last if last is not None and last > 0 else END
    first, limit = max(number(fields.get("offset")) or 1, 1), number(fields.get("limit"))
    return first, first + limit - 1 if limit is not None and limit > 0 else END


def number(value: object) -> int | None:
    """A whole number of at most nine digits, also one that is written as a text."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9
    return value if is_number else None  # type: ignore[return-value]


def shell_read(command: str) -> tuple[str, int, int] | None:
    """The file and the lines that a plain `cat`, `nl -ba`, `head` or `sed -n` prints."""
    if re.search("[|;&<>$`*?(){}\\\\\n]", command):
        return None
    match words(command):
        case ["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path]:
            lines = (1, END)
        case ["sed", "-n", span, path] if found := re.fullmatch("(['\"]?)([0-9]{1,9}),([0-9]{1,9})p\\1", span):
            lines = (max(int(found[2]), 1), int(found[3]))
        case ["head", "-n", count, path] if re.fullmatch("[0-9]{1,9}", count):
            lines = (1, int(count))
        case ["head", count, path] if re.fullmatch("-[0-9]{1,9}", count):
            lines = (1, int(count[1:]))
        case _:
            return None
    path = path.strip("'\"")
    return None if path.startswith("-") or not path else (path, *lines)


def patched(patch: str) -> tuple[str, ...]:
    """The files that a patch in the form of `apply_patch` names."""
    marks = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
    lines = [line.rstrip("\r") for line in well_formed(patch).split("\n")]
    return tuple(line[len(mark) :] for line in lines for mark in marks if line.startswith(mark) and line != mark)


EDGE = 200  # characters of a line that are looked at for an exit code


def exit_code(text: str) -> int | None:
    """The exit code that the first or the last line of an output names."""
    lines = text.rstrip("\n").split("\n")
    for line in (lines[0][:EDGE], lines[-1][-EDGE:]):
        for rest in lower(line).split("exit")[1:]:
            between = re.match("([a-z _:=\"'<>/-]{0,30}?)(-?[0-9]{1,9})", rest)
            if between and (re.search("code|status", between[1]) or not re.search("[a-z]", between[1])):
                return int(between[2])
    return None
