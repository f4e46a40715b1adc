"""`ContextManager`: keeps one conversation inside the model's window, from request to request."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

from ctxfast import events
from ctxfast._core import (
    CachePrices,
    TokenCounter,
    TokenLedger,
    classify_error,
    output_json,
    prune_tool_outputs,
    remove,
    repair,
    select_fresh_tail,
    validate,
)
from ctxfast.anchor import UsageAnchor, digest
from ctxfast.budget import ContextBudget, Level
from ctxfast.compaction import CompactionPolicy
from ctxfast.errors import BudgetError, CannotFitError, ContextOverflowError
from ctxfast.fitting import fit_messages
from ctxfast.models import ModelInfo, model_info
from ctxfast.policy import SupportsSave
from ctxfast.reasons import CompactReason
from ctxfast.retention import Priority, priorities
from ctxfast.summary import asummarise, find_summary, finished_segments, insert_summary, segment_line, summarise
from ctxfast.summary.reading import field_of, read
from ctxfast.usage import Usage

__all__ = ["ContextManager", "Prepared"]

M = TypeVar("M")
Form = Literal["auto", "openai", "anthropic"]

_log = logging.getLogger("ctxfast")
_log.addHandler(logging.NullHandler())  # a library says nothing where nobody listens

_HYSTERESIS = 5  # points of per cent below a level at which it is left again
_MOST_REFUSALS = 4  # of one request, until it is given up
_THRASH = 3  # compactions in a row that were needed again at once
_SOON = 3  # requests after a compaction in which that is at once
_CHEAP = TokenCounter.picoclaw("4.0")  # where tokens do not matter
_PAUSE = 20  # requests after which a compaction is tried again
_BATCHES = 4  # parts of the least batch that must have come before pruning is tried again


@dataclass(frozen=True)
class Prepared:
    """What the last `prepare` has done. Numbers are tokens."""

    level: Level
    """How full the context is now."""
    before: int
    """Tokens of the prompt as it came."""
    used: int
    """Tokens of the prompt that was given back."""
    changed: bool
    """Whether messages that were sent before are sent otherwise now, or not at all."""
    events: tuple[events.Event, ...]
    """What happened, in order."""


class _Beside(NamedTuple):
    """What is sent beside the messages."""

    system: object
    tools: Any
    tokens: int
    digest: str | None
    """By which the anchor knows them: to hash large tools each time would take most of the time of `prepare`."""


@dataclass(frozen=True)
class _Ask:
    """What the summariser is to be asked: the arguments of `summarise`."""

    messages: Sequence[Any]
    target_tokens: int


class ContextManager:
    """Makes each request of a conversation fit, says how full the context is, and recovers from refusals.

        manager = ContextManager.for_model("claude-sonnet-4-5", summarize=ask_a_model)
        while True:
            try:
                response = call(manager.prepare(messages, system=system, tools=tools))
            except Exception as error:
                if not manager.handle_error(error):
                    raise
                continue
            manager.record_usage(response)
            messages.append(...)

    The caller may keep the full history and pass it each time, or go on with the list that came back; or `append` each
    message and pass none. What was sent once is sent again as it was, until something has to go: the provider's cache
    holds in between. `policy`, a `CompactionPolicy`, says what is done at which level:

    | level | what is done | event |
    | --- | --- | --- |
    | any | old tool outputs become stubs as soon as that pays (`prune_at`) | `Pruned` |
    | SUMMARIZE, 75 % | finished tasks become a few lines | `Warned`, `Summarised` |
    | URGENT, 85 % | repeats, exploration and the like go, all old outputs become stubs | `Suggested`, `Removed` |
    | EMERGENCY, 95 %, or over usable | all but the newest messages, the task: a summary | `Emergency`, `Summarised` |
    | still more than usable | `fit_messages` | `Fitted` |

    Before all that a list that a provider would refuse is repaired (`Mended`).

    `summarize` is any function of a prompt that gives a text, sync or async; without one, or if it fails, a summary is
    made without a model. `store`, anything with `save(text) -> id`, keeps what goes. `on_event` is called with each
    event of `ctxfast.events`; they are logged to `ctxfast`, too. `state` is called at each compaction for what is to
    stay in view (phase, status). Of an unknown window nothing is decided until a refusal says how large it is.

    One manager is for one conversation and one thread at a time. Messages are never changed; list and messages that
    were given must not be changed in place afterwards.
    """

    def __init__(
        self,
        budget: ContextBudget,
        policy: CompactionPolicy | None = None,
        *,
        summarize: Callable[[str], Any] | None = None,
        store: SupportsSave | None = None,
        counter: TokenCounter | None = None,
        model: str = "",
        form: Form = "auto",
        provider: Literal["openai", "anthropic"] | None = None,
        state: Callable[[], str] | None = None,
        on_event: Callable[[events.Event], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds. Raises `TypeError` for arguments of another kind."""
        policy = CompactionPolicy() if policy is None else policy
        if not isinstance(budget, ContextBudget):
            raise TypeError(f"budget: expected a ContextBudget, got `{type(budget).__name__}`")
        if not isinstance(policy, CompactionPolicy):
            raise TypeError(f"policy: expected a CompactionPolicy, got `{type(policy).__name__}`")
        for name, function in (
            ("summarize", summarize),
            ("state", state),
            ("on_event", on_event),
            ("clock", clock),
        ):
            if function is not None and not callable(function):
                raise TypeError(f"{name}: expected a function, got `{type(function).__name__}`")
        if store is not None and not callable(getattr(store, "save", None)):
            raise TypeError(f"store: expected something with a method save(text) -> id, got `{type(store).__name__}`")
        self.budget = budget
        """What fits; it changes when a refusal says so."""
        self.policy = policy
        self.counter = TokenCounter.default() if counter is None else counter
        self.last_report: Prepared | None = None
        """What the last `prepare` has done."""
        self._model, self._form, self._provider = model, form, provider
        self._wire: Form = form  # the one in use: if it is not given, that of the first message that can only be of one
        self._summarize, self._store, self._state, self._on_event = summarize, store, state, on_event
        self._clock, self._asked = clock, clock()  # when the last request was made
        self._anchor = UsageAnchor(self.counter, context_window=budget.context_window)
        self._seen: list[Any] = []  # as the caller has it
        self._sent: list[Any] = []  # what was made of it
        self._ledger = TokenLedger(self.counter)  # of `_sent`
        self._checked = 0  # messages of `_sent` that are known to be valid; more came since
        self._changed = False  # whether something before them is otherwise than it was sent
        self._settled: ContextBudget | None = None  # for which the list was prepared, if nothing is new since then
        self._beside = _Beside(None, None, 0, None)
        self._pins: list[tuple[str, str]] = []
        self._level = Level.NORMAL
        self._fresh = 0  # tokens since pruning was tried
        self._calls = 0  # tool calls since the last compaction
        self._requested: CompactReason | None = None
        self._refused: list[int] = []  # tokens of a request that was refused, and of what was made of it
        self._vain = 0  # compactions in a row that were needed again at once
        self._since = _SOON + 1  # requests with something new since the last compaction
        self._events: list[events.Event] = []

    @classmethod
    def for_model(
        cls, model: str | ModelInfo, policy: CompactionPolicy | None = None, **options: Any
    ) -> ContextManager:
        """A manager with the budget and the counter of a model; `options` are those of the class.

        `max_output_tokens`, `context_window`, `input_limit` and `safety_margin` go to `ContextBudget.for_model`.
        Texts of OpenAI's models are counted exactly; `counter=TokenCounter.for_model(model, exact=False)` estimates
        them.
        """
        info = model if isinstance(model, ModelInfo) else model_info(model)
        names = ("max_output_tokens", "context_window", "input_limit", "safety_margin", "soft_limit")
        budget = ContextBudget.for_model(info, **{name: options.pop(name) for name in names if name in options})
        options.setdefault("counter", TokenCounter.for_model(info))
        return cls(budget, policy, model=info.name, **options)

    # ------------------------------------------------------------------------------------------- the five calls

    def prepare(self, messages: Sequence[M] | None = None, *, system: object = None, tools: Any = None) -> list[M]:
        """The list to be sent now; always a new one. `None`: what was appended.

        `system` and `tools` are what is sent beside the messages: they count. Raises `CannotFitError` with the numbers,
        and what `repair` raises for messages that cannot be read.
        """
        work = self._prepare(messages, system, tools)
        answer: Any = None
        try:
            while True:
                answer = self._ask_now(work.send(answer))
        except StopIteration as done:
            return list(done.value)

    async def aprepare(
        self, messages: Sequence[M] | None = None, *, system: object = None, tools: Any = None
    ) -> list[M]:
        """`prepare`, with a summariser that may be async."""
        work = self._prepare(messages, system, tools)
        answer: Any = None
        try:
            while True:
                ask = work.send(answer)
                answer = None if ask is None else await asummarise(**self._arguments(ask))
        except StopIteration as done:
            return list(done.value)

    def append(self, *messages: Any) -> None:
        """Adds messages to the conversation, for callers that keep no list: then `prepare()` takes none.

        Raises `MessageTypeError` or `MessageValueError` for a message that cannot be read; then none of them is added.
        """
        self._add(messages)
        self._seen.extend(messages)

    def record_usage(self, usage: object) -> bool:
        """What the provider has counted: a usage record, a response that has one, or a `Usage`.

        Returns whether it was believed (`UsageAnchor.observe`). It means that the request was accepted. Raises
        `UsageError` for what is no such record.
        """
        self._refused.clear()
        read = usage if isinstance(usage, Usage) else Usage.from_provider(usage)
        if read is None:
            return False
        return self._observe(read)

    def handle_error(self, error: object) -> bool:
        """What to do when the provider refuses: `True`: prepare again and retry.

        After an overflow the window is learned from the error, and what the provider has counted, if it says so; else
        it is taken to be nine tenths of what was refused. The next `prepare` makes the request smaller. A list that the
        provider calls invalid is repaired, once. Anything else (rate limits, quotas, ...) is `False`. Raises
        `ContextOverflowError` if a smaller request was refused again and again, or nothing can be made smaller.
        """
        estimate = self._used()
        info = classify_error(error, context_window=self.budget.context_window, estimated_tokens=estimate)
        if info.kind == "invalid_history":
            self._settled = None
            return self._repair()
        if info.retry != "shrink":
            return False
        if info.input_tokens is not None:  # what the provider has counted, and better than any estimate
            self._observe(Usage(prompt_tokens=info.input_tokens))
            estimate = self._used()
        overflow = ContextOverflowError(
            self._model or None, info.context_window or self.budget.context_window, estimate, info.message or ""
        )
        if isinstance(error, BaseException):
            overflow.__cause__ = error
        if len(self._refused) >= _MOST_REFUSALS or (self._refused and estimate >= self._refused[-1]):
            raise overflow
        known = self.budget
        try:
            learned = known.learned(info.context_window)
            if not learned.is_over(estimate) or (self._refused and learned is known):
                learned = learned.learned(estimate * 9 // 10 + (learned.max_output_tokens or 0))
        except BudgetError:
            raise overflow from None
        self._refused.append(estimate)
        self.budget = learned
        if learned is not known:
            self._tell(events.LearnedWindow, before=known.context_window, window=learned.context_window)
        self._requested, self._settled = CompactReason.OVERFLOW, None
        return True

    async def ahandle_error(self, error: object) -> bool:
        """`handle_error`, for symmetry: nothing in it waits."""
        return self.handle_error(error)

    # --------------------------------------------------------------------------------------- what can be asked for

    def room(self) -> int | None:
        """Tokens that can still be added to what was prepared; `None`: the window is not known."""
        return self.budget.room(self._used())

    def pin(self, text: str, kind: str = "decision") -> None:
        """Something that every summary repeats word for word: a decision, an instruction, a state of the project."""
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"text: expected something to keep, got {text!r}")
        if (kind, text) not in self._pins:
            self._pins.append((kind, text))

    def request_compaction(self, reason: CompactReason | str = CompactReason.PROACTIVE) -> None:
        """Makes the next `prepare` replace all but the newest messages by a summary."""
        self._requested, self._settled = CompactReason(reason), None

    # --------------------------------------------------------------------------------------------------- the work

    def _prepare(
        self, messages: Sequence[Any] | None, system: object, tools: Any
    ) -> Generator[_Ask | None, Any, list[Any]]:
        self._events = []
        if system is not self._beside.system or tools is not self._beside.tools:
            self._beside, self._settled = self._read_beside(system, tools), None
        if messages is None:
            self._mend()
        else:
            self._take(messages)
        before = self._used()
        if self._settled is self.budget:  # the same once more
            self.last_report = Prepared(self.budget.level(before), before, before, self._changed, ())
            return self._sent
        since, self._asked = self._asked, self._clock()
        if self.policy.auto != "off" and self.budget.known:
            self._prune(cold=self._asked - since > self.policy.cache_ttl)
        level = self._new_level()
        if self.policy.auto == "all":
            yield from self._by_level(level)
        if self.policy.auto != "off":
            self._fit()
        used = self._used()
        self._requested = None
        self.last_report = Prepared(self.budget.level(used), before, used, self._changed, tuple(self._events))
        self._changed, self._settled = False, self.budget
        return self._sent

    def _take(self, messages: Sequence[Any]) -> None:
        """Finds what is new in the caller's list, and puts it behind what was sent."""
        given = list(messages)
        lists = [one for one in (self._seen, self._sent) if one]
        known = next((one for one in lists if given[: len(one)] == one), None)
        if known is None and (known := next((one for one in lists if _is_same_but_marked(one, given)), None)):
            self._mark(known, given)
        if known is None:  # another conversation, or an edited one
            self._seen, self._calls, self._fresh = [], 0, 0
            self._vain, self._since = 0, _SOON + 1
            self._settled, self._wire = None, self._form
            self._adopt([])
        sent, self._sent = self._sent, list(self._sent)
        try:
            self._add(given[len(known or ()) :])
            self._mend()
        except Exception:  # a message that cannot be read: the caller may come with a better list
            self._adopt(sent)
            raise
        self._seen = given

    def _mark(self, known: list[Any], given: list[Any]) -> None:
        """The marks of the caller's list (`cache_control`), which move on with each request, and no older ones."""
        marked = {id(old): new for old, new in zip(known, given, strict=False)}
        current = {id(new) for new in given}
        messages = (marked.get(id(one), one) for one in self._sent)
        self._sent = [one if id(one) in current else _unmarked(one) for one in messages]

    def _add(self, new: Sequence[Any]) -> None:
        """Puts messages behind what was sent."""
        if not new:
            return
        before = self._ledger.total()
        self._ledger.extend(new)
        self._sent += new
        self._settled = None
        self._fresh += self._ledger.total() - before
        self._calls += sum(len(_ids_of_calls(message)) for message in new)
        if any(_role(message) == "assistant" for message in new):
            self._refused.clear()  # there was an answer

    def _mend(self) -> None:
        """Makes the list one that the provider takes. What was sent is: what came since can touch its last step."""
        if self._checked == len(self._sent):
            return
        self._since += 1
        if self._wire == "auto":
            told = (read([one], _CHEAP)[0].form for one in self._sent[self._checked :])
            self._wire = cast("Form", next(filter(None, told), "auto"))
        last = next((at for at in range(self._checked - 1, -1, -1) if _role(self._sent[at]) == "assistant"), 0)
        while last and _role(self._sent[last - 1]) == "assistant":
            last -= 1  # one response in several messages
        faults = {fault.code for fault in validate(self._sent[last:], self._wire, self._provider)}
        if faults - {"first_not_user", "no_user_message"} or not last:
            self._repair()
        self._checked = len(self._sent)

    def _repair(self) -> bool:
        """Whether something was wrong with the list; now nothing is."""
        repaired = repair(self._sent, self._wire, provider=self._provider)
        if repaired.report.changed:
            known = self._sent[: self._checked]
            changed = self._changed or repaired.messages[: len(known)] != known
            self._adopt(repaired.messages)
            self._changed = changed
            self._tell(events.Mended, report=repaired.report)
        return repaired.report.changed

    def _adopt(self, messages: list[Any]) -> None:
        """Goes on with another list."""
        self._ledger.resync(messages)
        self._changed = self._changed or bool(self._checked)
        self._sent, self._checked = messages, len(messages)

    def _read_beside(self, system: object, tools: Any) -> _Beside:
        """System and tools with what is known of them."""
        if system is None and tools is None:
            return _Beside(None, None, 0, None)
        tokens = self.counter.request({"messages": [], "system": system, "tools": tools})
        return _Beside(system, tools, tokens, digest(system, tools))

    def _estimate(self) -> int:
        return self._ledger.total() + self._beside.tokens

    def _observe(self, usage: Usage) -> bool:
        """Takes what the provider has counted for what was sent."""
        self._settled = None
        beside = self._beside.digest
        return self._anchor.observe(usage, (), system=beside, model=self._model, estimate=self._estimate())

    def _used(self) -> int:
        """Tokens of the prompt, as far as they are known."""
        beside = self._beside.digest
        return self._anchor.predict((), system=beside, model=self._model, estimate=self._estimate())

    # ------------------------------------------------------------------------------------------------ the actions

    def _prune(self, *, cold: bool) -> None:
        """Old outputs, once there may be enough of them, or the provider's cache has expired."""
        policy = self.policy
        if policy.prune_at == "level" and self.budget.level(self._used()) < Level.PRUNE:
            return
        prices = policy.prices
        if prices is not None and cold:
            prices = CachePrices(prices.read, prices.write, prices.horizon, cold=True)
        if self._fresh < self._least_batch() // _BATCHES and prices is policy.prices:
            return
        self._fresh = 0
        self._make_stubs(policy=policy.fit.prune, prices=prices, budget=self.budget.usable)

    def _least_batch(self) -> int:
        """Tokens that have to go at once so that a new prefix pays."""
        least, usable = self.policy.fit.prune.min_batch, self.budget.usable
        return least if usable is None else min(least, usable // 10)

    def _new_level(self) -> Level:
        """The level with hysteresis, and what is said of it."""
        used, before = self._used(), self._level
        level = self.budget.level(used)
        if level < before:
            hard = self.budget.hard or 0
            level = max(one for one in Level if one <= before and 100 * used >= (one.percent - _HYSTERESIS) * hard)
        self._level = level
        if level != before:
            self._tell(events.Detected, before=before)
        if level >= Level.SUMMARIZE > before:
            self._tell(events.Warned)
        if level >= Level.URGENT > before:
            self._tell(events.Suggested)
        return level

    def _by_level(self, level: Level) -> Generator[_Ask | None, Any, None]:
        """What is done at a level, from the mildest on, until it is lower."""
        policy = self.policy
        used, hard = self._used(), self.budget.hard
        at = None if policy.compact_at is None or hard is None else policy.compact_at * hard
        due = policy.trigger_tool_calls is not None and self._calls >= policy.trigger_tool_calls
        is_full = at is not None and (used >= at or self.budget.is_over(used))  # `_fit` would drop messages instead
        if self._requested is not None or due or is_full:
            if self._requested is CompactReason.OVERFLOW:
                self._tell(events.Emergency, reason=self._requested)
            yield from self._compact(self._requested or CompactReason.PROACTIVE)
            return
        if at is not None or level < Level.SUMMARIZE:
            return
        self._summarise_segments()
        if self.budget.level(self._used()) >= Level.URGENT:
            self._reduce()
        used = self._used()
        if self.budget.level(used) >= Level.EMERGENCY:
            self._tell(events.Emergency, reason=CompactReason.PROACTIVE)
        elif not self.budget.is_over(used):
            return
        yield from self._compact(CompactReason.PROACTIVE)

    def _compact(self, reason: CompactReason) -> Generator[_Ask | None, Any, None]:
        """All but the system messages, the task, the pins and the newest messages becomes a summary."""
        if self._requested is None and not self._may_help():
            return  # what is left is to fit
        self._since = self._calls = 0
        used, before = self._used(), self._sent
        tail = self._tail()
        front = len(tail.messages) - (len(before) - tail.start) - len(tail.pinned)
        source = before[front : tail.start]
        if len(source) <= len(tail.pinned):
            return
        summary = yield _Ask(_without_appendix(source, self._wire), self.policy.summary_tokens)
        if not summary.ok:
            return  # of so little no summary is smaller
        text = summary.text + self._pinned() + self._stored(source)
        new = insert_summary(tail.messages, front, text, self._wire)
        if self.counter.messages(new) >= self._ledger.total():
            return
        self._adopt(new)
        after = self._used()
        self._tell(events.Summarised, used=used, reason=reason, kind=summary.kind, messages=len(source), after=after)

    def _tail(self) -> Any:
        """The newest messages, which stay word for word."""
        budget = self.policy.tail_tokens or self.budget.fresh_tail
        return select_fresh_tail(self._sent, budget, counter=self.counter)

    def _may_help(self) -> bool:
        """Whether a compaction is worth another one: not if the last three were each needed again at once."""
        if self._vain >= _THRASH and self._since <= _PAUSE:
            return False
        self._vain = self._vain + 1 if self._since <= _SOON else 0
        if self._vain < _THRASH:
            return True
        sizes = [(f"messages[{at}] ({_role(one)})", self.counter.message(one)) for at, one in enumerate(self._sent)]
        largest = sorted(sizes, key=lambda item: -item[1])[:3]
        beside = max(self._used() - self._ledger.total(), 0)
        largest.append(("what stands beside the messages (system, tools, unseen)", beside))
        self._tell(events.NoProgress, largest=tuple(largest))
        return False

    def _summarise_segments(self) -> None:
        """Finished tasks, as far as they lie before the tail: the user's words stay, and the rest is a few lines.

        Below URGENT only as many at once as pay for a new prefix.
        """
        used, messages = self._used(), self._sent
        end = self._tail().start
        found: list[tuple[int, int, dict[str, Any], int]] = []
        freed = 0
        for first, last in finished_segments(messages):
            if first >= end:
                break
            stop = min(last, end)  # the next question can be about the last answer
            answer = {"role": "assistant", "content": segment_line(messages[first:stop])}
            size = self.counter.messages(messages[first + 1 : stop])
            saved = size - self.counter.message(answer)
            if stop - first > 2 and saved > 0:
                found.append((first, stop, answer, size))
                freed += saved
        if freed < self._least_batch() and self.budget.level(used) < Level.URGENT:
            return
        new: list[Any] = []
        start, count = 0, 0
        for first, stop, answer, size in found:
            answer["content"] += self._stored(messages[first + 1 : stop])
            if self.counter.message(answer) >= size:
                continue
            new += [*messages[start : first + 1], answer]
            start, count = stop, count + stop - first - 1
        if count:
            self._adopt([*new, *messages[start:]])
            kind, reason = "segments", CompactReason.PROACTIVE
            self._tell(events.Summarised, used=used, reason=reason, kind=kind, messages=count, after=self._used())

    def _reduce(self) -> None:
        """What is before the tail: P3 goes, P2 becomes stubs, whether it pays or not (`priorities`)."""
        used, end = self._used(), self._tail().start
        parts = priorities(self._sent, pins=[text for _, text in self._pins], counter=self.counter)
        outputs = [part for part in parts if part.place is not None and part.index < end]
        often = Counter(call_id for message in self._sent for call_id in _ids_of_calls(message))
        gone = [part for part in outputs if part.priority is Priority.P3 and often[part.call_id] == 1]
        ids = {part.call_id for part in gone if part.call_id}
        if ids:
            self._stored([self._sent[index] for index in sorted({part.index for part in gone})])
            removed = remove(self._sent, ids, self._wire, provider=self._provider).messages
            self._adopt(removed)
            self._tell(events.Removed, used=used, parts=tuple(gone))
        rules = replace(self.policy.fit.prune, prune_threshold=0, batch="all", trigger_tokens=None)
        protected = self.policy.tail_tokens or self.budget.fresh_tail
        self._make_stubs(policy=rules, prices=None, protected_tokens=protected)

    def _make_stubs(self, **rules: Any) -> None:
        """What those rules of `prune_tool_outputs` make of the list."""
        pruned = prune_tool_outputs(self._sent, counter=self.counter, store=self._store, **rules)
        if pruned.report.changed:
            self._adopt(pruned.messages)
            self._tell(events.Pruned, report=pruned.report)

    def _fit(self) -> None:
        """Whatever must go so that the request is accepted.

        The anchor can expect more of the shorter list than `fit_messages` took it to have; then more has to go.
        """
        while self.budget.is_over(used := self._used()):
            self._fit_once(used)

    def _fit_once(self, used: int) -> None:
        before = self._ledger.total()
        system, tools, *_ = self._beside
        try:
            fitted = fit_messages(
                self._sent,
                self.budget,
                system=system,
                tools=tools,
                used=used,
                low_water=self.policy.low_water,
                form=self._wire,
                provider=self._provider,
                policy=self.policy.fit,
                counter=self.counter,
                store=self._store,
            )
        except CannotFitError as error:
            self._tell(events.CannotFit, error=error)
            raise
        self._adopt(fitted.messages)
        self._tell(events.Fitted, used=used, report=fitted.report)
        if self._ledger.total() >= before:  # nothing has gone: there is nothing more to try
            sizes = [(self.counter.message(one), at) for at, one in enumerate(self._sent)]
            size, at = max(sizes, default=(0, 0))
            stuck = CannotFitError(self.budget.usable or 0, 0, used, f"messages[{at}]: {size:,} tokens")
            self._tell(events.CannotFit, error=stuck)
            raise stuck

    # ------------------------------------------------------------------------------------------------------ helpers

    def _arguments(self, ask: _Ask) -> dict[str, Any]:
        usable = self.budget.usable  # the summariser is taken to be a model with the same window
        return {
            "messages": ask.messages,
            "summarize": self._summarize,
            "structured": self.policy.use_structured_summaries,
            "target_tokens": ask.target_tokens,
            "max_tokens": None if usable is None else max(usable / max(self._anchor.slope(self._model), 1), 1),
            "timeout": self.policy.summarize_timeout,
            "counter": self.counter,
        }

    def _ask_now(self, ask: _Ask | None) -> Any:
        return None if ask is None else summarise(**self._arguments(ask))

    def _pinned(self) -> str:
        """What the caller has pinned, and the state as it is now."""
        pins = [f"- {text} ({kind})" for kind, text in self._pins]
        if self._state is not None:
            pins.append(f"- {self._state()} (state)")
        return _PINNED + "\n".join(pins) if pins else ""

    def _stored(self, messages: Sequence[Any]) -> str:
        """Where the messages are that are gone."""
        if self._store is None:
            return ""
        stored = self._store.save(output_json(list(messages)))
        return "" if stored is None else f"{_SAVED}{stored}]"

    def _tell(self, event_class: Any, /, used: int | None = None, **fields: Any) -> None:
        used = self._used() if used is None else used
        event = event_class(level=self._level, used=used, **fields)
        self._events.append(event)
        _log.log(logging.WARNING if event_class in _LOUD else logging.INFO, "%s", event)
        if self._on_event is not None:
            self._on_event(event)

    def state(self) -> dict[str, Any]:
        """Everything but policy, counter and functions as plain data, fit for JSON where messages and tools are."""
        system, tools, *_ = self._beside
        return {
            "version": 1,
            "seen": list(self._seen),
            "sent": list(self._sent),
            "pins": [list(pin) for pin in self._pins],
            "level": int(self._level),
            "checked": self._checked,
            "fresh": self._fresh,
            "calls": self._calls,
            "since": self._since,
            "vain": self._vain,
            "form": self._wire,
            "settled": self._settled is self.budget,
            "refused": list(self._refused),
            "requested": None if self._requested is None else str(self._requested),
            "system": system,
            "tools": tools,
            "anchor": self._anchor.to_dict(),
            "budget": self.budget.to_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave. Raises `TypeError`, `KeyError` or `ValueError` for anything else."""
        if state.get("version") != 1:
            raise ValueError(f"version: expected 1, got {state.get('version')!r}")
        budget, anchor = ContextBudget.from_dict(state["budget"]), UsageAnchor.from_dict(state["anchor"], self.counter)
        seen, sent, level = list(state["seen"]), list(state["sent"]), Level(state["level"])
        pins = [(str(kind), str(text)) for kind, text in state["pins"]]
        refused = [int(tokens) for tokens in state["refused"]]
        checked, fresh, calls, since, vain = (int(state[name]) for name in _COUNTS)
        form = cast("Form", str(state["form"]))
        if form not in get_args(Form):
            raise ValueError(f"form: expected {', '.join(get_args(Form))}, got {form!r}")
        requested = None if state["requested"] is None else CompactReason(state["requested"])
        beside = self._read_beside(state["system"], state["tools"])
        ledger = TokenLedger(self.counter)
        ledger.extend(sent)
        self._sent, self._ledger = sent, ledger  # from here on nothing can fail
        self.budget, self._anchor, self._beside = budget, anchor, beside
        self._seen, self._level, self._pins, self._refused, self._requested = seen, level, pins, refused, requested
        self._wire = form
        self._checked, self._fresh, self._calls, self._since, self._vain = checked, fresh, calls, since, vain
        self._changed, self._settled = False, budget if state["settled"] else None


_COUNTS = ("checked", "fresh", "calls", "since", "vain")
_PINNED = "\n\nPinned:\n"
_SAVED = "\n\n[The messages are saved as "


def _without_appendix(messages: Sequence[Any], form: Form) -> Sequence[Any]:
    """The messages; in a summary among them without what was put behind it, which the next one gets anew."""
    found = find_summary(messages)
    if found is None:
        return messages
    text = found.text
    for mark in (_SAVED, _PINNED):  # from the end
        text = text.rpartition(mark)[0] or text
    return messages if text == found.text else insert_summary(messages, found.index, text, form)


_LOUD = (events.Emergency, events.CannotFit, events.NoProgress, events.LearnedWindow)


def _is_same_but_marked(known: list[Any], given: list[Any]) -> bool:
    """Whether a list begins with the messages of another one, whatever marks of the provider's cache they have."""
    pairs = zip(known, given, strict=False)
    return len(known) <= len(given) and all(
        one is other or one == other or _unmarked(one) == _unmarked(other) for one, other in pairs
    )


def _unmarked(message: Any) -> Any:
    """A message without `cache_control`; the same object if there is none."""
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(part, dict) and _MARK in part for part in content):
        message = {**message, "content": [_unmarked(part) for part in content]}
    return {name: value for name, value in message.items() if name != _MARK} if _MARK in message else message


_MARK = "cache_control"


def _role(message: Any) -> str:
    """The role of a message, dict or object."""
    return str(field_of(message, "role"))


def _ids_of_calls(message: Any) -> list[str]:
    """The ids of the calls in a message; an empty text for none."""
    if _role(message) != "assistant":
        return []
    content = field_of(message, "content")
    parts = content if isinstance(content, (list, tuple)) else ()
    calls = [
        *(field_of(message, "tool_calls") or ()),
        *(part for part in parts if field_of(part, "type") == "tool_use"),
    ]
    return [str(field_of(call, "id") or "") for call in calls]
