"""Where a summary stands in a list of messages: put in, found again, replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ctxfast._core import TokenCounter, safe_cuts, validate
from ctxfast.errors import MessageTypeError
from ctxfast.summary.checking import clean_summary, summary_text
from ctxfast.summary.reading import MARK, Message, field_of, read, sane, without_summary

__all__ = ["FoundSummary", "find_summary", "insert_summary"]

Form = Literal["auto", "openai", "anthropic"]

_CHEAP = TokenCounter.picoclaw("4.0")  # tokens do not matter here


@dataclass(frozen=True)
class FoundSummary:
    """A summary that stands in a list."""

    index: int
    """Index of its message."""
    text: str
    """The summary without its marks."""


def find_summary(messages: Sequence[Any]) -> FoundSummary | None:
    """The newest summary that `insert_summary` has put into a list, known by its mark; `None` if there is none.

    Only messages of users are looked at, from the end.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if field_of(message, "role") != "user":
            continue
        content = field_of(message, "content")
        parts = content if isinstance(content, (list, tuple)) else [content]
        texts = [text_of_part(part) for part in parts]
        if any(MARK in text for text in texts):
            _, summary = without_summary(sane("\n".join(text for text in texts if text)))
            if summary is not None:
                return FoundSummary(index, summary)
    return None


def insert_summary(
    messages: Sequence[Any],
    index: int,
    summary: str,
    form: Form = "auto",
    *,
    start: int | None = None,
) -> list[Any]:
    """A new list with a summary in front of the message at `index`, as a user message with a mark.

    With `start` it takes the place of the messages from there to `index`. Where `index` is no safe place, the summary
    stands at the last one before it (and nothing behind that goes): never between a call and its result, nor between
    the newest message with thinking and its results, nor in front of the system messages that begin the list. A safe
    `start` is sought the other way, so that only messages go that are covered by both. A summary that was put in before
    goes: there is one at a time.

    In Anthropic's form, where users and the assistant take turns, it is written as a block of the user message that
    follows or precedes it. `form="auto"` takes the form of the first message that can only be of one. Messages are
    never changed: one that gets or loses a block is a new dict, all others are the same objects. The new list has no
    fault that the old one had not (`validate`).

    Raises `MessageTypeError` or `MessageValueError` for a message that cannot be read, `TypeError` or `ValueError` for
    an argument that means nothing.

    >>> messages = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Done."}]
    >>> print(insert_summary(messages, 0, "All tests pass.")[0]["content"])
    [Summary of the conversation so far]
    All tests pass.
    [End of the summary]
    """
    for name, value in (("index", index), ("start", index if start is None else start)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name}: expected a whole number, got {value!r}")
        if not 0 <= value <= len(messages):
            raise ValueError(f"{name}: expected 0 to {len(messages)}, got {value!r}")
    if form not in ("auto", "openai", "anthropic"):
        raise ValueError(f"form: expected 'auto', 'openai' or 'anthropic', got {form!r}")
    text = clean_summary(summary) if isinstance(summary, str) else ""
    if not text:
        raise ValueError("summary: expected a text that says something")
    told = read(messages, _CHEAP)
    if form == "auto":
        form = cast("Form", next((one.form for one in told if one.form), "openai"))
    places = safe_places(messages, told)
    stop = max((place for place in places if place <= index), default=places[0])
    first = stop if start is None else min((place for place in places if start <= place <= stop), default=stop)

    # where that makes a valid list invalid (Anthropic's form begins with a user), it takes the place of an earlier
    # one, or the first
    faults = codes(messages, form)
    others = [(one.index, one.index) for one in told if one.summary is not None]
    tried = []
    for at, until in ((first, stop), *others, (places[0], places[0])):
        new = with_summary(messages, told, at, until, summary_text(text), form)
        tried.append((sum((codes(new, form) - faults).values()), new))
        if not tried[-1][0]:
            return new
    return min(tried, key=lambda one: one[0])[1]


def safe_places(messages: Sequence[Any], told: Sequence[Message]) -> list[int]:
    """Where a summary can stand; at least one place."""
    n = len(told)
    leading = next((one.index for one in told if one.role != "system"), n)
    thinking = thinking_stretch(told)
    return [cut for cut in safe_cuts(messages) if cut >= leading and cut not in thinking] or [leading]


def thinking_stretch(told: Sequence[Message]) -> range:
    """The places inside the newest response with thinking and its results: a response can be several messages."""
    latest = next((one.index for one in reversed(told) if one.thinking), None)
    if latest is None:
        return range(0)
    stop, has_results = latest + 1, False
    for one in told[latest + 1 :]:
        is_answer = one.role == "assistant" and not has_results
        if not (is_answer or one.outputs):
            break
        has_results = has_results or bool(one.outputs)
        stop += 1
    first = latest
    while first and told[first - 1].role == "assistant":
        first -= 1
    return range(first + 1, stop)


def codes(messages: Sequence[Any], form: Form) -> Counter[str]:
    """What is wrong with a list, and how often."""
    return Counter(problem.code for problem in validate(messages, form))


def with_summary(
    messages: Sequence[Any], told: Sequence[Message], start: int, stop: int, text: str, form: Form
) -> list[Any]:
    """The list with a summary in the place of some messages, and without earlier ones."""
    before = [one for at in range(start) for one in without(messages[at], told[at])]
    after = [one for at in range(stop, len(told)) for one in without(messages[at], told[at])]
    block = {"type": "text", "text": text}
    if form == "anthropic":
        if after and is_plain_user(after[0]):
            return [*before, {**after[0], "content": [block, *parts_of(after[0])]}, *after[1:]]
        if before and isinstance(before[-1], dict) and before[-1].get("role") == "user":
            return [*before[:-1], {**before[-1], "content": [*parts_of(before[-1]), block]}, *after]
    return [*before, {"role": "user", "content": text}, *after]


def without(message: Any, told: Message) -> list[Any]:
    """A message without the summary in it: itself, another one, or nothing."""
    if told.summary is None:
        return [message]
    fields = message if isinstance(message, dict) else dict(vars(message))
    if isinstance(fields["content"], str):
        rest = without_summary(fields["content"])[0]
        return [{**fields, "content": rest}] if rest.strip() else []
    parts = [part for part in fields["content"] if not text_of_part(part).startswith(MARK)]
    return [{**fields, "content": parts}] if parts else []


def text_of_part(part: Any) -> str:
    """The text of a part of content, if it is one."""
    text = part if isinstance(part, str) else field_of(part, "text")
    return text if isinstance(text, str) else ""


def is_plain_user(message: Any) -> bool:
    """Whether a message is a dict, of a user, and holds no tool results, which have to come first."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    content = message.get("content")
    return bool(content) and all(field_of(part, "type") != "tool_result" for part in parts_of(message))


def parts_of(message: Any) -> list[Any]:
    """The content of a message as a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if content is None:
        return []
    if not isinstance(content, (list, tuple)):
        raise MessageTypeError("`str`, `None` or a list of parts", f"`{type(content).__name__}`", "content")
    return [part for part in content if not is_empty_text(part)]


def is_empty_text(part: Any) -> bool:
    """Whether a part of content is a text without text, which Anthropic refuses in a message that says something."""
    return part == "" or (field_of(part, "type") == "text" and not text_of_part(part))
