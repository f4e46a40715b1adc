"""The short text that replaces an old tool output: one line of facts, and up to three lines of what was there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxfast.reference.tools import COMMAND, EDIT, END, READ, Call, exit_code, lower, well_formed

MARK = "[Tool output pruned"  # how a stub begins; PicoClaw's plan begins like this, too
FOREIGN = ("[Old tool result content cleared]",)  # stubs of OpenCode and Claude Code
MOST = 400  # characters of a stub
WIDTH = 80  # characters of a line of what was there
SUBJECT = 120  # characters of a path, a command, a pattern
NAME = 40  # characters of a tool's name
LOOK = 200  # characters of a line that are looked at
LINES = 200  # lines in which an outline is sought
NEWEST_LINES = 20  # lines in which an error is sought
LIKE_A_CALL = ("<tool_call", "<function", "<invoke", "[tool_use", '"name":', "```")
ERRORS = ("error", "fail", "exception", "fatal", "panic", "traceback")
HEADINGS = (".md", ".mdx", ".markdown", ".rst", ".txt")  # where `#` is no comment
DEFINITIONS = (
    *("def ", "async def ", "class ", "fn ", "pub ", "impl ", "struct ", "enum ", "trait ", "mod ", "func "),
    *("function ", "export ", "interface ", "type ", "module ", "package ", "public ", "private ", "namespace "),
    *("CREATE ", "create table ", "const ", "abstract ", "protected ", "static "),
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
    return text.startswith((MARK, *FOREIGN)) or (own is not None and text.startswith(own))


def stub(old: Old, remark: str | None = None) -> str:
    """The text that replaces an output. The same output gives the same text, whatever comes later."""
    call, text = old.call, old.text
    name = printable(old.tool, NAME)
    facts = ["tool" if not name or is_like_a_call(name) else name]
    subject = subject_of(call)
    if subject and not is_like_a_call(subject):
        facts[0] += f" {subject}"
    if call.read and (call.read[1] > 1 or call.read[2] < END):
        last = "the end" if call.read[2] == END else f"{call.read[2]}"
        facts.append(f"lines {call.read[1]} to {last}")
    code = exit_code(text) if call.kind in (COMMAND, "other") else None
    if code is not None:
        facts.append(f"exit code {code}")
    elif old.failed:
        facts.append("failed")
    filled = [line for line in text.split("\n") if not blank(line)]
    if call.kind == "search":
        places = [line.split(":")[0] for line in filled if re.match("[^:]*:[0-9]", line)]
        files = sum(place != before for place, before in zip(places, [None, *places], strict=False))
        facts.append(
            f"{plural(len(places), 'match', 'matches')} in {plural(files, 'file')}"
            if places
            else plural(len(filled), "hit")
        )
    elif call.kind == "list":
        facts.append(plural(len(filled), "entry", "entries"))
    else:
        facts.append(plural(text.count("\n") + (not text.endswith("\n")) if text else 0, "line"))
    facts.append(plural(len(text), "character"))
    if old.attachments:
        facts.append(plural(old.attachments, "attachment"))
    if remark:
        facts.append(remark)
    result = f"{MARK}: {', '.join(facts)}]"
    for line in key_lines(old):
        shown = printable(line[:LOOK], WIDTH)
        if shown and not is_like_a_call(shown) and len(result) + 1 + len(shown) <= MOST:
            result += f"\n{shown}"
    return result


def with_id(text: str, store_id: str) -> str:
    """A stub with the id under which the output has been saved: the last fact. Lines for which there is no room go."""
    facts, *lines = text.split("\n")
    result = f"{facts.removesuffix(']')}, saved as {printable(store_id, SUBJECT)}]"
    for line in lines:
        if len(result) + 1 + len(line) > MOST:
            break
        result += f"\n{line}"
    return result


def subject_of(call: Call) -> str:
    """What the call was about: a path, a command, a pattern, a URL."""
    if call.kind == COMMAND:
        return printable((call.command or "").split("\n")[0], SUBJECT)
    if call.kind in (READ, EDIT):
        more = f" and {len(call.edits) - 1} more" if len(call.edits) > 1 else ""
        return printable_end(call.path or "") + more
    if call.pattern is not None:
        place = f" in {printable_end(call.path)}" if call.path else ""
        return f'"{printable(call.pattern, SUBJECT)}"{place}'
    return printable_end(call.path) if call.path else printable(call.other or call.command or "", SUBJECT)


def key_lines(old: Old) -> list[str]:
    """Up to three lines of an output, by the kind of tool."""
    lines = old.text.split("\n")
    first = [line for line in lines if not blank(line)][:3]
    kind = old.call.kind
    if old.failed or (kind == COMMAND and not old.call.read):
        return last_lines(lines)
    if old.call.read or kind == "web":
        outline = outline_of(lines, old.call.read[0] if old.call.read else ".md")
        return outline or first[:1]
    if kind == EDIT:
        return []
    return first[:1] if kind == "other" else first


def outline_of(lines: list[str], path: str) -> list[str]:
    """The first three headings or definitions that begin at the left margin."""
    found = []
    for line in lines[:LINES]:
        shown = without_number(line[:LOOK])
        is_heading = re.match("#{1,6} ", shown) and lower(path).endswith(HEADINGS)
        if is_heading or shown.startswith(DEFINITIONS):
            found.append(shown)
    return found[:3]


def without_number(line: str) -> str:
    """A line without the number that some tools put in front of it."""
    return re.sub("^ *[0-9]+(?:[\\t\u2192]|[|:] ?)", "", line, count=1)


def last_lines(lines: list[str]) -> list[str]:
    """The last two lines that speak of an error, and the last line that says anything."""
    recent = [line for line in lines[-NEWEST_LINES:] if not blank(line)]
    errors = [line for line in recent if any(word in lower(line[:LOOK]) for word in ERRORS)]
    return [*errors[-2:], *(recent[-1:] if recent[-1:] != errors[-1:] else [])]


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
