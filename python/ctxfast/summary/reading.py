"""What summaries are made of: a conversation as texts and facts, and texts cut to size."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ctxfast import _core
from ctxfast._core import TokenCounter
from ctxfast.errors import BudgetError
from ctxfast.policy import PrunePolicy

__all__ = ["MARK", "Call", "Message", "Output", "clip", "clip_to", "field_of", "quiet", "read", "tokens_of_option"]

MARK = "[Summary of the conversation so far]"
"""How a message with a summary begins: by this it is known again."""
END_MARK = "[End of the summary]"
GAP = " […] "  # stands where a text was cut

# Outputs that hold what users have decided: these stay word for word, like what users say.
DECISIONS = PrunePolicy(keep_tools=("*decision*", "adr*", "*_adr*", "*ask*user*", "exitplanmode"))

_SURROGATES = re.compile("[\ud800-\udfff]")
# What a model, or a parser of its answers, could take for a tool call or for a turn of its template.
_CALLS = re.compile(
    r"<(?=/?(?:antml:)?(?:tool_call|tool_use|tool_result|function|invoke|parameter|think)|\|)"
    r"|\[(?=/?(?:tool_use|tool_call|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|INST)\b)",
    re.IGNORECASE,
)
_JSON_CALL = re.compile(r'"name"(\s*:\s*"[^"\n]{0,80}"\s*,\s*)"(arguments|parameters|input)"(?=\s*:)')


class Call(NamedTuple):
    """A tool call."""

    tool: str
    arguments: str
    """On one line, `name=value` for each."""


@dataclass(frozen=True)
class Output:
    """What a tool said, and what it had been asked."""

    tool: str
    kind: str
    path: str | None
    lines: tuple[int, int | None] | None
    """The lines of a file that were read; `None` at the end: to the end."""
    edits: tuple[str, ...]
    command: str | None
    pattern: str | None
    other: str | None
    details: str | None
    target: str | None
    """What a later success of the same tool must be about to make up for a failure."""
    failed: bool
    exit_code: int | None
    kept: bool
    """A user has decided something in it."""
    text: str
    attachments: int

    @property
    def subject(self) -> str:
        """What it is about, in a few words."""
        if self.kind == "command" and self.command:
            return self.command
        found = (self.path, self.pattern, self.other, self.details, self.command)
        return next((one for one in found if one), "")


@dataclass(frozen=True)
class Message:
    """One message."""

    index: int
    role: str
    """`system`, `user`, `assistant`, `tool` or `other`."""
    own_text: bool
    """A user says something in it."""
    text: str
    media: int
    form: str | None
    """`openai` or `anthropic`, if it can only be of one."""
    thinking: bool
    """It has thinking that must be sent back."""
    tokens: int
    calls: tuple[Call, ...]
    outputs: tuple[Output, ...]
    summary: str | None
    """It is, or holds, a summary that was put in: its text, which is not in `text`."""


def read(messages: Sequence[Any], counter: TokenCounter | None = None) -> list[Message]:
    """A conversation as texts and facts. Raises `MessageTypeError`, `MessageValueError` for what is no message."""
    found = []
    for index, told in enumerate(_core._transcribe(messages, DECISIONS, counter)):
        outputs = tuple(
            Output(**{**output, "edits": tuple(output["edits"]), "text": sane(output["text"])})
            for output in told.pop("outputs")
        )
        calls = tuple(Call(quiet(sane(str(name or "tool"))), arguments_of(value)) for name, value in told.pop("calls"))
        text, summary = sane(told.pop("text")), None
        if told["role"] == "user":
            text, summary = without_summary(text)
            told["own_text"] = told["own_text"] and (summary is None or bool(text.strip()))
        found.append(Message(index=index, text=text, summary=summary, calls=calls, outputs=outputs, **told))
    return found


def without_summary(text: str) -> tuple[str, str | None]:
    """What a user says, and the summary beside it."""
    start = 0 if text.startswith(MARK) else text.find(f"\n{MARK}\n") + 1
    if not text.startswith(MARK, start):
        return text, None
    end = text.find(f"\n{END_MARK}", start)
    stop = len(text) if end < 0 else end + 1 + len(END_MARK)
    body = text[start + len(MARK) : len(text) if end < 0 else end]
    return text[:start] + text[stop:].removeprefix("\n"), body.strip()


def sane(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which no provider takes."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def quiet(text: str) -> str:
    """The text without what could be taken for a tool call: its brackets and quotes are written otherwise."""
    if "<" in text or "[" in text:
        text = _CALLS.sub(lambda found: "‹" if found[0] == "<" else "(", text)
    return _JSON_CALL.sub(r"'name'\1'\2'", text) if '"name"' in text else text


def arguments_of(value: object) -> str:
    """The arguments of a call as `name=value`, on one line."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return " ".join(sane(str(value)).split())
    if isinstance(value, dict):
        shown = [f"{key}={item if isinstance(item, str) else as_json(item)}" for key, item in value.items()]
        return " ".join(sane(", ".join(shown)).split())
    return "" if value is None else " ".join(sane(as_json(value)).split())


def as_json(value: object) -> str:
    """A value like JSON, but with quotes that make it none: nobody shall take it for a call."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str).replace('"', "'")
    except (ValueError, TypeError, RecursionError):
        return "(not readable)"


# ------------------------------------------------------------------------------------------------ cutting


def field_of(value: Any, name: str) -> Any:
    """A field of a message or of a part of it."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def clip(text: str, most: int, share: float = 0.6) -> str:
    """The text without its middle, at most `most` characters; `share` of what stays is its beginning (1: all)."""
    if len(text) <= most:
        return text
    room = most - len(GAP)
    if room < 2:
        return text[: clean_cut(text, max(most, 0))]
    head = int(room * share)
    start = clean_cut(text, head)
    stop = len(text) if share >= 1 else clean_cut(text, len(text) - (room - head), forward=True)
    return (text[:start].rstrip() + GAP + text[stop:].lstrip()).rstrip()


def clip_to(text: str, most: int, counter: TokenCounter, share: float = 0.6) -> str:
    """The same for a number of tokens; nothing if not even the beginning fits."""
    tokens = counter.text(text)
    if tokens <= most:
        return text
    size = min(len(text) - 1, len(text) * most // tokens)
    while size > len(GAP) + 8:
        shorter = clip(text, size, share)
        tokens = counter.text(shorter)
        if tokens <= most:
            return shorter
        size = min(size - 1, size * most // tokens)
    return ""


def clean_cut(text: str, at: int, *, forward: bool = False) -> int:
    """A place near `at` where a text can be cut: at white space, else between characters that belong to no other.

    It lies before `at`, or behind it with `forward`, so that never more is kept.
    """
    at = min(max(at, 0), len(text))
    if at in (0, len(text)):
        return at
    reach = 40
    near = text[at : at + reach] if forward else text[max(at - reach, 0) : at]
    found = re.search(r"\s", near) if forward else re.search(r"\s\S*\Z", near)
    if found:
        return at + found.end() if forward else at - len(near) + found.start()
    step = 1 if forward else -1
    for _ in range(reach):
        if not 0 < at < len(text) or not (is_joined(text[at]) or text[at - 1] == "\u200d"):
            break
        at += step
    return at


def is_joined(char: str) -> bool:
    """Whether a character belongs to the one before: accents, joiners, selectors, skin tones."""
    is_mark = unicodedata.category(char)[0] == "M"
    return is_mark or char == "\u200d" or "\U0001f3fb" <= char <= "\U0001f3ff"


def tokens_of_option(name: str, value: object) -> int | None:
    """A number of tokens that was given, or `None`. Raises `BudgetError` for what is none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BudgetError(f"{name}: expected a number of tokens, got {value!r}")
    if not 1 <= value < float("inf"):  # of NaN neither is true
        raise BudgetError(f"{name}: expected 1 token or more, got {value!r}")
    return int(value)
