"""Whether a summary can be accepted, and what it is without a model's wrapping."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ctxfast._core import TokenCounter
from ctxfast.summary.prompts import SECTIONS
from ctxfast.summary.reading import END_MARK, MARK, quiet, sane, tokens_of_option

__all__ = ["SummaryCheck", "SummaryProblem", "check_summary", "clean_summary", "summary_text"]

Code = Literal[
    "not_text",
    "empty",
    "error_text",
    "missing_sections",
    "above_target",
    "not_smaller",
    "raised",
    "timed_out",
    "no_room",
]


@dataclass(frozen=True)
class SummaryProblem:
    """Why a summary was not accepted."""

    code: Code
    """`not_text`: it is no string; `empty`; `error_text`: it is an error message; `missing_sections`; `above_target`:
    it has more tokens than it may; `not_smaller`: than what it replaces. Of `summarise` alone: `raised`: the summariser
    raised an exception; `timed_out`; `no_room`: the prompt does not fit the summariser."""
    detail: str
    """The same as a sentence, with numbers."""
    found: int | None = None
    """Tokens, characters or sections that there are."""
    limit: int | None = None
    """And how many there may or should be."""


@dataclass(frozen=True)
class SummaryCheck:
    """What `check_summary` found."""

    text: str
    """The summary without code fence, introduction, tags and anything that looks like a tool call."""
    tokens: int
    problems: tuple[SummaryProblem, ...]

    @property
    def ok(self) -> bool:
        """Whether it can be accepted."""
        return not self.problems


def check_summary(
    summary: object,
    source_tokens: float | None = None,
    *,
    source_characters: int | None = None,
    target_tokens: float | None = None,
    structured: bool = True,
    counter: TokenCounter | None = None,
) -> SummaryCheck:
    """Whether a summary can stand in the place of its source, and what is in the way.

    It must be a text that says something and is no error message; with `structured` it must have all sections of
    `SUMMARY_TEMPLATE`; it may have at most `target_tokens` tokens of `counter`, and as the message that
    `insert_summary` makes of it it must be smaller than `source_tokens` and shorter than `source_characters`. What is
    `None` is not asked. Before that it is cleaned: models wrap summaries in code fences and tags, and introduce them.
    Nothing that is in `summary` raises; `BudgetError` is raised for a number of tokens that is none.

    >>> check_summary("Renamed parse() to read().", source_tokens=400, structured=False).ok
    True
    >>> print(check_summary("```\\nHere is the summary:\\n\\n## Goal\\nTests pass.\\n```").problems[0].detail)
    6 of 7 sections are missing: User instructions and decisions, State, Open errors, Files, Next step, Facts
    """
    counter = TokenCounter.default() if counter is None else counter
    source, target = tokens_of_option("source_tokens", source_tokens), tokens_of_option("target_tokens", target_tokens)
    if not isinstance(summary, str):
        problem = SummaryProblem("not_text", f"the summary is no text but `{type(summary).__name__}`")
        return SummaryCheck("", 0, (problem,))
    text = clean_summary(summary)
    tokens = counter.text(text)
    if not re.search(r"\w", text):
        return SummaryCheck("", 0, (SummaryProblem("empty", "the summary says nothing", 0, 1),))
    problems = []
    if _ERROR.match(text):
        problems.append(SummaryProblem("error_text", "the summary is an error message"))
    if structured and (missing := [name for name in SECTIONS if name not in sections_of(text)]):
        count = f"{len(missing)} of {len(SECTIONS)} sections are missing"
        found = len(SECTIONS) - len(missing)
        problems.append(SummaryProblem("missing_sections", f"{count}: {', '.join(missing)}", found, len(SECTIONS)))
    if target is not None and tokens > target:
        detail = f"the summary has {tokens:,} tokens and may have {target:,}"
        problems.append(SummaryProblem("above_target", detail, tokens, target))
    placed = {"role": "user", "content": summary_text(text)}
    size = counter.message(placed)
    length = len(placed["content"])
    if source is not None and size >= source:
        detail = f"the summary has {size:,} tokens in its place, what it replaces has {source:,}"
        problems.append(SummaryProblem("not_smaller", detail, size, source))
    elif source_characters is not None and length >= source_characters:
        detail = f"the summary has {length:,} characters in its place, what it replaces has {source_characters:,}"
        problems.append(SummaryProblem("not_smaller", detail, length, source_characters))
    return SummaryCheck(text, tokens, tuple(problems))


def summary_text(summary: str) -> str:
    """A summary as it stands in a message, with the marks by which it is known again."""
    return f"{MARK}\n{summary.strip()}\n{END_MARK}"


_THOUGHTS = ("think", "thinking", "analysis", "scratchpad")
_TAGS = ("summary", "state_snapshot")
_FENCE = re.compile(r"\A(`{3,}|~{3,})(?:markdown|md|text|txt|plaintext|xml)?[ \t]*\n", re.IGNORECASE)
_INTRODUCTION = re.compile(
    r"\A(?:(?:sure|okay|ok|certainly|of course)\b[^\n]{0,120}"
    r"|(?:here(?:'s| is| are)\b|below is\b|this is\b)[^\n]{0,120}"
    r"|(?:the )?(?:updated |structured |conversation )?summary(?: of the conversation)?(?: so far)?)"
    r"\s{0,4}:\**[ \t]*\n+",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"error(?: code)?\s{0,4}:|[\w.]{0,60}(?:Error|Exception):\s|traceback \(most recent call last\)|\{\s{0,9}\"error\"",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\A(?:#{1,6}[ \t]+|\*\*)?(?:\d\.[ \t]*)?([^:*#]{1,60}?)[ \t]*:?(?:\*\*)?[ \t]*:?[ \t]*#*\Z")
_RUN_IN = re.compile(r"\A\*\*([^:*]{1,60}):?\*\*:?[ \t]+(?=\S)")


def clean_summary(summary: str) -> str:
    """A summary without what models put around it: thoughts, tags, a code fence, an introduction, our own marks.

    Headings of the template are written as it has them, and what looks like a tool call so that it no longer does.
    """
    text = sane(summary).replace("\r\n", "\n").replace(MARK, "").replace(END_MARK, "").strip()
    for tag in _THOUGHTS:
        text = without_thoughts(text, tag)
    for _ in range(3):  # one may be in the other
        before = text
        text = without_fence(without_tags(_INTRODUCTION.sub("", text).strip()))
        if text == before:
            break
    text = "\n".join(heading_or_line(line) for line in text.split("\n"))
    place = text.find(f"\n## {SECTIONS[0]}\n")
    if 0 <= place <= 400 and not text.startswith("#"):
        text = text[place + 1 :]  # an introduction in words of its own
        lines = text.rstrip().split("\n")
        if lines[-1].strip() in ("```", "~~~") and sum(line.startswith(lines[-1].strip()) for line in lines) % 2:
            text = "\n".join(lines[:-1])
    return quiet(text).strip()


def without_thoughts(text: str, tag: str) -> str:
    """A text that begins with thoughts between tags, without them."""
    if text[: len(tag) + 2].lower() == f"<{tag}>":
        end = text.lower().find(f"</{tag}>")
        if end >= 0:
            return text[end + len(tag) + 3 :].strip()
    return text


def without_tags(text: str) -> str:
    """What is between tags that say that it is the summary."""
    for tag in () if text.startswith("## ") else _TAGS:
        start = text[:400].lower().find(f"<{tag}>")
        if start >= 0:
            inner = text[start + len(tag) + 2 :]
            end = inner.lower().rfind(f"</{tag}>")
            return (inner if end < 0 else inner[:end]).strip()
    return text


def without_fence(text: str) -> str:
    """A text without a code fence around all of it."""
    fence = _FENCE.match(text)
    if not fence:
        return text
    inner = text[fence.end() :].rstrip()
    if inner.endswith(fence[1]) and inner.removesuffix(fence[1]).strip():
        return inner.removesuffix(fence[1]).strip()
    return text


def heading_or_line(line: str) -> str:
    """A line; a heading of the template as the template has it."""
    if (found := _RUN_IN.match(line)) and (name := _NAMES.get(found[1].strip().lower())):
        return f"## {name}\n{line[found.end() :]}"
    if len(line) > 80 or not (found := _HEADING.match(line)):
        return line
    is_marked = line.lstrip().startswith(("#", "**")) or line.rstrip().endswith(":")
    name = _NAMES.get(found[1].strip().lower()) if is_marked else None
    return f"## {name}" if name else line


_NAMES = {name.lower(): name for name in SECTIONS}


def sections_of(text: str) -> dict[str, list[str]]:
    """The lines of each section of the template that a cleaned summary has."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("## ") and line[3:].strip() in SECTIONS:
            lines = sections.setdefault(line[3:].strip(), [])
        else:
            lines.append(line)
    return sections
