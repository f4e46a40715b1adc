"""Making a list of messages shorter without a model, so that a provider takes it: `fit_messages`, `keep_last`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from ctxfast import _core
from ctxfast._core import Edit, RepairReport, TokenCounter
from ctxfast.budget import ContextBudget
from ctxfast.errors import CannotFitError
from ctxfast.policy import FitPolicy, SupportsSave

__all__ = ["Dropped", "FitReport", "Fitted", "fit_messages", "keep_last"]

M = TypeVar("M")

_LEAST = 128  # tokens; what users say is not cut to less than half of it


class Dropped(NamedTuple):
    """Messages that are not in the new list: a user message, or a step with its results."""

    start: int
    """Index of the first one in the list that came in."""
    stop: int
    """Index behind the last one."""
    kind: Literal["user", "step", "system", "other"]
    tokens: int
    text: str
    """What users said in them and is not in the new list; empty if nothing."""
    stored: str | None
    """The id under which they have been saved as JSON, a list of messages, if there was a store."""


@dataclass(frozen=True)
class FitReport:
    """What `fit_messages` has done. Numbers are tokens; indices are of the list that came in, once it was repaired.

    Those of single messages and outputs are the counter's own; `before`, `after` and `saved` are in the budget's
    measure.
    """

    budget: int | None
    """What there was for messages, system prompt and tools; `None`: not known."""
    before: int
    """Tokens of the request before, in the budget's measure: with the counter's safety for a number, without it for a
    `ContextBudget`, as the provider counts where `used` said so."""
    after: int
    """And after: never above the budget."""
    beside: int
    """Of these `system` and `tools`, which stand beside the messages."""
    repairs: RepairReport
    """What was wrong with the list and is mended now (`repair`)."""
    stubs: tuple[Edit, ...]
    """Old tool outputs that are stubs now."""
    dropped: tuple[Dropped, ...]
    """Messages that are gone, oldest first."""
    clamped: tuple[Edit, ...]
    """Huge tool outputs of which only the ends are left."""
    pinned: tuple[int, ...]
    """Indices of user messages that stay although what followed them is gone: the first one, the one that opened the
    turn, the task."""
    earliest_changed_index: int | None
    """Index of the first message that fitting has changed or dropped: up to here the provider's cache holds. `None`: it
    holds whole, but for what was repaired."""
    unknown_window: bool = False
    """The budget was asked for and is not known: nothing but repairs was done."""

    @property
    def changed(self) -> bool:
        """Whether the new list differs from the one that came in."""
        return bool(self.stubs or self.dropped or self.clamped) or self.repairs.changed

    @property
    def saved(self) -> int:
        """Tokens that are gone."""
        return self.before - self.after

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, fit for JSON."""
        return {
            "changed": self.changed,
            "saved": self.saved,
            **vars(self),
            "repairs": self.repairs.as_dict(),
            "stubs": [edit.as_dict() for edit in self.stubs],
            "dropped": [part._asdict() for part in self.dropped],
            "clamped": [edit.as_dict() for edit in self.clamped],
            "pinned": list(self.pinned),
        }

    def __str__(self) -> str:
        """A few lines: what is gone, and what that saves."""
        of_budget = "" if self.budget is None else f", of {self.budget:,}"
        lines = [f"{self.before:,} tokens before, {self.after:,} after{of_budget}"]
        if self.unknown_window:
            lines = [f"{self.before:,} tokens, the budget is not known: nothing was dropped"]
        for what, edits in (("stub", self.stubs), ("clamped output", self.clamped)):
            if edits:
                saved = sum(edit.before - edit.after for edit in edits)
                lines.append(f"{_counted(len(edits), what)}: {saved:,} tokens saved")
        if self.dropped:
            steps = _counted(sum(part.kind == "step" for part in self.dropped), "step")
            users = _counted(sum(bool(part.text) for part in self.dropped), "user message")
            lines.append(f"{steps} and {users} dropped: {sum(part.tokens for part in self.dropped):,} tokens")
        if self.repairs.items:
            lines.append(str(self.repairs))
        return "\n".join(lines)


@dataclass(frozen=True)
class Fitted(Generic[M]):
    """A list that fits, and what was done to get it."""

    messages: list[M]
    """A new list. Untouched messages are the same objects."""
    report: FitReport


def fit_messages(
    messages: Sequence[M],
    max_tokens: float | ContextBudget | None,
    *,
    system: object = None,
    tools: Sequence[object] | None = None,
    used: float | None = None,
    low_water: float = 0.6,
    form: Literal["auto", "openai", "anthropic"] = "auto",
    provider: Literal["openai", "anthropic"] | None = None,
    policy: FitPolicy | None = None,
    counter: TokenCounter | None = None,
    store: SupportsSave | None = None,
) -> Fitted[M]:
    """A list that fits, without a model: `validate` finds nothing in it, or an error says what does not fit.

    `max_tokens` covers the messages, `system` (a system prompt that stands beside them, Anthropic's) and `tools`.
    A `ContextBudget` means its `usable` tokens, and brings its own margin; a number is compared with what the
    counter says with its safety. `None`, or a budget that is not `known`: nothing is decided in silence; the list
    is repaired, and `report.unknown_window` says so. A list within the budget comes back as it is, in a new list.

    Else, in this order, and no further than it is needed:

    1. Old tool outputs become stubs, with the protection of `prune_tool_outputs`, but without asking whether it pays.
    2. If there is still more than `low_water` (0.6) of the room that system prompts and tools leave, the oldest
       messages go, in whole steps with all their results, down to it. The newest steps
       (`policy.prune.protected_steps`, 3) stay, and if these alone are too large, those of their results that
       have more than a quarter of the room are cut to their ends, so that the others can stay.
    3. If that is not enough, the protected steps but for the newest one go, too.
    4. The results of the newest step are cut to their ends, the large ones to one size.
    5. `CannotFitError`, which names the largest thing. What users say is cut only with `policy.clamp_user`.

    System messages at the start stay, and so do the task, which is the newest message in which a user says
    something; the user message that opened the turn in which the cut is; and the first one, if it has at most 10
    % of the budget. In Anthropic's form users' messages that have become neighbours are written as one.

    **Stable.** Whoever passes the full list before each request finds gone what was gone before, and no more: the
    history is replayed, request by request, and whenever it had become too large it was brought down to
    `low_water`. So the provider's cache holds between two such moments. Going on with the list that was given
    keeps it as well.

    `used` are the tokens that the provider counts for this request, if that is known (`UsageAnchor.predict`). What it
    counts beside what the counter sees, prompts and tools that are not passed or errors of the estimate, is then taken
    to stay, in steps of 5 % of the budget and without safety; if nothing fits so, and it is no more than the counter's
    own number, to go with the messages, each token of the counter being so many of the provider's. With a `store` all
    that goes is saved before: stubs and cut outputs name the id, dropped messages have theirs in `report.dropped`.

    Messages may be of either form, and mixed; `form` and `provider` are those of `repair`. Time is linear in the
    list. Raises `CannotFitError`; `BudgetError` for a budget that is 0 or no number of tokens; `MessageTypeError`
    or `MessageValueError` for a message that cannot be read; `TypeError` or `ValueError` for an argument that
    means nothing.

    >>> step = {"role": "assistant", "content": "word " * 400}
    >>> messages = [{"role": "user", "content": "Go on."}, *[step] * 20]
    >>> print(fit_messages(messages, 6_000).report)
    8,351 tokens before, 5,431 after, of 6,000
    7 steps and 0 user messages dropped: 2,835 tokens
    """
    policy = FitPolicy() if policy is None else policy
    if not isinstance(policy, FitPolicy):
        raise TypeError(f"policy: expected a FitPolicy, got `{type(policy).__name__}`")
    exact = isinstance(max_tokens, ContextBudget)
    budget = max_tokens.usable if isinstance(max_tokens, ContextBudget) else max_tokens
    wanted = {
        "max_tokens": budget,
        "exact": exact,
        "system": system,
        "tools": tools,
        "used": used,
        "low_water": _share(low_water),
        "pin_first": policy.pin_first,
        "prune": policy.prune,
        "store": store,
    }
    for given in _ever_shorter(messages, policy, budget, counter, store):
        try:
            done = _core._fit(given, wanted, form, provider, counter)
        except CannotFitError as error:
            refused = error
        else:
            return _fitted(done, budget, unknown_window=budget is None)
    raise refused


def _ever_shorter(
    messages: Sequence[Any], policy: FitPolicy, budget: float | None, counter: TokenCounter | None, store: Any
) -> Iterator[Sequence[Any]]:
    """The list, and if users may be cut, the same with what they say in half of the budget each, a quarter, ..."""
    yield messages
    most = 0 if budget is None or not policy.clamp_user else int(budget)
    while most > _LEAST:
        most //= 2
        yield [_cut_user(message, most, counter, store) for message in messages]


def _cut_user(message: Any, most: int, counter: TokenCounter | None, store: Any) -> Any:
    """A user's message of which each text has at most so many tokens; the same object if that is so."""
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return message
    content = message.get("content")
    if isinstance(content, str):
        cut: Any = _cut(content, most, counter, store)
        return message if cut is content else {**message, "content": cut}
    if not isinstance(content, (list, tuple)):
        return message
    cut = [_cut_part(part, most, counter, store) for part in content]
    is_same = all(one is other for one, other in zip(cut, content, strict=True))
    return message if is_same else {**message, "content": cut}


def _cut_part(part: Any, most: int, counter: TokenCounter | None, store: Any) -> Any:
    if isinstance(part, str):
        return _cut(part, most, counter, store)
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        text = _cut(part["text"], most, counter, store)
        return part if text is part["text"] else {**part, "text": text}
    return part


def _cut(text: str, most: int, counter: TokenCounter | None, store: Any) -> str:
    """Both ends of a text, with a line between them that says what is missing."""
    from ctxfast.truncate import truncate_tool_output

    result = truncate_tool_output(
        text, None, None, "message", max_tokens=most, counter=counter, keep="both", store=store
    )
    return result.preview.replace("[Tool output truncated: ", "[Text cut: ", 1) if result.was_truncated else text


def keep_last(
    messages: Sequence[M],
    n_steps: int,
    *,
    form: Literal["auto", "openai", "anthropic"] = "auto",
    provider: Literal["openai", "anthropic"] | None = None,
    counter: TokenCounter | None = None,
    store: SupportsSave | None = None,
) -> Fitted[M]:
    """The newest `n_steps` steps and all that follows the first of them, as a list that a provider accepts.

    A step is a response of the model with all results of its calls. System messages at the start stay, and so do the
    user message that opened the turn in which the cut is and the task, the newest message in which a user says
    something. A list with fewer steps stays whole. Like `fit_messages` it repairs the list, and saves what goes in a
    `store`.

    Raises `ValueError` for fewer steps than one, `TypeError` for no whole number, `MessageTypeError` or
    `MessageValueError` for a message that cannot be read.
    """
    if isinstance(n_steps, bool) or not isinstance(n_steps, int):
        raise TypeError(f"n_steps: expected a whole number, 1 or more, got {n_steps!r}")
    if n_steps < 1:
        raise ValueError(f"n_steps: expected a whole number, 1 or more, got {n_steps!r}")
    n_steps = min(n_steps, sys.maxsize)
    return _fitted(_core._keep_last(messages, n_steps, form, provider, counter, store), None)


def _fitted(done: tuple[Any, ...], budget: float | None, *, unknown_window: bool = False) -> Fitted[Any]:
    """What the core gives, with names."""
    new, repairs, before, after, beside, edits, dropped, pinned, first = done
    report = FitReport(
        budget=None if budget is None else int(budget),
        before=before,
        after=after,
        beside=beside,
        repairs=repairs,
        stubs=tuple(edit for edit in edits if edit.reason != "clamped"),
        dropped=tuple(map(Dropped._make, dropped)),
        clamped=tuple(edit for edit in edits if edit.reason == "clamped"),
        pinned=tuple(pinned),
        earliest_changed_index=first,
        unknown_window=unknown_window,
    )
    return Fitted(new, report)


def _counted(number: int, what: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _share(low_water: object) -> float:
    """A share, 0 to 1."""
    if isinstance(low_water, bool) or not isinstance(low_water, (int, float)):
        raise TypeError(f"low_water: expected a share, 0 to 1, got {low_water!r}")
    if not 0 <= low_water <= 1:  # of NaN neither is true
        raise ValueError(f"low_water: expected a share, 0 to 1, got {low_water!r}")
    return float(low_water)
