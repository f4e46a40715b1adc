"""What a tool call is about: which kind of tool, which file and lines, which command; and whether it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

READ, EDIT, COMMAND, AGENT, OTHER = "read", "edit", "command", "agent", "other"

LARGEST = 1.7976931348623157e308
DEEPEST = 127  # levels of JSON
END = 2**31 - 1  # the last line of a file, however long it is
SPACE = " \t\n\r\f\v"
QUOTES = "'\""
DETAIL = 40  # characters of a name and of a value that are shown
PATH_KEYS = (
    *("file_path", "filePath", "absolute_path", "notebook_path", "path"),
    *("file", "filename", "file_name", "target_file"),
)
COMMAND_KEYS = ("command", "cmd")
PATTERN_KEYS = ("pattern", "query", "regex")
PATCH_KEYS = ("input", "patch", "patchText")
LINE_KEYS = ("offset", "line_offset", "limit", "n_lines", "start_line", "end_line", "view_range")
OTHER_KEYS = ("url", "website_url", "description")
WANTED = (*PATH_KEYS, *COMMAND_KEYS, *PATTERN_KEYS, *PATCH_KEYS, *LINE_KEYS, *OTHER_KEYS)

READERS = ("cat", "sed", "nl", "head", "tail", "ls", "find", "tree", "wc", "stat", "du", "which", "pwd")
SEARCHERS = ("rg", "grep", "egrep", "ag", "ack")
GIT_READERS = ("log", "diff", "show", "status", "branch", "blame", "ls-files")


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
    details: str | None = None  # the first arguments of a tool that we do not know
    shows: str | None = None  # a command that shows "lines" or the "hits" of a search, and does nothing

    @property
    def target(self) -> str | None:
        """What a later success of the same tool must be about to make up for an error."""
        if self.path is None and self.command is not None:
            return " ".join(words(bare(self.command)[1])[:2])
        return next((one for one in (self.path, self.pattern, self.other, self.details) if one is not None), None)


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
    return [word for word in re.split(f"[{SPACE}]+", text) if word]


def about(name: str, arguments: object, kinds: Sequence[tuple[str, str]]) -> Call:
    """What a call is about, from the tool's name and its arguments: JSON, or a dict."""
    kind = kind_of(name, kinds)
    members = fields_of(arguments, whole=kind not in (READ, EDIT, COMMAND))
    path = first_text(members, PATH_KEYS) if kind != COMMAND else None
    command = first_text(members, COMMAND_KEYS)
    if kind == EDIT and command == "view":  # of Anthropic's text editor
        kind = READ
    elif kind == EDIT:
        command = None
    read = None
    if kind == READ and path is not None:
        read = (path, *lines_of(members))
    elif kind == COMMAND and command is not None:
        read = shell_read(command)
    edits: tuple[str, ...] = ()
    if kind == EDIT:
        patch = arguments if isinstance(arguments, str) else None
        edits = (path,) if path is not None else patched(first_text(members, PATCH_KEYS) or patch or "")
        path = edits[0] if edits else None
    return Call(
        kind=kind,
        path=path,
        read=read,
        edits=edits,
        command=command,
        pattern=first_text(members, PATTERN_KEYS),
        other=first_text(members, OTHER_KEYS),
        details=None if kind in (READ, EDIT, COMMAND) else details_of(members),
        shows=shown_by(bare(command)[1]) if kind == COMMAND and command is not None else None,
    )


def fields_of(arguments: object, *, whole: bool) -> dict[str, Any]:
    """The members of arguments; nothing if they are not JSON, not an object, or no text where text is looked at."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(well_formed(arguments), parse_constant=refuse)
        except (ValueError, RecursionError):
            return {}
        if isinstance(arguments, dict):
            looked_at = [*arguments, *(value for key, value in arguments.items() if whole or key in WANTED)]
            return arguments if all(is_readable(value) for value in looked_at) else {}
    return arguments if isinstance(arguments, dict) else {}


def is_readable(value: object, depth: int = 1) -> bool:
    """Whether a value of JSON has well-formed texts, numbers that a float can hold, and not too many levels."""
    if isinstance(value, str):
        return well_formed(value) == value
    if isinstance(value, (int, float)):
        return abs(value) <= LARGEST
    if isinstance(value, (list, dict)):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return depth < DEEPEST and all(is_readable(item, depth + 1) for item in items)
    return True


def well_formed(text: str) -> str:
    """The text with U+FFFD for lone surrogates."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def refuse(constant: str) -> None:
    """NaN and infinities are no JSON."""
    raise ValueError(constant)


def first_text(members: dict[str, Any], keys: Sequence[str]) -> str | None:
    """The first of these members that is a text; a list of texts is a command: its words, or a shell's script."""
    for key in keys:
        value = members.get(key)
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


def details_of(members: dict[str, Any]) -> str | None:
    """The first two members that are a text or a whole number and are not wanted otherwise."""
    found = []
    for key, value in members.items():
        is_number = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
        if key not in WANTED and (is_number or (isinstance(value, str) and value)):
            found.append(f"{well_formed(key)[:DETAIL]}={well_formed(str(value))[:DETAIL]}")
    return ", ".join(found[:2]) or None


def lines_of(members: dict[str, Any]) -> tuple[int, int]:
    """The first and the last line that a read asks for."""
    view = members.get("view_range")
    if isinstance(view, (list, tuple)) and len(view) == 2:
        first, last = number(view[0]), number(view[1])
        return max(first or 1, 1), last if last is not None and last > 0 else END
    first, last = number(members.get("start_line")), number(members.get("end_line"))
    if first is not None or last is not None:
        return max(first or 1, 1), last if last is not None and last > 0 else END
    first, limit = first_number(members, "offset", "line_offset"), first_number(members, "limit", "n_lines")
    first = max(first or 1, 1)
    return first, first + limit - 1 if limit is not None and limit > 0 else END


def first_number(members: dict[str, Any], *keys: str) -> int | None:
    """The first of these members that is a number."""
    found = [number(members.get(key)) for key in keys]
    return next((value for value in found if value is not None), None)


def number(value: object) -> int | None:
    """A whole number of at most nine digits, also one that is written as a text."""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9
    return value if is_number else None  # type: ignore[return-value]


def bare(command: str) -> tuple[str | None, str]:
    """The directory into which a command changes first, and the command without that, exports and variables."""
    folder, rest = None, command.lstrip(SPACE)
    while found := re.match("(cd|export)([ \t][^&|;\n]*)&&[ \t\n]*", rest):
        if found[1] == "cd":
            folder = found[2].strip(" \t")
        rest = rest[found.end() :]
    while found := re.match("[A-Za-z_][A-Za-z0-9_]*=[^ \t\n'\"]*[ \t]+", rest):
        rest = rest[found.end() :]
    return folder, rest


def shown_by(command: str) -> str | None:
    """Whether a command shows "lines" or "hits" and does nothing else, by the name of its first program."""
    names = [word for word in words(command) if not word.startswith("-")]
    program, verb = [*names, "", ""][:2]
    if program in SEARCHERS or (program == "git" and verb == "grep"):
        return "hits"
    return "lines" if program in READERS or (program == "git" and verb in GIT_READERS) else None


def shell_read(command: str) -> tuple[str, int, int] | None:
    """The file and the lines that a plain `cat`, `nl -ba`, `head` or `sed -n` prints, also one behind the other."""
    folder, command = bare(command)
    if re.search("[;&<>$`*?(){}\\\\\n]", command):
        return None
    match [words(part) for part in command.split("|")]:
        case [["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path]]:
            lines: tuple[int, int] | None = (1, END)
        case [[*selection, path]]:
            lines = selected(selection)
        case [["cat", path] | ["cat", "-n", path] | ["nl", "-ba", path], selection]:
            lines = selected(selection)
        case _:
            return None
    path = path.strip(QUOTES)
    if lines is None or not path or path.startswith("-"):
        return None
    if folder is not None and not path.startswith(("/", "~")):
        path = f"{folder.strip(QUOTES).rstrip('/')}/{path}"
    return (path, *lines)


def selected(selection: Sequence[str]) -> tuple[int, int] | None:
    """The lines that `sed -n` or `head` lets through."""
    match selection:
        case ["sed", "-n", span] if found := re.fullmatch("(['\"]?)([0-9]{1,9}),([0-9]{1,9})p\\1", span):
            return max(int(found[2]), 1), int(found[3])
        case ["head", "-n", count] if re.fullmatch("[0-9]{1,9}", count):
            return 1, int(count)
        case ["head", count] if re.fullmatch("-[0-9]{1,9}", count):
            return 1, int(count[1:])
    return None


def patched(patch: str) -> tuple[str, ...]:
    """The files that a patch in the form of `apply_patch` names."""
    marks = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
    lines = [line.rstrip("\r") for line in well_formed(patch).split("\n")]
    return tuple(line[len(mark) :] for line in lines for mark in marks if line.startswith(mark) and line != mark)


EDGE = 200  # characters of a line that are looked at for an exit code
HEAD = 5  # lines of a header that are
HEADERS = ("Chunk ID:", "Wall time:", "Exit code:")  # how the header begins that Codex puts in front of an output
FAILURES = (
    *("<tool_use_error>", "Error:", "ERROR:", "### Error", "Error executing", "Error calling"),
    *("apply_patch verification failed", "Could not find", "The user doesn't want to proceed", "No match"),
    *("No replacement was performed", "String to replace not found", "File has not been read yet", "File unchanged"),
)


def begins_as_failure(text: str) -> bool:
    """Whether the output of a tool that runs nothing begins like a failure: many harnesses have no flag for it."""
    return text.startswith(FAILURES)


def exit_code(text: str, *, of_files: bool = False) -> int | None:
    """The exit code that the first or the last line of an output names, or one of the first five if that is a header.

    `of_files`: the output is text of files, in which anything can stand: only what nothing else says counts.
    """
    lines = text.rstrip("\n").split("\n")
    first = lines[: HEAD if text.startswith(HEADERS) else 1]
    codes = [code_in(line, alone=of_files) for line in [*(line[:EDGE] for line in first), lines[-1][-EDGE:]]]
    return next((code for code in codes if code is not None), None)


def code_in(line: str, *, alone: bool = False) -> int | None:
    """The exit code that a line names; `alone`: at its start, in so many words."""
    line = lower(line).lstrip(" [(<")
    if alone and not line.startswith(("exit code", "exit_code", "exit status", "exited with", "process exited")):
        return None
    place = -4
    for before, rest in zip(line.split("exit"), line.split("exit")[1:], strict=False):
        place += 4 + len(before)
        between = re.match("([a-z _:=\"'<>/-]{0,30}?)(-?[0-9]{1,9})", rest)
        if between and (re.search("code|status", between[1]) or (place == 0 and not re.search("[a-z]", between[1]))):
            return int(between[2])
    return None
