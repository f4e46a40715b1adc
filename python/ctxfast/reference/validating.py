"""What a provider would refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxfast.reference.reading import (
    expect_messages,
    read_message,
)
from ctxfast.reference.structure import (
    STEP,
    STRAY,
    SYSTEM,
    Entry,
    answered_calls,
    live_calls,
    table,
)


@dataclass(frozen=True)
class Problem:
    """Something that a provider would refuse. (The core's has a `detail` for people, too.)"""

    code: str
    index: int


BOTH_FORMS = ("blank_name",)
ANTHROPIC_ONLY = ("empty_text", "result_after_text", "thinking_without_signature")
KNOWN_ROLES = {
    "openai": {"system", "developer", "user", "assistant", "tool", "function"},
    "anthropic": {"system", "developer", "user", "assistant"},
}


def validate(
    messages: Sequence[object],
    form: Literal["auto", "openai", "anthropic"] = "auto",
    provider: Literal["openai", "anthropic"] | None = None,
) -> list[Problem]:
    """What a provider would refuse, in the order of the messages; see `ctxfast.validate` for the codes."""
    if form not in ("auto", "openai", "anthropic"):
        raise ValueError(f"form: expected 'auto', 'openai' or 'anthropic', got {form!r}")
    if provider not in (None, "openai", "anthropic"):
        raise ValueError(f"provider: expected 'openai', 'anthropic' or None, got {provider!r}")
    readings = [read_message(m, f"messages[{i}]") for i, m in enumerate(expect_messages(messages))]
    entries = table(messages)
    if form == "auto":
        form = "anthropic" if next((r.form for r in readings if r.form), "openai") == "anthropic" else "openai"
    is_anthropic = form == "anthropic"
    strict = is_anthropic or provider == "anthropic"
    found: list[Problem] = []
    for index, reading in enumerate(readings):
        is_last_answer = index == len(readings) - 1 and reading.role == "assistant"
        if reading.role not in KNOWN_ROLES[form]:
            found.append(Problem("unknown_role", index))
        elif reading.form not in (None, form):
            found.append(Problem("mixed_forms", index))
        codes = [code for code in (*BOTH_FORMS, *(ANTHROPIC_ONLY if is_anthropic else ())) if code in reading.facts]
        if "empty_message" in reading.facts:  # then an empty text is no news
            codes = [code for code in codes if code != "empty_text"]
            codes += ["empty_message"] if strict and not is_last_answer else []
        found += [Problem(code, index) for code in codes]
    found += problems_of_pairs(entries, is_anthropic)

    first = next((index for index, entry in enumerate(entries) if entry.kind != SYSTEM), None)
    if not any(entry.own_text for entry in entries):
        found.append(Problem("no_user_message", first or 0))
    elif strict and first is not None and readings[first].role != "user":
        found.append(Problem("first_not_user", first))
    return sorted(found, key=lambda problem: problem.index)


def problems_of_pairs(entries: Sequence[Entry], is_anthropic: bool) -> list[Problem]:
    """Ids, orphans, duplicates, calls without results, results that do not come directly after their calls."""
    answered = answered_calls(entries)
    answers = {call: result for result, call in answered.items()}
    running = set(live_calls(entries, range(len(entries))))

    found = []
    newest_step: Entry | None = None
    for index, entry in enumerate(entries):
        for place, key in enumerate(entry.results):
            if key is None:
                found.append(Problem("blank_id", index))
            if (index, place) not in answered:
                again = newest_step is not None and key in newest_step.calls
                found.append(Problem("duplicate_result" if again else "orphan_result", index))
        if entry.kind == STEP:
            newest_step = entry
        end = index + 2
        if not is_anthropic:
            following = (i for i in range(index + 1, len(entries)) if entries[i].kind != STRAY)
            end = next(following, len(entries))
        own = [answers.get((index, place), (None, 0))[0] for place in range(len(entry.calls))]
        code = "split_parallel_group" if any(a is not None and a < end for a in own) else "result_out_of_order"
        for place, key in enumerate(entry.calls):
            if key is None:
                found.append(Problem("blank_id", index))
            elif is_anthropic and key in entry.calls[:place]:
                found.append(Problem("duplicate_call_id", index))
            answer = own[place]
            if answer is None and index not in running:
                found.append(Problem("unanswered_call", index))
            elif answer is not None and answer >= end:
                found.append(Problem(code, answer))
    return found
