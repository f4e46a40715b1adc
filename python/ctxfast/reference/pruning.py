"""Replacing old tool outputs by stubs: what is protected, what is kept, when it pays."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ctxfast.policy import TOOL_KINDS, CachePrices, PrunePolicy, SupportsSave
from ctxfast.reference.counting import Counter, check_budget
from ctxfast.reference.estimating import default_counter
from ctxfast.reference.reading import OUTPUT, Reading, json_text, read_content, read_fields, read_message
from ctxfast.reference.structure import STEP, USER, answered_calls, kinds_of_atoms, table
from ctxfast.reference.stubs import LONGEST_ID, Old, is_stub, shows_files, stub, with_id
from ctxfast.reference.tools import (
    AGENT,
    COMMAND,
    END,
    OTHER,
    Call,
    about,
    begins_as_failure,
    exit_code,
    is_listed,
    well_formed,
)

ERRORS_WHOLE, ERROR_TOKENS = 10, 4_000  # unresolved errors that stay whole
SAMPLE = 24  # characters of both ends by which an output is known again
REREADS = 16  # outputs of the newest step that are looked at for what they read again
CUT_LINES = 1_000  # from so many lines on a read without an end may have been cut
LATER_READS = 64  # of a file that are looked at for one that covers an earlier read
ANTHROPIC = CachePrices()
REMARKS = {"covered": "read again later", "edited": "edited later"}


@dataclass(frozen=True)
class Edit:
    """An output that has been replaced."""

    index: int
    place: int  # among the results of its message
    call_id: str
    tool: str
    kind: str
    reason: str  # "aged", "covered", "edited", "error"
    before: int
    after: int
    new: bool  # whether it was replaced now, and not by an earlier call
    stub: str
    characters: int
    sample: str
    stored: str | None = None  # the id under which the output has been saved


@dataclass(frozen=True)
class Report:
    """What `prune_tool_outputs` has done."""

    changed: bool
    before: int
    after: int
    items: tuple[Edit, ...]
    earliest_changed_index: int | None
    tokens_rewritten: int
    blocked_by: str | None
    reread_of_pruned: tuple[int, ...]


@dataclass(frozen=True)
class Pruned:
    """The new list, and what was done."""

    messages: list[Any]
    report: Report


@dataclass
class Output:
    """A tool output, as it stands in the list."""

    index: int
    place: int
    holder: dict[str, Any]  # the message or the block that holds it
    call_id: str
    tool: str
    arguments: object
    tokens: int
    text: str
    attachments: int
    call: Call = field(default_factory=Call)
    failed: bool = False
    is_stub: bool = False
    kept: bool = False

    @property
    def old(self) -> Old:
        """What its stub is made of."""
        return Old(self.tool, self.call, self.text, self.attachments, self.failed)

    @property
    def sample(self) -> str:
        """Both ends of it."""
        return well_formed(self.text[:SAMPLE] + self.text[max(len(self.text) - SAMPLE, 0) :])


@dataclass(frozen=True)
class Batch:
    """Outputs that are replaced together, and how much of the list was there when that was decided."""

    members: tuple[int, ...]
    time: int


def prune_tool_outputs(
    messages: Sequence[Any],
    protected_turns: int | None = None,
    prune_threshold: int | Literal["auto"] | None = None,
    *,
    protected_tokens: int | None = None,
    protected_steps: int | None = None,
    budget: float | None = None,
    prices: CachePrices | None = ANTHROPIC,
    policy: PrunePolicy | None = None,
    previous: Report | None = None,
    counter: Counter | None = None,
    store: SupportsSave | None = None,
) -> Pruned:
    """Old tool outputs as stubs, the rest as it is."""
    policy = policy or PrunePolicy()
    given: dict[str, Any] = {
        "protected_turns": protected_turns,
        "prune_threshold": prune_threshold,
        "protected_tokens": protected_tokens,
        "protected_steps": protected_steps,
    }
    policy = replace(policy, **{name: value for name, value in given.items() if value is not None})
    usable = None if budget is None else check_budget(budget, "budget")
    counter = counter or default_counter()
    pruning = Pruning(messages, policy, usable, prices, counter, store)
    if previous is not None:
        pruning.apply_again(previous)
    pruning.decide()
    return pruning.result()


class Pruning:
    """One call of `prune_tool_outputs`."""

    def __init__(
        self,
        messages: Sequence[Any],
        policy: PrunePolicy,
        usable: int | None,
        prices: CachePrices | None,
        counter: Counter,
        store: SupportsSave | None,
    ) -> None:
        """Reads the list."""
        self.messages, self.policy, self.prices, self.counter, self.store = messages, policy, prices, counter, store
        self.zone, self.least = policy.protected_tokens, policy.min_batch
        if usable is not None:
            self.zone, self.least = min(self.zone, usable // 4), min(self.least, usable // 10)
        self.entries = table(messages)
        readings = [read_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
        self.tokens = [counter.pieces(reading) for reading in readings]
        self.now = list(self.tokens)  # with what was replaced, but for rounding
        self.outputs = list(self.read_outputs(readings))
        self.edits: dict[int, Edit] = {}  # by output
        self.blocked_by: str | None = None
        self.reread: tuple[int, ...] = ()
        self.stubs: set[int] = set()  # outputs that were stubs before anything was decided
        self.responses = [
            index
            for index, entry in enumerate(self.entries)
            if entry.kind == STEP and (index == 0 or self.entries[index - 1].kind != STEP)
        ]
        self.turns = [start for start, _, kind in kinds_of_atoms(self.entries) if kind == USER]

    # ------------------------------------------------------------------------------------- what there is

    def read_outputs(self, readings: Sequence[Reading]) -> Iterator[Output]:
        """All tool outputs, in their order."""
        calls = answered_calls(self.entries)
        kinds = (*self.policy.tools, *TOOL_KINDS)
        for index, reading in enumerate(readings):
            for place, holder in enumerate(reading.outputs):
                name, arguments = holder.get("name"), None
                if (index, place) in calls:
                    caller, at = calls[index, place]
                    name, arguments = readings[caller].called[at]
                tool = well_formed(name) if isinstance(name, str) else ""
                pieces = Reading(role="tool")
                read_content(holder.get("content"), OUTPUT, pieces, f"messages[{index}].content")
                text, attachments = text_of(holder.get("content"))
                output = Output(
                    index=index,
                    place=place,
                    holder=holder,
                    call_id=well_formed(reading.results[place] or ""),
                    tool=tool,
                    arguments=arguments,
                    tokens=self.counter.bare_content(pieces.content),
                    text=text,
                    attachments=attachments,
                )
                output.call = about(tool, arguments, kinds)
                self.look_at(output)
                yield output

    def look_at(self, output: Output) -> None:
        """What the output itself says."""
        policy, call, holder = self.policy, output.call, output.holder
        code = exit_code(output.text, of_files=shows_files(call)) if call.kind in (COMMAND, OTHER) else None
        output.failed = holder.get("is_error") is True or holder.get("status") == "error" or code not in (None, 0)
        output.failed |= call.kind not in (COMMAND, OTHER, AGENT) and begins_as_failure(output.text)
        output.is_stub = is_stub(output.text, policy.stub)
        paths = [path for path in (call.path, call.read[0] if call.read else None) if path is not None]
        output.kept = (
            is_listed(policy.keep_tools, output.tool, call.kind)
            or any(is_listed(policy.keep_paths, path) for path in paths)
            or (policy.only_tools is not None and not is_listed(policy.only_tools, output.tool, call.kind))
        )

    def apply_again(self, previous: Report) -> None:
        """Replaces what an earlier call has replaced; nothing that the model has not seen yet."""
        numbers = {(output.index, output.place): number for number, output in enumerate(self.outputs)}
        waiting: dict[tuple[str, str, int, str], list[Edit]] = {}
        for edit in previous.items:
            known = (edit.call_id, edit.tool, edit.characters, edit.sample)
            number = numbers.get((edit.index, edit.place), -1)
            if self.can_be_again(number, edit) and self.known_by(number) == known:
                self.replace(number, edit, new=False)
            else:
                waiting.setdefault(known, []).append(edit)
        for number, output in enumerate(self.outputs):  # the list has become shorter in front
            edits = waiting.get(self.known_by(number))
            if output.call_id and edits and self.can_be_again(number, edits[0]):
                self.replace(number, edits.pop(0), new=False)

    def can_be_again(self, number: int, edit: Edit) -> bool:
        """Whether an output can be replaced as it was before."""
        if number < 0 or number in self.edits or self.outputs[number].index >= self.sent():
            return False
        return self.is_smaller(self.outputs[number], edit.stub)

    def known_by(self, number: int) -> tuple[str, str, int, str]:
        """By what an output is known again."""
        output = self.outputs[number]
        return output.call_id, output.tool, len(output.text), output.sample

    def is_smaller(self, output: Output, text: str) -> bool:
        """Whether a stub is shorter than an output and has fewer tokens."""
        shorter = bool(output.attachments) or len(text) < len(output.text)
        return shorter and self.stub_tokens(text) < output.tokens

    def replace(self, number: int, edit: Edit, *, new: bool) -> None:
        """Puts a stub into the place of an output."""
        output = self.outputs[number]
        tokens = self.stub_tokens(edit.stub)
        self.edits[number] = replace(
            edit, index=output.index, place=output.place, before=output.tokens, after=tokens, new=new
        )
        self.now[output.index] -= output.tokens - tokens
        output.tokens, output.is_stub = tokens, True

    def stub_tokens(self, text: str) -> int:
        """Tokens of a stub."""
        return self.counter.bare_content([(OUTPUT, text)])

    # ------------------------------------------------------------------------------------- what is protected

    def released(self, number: int, *, zone: bool = True, turns: bool = True) -> int | None:
        """How much of the list there must be until an output is no longer protected; `None`: it still is.

        With `zone=False` or `turns=False` that protection does not count.
        """
        output, policy = self.outputs[number], self.policy
        times = [self.step_old(output.index)]
        if turns and policy.protected_turns:
            times.append(self.turn_old(output.index))
        times.append(nth([other.index for other in self.outputs], number + policy.protected_results))
        if zone:
            times.append(self.zone_left(number, turns=turns))
        return None if None in times else max(time for time in times if time is not None)

    def step_old(self, index: int) -> int | None:
        """How much of the list there must be until a message is older than the protected steps."""
        return nth(self.responses, bisect_right(self.responses, index) + max(self.policy.protected_steps, 1) - 1)

    def zone_left(self, number: int, *, turns: bool) -> int | None:
        """Until the outputs from this one on have more tokens than the zone."""
        total = 0
        for place, output in enumerate(self.outputs[number:], number):
            total += output.tokens if self.is_counted(place, turns=turns) else 0
            if total > self.zone:
                return output.index + 1
        return None

    def is_counted(self, number: int, *, turns: bool) -> bool:
        """Whether an output takes room in the zone: for `batch="all"` none that stays by a rule or by the turns."""
        policy, output = self.policy, self.outputs[number]
        if policy.prune_threshold == "auto" or policy.batch == "grid":
            return True
        if sum(other.tokens for other in self.outputs) <= policy.prune_threshold:
            return True  # nothing will happen: they need not be looked at
        guarded = turns and policy.protected_turns and self.turn_old(output.index) is None
        return not (output.kept or guarded or (output.failed and policy.keep_errors == "all"))

    def turn_old(self, index: int) -> int | None:
        """How much of the list there must be until a message is older than the protected turns."""
        return nth(self.turns, bisect_right(self.turns, index) + self.policy.protected_turns - 1)

    # ------------------------------------------------------------------------------------- what is replaced

    def decide(self) -> None:
        """Finds the batches that pay, and replaces their outputs."""
        policy = self.policy
        self.reread = tuple(self.find_rereads())
        self.stubs = {number for number, output in enumerate(self.outputs) if output.is_stub}
        least = max(policy.min_saved, 1)
        large = [number for number, output in enumerate(self.outputs) if output.tokens >= least and not output.is_stub]
        if policy.trigger_tokens is not None and sum(self.now) <= policy.trigger_tokens:
            self.blocked_by = "trigger_tokens" if any(output.tokens >= least for output in self.outputs) else None
            return
        aged = [number for number in large if self.released(number) is not None]
        reach = aged
        if policy.superseded == "start":
            reach = [number for number in large if self.released(number, zone=False) is not None]
        starters: list[int] | None = None
        taken: set[int] = set()
        if self.enough(reach):
            starters = [number for number in aged if self.can_start(number)]
            for batch in self.find_batches(starters):
                taken |= self.take_batch(batch, taken)
        if not any(edit.new for edit in self.edits.values()):
            self.blocked_by = self.find_block(large, aged, starters)

    def enough(self, numbers: Sequence[int]) -> bool:
        """Whether so many tokens of output can be enough for a batch, if stubs cost nothing."""
        total, threshold = sum(self.outputs[number].tokens for number in numbers), self.policy.prune_threshold
        if threshold == "auto":
            return total > 0 and (self.prices is None or self.prices.cold or total >= self.least)
        return total > threshold if self.policy.batch == "all" else total > 0 and total >= threshold

    def take_batch(self, batch: Batch, taken: set[int]) -> set[int]:
        """Replaces the outputs of a batch, and those that join it."""
        chosen = set(batch.members) | set(self.joiners(batch.time))
        errors = set(self.errors(batch.time))
        # where a changed prefix costs something, old errors change no more of it than is changed already
        if self.policy.prune_threshold == "auto" and self.prices is not None and not self.prices.cold:
            errors = {number for number in errors if number > min(chosen)}
        chosen |= errors
        for number in sorted(chosen - taken):
            self.take(number, batch.time)
        return chosen

    def find_batches(self, starters: Sequence[int]) -> list[Batch]:
        """What is replaced together: nothing if that does not pay."""
        policy, n = self.policy, len(self.messages)
        saved = {number: self.saving(number) for number in starters}
        if policy.prune_threshold == "auto":
            if policy.superseded == "start":
                saved.update({number: self.saving(number, n) for number in self.joiners(n)})
            return [Batch(tuple(starters), n)] if saved and self.pays(saved) else []
        if policy.batch == "all":
            tokens = sum(self.outputs[number].tokens for number in starters)
            return [Batch(tuple(starters), n)] if tokens > policy.prune_threshold else []
        return self.grid(starters, saved, max(policy.prune_threshold, 1))

    def can_start(self, number: int) -> bool:
        """Whether an output counts towards a batch: it is none of those that are kept, and saves enough."""
        output = self.outputs[number]
        if output.is_stub or output.kept or (output.failed and self.policy.keep_errors != "none"):
            return False
        return self.saves_enough(number, None)

    def text(self, number: int, time: int | None) -> str:
        """The stub of an output; `time`: with what was known then."""
        if self.policy.stub is not None:
            return self.policy.stub
        old = self.outputs[number].old
        reason = None if time is None else self.superseded(number, time)
        remarked = stub(old, REMARKS.get(reason or ""))
        # where the remark makes it too long, there is none
        return remarked if reason is None or self.is_enough(number, remarked) else stub(old)

    def saving(self, number: int, time: int | None = None) -> int:
        """Tokens that replacing an output saves."""
        return self.outputs[number].tokens - self.stub_tokens(self.text(number, time))

    def saves_enough(self, number: int, time: int | None) -> bool:
        """Whether the stub is shorter, and smaller by the least that it must save."""
        return self.is_enough(number, self.text(number, time))

    def is_enough(self, number: int, text: str) -> bool:
        """Whether a stub is shorter, and smaller by the least that it must save."""
        output = self.outputs[number]
        saved = output.tokens - self.stub_tokens(text)
        return self.is_smaller(output, text) and saved >= max(self.policy.min_saved, 1)

    def pays(self, saved: Mapping[int, int]) -> bool:
        """Whether a batch that saves so much pays for what must be written again behind it."""
        total = sum(saved.values())
        if self.prices is None or self.prices.cold:
            return total > 0
        steps = self.policy.horizon_share * len(self.responses)
        horizon = min(max(steps, 3.0), 40.0) if self.prices.horizon is None else self.prices.horizon
        sent = self.sent()
        first = self.outputs[min(saved)].index
        rest = sum(self.now[first:sent]) - sum(
            gain for number, gain in saved.items() if self.outputs[number].index < sent
        )
        read, write = self.prices.read, self.prices.write
        return total >= self.least and read * total * horizon >= (write - read) * rest

    def sent(self) -> int:
        """How many messages were in the last request: those before the newest response."""
        return self.responses[-1] if self.responses else 0

    def grid(self, starters: Sequence[int], saved: Mapping[int, int], step: int) -> list[Batch]:
        """One batch for each output at which the sum from the start crosses a multiple of `step`."""
        batches = []
        total, members = 0, []
        for number in starters:
            members.append(number)
            crosses = (total + saved[number]) // step > total // step
            total += saved[number]
            if crosses:
                time = self.released(number)
                batches.append(Batch(tuple(members), time or 0))
                members = []
        return batches

    def joiners(self, time: int) -> Iterator[int]:
        """Reads inside the zone that a later read covers, or whose file was edited, at that time."""
        if self.policy.superseded == "off":
            return
        for number, output in enumerate(self.outputs):
            early, late = self.released(number, zone=False), self.released(number)
            in_zone = early is not None and early <= time and (late is None or late > time)
            if not in_zone or output.is_stub or output.kept or output.failed:
                continue
            if self.superseded(number, time, settled=True) and self.saves_enough(number, time):
                yield number

    def superseded(self, number: int, time: int, *, settled: bool = False) -> str | None:
        """Whether a read is "covered" by a later one or its file was "edited" at that time.

        `settled`: an edit counts only if the newest one is older than the protected steps; while a file is being
        worked on, its only text stays.
        """
        read = self.outputs[number].call.read
        if read is None or self.policy.superseded == "off":
            return None
        path = read[0]
        seen, edited = 0, None
        for place, later in enumerate(self.outputs[number + 1 :], number + 1):
            if later.index >= time:
                break
            if later.failed:
                continue
            if path in later.call.edits:
                edited = later
            if later.call.read and later.call.read[0] == path and place not in self.stubs:
                seen += 1
                if seen <= LATER_READS and covers(later, self.outputs[number]):
                    return "covered"
        if edited is None:
            return None
        old = self.step_old(edited.index)
        return "edited" if not settled or (old is not None and old <= time) else None

    def errors(self, time: int) -> Iterator[int]:
        """Errors out of protection that are resolved at that time, or too many to stay whole."""
        if self.policy.keep_errors != "open":
            return
        count = total = 0
        for number in reversed(range(len(self.outputs))):
            output = self.outputs[number]
            if output.index >= time or not output.failed or output.is_stub:
                continue
            resolved = self.resolved(number, time)
            if not resolved:
                count, total = count + 1, total + output.tokens
                if self.policy.stub is not None or (count <= ERRORS_WHOLE and total <= ERROR_TOKENS):
                    continue
            late = self.released(number)
            if late is not None and late <= time and not output.kept and self.saves_enough(number, time):
                yield number

    def resolved(self, number: int, time: int) -> bool:
        """Whether the same tool has succeeded on the same target since."""
        output = self.outputs[number]
        return any(
            not later.failed and later.tool == output.tool and later.call.target == output.call.target
            for later in self.outputs[number + 1 :]
            if later.index < time
        )

    def named(self, text: str, stored: object) -> str:
        """The stub with what a store has given: an id, or nothing if there was no room."""
        if stored is None:
            return text
        if not isinstance(stored, str):
            raise TypeError(f"store: expected save to give an id as a text, got `{type(stored).__name__}`")
        if not 0 < len(stored) <= LONGEST_ID or re.search("[^ -~\xa1-\ud7ff\ue000-\U0010ffff]", stored):
            raise ValueError(f"store: expected save to give an id of 1 to {LONGEST_ID} printable characters")
        return with_id(text, stored) if self.policy.stub is None else text

    def take(self, number: int, time: int) -> None:
        """Replaces an output."""
        output = self.outputs[number]
        if not self.saves_enough(number, time):
            return
        reason = "error" if output.failed else self.superseded(number, time) or "aged"
        text, stored = self.text(number, time), None
        if self.store is not None:
            content = output.holder.get("content")
            stored = self.store.save(content if isinstance(content, str) else json_text(content, "content"))
            text = self.named(text, stored)
            if not self.is_enough(number, text):
                return
        self.write(number, reason, text, stored)

    def write(self, number: int, reason: str, text: str, stored: str | None) -> None:
        """Puts a text in the place of an output."""
        output = self.outputs[number]
        edit = Edit(
            index=output.index,
            place=output.place,
            call_id=output.call_id,
            tool=output.tool,
            kind=output.call.kind,
            reason=reason,
            before=0,
            after=0,
            new=True,
            stub=text,
            characters=len(output.text),
            sample=output.sample,
            stored=stored,
        )
        self.replace(number, edit, new=True)

    # ------------------------------------------------------------------------------------- what is said about it

    def find_block(self, large: Sequence[int], aged: Sequence[int], starters: Sequence[int] | None) -> str | None:
        """Which rule has made the call a no-op."""
        unguarded = [number for number in large if self.released(number, turns=False) is not None]
        if self.policy.protected_turns and not self.enough(aged) and self.enough(unguarded):
            return "protected_turns"
        if aged:
            return "kept" if starters == [] else "prune_threshold"
        if any(self.released(number, zone=False) is not None for number in large):
            return "protected_tokens" if self.zone else "kept"  # what is kept may take no room in the zone
        return "protected_steps" if large else None

    def find_rereads(self) -> Iterator[int]:
        """Messages of the newest step that read lines again of which every copy had been replaced."""
        newest = self.responses[-1] if self.responses else len(self.messages)
        for output in [output for output in self.outputs if output.index >= newest][:REREADS]:
            read = output.call.read
            if read is None or output.failed or output.is_stub:
                continue
            path, first, last = read
            copies = [
                earlier.is_stub
                for earlier in self.outputs
                if earlier.index < newest and not earlier.failed and (span := earlier.call.read)
                if span[0] == path and span[1] <= last and first <= span[2]
            ]
            if copies and all(copies):
                yield output.index

    def written(self) -> list[Any]:
        """The messages with the stubs in their places; untouched ones are the same objects."""
        result = list(self.messages)
        for number, edit in self.edits.items():
            output = self.outputs[number]
            message = read_fields(result[output.index], f"messages[{output.index}]")
            holder = {**output.holder, "content": with_text(output.holder.get("content"), edit.stub)}
            if message.get("role") == "user":  # its results are blocks
                result[output.index] = with_block(message, edit.place, holder)
            else:
                result[output.index] = holder
        return result

    def result(self) -> Pruned:
        """The new list and the report."""
        messages = self.written()
        tokens = [
            old if message is self.messages[index] else self.counter.pieces(read_message(message, f"messages[{index}]"))
            for index, (message, old) in enumerate(zip(messages, self.tokens, strict=True))
        ]
        by_message: dict[int, list[int]] = {}
        for number in sorted(self.edits):
            by_message.setdefault(self.outputs[number].index, []).append(number)
        edits = dict(self.edits)
        for index, numbers in by_message.items():  # the tokens of a message are rounded once
            rest = self.tokens[index] - tokens[index]
            if rest <= 0:  # what was saved was lost in rounding
                messages[index], tokens[index] = self.messages[index], self.tokens[index]
                edits = {number: edit for number, edit in edits.items() if number not in numbers}
                continue
            saved = []
            for number in numbers:
                saved.append(min(edits[number].before - edits[number].after, rest))
                rest -= saved[-1]
            for place, number in enumerate(numbers):
                more = min(edits[number].before - saved[place], rest)
                edits[number] = replace(edits[number], after=edits[number].before - saved[place] - more)
                rest -= more
        fresh = [edit.index for edit in edits.values() if edit.new]
        first = min(fresh, default=None)
        report = Report(
            changed=bool(edits),
            before=self.counter.total(sum(self.tokens)),
            after=self.counter.total(sum(tokens)),
            items=tuple(edits[number] for number in sorted(edits)),
            earliest_changed_index=first,
            tokens_rewritten=0 if first is None else sum(tokens[first : self.sent()]),
            blocked_by=self.blocked_by,
            reread_of_pruned=self.reread,
        )
        return Pruned(messages, report)


def covers(later: Output, earlier: Output) -> bool:
    """Whether the lines of a read are all in a later one: by what was asked for, if the later one can hold them.

    One with less than half of the text says something else ("File unchanged"). One without an end that has a thousand
    lines may have been cut by the tool: it has the lines that it has.
    """
    if later.call.read is None or earlier.call.read is None or 2 * len(later.text) < len(earlier.text):
        return False
    (_, first, last), (_, from_line, to_line) = later.call.read, earlier.call.read
    lines = later.text.count("\n") + 1
    if last == END and lines >= CUT_LINES:
        last = first + lines - 1
        to_line = min(to_line, from_line + earlier.text.count("\n"))
    return first <= from_line and last >= to_line


def nth(positions: Sequence[int], place: int) -> int | None:
    """How much of the list there must be for the position with that number to be in it."""
    return positions[place] + 1 if place < len(positions) else None


def text_of(content: object) -> tuple[str, int]:
    """The text of an output, and how many parts of it are no text."""
    if isinstance(content, str):
        return content, 0
    texts, attachments = [], 0
    for part in content if isinstance(content, (list, tuple)) else ():
        text = text_part(part)
        if text is None:
            attachments += 1
        else:
            texts.append(text)
    return "\n".join(texts), attachments


def text_part(part: object) -> str | None:
    """The text of a part of content, if it is one."""
    if isinstance(part, str):
        return part
    fields = read_fields(part, "part")
    if fields.get("type") not in ("text", "input_text", "output_text"):
        return None
    return fields.get("text") or ""


def with_text(content: object, text: str) -> object:
    """Content of the same shape that holds nothing but a text."""
    if not isinstance(content, (list, tuple)):
        return text
    part = next((part for part in content if text_part(part) is not None), None)
    if isinstance(part, str):
        return [text]
    return [{**({"type": "text"} if part is None else read_fields(part, "part")), "text": text}]


def with_block(message: Mapping[str, Any], place: int, block: Mapping[str, Any]) -> dict[str, Any]:
    """The message with another block in the place of one of its results."""
    content = list(message["content"])
    places = [
        at
        for at, part in enumerate(content)
        if not isinstance(part, str) and read_fields(part, "part").get("type") == "tool_result"
    ]
    content[places[place]] = block
    return {**message, "content": content}
