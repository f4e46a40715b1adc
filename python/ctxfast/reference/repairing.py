"""Mending a list that a provider would refuse.

Three stages: every message in the form of the list (`converted`), a plan of the new list (`Plan`), and the new list
(`Writer`). Only a list with faults comes as far as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ctxfast.reference.converting import CALL_KEYS, as_dict, converted, get, is_call_block, is_empty, type_of
from ctxfast.reference.reading import expect_messages, printable, read_message
from ctxfast.reference.structure import STEP, STRAY, SYSTEM, answered_calls, table
from ctxfast.reference.validating import KNOWN_ROLES, validate

NO_RESULT = "[No result: the call was interrupted]"
OPENING = "[The conversation begins here]"

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")

Place = tuple[int, int]  # a message, and the place of a call or a result in it


@dataclass(frozen=True)
class Fix:
    """One thing that was mended, or that could not be."""

    code: str
    index: int
    call_id: str
    action: str
    new_id: str | None = None


@dataclass(frozen=True)
class RepairReport:
    """What was done, in the order of the messages."""

    items: tuple[Fix, ...]

    @property
    def changed(self) -> bool:
        """Whether anything was."""
        return any(item.action != "left" for item in self.items)


@dataclass(frozen=True)
class Repaired:
    """A new list, and what was done to get it."""

    messages: list[Any]
    report: RepairReport


def repair(
    messages: Sequence[Any],
    form: Literal["auto", "openai", "anthropic"] = "auto",
    *,
    provider: Literal["openai", "anthropic"] | None = None,
    strict_predecessor: bool = False,
) -> Repaired:
    """A list that a provider accepts; see `ctxfast.repair` for the rules."""
    given = list(expect_messages(messages))
    faults = validate(given, form, provider)
    if strict_predecessor:
        return sanitized(given)
    if all(fault.code == "no_user_message" for fault in faults):
        left = tuple(Fix("no_user_message", fault.index, "", "left") for fault in faults)
        return Repaired(given, RepairReport(left))
    readings = [read_message(message, f"messages[{index}]") for index, message in enumerate(given)]
    if form == "auto":
        form = "anthropic" if next((r.form for r in readings if r.form), "openai") == "anthropic" else "openai"
    is_anthropic = form == "anthropic"

    items: list[Fix] = []
    sources: list[int] = []
    uniform: list[Any] = []
    for index, (message, reading) in enumerate(zip(given, readings, strict=True)):
        new = converted(message, reading, form)
        if new is not None:
            code = "mixed_forms" if reading.role in KNOWN_ROLES[form] else "unknown_role"
            items.append(Fix(code, index, "", "converted"))
        uniform += [message] if new is None else new
        sources += [index] * (1 if new is None else len(new))
    plan = Plan(uniform, sources, is_anthropic, is_anthropic or provider == "anthropic")
    plan.items += items
    plan.make()
    writer = Writer(plan)
    result = [writer.message(made) for made in plan.made]
    return Repaired(result, RepairReport(tuple(sorted(plan.items, key=lambda item: item.index))))


# ------------------------------------------------------------------------------------------------------- the plan


@dataclass(frozen=True)
class Made:
    """A message of the new list."""

    what: Literal["keep", "clean", "own", "result", "synthetic", "results", "opening"]
    index: int = 0  # of the message that it is, or comes from
    results: tuple[Place, ...] = ()
    calls: tuple[Place, ...] = ()  # that have no result
    own: int | None = None  # the message whose own parts stand behind the results


def is_part_of_its_own(part: Any, role: str) -> bool:
    """Whether a part says something by itself: no empty text, no call of the model's nor its thinking, no result."""
    if isinstance(part, str):
        return part != ""
    kind = get(part, "type")
    if kind in ("text", "input_text", "output_text"):
        return bool(get(part, "text"))
    if kind == "thinking":
        return role != "assistant" and get(part, "signature") is not None
    if kind == "redacted_thinking" or kind == "tool_use":
        return role != "assistant"
    return not (kind == "tool_result" and role == "user")


def has_own(message: Any, role: str) -> bool:
    """Whether a message says something without its calls and results."""
    fields = as_dict(message)
    if role == "assistant":
        for key in (*CALL_KEYS, *REASONING_KEYS):
            fields.pop(key, None)
    content = fields.get("content")
    if isinstance(content, (list, tuple)):
        fields["content"] = [part for part in content if is_part_of_its_own(part, role)]
    elif content is None:
        fields["content"] = ""
    return not is_empty(fields)


class Plan:
    """What the new list consists of, and why."""

    def __init__(self, messages: list[Any], sources: list[int], is_anthropic: bool, strict: bool) -> None:
        """Read the list, whose messages are all of one form."""
        self.messages = messages
        self.sources = sources
        self.is_anthropic = is_anthropic
        self.strict = strict
        self.items: list[Fix] = []
        self.made: list[Made] = []
        self.readings = [read_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
        self.entries = table(messages)
        self.answered = answered_calls(self.entries)
        self.answers = {call: result for result, call in self.answered.items()}
        self.attach()
        self.new_ids: dict[Place, str] = {}  # of calls
        self.own = [self.says_more(index) for index in range(len(messages))]
        self.dropped = [self.is_dropped(index) for index in range(len(messages))]

    def attach(self) -> None:
        """Give results that answer nothing to the calls of the message that they directly follow, in order.

        Only if there are as many as calls without a result, and of each pair one has no id.
        """
        for index, entry in enumerate(self.entries):
            open_calls = [call for call in self.named_calls(index) if call not in self.answers]
            results: list[Place] = []
            for later in range(index + 1, len(self.entries)) if open_calls else ():
                following = self.entries[later]
                if following.kind != STRAY:
                    break
                places = [(later, place) for place in range(len(following.results))]
                results += [place for place in places if place not in self.answered]
                if following.own_text:
                    break
            pairs = list(zip(open_calls, results, strict=False))
            fit = all(None in (entry.calls[call[1]], self.key(result)) for call, result in pairs)
            if len(open_calls) == len(results) and fit:
                self.answers.update(pairs)
                self.answered.update((result, call) for call, result in pairs)

    def key(self, result: Place) -> str | None:
        """The id of a result."""
        return self.entries[result[0]].results[result[1]]

    def relabelled(self, result: Place) -> str | None:
        """The id of a result, if it gets another one: that of its call."""
        index, place = call = self.answered[result]
        key = self.new_ids.get(call, self.entries[index].calls[place])
        return None if key == self.key(result) else key

    def says_more(self, index: int) -> bool:
        """Whether something is left of a message without what may have to go."""
        reading = self.readings[index]
        may_lose = (reading.results and reading.role == "user") or reading.facts & {
            "blank_name",
            "thinking_without_signature",
        }
        if not may_lose:
            return False
        return has_own(self.messages[index], reading.role)

    def is_named(self, call: Place) -> bool:
        """Whether a call says what it calls. One that does not is no call."""
        index, place = call
        name = self.readings[index].called[place][0]
        return bool(str(name or "").strip())

    def named_calls(self, index: int) -> list[Place]:
        """The calls of a message that stay."""
        return [(index, place) for place in range(len(self.entries[index].calls)) if self.is_named((index, place))]

    def unsigned(self, index: int) -> bool:
        """Whether there is thinking that must go."""
        return self.is_anthropic and "thinking_without_signature" in self.readings[index].facts

    def empty_text(self, index: int) -> bool:
        """Whether there is an empty text that must go."""
        facts = self.readings[index].facts
        return self.is_anthropic and "empty_text" in facts and "empty_message" not in facts

    def is_dropped(self, index: int) -> bool:
        """Whether a message goes for lack of contents. (One of nothing but results is not asked.)"""
        entry = self.entries[index]
        if "empty_message" in self.readings[index].facts:
            is_last_answer = index == len(self.entries) - 1 and entry.kind == STEP
            return self.strict and not is_last_answer
        loses = bool(entry.calls) or self.unsigned(index)
        return loses and not entry.results and not self.named_calls(index) and not self.own[index]

    def fix(self, code: str, index: int, action: str, call_id: str | None = "", new_id: str | None = None) -> None:
        """Note what is done."""
        self.items.append(Fix(code, self.sources[index], printable(call_id or ""), action, new_id))

    def live_calls(self) -> set[Place]:
        """Calls without a result that may stay so: they will still be running at the end of the new list."""
        last = len(self.entries) - 1
        while last >= 0 and self.entries[last].kind == STRAY and not self.entries[last].own_text:
            last -= 1
        if last < 0:
            return set()
        talking = [index for index in range(last + 1, len(self.entries)) if self.own[index]]
        has_results = any(call in self.answers for call in self.named_calls(last))
        if len(talking) > 1 or (talking and not has_results):
            return set()  # the first one can go with the results, others will be messages of a user
        live: set[Place] = set()
        for index in range(last, -1, -1):
            calls = self.named_calls(index)
            open_calls = [call for call in calls if call not in self.answers]
            if not calls or (index != last and len(open_calls) < len(calls)):
                break  # its results will stand between it and the next one
            live |= set(open_calls)
        return live

    def rename(self) -> None:
        """Give ids to the calls that need one."""
        taken = {key for entry in self.entries for key in (*entry.calls, *entry.results) if key is not None}
        for index, entry in enumerate(self.entries):
            seen = set()
            for place, key in enumerate(entry.calls):
                if not self.is_named((index, place)):
                    continue
                code = "blank_id" if key is None else "duplicate_call_id" if self.is_anthropic and key in seen else None
                seen.add(key)
                if code is None:
                    continue
                name = stem = f"call_{self.sources[index]}_{place}"
                number = 0
                while name in taken:
                    number += 1
                    name = f"{stem}_{number}"
                taken.add(name)
                self.new_ids[index, place] = name
                self.fix(code, index, "renamed", key, name)
        for result, call in sorted(self.answered.items()):
            key, new = self.key(result), self.relabelled(result)
            code = "orphan_result" if self.entries[call[0]].calls[call[1]] is None else "duplicate_call_id"
            if self.is_named(call) and new is not None:
                self.fix("blank_id" if key is None else code, result[0], "renamed", key, printable(new))

    def make(self) -> None:
        """Make the plan."""
        live = self.live_calls()
        self.rename()
        self.note_drops()
        absorbed = set()
        for index, entry in enumerate(self.entries):
            if self.empty_text(index):
                self.fix("empty_text", index, "dropped")
            if self.unsigned(index):
                self.fix("thinking_without_signature", index, "dropped")
            if entry.results:
                if self.own[index] and index not in absorbed:
                    self.made.append(Made("own", index))
                continue
            if self.dropped[index]:
                self.fix("empty_message", index, "dropped")
                continue
            calls = self.named_calls(index)
            is_changed = len(calls) < len(entry.calls) or any(call in self.new_ids for call in calls)
            is_changed = is_changed or self.empty_text(index) or self.unsigned(index)
            self.made.append(Made("clean" if is_changed else "keep", index))
            results = tuple(sorted(self.answers[call] for call in calls if call in self.answers))
            missing = tuple(call for call in calls if call not in self.answers and call not in live)
            self.note_answers(index, results, missing)
            if not self.is_anthropic:
                self.made += [Made("result", place[0], results=(place,)) for place in results]
                self.made += [Made("synthetic", call[0], calls=(call,)) for call in missing]
            elif results or missing:
                own = self.next_talking(index)
                absorbed |= {own}
                self.made.append(self.answer(results, missing, own))
        self.open()

    def note_drops(self) -> None:
        """Note the calls and results that go."""
        newest_caller: set[str | None] = set()
        for index, entry in enumerate(self.entries):
            for place, key in enumerate(entry.results):
                call = self.answered.get((index, place))
                if call is None:
                    code = "duplicate_result" if key in newest_caller else "orphan_result"
                    self.fix(code, index, "dropped", key)
                elif not self.is_named(call):
                    self.fix("blank_name", index, "dropped", key)
            for place, key in enumerate(entry.calls):
                if not self.is_named((index, place)):
                    self.fix("blank_name", index, "dropped", key)
            if entry.kind == STEP:
                newest_caller = set(entry.calls)
            stays = any(self.is_answer((index, place)) for place in range(len(entry.results)))
            if self.is_anthropic and "result_after_text" in self.readings[index].facts and stays:
                self.fix("result_after_text", index, "moved")

    def is_answer(self, result: Place) -> bool:
        """Whether a result stays."""
        return result in self.answered and self.is_named(self.answered[result])

    def note_answers(self, index: int, results: Sequence[Place], missing: Sequence[Place]) -> None:
        """Note which results of a message's calls have to move, and which are made up."""
        end = index + 2
        if not self.is_anthropic:
            following = (i for i in range(index + 1, len(self.entries)) if self.entries[i].kind != STRAY)
            end = next(following, len(self.entries))
        is_split = any(message < end for message, _ in results)
        for message, place in results:
            if message >= end:
                code = "split_parallel_group" if is_split else "result_out_of_order"
                self.fix(code, message, "moved", self.entries[message].results[place])
        for call in missing:
            key = self.entries[index].calls[call[1]]
            self.fix("unanswered_call", index, "synthesised", key, self.new_ids.get(call))

    def next_talking(self, index: int) -> int | None:
        """The message that will come next, if it is one of results with parts of its own: they go with the answers."""
        for later in range(index + 1, len(self.entries)):
            if self.entries[later].results and self.own[later]:
                return later
            if not (self.entries[later].results or self.dropped[later]):
                return None
        return None

    def answer(self, results: tuple[Place, ...], missing: tuple[Place, ...], own: int | None) -> Made:
        """Anthropic's one message of results: an old one, if it is the same."""
        where = {message for message, _ in results} | (set() if own is None else {own})
        if len(where) == 1 and not missing:
            (index,) = where
            is_whole = len(results) == len(self.entries[index].results) and self.own[index] == (own is not None)
            is_renamed = any(self.relabelled(result) is not None for result in results)
            is_late = "result_after_text" in self.readings[index].facts
            if is_whole and not (is_renamed or is_late or self.empty_text(index) or self.unsigned(index)):
                return Made("keep", index)
        return Made("results", own if own is not None else 0, results, missing, own)

    def open(self) -> None:
        """See to it that a user speaks first, where that must be."""

        def says_something(made: Made) -> bool:  # what `validate` takes for a user's message
            index = made.own if made.what == "results" else made.index
            if made.what in ("result", "synthetic") or index is None:
                return False
            return made.what == "own" or self.entries[index].own_text

        def is_system(made: Made) -> bool:
            return made.what in ("keep", "clean") and self.entries[made.index].kind == SYSTEM

        first = next((place for place, made in enumerate(self.made) if not is_system(made)), None)
        index = 0 if first is None else self.made[first].index
        if not any(map(says_something, self.made)):
            self.items.append(Fix("no_user_message", self.sources[index] if self.sources else 0, "", "left"))
        elif self.strict and first is not None and self.readings[index].role != "user":
            self.made.insert(first, Made("opening", index))
            self.fix("first_not_user", index, "inserted")


# ---------------------------------------------------------------------------------------------------- the new list


class Writer:
    """Writes the messages of a plan. What is not touched is the same object."""

    def __init__(self, plan: Plan) -> None:
        """Remember the plan."""
        self.plan = plan

    def message(self, made: Made) -> Any:
        """One message of the new list."""
        message = self.plan.messages[made.index] if self.plan.messages else None
        if made.what == "keep":
            return message
        if made.what == "opening":
            return {"role": "user", "content": OPENING}
        if made.what == "own":
            fields = as_dict(message)
            return {**fields, "content": self.own_parts(message)}
        if made.what == "result":
            new = self.plan.relabelled(made.results[0])
            return message if new is None else {**as_dict(message), "role": "tool", "tool_call_id": new}
        if made.what == "synthetic":
            return {"role": "tool", "tool_call_id": self.id_of(made.calls[0]), "content": NO_RESULT}
        if made.what == "results":
            return self.results(made)
        return self.clean(made.index)

    def id_of(self, call: Place) -> str | None:
        """The id of a call in the new list."""
        index, place = call
        return self.plan.new_ids.get(call, self.plan.entries[index].calls[place])

    def goes(self, part: Any) -> bool:
        """Whether a part is an empty text, or thinking that cannot be sent back."""
        if not self.plan.is_anthropic:
            return False
        if isinstance(part, str):
            return part == ""
        kind = get(part, "type")
        if kind in ("text", "input_text", "output_text"):
            return not get(part, "text")
        return kind == "thinking" and get(part, "signature") is None

    def own_parts(self, message: Any) -> list[Any]:
        """The parts of a user's message that are no results."""
        parts = get(message, "content")
        return [part for part in parts if type_of(part) != "tool_result" and not self.goes(part)]

    def results(self, made: Made) -> dict[str, Any]:
        """A message of results, and of what a user says beside them."""
        plan = self.plan
        base: dict[str, Any] = {"role": "user"}
        if made.own is not None:
            base = as_dict(plan.messages[made.own])
        elif made.results:
            base = as_dict(plan.messages[made.results[0][0]])
        blocks = []
        for index, place in made.results:
            content = get(plan.messages[index], "content")
            block = [part for part in content if type_of(part) == "tool_result"][place]
            new = plan.relabelled((index, place))
            blocks.append(block if new is None else {**as_dict(block), "tool_use_id": new})
        for call in made.calls:
            block = {"type": "tool_result", "tool_use_id": self.id_of(call), "content": NO_RESULT, "is_error": True}
            blocks.append(block)
        own = [] if made.own is None else self.own_parts(plan.messages[made.own])
        return {**base, "content": [*blocks, *own]}

    def clean(self, index: int) -> dict[str, Any]:
        """A message without what must go, and with its new ids."""
        plan = self.plan
        fields = as_dict(plan.messages[index])
        ids: list[str | None] = []  # of each call: its new id, or None
        stays = []
        for place in range(len(plan.entries[index].calls)):
            ids.append(plan.new_ids.get((index, place)))
            stays.append(plan.is_named((index, place)))
        content = fields.get("content")
        if plan.is_anthropic:
            if isinstance(content, (list, tuple)):
                fields["content"] = self.clean_blocks(content, ids, stays)
            return fields

        calls = list(fields.get("tool_calls") or ())
        gone = {get(call, "id") for call, stay in zip(calls, stays, strict=False) if not stay}
        kept = []
        for call, new, stay in zip(calls, ids, stays, strict=False):
            if stay:
                kept.append(call if new is None else {**as_dict(call), "id": new})
        gone -= {get(call, "id") for call in kept}
        if fields.get("function_call") is not None and stays[len(calls)]:
            kept.append({"id": ids[len(calls)], "type": "function", "function": fields["function_call"]})
        for key in CALL_KEYS:
            fields.pop(key, None)
        if kept:
            fields["tool_calls"] = kept
        if gone and isinstance(content, (list, tuple)):  # blocks that repeat a call go with it
            fields["content"] = [
                part for part in content if not (is_call_block(part, None) and get(part, "id") in gone)
            ]
            fields["content"] = fields["content"] or None
        return fields

    def clean_blocks(self, content: Sequence[Any], ids: Sequence[str | None], stays: Sequence[bool]) -> list[Any]:
        """Content without what must go, and with new ids."""
        parts = []
        place = 0
        for part in content:
            if ids and is_call_block(part, None):
                if stays[place]:
                    new = ids[place]
                    parts.append(part if new is None else {**as_dict(part), "id": new})
                place += 1
            elif not self.goes(part):
                parts.append(part)
        return parts


# ---------------------------------------------------------------------------------------- PicoClaw's own sanitizer


def sanitized(messages: list[Any]) -> Repaired:
    """What PicoClaw keeps: see `ctxfast.repair`."""
    readings = [read_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    items: list[Fix] = []

    def drop(index: int, code: str, key: str | None = "") -> None:
        items.append(Fix(code, index, printable(key or ""), "dropped"))

    kept: list[int] = []
    for index, reading in enumerate(readings):
        previous = readings[kept[-1]] if kept else None
        talker = next((readings[one] for one in reversed(kept) if readings[one].role != "tool"), None)
        if reading.role == "system":
            drop(index, "strict_predecessor")
        elif reading.role == "tool" and not (talker is not None and talker.calls):
            drop(index, "orphan_result", reading.results[0])
        elif reading.calls and (previous is None or previous.role not in ("user", "tool")):
            drop(index, "strict_predecessor")
        else:
            kept.append(index)

    result = []
    place = 0
    while place < len(kept):
        index = kept[place]
        place += 1
        calls = readings[index].calls
        if not calls:
            result.append(index)
            continue
        block = []
        seen = set()
        while place < len(kept) and readings[kept[place]].role == "tool":
            (key,) = readings[kept[place]].results
            if key is None or key not in calls or key in seen:
                code = "blank_id" if key is None else "duplicate_result" if key in seen else "orphan_result"
                drop(kept[place], code, key)
            else:
                block.append(kept[place])
                seen.add(key)
            place += 1
        missing = next((key for key in calls if key is None or key not in seen), "")
        if missing == "":
            result += [index, *block]
            continue
        for one in (index, *block):
            drop(one, "unanswered_call" if missing else "blank_id", missing)
    items.sort(key=lambda item: item.index)
    return Repaired([messages[index] for index in result], RepairReport(tuple(items)))
