"""Making a list fit: the history is replayed request by request, and brought down whenever it had become too large."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxfast.budget import ContextBudget
from ctxfast.errors import CannotFitError
from ctxfast.policy import FitPolicy, SupportsSave
from ctxfast.reference.counting import Counter, check_budget
from ctxfast.reference.estimating import EstimatorCounter, default_counter
from ctxfast.reference.pruning import Batch, Edit, Pruning, text_of
from ctxfast.reference.reading import PROSE, Reading, json_text, read_content, read_fields, read_message
from ctxfast.reference.repairing import RepairReport, repair
from ctxfast.reference.structure import STEP, SYSTEM, USER, kinds_of_atoms
from ctxfast.reference.tail import without_results
from ctxfast.reference.truncating import ends

HUGE = 4  # a result with more than this part of the room is huge
LEAST_OUTPUT = 64  # tokens that an output is cut to at least
FIRST = 10  # the first user message stays if it has at most this part of the budget
MEASURED_PARTS = 20  # of the budget, in which a measured number is rounded
MOST_OFF = 2  # a provider's count of more than so many times the counter's is no error of the counter
ATTEMPTS = 8


@dataclass(frozen=True)
class FitReport:
    """What was done; the fields of `ctxfast.FitReport`."""

    budget: int | None
    before: int
    after: int
    beside: int
    repairs: RepairReport
    stubs: tuple[Edit, ...] = ()
    dropped: tuple[tuple[Any, ...], ...] = ()
    clamped: tuple[Edit, ...] = ()
    pinned: tuple[int, ...] = ()
    earliest_changed_index: int | None = None


@dataclass(frozen=True)
class Fitted:
    """A list that fits, and what was done to get it."""

    messages: list[Any]
    report: FitReport


@dataclass(frozen=True)
class Measure:
    """What a sum of counts is as a number of the budget."""

    counter: Counter
    kind: Literal["safe", "exact", "added", "scaled"]
    used: int  # what the provider counts
    everything: int  # the sum of the whole request

    def shown(self, tokens: int) -> int:
        """A sum in the budget's measure."""
        if self.kind == "safe":
            return self.counter.total(tokens)
        if self.kind == "exact":
            return exact_total(self.counter, tokens)
        if self.kind == "added":
            return tokens + self.used - self.everything
        return -(-tokens * self.used // max(self.everything, 1))

    def most(self, budget: int) -> int:
        """The largest sum that is within the budget; a measured one in steps, so that it does not change each time."""
        if self.kind in ("safe", "exact"):
            low, high = 0, budget
            while low < high:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if self.shown(middle) <= budget else (low, middle - 1)
            return low
        if self.kind == "added":
            most = max(budget - (self.used - self.everything), 0)
        else:
            most = budget * self.everything // max(self.used, 1)
        return most - most % max(budget // MEASURED_PARTS, 1)


def measures(counter: Counter, used: int | None, everything: int, *, exact: bool) -> list[Measure]:
    """The ways to compare a request with a budget, the careful one first."""
    if used is None:
        return [Measure(counter, "exact" if exact else "safe", 0, everything)]
    scaled = Measure(counter, "scaled", used, everything)
    if used < everything:
        return [scaled]
    added = Measure(counter, "added", used, everything)
    return [added] if used > MOST_OFF * everything else [added, scaled]


def exact_total(counter: Counter, tokens: int) -> int:
    """A total without safety."""
    if isinstance(counter, EstimatorCounter):
        counter = dataclasses.replace(counter, safety=0.5)
    return counter.total(tokens)


def fit_messages(
    messages: Sequence[Any],
    max_tokens: float | ContextBudget | None,
    *,
    system: object = None,
    tools: Sequence[object] | None = None,
    used: float | None = None,
    low_water: float = 0.6,
    form: Literal["auto", "openai", "anthropic"] = "auto",
    provider: Literal["openai", "anthropic"] | None = None,
    policy: FitPolicy | None = None,
    counter: Counter | None = None,
    store: SupportsSave | None = None,
) -> Fitted:
    """A list that fits; see `ctxfast.fit_messages` for the rules."""
    policy, counter = policy or FitPolicy(), counter or default_counter()
    given = max_tokens.usable if isinstance(max_tokens, ContextBudget) else max_tokens
    budget = None if given is None else check_budget(given, "max_tokens")
    measured = None if used is None else check_budget(used, "used", zero=True)
    mended = repair(messages, form, provider=provider)
    beside = counter.tools_sum(tools)
    if system is not None:
        reading = Reading(role="user")
        read_content(system, PROSE, reading, "system")
        beside += counter.pieces(reading)
    everything = beside + counter.messages_sum(mended.messages)
    if budget is None:
        tokens = counter.total(everything)
        return Fitted(mended.messages, FitReport(None, tokens, tokens, beside, mended.report))
    ways = measures(counter, measured, everything, exact=isinstance(max_tokens, ContextBudget))
    before = ways[0].shown(everything)
    if before <= budget:
        return Fitted(mended.messages, FitReport(budget, before, before, beside, mended.report))

    refused: CannotFitError | None = None
    for measure in ways:
        most = measure.most(budget)
        fitting = Fitting(mended.messages, most - beside, budget, low_water, policy, counter, store)
        fitting.merges = form == "anthropic" or (form == "auto" and is_anthropic(mended.messages))
        new = fitting.within()
        fixed = beside + fitting.leading_tokens
        after = measure.shown(fixed + new.tokens)
        if after > budget:
            pinned = measure.shown(fixed + new.pinned_tokens)
            refused = refused or CannotFitError(budget, pinned, after, fitting.largest(new, beside))
            continue
        dropped = fitting.dropped(new)
        changed = [part[0] for part in dropped] + [edit.index for edit in new.edits] + new.joined
        report = FitReport(
            budget=budget,
            before=measure.shown(everything),
            after=after,
            beside=beside,
            repairs=mended.report,
            stubs=tuple(edit for edit in new.edits if edit.reason != "clamped"),
            dropped=tuple(dropped),
            clamped=tuple(edit for edit in new.edits if edit.reason == "clamped"),
            pinned=tuple(new.pinned),
            earliest_changed_index=min(changed, default=None),
        )
        return Fitted(new.messages, report)
    assert refused is not None
    raise refused


def is_anthropic(messages: Sequence[Any]) -> bool:
    """Whether a list is in Anthropic's form, as `validate` sees it."""
    forms = (read_message(message, f"messages[{index}]").form for index, message in enumerate(messages))
    return next((form for form in forms if form), "openai") == "anthropic"


@dataclass
class Written:
    """A new list."""

    messages: list[Any]
    tokens: int
    pinned_tokens: int
    now: list[int]  # tokens of the messages that came in, as they are in the new list
    start: int
    pinned: list[int]
    edits: list[Edit]
    joined: list[int]  # messages that were written as one with the next one


@dataclass
class State:
    """What is still there when the list is as long as it was for some request."""

    now: list[int]  # tokens of messages
    sizes: list[int]  # tokens of outputs
    start: int  # the first message that is still there
    pruned: set[int] = field(default_factory=set)
    clamped: set[int] = field(default_factory=set)
    fewest: bool = False


class Fitting:
    """A list that is too large."""

    merges = False

    def __init__(
        self,
        messages: list[Any],
        most: int,
        budget: int,
        low_water: float,
        policy: FitPolicy,
        counter: Counter,
        store: SupportsSave | None,
    ) -> None:
        """Read the list."""
        self.messages, self.counter, self.store = messages, counter, store
        rules = dataclasses.replace(policy.prune, trigger_tokens=None)
        pruning = Pruning(messages, rules, None, None, counter, store)
        self.entries, self.tokens, self.outputs = pruning.entries, pruning.tokens, pruning.outputs
        entries = self.entries
        leading = next((index for index, entry in enumerate(entries) if entry.kind != SYSTEM), len(entries))
        self.leading, self.leading_tokens = leading, sum(self.tokens[:leading])
        self.room = max(most - self.leading_tokens, 0)
        self.low = math.floor(self.room * low_water)
        self.first = budget // FIRST if policy.pin_first else -1
        self.steps = max(policy.prune.protected_steps, 1)
        self.rules = dataclasses.replace(rules, protected_tokens=min(rules.protected_tokens, self.room // 4))
        self.atoms = [atom for atom in kinds_of_atoms(entries) if atom[0] >= leading]
        self.users = [index for index, entry in enumerate(entries) if index >= leading and entry.own_text]

    def pin(self, index: int) -> Any:
        """A user message that stays: of one that also carries tool results the rest."""
        message = self.messages[index]
        return without_results(message) if self.entries[index].results else message

    def pin_tokens(self, index: int) -> int:
        """Its tokens."""
        return self.counter.messages_sum([self.pin(index)])

    def kind_of(self, start: int) -> str:
        """What the atom is that begins at a message, system messages in front of it aside."""
        return next((kind for first, _, kind in self.atoms if first >= start and kind != SYSTEM), "")

    def pins(self, start: int, end: int, *, fewest: bool) -> list[int]:
        """User messages that stay although they are before `start`: the first, the one of the turn, the task."""
        first = [index for index in self.users[:1] if self.pin_tokens(index) <= self.first]
        openers = [index for index, _, kind in self.atoms if kind == USER and index < start and index in self.users]
        head = openers[-1:] if self.kind_of(start) not in (USER, "") else []
        task = [index for index in self.users if index < end][-1:]
        kept = first + head + task
        if fewest:
            kept = task if task and task[0] < start else head
        return sorted({index for index in kept if index < start})

    def cost(self, state: State, start: int, end: int) -> int:
        """Tokens of the messages that stay if those before `start` are gone."""
        pinned = self.pins(start, end, fewest=state.fewest and start == state.start)
        return sum(state.now[start:end]) + sum(self.pin_tokens(index) for index in pinned)

    def replay(self, pruning: Pruning, short: int) -> tuple[State, list[int]]:
        """What is still there at the end, and the lengths of the list at which it had become too large."""
        least = max(self.rules.min_saved, 1)
        large = [number for number, output in enumerate(self.outputs) if output.tokens >= least and not output.is_stub]
        aged = [number for number in large if pruning.released(number) is not None]
        starters = {number: pruning.saving(number) for number in aged if pruning.can_start(number)}
        start = self.atoms[0][0] if self.atoms else len(self.messages)
        state = State(list(self.tokens), [output.tokens for output in self.outputs], start)
        lengths = []
        n = len(self.messages)
        requests = [(first, self.room) for first, _, kind in self.atoms if kind == STEP]
        for end, room in [*requests, (n, max(self.room - short, 0))]:
            if self.cost(state, state.start, end) > room:
                lengths.append(end)
                self.relieve(state, end, room, pruning, starters)
        return state, lengths

    def relieve(self, state: State, end: int, room: int, pruning: Pruning, starters: dict[int, int]) -> None:
        """Makes room: old outputs, old messages, huge outputs, the newest outputs, pinned messages."""
        for number, saved in starters.items():
            time = pruning.released(number)
            if time is not None and time <= end and number not in state.pruned:
                state.pruned.add(number)
                if self.outputs[number].index >= state.start:
                    self.shrink(state, number, self.outputs[number].tokens - saved)
        low = min(self.low, room)
        if self.cost(state, state.start, end) <= low:
            return
        starts = [first for first, _, _ in self.atoms if first < end]
        kept_steps = [first for first, _, kind in self.atoms if state.start <= first < end and kind == STEP]
        guarded = kept_steps[-self.steps] if len(kept_steps) >= self.steps else state.start
        if self.cost(state, guarded, end) > room:
            self.clamp(state, guarded, end, max(room // HUGE, LEAST_OUTPUT))
        self.drop(state, guarded, end, low)
        if self.cost(state, state.start, end) > room:
            self.drop(state, starts[-1], end, low)
        over = self.cost(state, state.start, end) - room
        if over > 0:
            newest = [state.sizes[number] for number in self.numbers(starts[-1], end)]
            left = sum(newest) - over
            most = max((m for m in range(max(newest, default=0) + 1) if total_of(newest, m) <= left), default=0)
            self.clamp(state, starts[-1], end, max(most, LEAST_OUTPUT))
        state.fewest = state.fewest or self.cost(state, state.start, end) > room

    def drop(self, state: State, until: int, end: int, low: int) -> None:
        """The oldest atoms, until there are no more tokens than `low`."""
        for _, stop, _ in self.atoms:
            if state.start < stop <= until and self.cost(state, state.start, end) > low:
                state.start, state.fewest = stop, False

    def numbers(self, start: int, end: int) -> list[int]:
        """Outputs in a part of the list."""
        return [number for number, output in enumerate(self.outputs) if start <= output.index < end]

    def clamp(self, state: State, start: int, end: int, most: int) -> None:
        """Outputs with more tokens than that."""
        for number in self.numbers(start, end):
            if state.sizes[number] > most:
                self.shrink(state, number, most)
                state.clamped.add(number)

    def shrink(self, state: State, number: int, tokens: int) -> None:
        """An output has so many tokens now."""
        index = self.outputs[number].index
        saved = min(max(state.sizes[number] - tokens, 0), state.now[index])
        state.sizes[number] -= saved
        state.now[index] -= saved

    def within(self) -> Written:
        """A list within the room, or the least that was found."""
        short, least = 0, None
        for _ in range(ATTEMPTS):
            pruning = Pruning(self.messages, self.rules, None, None, self.counter, self.store)
            state, lengths = self.replay(pruning, short)
            can_fit = self.cost(state, state.start, len(self.messages)) <= max(self.room - short, 0)
            new = self.write(pruning, state, lengths)
            fits = new.tokens <= self.room
            short += max(new.tokens - self.room, 0)
            if fits or least is None or new.tokens < least.tokens:
                least = new
            if fits or not can_fit:
                break
        assert least is not None
        return least

    def write(self, pruning: Pruning, state: State, lengths: list[int]) -> Written:
        """The new list."""
        taken = {number for number, output in enumerate(self.outputs) if output.index < state.start}
        starters = [number for number in state.pruned if number not in taken]
        pruning.stubs = {number for number, output in enumerate(pruning.outputs) if output.is_stub}
        for time in lengths:
            if time > state.start:
                old = [n for n in sorted(starters) if (pruning.released(n) or 0) <= time and n not in taken]
                taken |= pruning.take_batch(Batch(tuple(old), time), taken)
        for number in sorted(state.clamped):
            output = self.outputs[number]
            if output.index >= state.start and number not in pruning.edits:
                self.take_ends(pruning, number, state.sizes[number])
        done = pruning.result()
        changed, edits = done.messages, list(done.report.items)

        pinned = self.pins(state.start, len(self.messages), fewest=state.fewest)
        front: list[tuple[int, Any]] = [
            (index, without_results(changed[index]) if self.entries[index].results else changed[index])
            for index in pinned
        ]
        rest, joined = state.start, []
        if self.merges:
            if pinned and pinned[-1] + 1 < rest < len(changed) and self.entries[rest].kind == USER:
                front.append((rest, changed[rest]))
                rest += 1
            joined = [one for (one, _), (next_one, _) in itertools.pairwise(front) if one + 1 != next_one]
            front = merged(front)
        new = [*(message for _, message in front), *changed[rest:]]
        kept = changed[: min(self.leading, state.start)]
        now = [self.counter.messages_sum([message]) for message in changed]
        in_front = self.counter.messages_sum([message for _, message in front])
        task = sum(self.pin_tokens(index) for index in self.users[-1:] if index >= rest)
        tokens = self.counter.messages_sum(new)
        return Written(kept + new, tokens, in_front + task, now, state.start, pinned, edits, joined)

    def largest(self, new: Written, beside: int) -> str:
        """The largest of what must stay."""
        kept = [*range(self.leading), *new.pinned, *range(new.start, len(self.messages))]
        index = max(kept, key=lambda index: (new.now[index], -index), default=-1)
        if index < 0 or beside > new.now[index]:
            return f"what stands beside the messages (system, tools): {counted(beside)}"
        role = read_fields(self.messages[index], "message")["role"]
        return f"messages[{index}] ({role}): {counted(new.now[index])}"

    def take_ends(self, pruning: Pruning, number: int, tokens: int) -> None:
        """Cuts an output to its ends."""
        output, stored = pruning.outputs[number], None
        if self.store is not None:
            content = output.holder.get("content")
            stored = self.store.save(content if isinstance(content, str) else json_text(content, "content"))
        text = ends(output.text, output.call.kind, output.tokens, tokens, pruning.stub_tokens, stored)
        if not pruning.is_smaller(output, text):
            return
        pruning.write(number, "clamped", text, stored)

    def dropped(self, new: Written) -> list[tuple[Any, ...]]:
        """What is gone: messages, what they are, tokens, what users said, the id under which they were saved."""
        gone: list[tuple[Any, ...]] = []
        for start, stop, kind in self.atoms:
            if stop > new.start or (kind == USER and start in new.pinned):
                continue
            users = [index for index in self.users if start <= index < stop]
            tokens = sum(self.tokens[start:stop]) - sum(self.pin_tokens(i) for i in users if i in new.pinned)
            said = [text_of_user(self.pin(index)) for index in users if index not in new.pinned]
            texts = (json_text(self.messages[index], f"messages[{index}]") for index in range(start, stop))
            stored = self.store and self.store.save(f"[{','.join(texts)}]")
            name = kind if kind in (SYSTEM, USER, STEP) else "other"
            gone.append((start, stop, name, max(tokens, 0), "\n".join(text for text in said if text), stored))
        return gone


def counted(tokens: int) -> str:
    """`1 token`, `1,234 tokens`."""
    return f"{tokens:,} token{'' if tokens == 1 else 's'}"


def total_of(sizes: Sequence[int], most: int) -> int:
    """The sum of sizes if none may be larger than that."""
    return sum(min(size, most) for size in sizes)


def merged(front: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Users' messages as one, where they were no neighbours before."""
    result: list[tuple[int, Any]] = []
    for index, message in front:
        if result and result[-1][0] + 1 != index:
            before = result.pop()[1]
            first, second = read_fields(before, "message"), read_fields(message, "message")
            message = {**second, **first, "content": [*parts_of(first), *parts_of(second)]}
        result.append((index, message))
    return result


def parts_of(fields: dict[str, Any]) -> list[Any]:
    """The parts of a message's content."""
    content = fields.get("content")
    if content is None:
        return []
    return list(content) if isinstance(content, (list, tuple)) else [{"type": "text", "text": content}]


def text_of_user(message: Any) -> str:
    """What a user says in a message."""
    return text_of(read_fields(message, "message").get("content"))[0]
