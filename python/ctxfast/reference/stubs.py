"""The short text that replaces an old tool output: one line of facts, and up to three lines of what was there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ctxfast.reference.tools import (
    COMMAND,
    EDIT,
    END,
    HEADERS,
    READ,
    Call,
    bare,
    code_in,
    exit_code,
    lower,
    well_formed,
)

MARK = "[Tool output pruned"  # how a stub begins; PicoClaw's plan begins like this, too
FOREIGN = ("[Old tool result content cleared]",)  # stubs of OpenCode and Claude Code
MOST = 400  # characters of a stub without an id
LONGEST_ID = 200  # characters
WIDTH = 80  # characters of a line of what was there
SUBJECT = 120  # characters of a path, a command, a pattern
NAME = 40  # characters of a tool's name
LOOK = 200  # characters of a line that are looked at
LINES = 200  # lines in which an outline is sought
NEWEST_LINES = 20  # lines in which an error is sought
HEADER = 400  # characters in which the end of a header is sought
LIKE_A_CALL = ("<tool_call", "<function", "<invoke", "[tool_use", '"name":', "```")
ERRORS = ("error", "fail", "exception", "fatal", "panic", "traceback")
HEADINGS = (".md", ".mdx", ".markdown", ".rst", ".txt")  # where `#` is no comment
DEFINITIONS = (
    *("def ", "async def ", "class ", "fn ", "pub ", "impl ", "struct ", "enum ", "trait ", "mod ", "func "),
    *("function ", "async function ", "export ", "interface ", "type ", "public ", "private ", "namespace "),
    *("CREATE ", "create table ", "abstract ", "protected ", "static "),
)
WRAPPERS = (  # how lines begin that say nothing of what they stand around
    *("<path>", "<type>", "<content>", "<file>", "<system", "<output>", "<result>", "<task_result>", "<shellId"),
    *("</", "Shell cwd was reset", "(Current directory:", "task_id:", "agentId:", "```"),
    *("npm ERR!", "npm error", "ERR_PNPM", "error: script", "make: ***", "Exit status", "Node.js v"),
)


@dataclass(frozen=True)
class Old:
    """An output that is to be replaced."""

    tool: str
    call: Call
    text: str
    attachments: int  # parts of its content that are no text
    failed: bool


def is_stub(text: str, own: str | None = None) -> bool:
    """Whether an output has been replaced before; `own` is the policy's fixed text."""
    return (text.startswith(MARK) and len(text) <= MOST + LONGEST_ID) or text in (*FOREIGN, own)


def stub(old: Old, remark: str | None = None) -> str:
    """The text that replaces an output. The same output gives the same text, whatever comes later."""
    call, text = old.call, old.text
    shown = body(text)
    name = printable(old.tool, NAME)
    facts = ["tool" if not name or is_like_a_call(name) else name]
    subject = subject_of(call)
    if subject and not is_like_a_call(subject):
        facts[0] += f" {subject}"
    is_part = call.read is not None and call.read[1:] != (1, END)
    if call.read is not None and is_part:
        last = "the end" if call.read[2] == END else f"{call.read[2]}"
        facts.append(f"lines {call.read[1]} to {last}")
    code = exit_code(text, of_files=shows_files(call)) if call.kind in (COMMAND, "other") else None
    if code is not None:
        facts.append(f"exit code {code}")
    elif old.failed:
        facts.append("failed")
    if call.kind == "search" or call.shows == "hits":
        facts.append(hits(shown))
    elif call.kind == "list":
        entries = [line for line in shown.split("\n") if not blank(line) and not line.startswith("(")]
        facts.append(plural(len(entries), "entry", "entries"))
    elif not is_part:
        facts.append(plural(shown.count("\n") + (not shown.endswith("\n")) if shown else 0, "line"))
    facts.append(plural(len(text), "character"))
    if old.attachments:
        facts.append(plural(old.attachments, "attachment"))
    if remark:
        facts.append(remark)
    result = f"{MARK}: {', '.join(facts)}]"
    for line in key_lines(old, shown.split("\n"), code):
        line = printable(line[:LOOK], WIDTH)
        if line and not is_like_a_call(line) and len(result) + 1 + len(line) <= MOST:
            result += f"\n{line}"
    return result


def with_id(text: str, store_id: str) -> str:
    """A stub with the id under which the output has been saved: the last fact. Lines for which there is no room go."""
    facts, *lines = text.split("\n")
    result = f"{facts.removesuffix(']')}, saved as {store_id}]"
    for line in lines:
        if len(result) + 1 + len(line) > MOST:
            break
        result += f"\n{line}"
    return result


def body(text: str) -> str:
    """An output without the header that Codex puts in front of it."""
    if text.startswith(HEADERS):
        found = text[:HEADER].find("\nOutput:\n")
        if found >= 0:
            return text[found + len("\nOutput:\n") :]
    return text


def hits(text: str) -> str:
    """How much a search has found: as it says itself, or by its lines."""
    filled = [line for line in text.split("\n") if not blank(line)]
    if filled and (found := re.match("Found ([0-9]{1,9}) ([a-z]{1,20})", filled[0])):
        return f"{int(found[1]):,} {found[2]}"
    matches, files, before = 0, 0, None
    for line in filled:
        if re.match("[0-9]+:", line):  # of the one file that was searched
            matches += 1
        elif found := re.match("([^:]+):([0-9]{1,9})(:|$)", line):
            matches += 1 if found[3] else int(found[2])  # else it gives the number for each file
            files += found[1] != before
            before = found[1]
    if not matches:
        return plural(len(filled), "hit")
    return plural(matches, "match", "matches") + (f" in {plural(files, 'file')}" if files else "")


def shows_files(call: Call) -> bool:
    """Whether the output of a command is text of files."""
    return call.read is not None or call.shows is not None


def subject_of(call: Call) -> str:
    """What the call was about: a command, a path, a pattern, a URL, its first arguments."""
    if call.kind == COMMAND:
        return printable(bare(call.command or "")[1], SUBJECT)
    if call.kind in (READ, EDIT):
        more = f" and {len(call.edits) - 1} more" if len(call.edits) > 1 else ""
        return printable_end(call.path or "") + more
    if call.pattern is not None:
        place = f" in {printable_end(call.path)}" if call.path else ""
        return f'"{printable(call.pattern, SUBJECT)}"{place}'
    if call.path:
        return printable_end(call.path)
    return printable(call.other or call.details or call.command or "", SUBJECT)


def key_lines(old: Old, lines: Sequence[str], code: int | None) -> list[str]:
    """Up to three lines of an output, by the kind of tool."""
    call = old.call
    if old.failed or (call.kind == COMMAND and not call.read and not call.shows):
        return last_lines(lines, errors=old.failed or code != 0)
    telling = [line for line in lines if is_telling(line)][:3]
    if call.read:
        return outline_of(lines, call.read[0]) or [without_number(line[:LOOK]) for line in telling[:1]]
    if call.kind == "web":
        return headings_of(lines) or telling[:1]
    if call.kind == EDIT:
        return []
    if call.path and call.kind in ("search", "list"):
        folder = call.path.rstrip("/") + "/"
        return [line.removeprefix(folder) for line in telling]
    return telling[:1] if call.kind == "other" else telling


def outline_of(lines: Sequence[str], path: str) -> list[str]:
    """The first three headings or definitions at the left margin; if there are none, the first inside of something."""
    shown = [without_number(line[:LOOK]) for line in lines[:LINES]]
    has_headings = lower(path).endswith(HEADINGS)
    margin = [line for line in shown if (has_headings and is_heading(line)) or is_definition(line)]
    return (margin or [line for line in shown if is_definition(line.lstrip(" \t"))])[:3]


def headings_of(lines: Sequence[str]) -> list[str]:
    """The first three headings that stand in no code."""
    found, in_code = [], False
    for line in lines[:LINES]:
        in_code ^= line.startswith("```")
        if not in_code and is_heading(line):
            found.append(line)
    return found[:3]


def is_heading(line: str) -> bool:
    """One to six `#` and a space."""
    return re.match("#{1,6} ", line) is not None


def is_definition(line: str) -> bool:
    """Whether a line begins like a definition, and is more than the opening of a list."""
    return line.startswith(DEFINITIONS) and not line.endswith("(")


def without_number(line: str) -> str:
    """A line without the number that some tools put in front of it."""
    return re.sub("^ *[0-9]+(?:[\t\u2192]|[|:.] ?)", "", line, count=1)


def last_lines(lines: Sequence[str], *, errors: bool) -> list[str]:
    """The last two lines that speak of an error, if there can be any, and the last line that says anything."""
    recent = [line for line in lines[-NEWEST_LINES:] if is_telling(line) and code_in(line[:LOOK]) is None]
    spoken = [line for line in recent if errors and speaks_of_error(line)]
    return [*spoken[-2:], *(recent[-1:] if recent[-1:] != spoken[-1:] else [])]


def speaks_of_error(line: str) -> bool:
    """Whether one of the words for errors occurs, but not in an option, and not to say that there are none."""
    line = lower(line[:LOOK])
    starts = [found.start() for word in ERRORS for found in re.finditer(word, line)]
    return any(not re.search("(?:^|[^0-9])0 $|no $|-$", line[:start]) for start in starts)


def is_telling(line: str) -> bool:
    """Whether a line has two letters and does not only stand around something."""
    line = line[:LOOK]
    letters = sum("a" <= char <= "z" or "A" <= char <= "Z" or char > "\x7f" for char in line)
    return letters >= 2 and not line.lstrip(" \t").startswith(WRAPPERS)


def blank(line: str) -> bool:
    """Whether a line has nothing but white space."""
    return not line.strip(" \t\r\f\v")


def printable(text: str, most: int) -> str:
    """A text on one line, without what terminals obey, cut at its end."""
    text = clean(text)
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def printable_end(path: str) -> str:
    """A path likewise, cut at its beginning."""
    path = clean(path)
    return path if len(path) <= SUBJECT else f"\u2026{path[1 - SUBJECT :]}"


def clean(text: str) -> str:
    """Without colours; one space for each control character, none at the ends."""
    text = re.sub("\x1b\\[[^@-~]*[@-~]?|\x1b", "", text)
    return well_formed(re.sub("[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)).strip(" ")


def is_like_a_call(text: str) -> bool:
    """Whether a model, or a parser of its answers, could take a text for a tool call."""
    return any(part in text for part in LIKE_A_CALL)


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number and a noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
