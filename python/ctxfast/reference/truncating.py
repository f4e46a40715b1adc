"""Where a long tool output is cut to its ends, and the line between them. A character is a grapheme cluster here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ctxfast.reference.tools import COMMAND, READ, well_formed

CUTS = 8  # how often a shorter cut is tried


@dataclass(frozen=True)
class Cut:
    """What is kept at both ends, in characters, and what that leaves out."""

    head: int
    tail: int
    lines: int
    bytes: int


def cut(text: str, chars: int, head_percent: int) -> Cut:
    """The ends of a text that is longer than `chars`: whole lines where these are half of what there is room for."""
    head = head_of(text, chars // 100 * head_percent + chars % 100 * head_percent // 100)
    tail = 0 if head_percent == 100 else tail_of(text, chars - head)
    gap = text[head : len(text) - tail]
    left_out = gap.count("\n") + 1
    shown = (head > 0) + (tail > 0 or text.endswith("\n"))
    return Cut(head, tail, max(left_out - shown, 0), len(gap.encode("utf-8", "surrogatepass")))


def head_of(text: str, most: int) -> int:
    """Characters of the head."""
    part = text[:most]
    if text[most - 1 : most + 1] == "\r\n":  # which is one cluster
        part = part[:-1]
    feed = text.rfind("\n", 0, most + 1)
    if feed < 0 or (feed == most and not part):
        return len(part)
    whole = feed - (text[feed - 1 : feed] == "\r" and feed > 0)
    return whole if whole >= (most + 1) // 2 else len(part)


def tail_of(text: str, most: int) -> int:
    """Characters of the tail."""
    start = len(text) - most
    feed = text.find("\n", max(start - 1, 0), len(text) - 1)
    whole = len(text) - feed - 1 if feed >= 0 else 0
    if text[start - 1 : start + 1] == "\r\n" and start > 0:
        start += 1
    best = whole if whole >= (most + 1) // 2 and whole else len(text) - start
    return best if text[len(text) - best :].strip("\n") else 0


def marker(lines: int, size: int, stored: str | None) -> str:
    """The line in the gap."""
    missing = [f"{lines:,} line{'s' * (lines != 1)}"] if lines else []
    missing.append(f"{size:,} byte{'s' * (size != 1)}")
    saved = "not saved" if stored is None else f"saved as {stored}"
    return f"[Tool output truncated: {', '.join(missing)} omitted, {saved}]"


def ends(text: str, kind: str, whole: int, tokens: int, count: Callable[[str], int], stored: str | None) -> str:
    """The ends of an output of `whole` tokens within so many, with a line between them; or that line alone."""
    percent = {COMMAND: 20, READ: 100}.get(kind, 50)

    def shortened(chars: int) -> str:
        if chars >= len(text):
            return well_formed(text)
        at = cut(text, chars, percent)
        parts = text[: at.head], marker(at.lines, at.bytes, stored), text[len(text) - at.tail :]
        return "\n".join(well_formed(part) for part in parts if part)

    room = max(tokens - count(shortened(0)), 0)
    chars = min(len(text) * room // max(whole, 1), len(text))
    for _ in range(CUTS):
        found = count(shortened(chars))
        if found <= tokens:
            return shortened(chars)
        left = max(room - (found - tokens), 0)
        chars = min(chars * left // max(left + found - tokens, 1), chars)
        room = left
    return shortened(0)
