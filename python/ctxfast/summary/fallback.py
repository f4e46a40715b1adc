"""A summary without a model: what users said, word for word, and what tool calls tell. Nothing is guessed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ctxfast._core import TokenCounter, turn_starts
from ctxfast.summary.checking import clean_summary, sections_of
from ctxfast.summary.prompts import SECTIONS, earlier_summaries
from ctxfast.summary.reading import GAP, Message, Output, clip, clip_to, quiet, read, tokens_of_option

__all__ = ["fallback_summary", "finished_segments", "segment_line"]

GOAL, USERS, STATE, ERRORS, FILES, NEXT, FACTS = SECTIONS
NOTHING = "(none)"
WITHOUT_A_MODEL = "- (written without a model: see the newest instruction and the last words under State)"
LEFT_OUT = "- (older ones are left out)"
IN_PROGRESS = "- In progress, the assistant's last words: "
DEFAULT_TOKENS = 2_000
_SHARES = ((GOAL, 0.15), (USERS, 0.5), (ERRORS, 0.15), (NEXT, 0.05), (FILES, 0.1), (STATE, 0.1), (FACTS, 0.1))
_ERROR_WORD = re.compile(r"error|fail|exception|fatal|panic|traceback|denied|not found", re.IGNORECASE)
_RAN = re.compile(r"\A- Ran: (.+): (?:exit code -?\d+|failed|no failure)\Z", re.DOTALL)
_READ = re.compile(r"\A- Read: (.+?)(?: \(lines ([\d, tohend-]+)\))?\Z")


class Item(NamedTuple):
    """One entry of a section."""

    key: str
    """What it is about: a later one about the same takes its place."""
    text: str


def fallback_summary(
    messages: Sequence[Any],
    previous_summary: str | None = None,
    *,
    max_tokens: float = DEFAULT_TOKENS,
    counter: TokenCounter | None = None,
) -> str:
    """A summary without a model, with the sections of `SUMMARY_TEMPLATE`, of at most `max_tokens` tokens of `counter`.

    In it are what users said and decided, word for word (a text with more than a quarter of `max_tokens` without its
    middle), failures that nothing has made up for, files that were read, with lines, and changed, commands with their
    exit codes, finished segments, and the assistant's last words. `previous_summary`, or one that is found in the
    messages, is continued: what it says stays, unless something newer about the same file, command or failure is known.
    If there is not room for everything, the oldest goes first, and what users said last.

    The same input gives the same text, and so does feeding it its own output. Raises `BudgetError` for a number of
    tokens that is none, `MessageTypeError` or `MessageValueError` for a message that cannot be read.

    >>> print(fallback_summary([{"role": "user", "content": "Never touch prod."}]).split("## State")[0].rstrip())
    ## Goal
    - Never touch prod.
    <BLANKLINE>
    ## User instructions and decisions
    - Never touch prod.
    """
    counter = TokenCounter.default() if counter is None else counter
    limit = tokens_of_option("max_tokens", max_tokens) or DEFAULT_TOKENS
    told = read(messages, counter)
    before = earlier_summaries(told, previous_summary)
    earlier, now = condensed(before), collected(told, turn_starts(messages))
    sections = {name: merged(name, earlier[name], now[name], told) for name in SECTIONS}
    most_telling = [*before, *(item.text for item in now[USERS])][-1:]
    return fitted(sections, limit, counter, "".join(most_telling))


def fallback_of_summaries(summaries: Sequence[str], limit: int, counter: TokenCounter) -> str:
    """One summary of several, the oldest first, without a model."""
    return fitted(condensed(summaries), limit, counter, "\n\n".join(summaries))


def condensed(summaries: Sequence[str]) -> dict[str, list[Item]]:
    """The entries of several summaries, the oldest first: each thing as the newest has it."""
    sections: dict[str, list[Item]] = {name: [] for name in SECTIONS}
    for summary in summaries:
        for name, items in earlier_items(summary).items():
            sections[name] = merged(name, sections[name], items, ())
    return sections


def fitted(sections: dict[str, list[Item]], limit: int, counter: TokenCounter, instead: str) -> str:
    """The summary, or as much of it as fits; where not even the headings do, the ends of another text."""
    if limit < counter.text(written({name: [LEFT_OUT] for name in SECTIONS})):
        return clip_to(instead, limit, counter)
    short = {name: [clip_to(item.text, limit // 4, counter) for item in items] for name, items in sections.items()}
    sizes = {text: counter.text(text) + 1 for texts in short.values() for text in [*texts, LEFT_OUT]}
    room = limit - counter.text(written({}))
    # in fixed steps, so that the same entries are found again when this is fed back
    for rest in range(room, 0, -max(room // 50, 1)):
        text = written(chosen(short, rest, sizes))
        if counter.text(text) <= limit:
            return text
    return written(chosen(short, 0, sizes))


def segment_line(messages: Sequence[Any]) -> str:
    """A finished segment in two or three lines: what was asked, what was done, what came of it. Deterministic.

    `messages` are those of one turn, as `finished_segments` gives them. Raises `MessageTypeError` or
    `MessageValueError` for a message that cannot be read.
    """
    return "\n".join(lines_of_segment(read(messages)))


def finished_segments(messages: Sequence[Any]) -> list[tuple[int, int]]:
    """The finished segments of a list, as half-open ranges of indices, the oldest first.

    A segment is finished if it is a turn that a later turn follows, and if no failure in it is still open at the end of
    the list (a later success of the same tool with the same file or command makes up for it). Raises `MessageTypeError`
    or `MessageValueError` for a message that cannot be read.
    """
    told = read(messages)
    return segments_of(told, turn_starts(messages))


# ------------------------------------------------------------------------------------------------ collecting


def collected(told: Sequence[Message], starts: Sequence[int]) -> dict[str, list[Item]]:
    """What a conversation gives for each section, the oldest first, each thing once."""
    sections: dict[str, list[Item]] = {name: [] for name in SECTIONS}
    users = [user_item(message) for message in told if message.own_text and (message.text.strip() or message.media)]
    decisions = [
        (message.index, bullet(f"(decided in {output.tool}) {quiet(output.text).strip()}"))
        for message in told
        for output in message.outputs
        if output.kept and not output.failed and output.text.strip()
    ]
    spoken = [(message.index, message.text) for message in told if message.role == "assistant" and message.text.strip()]
    if users:
        sections[GOAL] = [Item(GOAL, clip(users[-1][1], 400))]
    sections[USERS] = once(Item(text, text) for _, text in sorted([*users, *decisions], key=lambda one: one[0]))
    for start, stop in segments_of(told, starts):
        text = "\n".join(lines_of_segment(told[start:stop]))
        sections[STATE].append(Item(text, text))
    if spoken:
        last = bullet(quiet(clip(spoken[-1][1].strip(), 1_200)))
        sections[STATE].append(Item(IN_PROGRESS, IN_PROGRESS + last[2:]))
        sections[NEXT] = [
            Item(NEXT, "- Written without a model: see the newest instruction and the last words under State.")
        ]
    sections[STATE] = once(sections[STATE])
    sections[ERRORS] = once(error_item(output) for _, output in open_errors(told))
    outputs = [output for message in told for output in message.outputs]
    sections[FILES] = files_of(outputs)
    sections[FACTS] = once(ran_item(output) for output in outputs if output.kind == "command" and output.command)
    return sections


def user_item(message: Message) -> tuple[int, str]:
    """What a user says."""
    remark = f" [{message.media} attachments]" if message.media else ""
    return message.index, bullet(quiet(message.text.strip()) + remark)


def bullet(text: str) -> str:
    """A text as an entry of a list; further lines are indented, so that none of them begins another one."""
    lines = [f"  {line}" if line.strip() else "" for line in text.strip().splitlines()]
    return f"- {chr(10).join(lines)[2:]}"


def once(items: Iterable[Item]) -> list[Item]:
    """The newest item for each key."""
    found: dict[str, Item] = {}
    for item in items:
        found.pop(item.key, None)
        found[item.key] = item
    return list(found.values())


def open_errors(told: Sequence[Message]) -> list[tuple[int, Output]]:
    """Failures that no later success of the same tool with the same target has made up for, with their messages."""
    found: dict[tuple[str, str | None], tuple[int, Output]] = {}
    for message in told:
        for output in message.outputs:
            key = (output.tool, output.target)
            found.pop(key, None)
            if output.failed:
                found[key] = (message.index, output)
    return list(found.values())


def error_key(output: Output) -> str:
    """By what a failure is known."""
    subject = clip(quiet(" ".join(output.subject.split())).replace("`", "'"), 160, 1)
    return f"- {clip(quiet(output.tool), 60) or 'a tool'}" + (f" `{subject}`" if subject else "")


def error_item(output: Output) -> Item:
    """A failure with its telling line."""
    lines = [line.strip() for line in output.text.splitlines() if re.search(r"\w\w", line)]
    telling = [line for line in lines if _ERROR_WORD.search(line)][-1:] or lines[-1:]
    code = "failed" if output.exit_code is None else f"exit code {output.exit_code}"
    said = f": {clip(quiet(telling[0]), 300)}" if telling else ""
    return Item(error_key(output), f"{error_key(output)}: {code}{said}")


def ran_item(output: Output) -> Item:
    """A command with what came of it."""
    command = clip(quiet(" ".join((output.command or "").split())), 160, 1)
    code = "failed" if output.failed else "no failure"
    if output.exit_code is not None:
        code = f"exit code {output.exit_code}"
    return Item(f"- Ran: {command}", f"- Ran: {command}: {code}")


def files_of(outputs: Sequence[Output]) -> list[Item]:
    """Files that were read, with lines, and then those that were changed: the newest last."""
    reads: dict[str, list[tuple[int, int | None]]] = {}
    edits: dict[str, None] = {}
    for output in outputs:
        if output.failed:
            continue
        for path in output.edits:
            edits.pop(one_line(path), None)
            edits[one_line(path)] = None
        if output.path and output.kind in ("read", "command"):
            path = one_line(output.path)
            reads[path] = joined([*reads.pop(path, []), output.lines or (1, None)])
    return [
        *(read_item(path, lines) for path, lines in reads.items()),
        *(Item(f"- Changed: {path}", f"- Changed: {path}") for path in edits),
    ]


def one_line(path: str) -> str:
    """A path as it is shown."""
    return quiet(" ".join(path.split()))


def read_item(path: str, lines: Sequence[tuple[int, int | None]]) -> Item:
    """A file that was read."""
    key = f"- Read: {path}"
    if list(lines) == [(1, None)]:
        return Item(key, key)
    spans = ", ".join(f"{first} to the end" if last is None else f"{first}-{last}" for first, last in lines)
    return Item(key, f"{key} (lines {spans})")


def joined(lines: Sequence[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Spans of lines, those that touch as one."""
    result: list[tuple[int, int | None]] = []
    for first, last in sorted(lines, key=lambda span: span[0]):
        if result and (result[-1][1] is None or first <= (result[-1][1] or 0) + 1):
            before = result[-1]
            end = None if before[1] is None or last is None else max(before[1], last)
            result[-1] = (before[0], end)
        else:
            result.append((first, last))
    return result


def segments_of(told: Sequence[Message], starts: Sequence[int]) -> list[tuple[int, int]]:
    """The finished segments."""
    still_open = [index for index, _ in open_errors(told)]
    # an own summary says what was before, and is no turn that anybody has opened
    starts = [start for start in starts if told[start].own_text]
    pairs = itertools.pairwise(starts)
    return [(start, stop) for start, stop in pairs if not any(start <= index < stop for index in still_open)]


def lines_of_segment(told: Sequence[Message]) -> list[str]:
    """Two or three lines: asked, did, result."""
    asked = next((message.text for message in told if message.role == "user" and message.own_text), "")
    spoken = next((one.text for one in reversed(told) if one.role == "assistant" and one.text.strip()), "")
    outputs = [output for message in told for output in message.outputs]
    edits = list(dict.fromkeys(one_line(path) for output in outputs if not output.failed for path in output.edits))
    reads = len({output.path for output in outputs if output.kind == "read" and output.path})
    commands = [output for output in outputs if output.kind == "command" and output.command]
    others = len(outputs) - sum(output.kind in ("read", "edit", "command") for output in outputs)
    did = []
    if edits:
        more = f" and {len(edits) - 4} more" if len(edits) > 4 else ""
        did.append(f"changed {', '.join(clip(path, 80, 0.2) for path in edits[:4])}{more}")
    if reads:
        did.append(f"read {counted(reads, 'file')}")
    if commands:
        last = ran_item(commands[-1]).text.removeprefix("- Ran: ")
        did.append(f"ran {counted(len(commands), 'command')}, the last one {clip(last, 100)}")
    if others > 0:
        did.append(f"used {counted(others, 'other tool call')}")
    lines = [f"- Asked: {in_short(asked, 160) or '(nothing)'}"]
    if did:
        lines.append(f"  Did: {'; '.join(did)}.")
    lines.append(f"  Result: {in_short(spoken, 240) or '(nothing was said)'}")
    return lines


def in_short(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    return clip(quiet(" ".join(text[: 4 * most].split())), most, 1)


def counted(number: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# ------------------------------------------------------------------------------------------------ what was before


def earlier_items(summary: str) -> dict[str, list[Item]]:
    """The entries of an earlier summary, by section; one without sections is a fact."""
    text = clean_summary(summary)
    sections = sections_of(text)
    if not sections:
        texts = list(entries(text.split("\n"))) if text.startswith("- ") else [bullet(text)] if text else []
        return {FACTS: [Item(text, text) for text in texts]}
    return {name: [Item(key_of(name, text), text) for text in entries(lines)] for name, lines in sections.items()}


def entries(lines: Iterable[str]) -> Iterator[str]:
    """The entries of a section: each begins at the margin; what is indented goes on."""
    entry: list[str] = []
    for line in [*lines, "-"]:
        if line.startswith((" ", "\t")) and entry:
            entry.append(line)
        elif line.strip():
            text = "\n".join(entry).rstrip()
            if text and text not in (NOTHING, f"- {NOTHING}"):
                yield text
            entry = [line if line.startswith("- ") else f"- {line.removeprefix('* ')}"]
        elif entry:
            entry.append(line)


def key_of(section: str, text: str) -> str:
    """By what an entry of an earlier summary is known."""
    if section in (GOAL, NEXT):
        return section
    if section == STATE and text.startswith(IN_PROGRESS):
        return IN_PROGRESS
    if section == FACTS and (found := _RAN.match(text)):
        return f"- Ran: {found[1]}"
    if section == FILES and (found := _READ.match(text)):
        return f"- Read: {found[1]}"
    if section == ERRORS and (found := re.match(r"- [^`\n:]{1,60}(?: `[^`\n]*`)?(?=: )", text)):
        return found[0]
    return text


def merged(section: str, before: Sequence[Item], now: Sequence[Item], told: Sequence[Message]) -> list[Item]:
    """Earlier entries and newer ones, the oldest first: what is newer takes the place of what is about the same."""
    newer, texts = {item.key: item for item in now}, {item.text for item in now}
    gone: set[str] = set()
    if section == ERRORS:
        gone = {error_key(output) for one in told for output in one.outputs if not output.failed}
    kept = []
    for item in before:
        if section == FILES and item.key in newer and (spans := spans_of(item.text)):
            lines = joined([*spans, *(spans_of(newer[item.key].text) or [])])
            newer[item.key] = read_item(item.key.removeprefix("- Read: "), lines)
        elif not (item.key in newer or item.key in gone or item.text in texts or is_cut_from_any(item.text, now)):
            kept.append(item)
    if section in (GOAL, NEXT) and now:
        kept = []
    return once([*kept, *newer.values()])


def spans_of(text: str) -> list[tuple[int, int | None]]:
    """The lines that an entry about a file names; nothing if it is about no read."""
    found = _READ.match(text)
    if not found:
        return []
    if not found[2]:
        return [(1, None)]
    spans: list[tuple[int, int | None]] = []
    for span in found[2].split(", "):
        numbers = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})| to the end)", span)
        if numbers:
            spans.append((int(numbers[1]), int(numbers[2]) if numbers[2] else None))
    return spans


def is_cut_from_any(short: str, items: Sequence[Item]) -> bool:
    """Whether a text is one of these without its middle."""
    return GAP in short and any(is_cut_from(short, item.text) for item in items)


def is_cut_from(short: str, whole: str) -> bool:
    """Whether a text is another one without its middle."""
    place = short.find(GAP)
    while place >= 0:
        if len(short) < len(whole) and whole.startswith(short[:place]) and whole.endswith(short[place + len(GAP) :]):
            return True
        place = short.find(GAP, place + 1)  # the other one may have been cut before
    return False


# ------------------------------------------------------------------------------------------------ writing


def written(sections: dict[str, list[str]]) -> str:
    """The summary."""
    return "\n\n".join(f"## {name}\n" + "\n".join(sections.get(name) or [NOTHING]) for name in SECTIONS)


def chosen(sections: dict[str, list[str]], room: int, sizes: dict[str, int]) -> dict[str, list[str]]:
    """Entries that fit, the newest of each section first, and shown the oldest first.

    Users have half of the room before anything else, and errors, files, state and facts their shares; what is left goes
    to all of them in this order. `sizes` are the tokens of the entries.
    """
    taken: dict[str, set[int]] = {name: set() for name in SECTIONS}
    left = room

    def take(name: str, most: float) -> None:
        """Takes the newest entries of a section that are not taken, until one does not fit."""
        nonlocal left
        texts, used = sections[name], 0
        for index in range(len(texts) - 1, -1, -1):
            text = texts[index]
            if index in taken[name] or text in ("", LEFT_OUT):
                continue
            if used + sizes[text] > most or sizes[text] > left:
                break
            used, left = used + sizes[text], left - sizes[text]
            taken[name].add(index)

    for name, share in _SHARES:
        take(name, share * room)
    for name in (USERS, *dict(_SHARES)):
        take(name, left)
    lines = {}
    for name, texts in sections.items():
        shown = [texts[index] for index in sorted(taken[name])]
        lines[name] = shown if len(shown) == len(texts) else [LEFT_OUT, *shown]
    return lines
