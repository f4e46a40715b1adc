"""How much room a conversation has: `ContextBudget`, from the context window to the fresh tail, and `Level`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import IntEnum
from operator import index
from typing import Any, Literal, SupportsIndex, get_args

from ctxfast._core import fresh_tail_budget
from ctxfast.errors import BudgetError
from ctxfast.models import ModelInfo, model_info

__all__ = ["ContextBudget", "Level", "WindowSource"]

WindowSource = Literal["caller", "learned", "table", "unknown"]
"""Who says how large the context window is."""

_UNKNOWN_TAIL = 2_000  # tokens: the least that `fresh_tail_budget` gives where the window is not small
_LARGEST = 10**12  # tokens; more is a mistake
# Of what is reserved for the answer when nobody says how long it may be: a fifth of the window, at most what OpenCode
# and Claude Code reserve.
_ASSUMED_SHARE = 5
_ASSUMED_MOST = 20_000
# The least hard limit, in tokens, in which each level has a number of its own (levels are at least 5 % wide, and from
# 10 on those between two others at least one token).
_LEAST_HARD = 10
_DEFAULT_MARGIN = 0.15
_MILLION = 1_000_000  # margins are counted in millionths, so that 0.1 of 100 tokens are 10 and not 11


class Level(IntEnum):
    """How full the context is: five levels, in order, by the share of the hard limit that the prompt has.

    >>> Level.PRUNE < Level.URGENT, str(Level.URGENT)
    (True, 'URGENT')
    """

    NORMAL = 0
    """Below 60 %, or nothing is known of the window."""
    PRUNE = 1
    """From 60 % on: old tool outputs can go."""
    SUMMARIZE = 2
    """From 75 % on: finished segments can be summarised."""
    URGENT = 3
    """From 85 % on, where the default safety margin begins."""
    EMERGENCY = 4
    """From 95 % on, also above the hard limit."""

    @property
    def percent(self) -> int:
        """The share of the hard limit at which the level begins, inclusive."""
        return _PERCENT[self]

    def __str__(self) -> str:
        """The name: `URGENT`."""
        return self.name

    def __format__(self, form: str) -> str:
        """The name in text; Python versions differ in what they would do with the number."""
        return format(self.name, form)


_PERCENT = (0, 60, 75, 85, 95)


@dataclass(frozen=True)
class ContextBudget:
    """How many tokens a prompt may have, and how that comes about. Frozen, hashable, plain data; all in tokens.

    >>> budget = ContextBudget(200_000, max_output_tokens=32_000)
    >>> budget.hard, budget.usable, budget.fresh_tail
    (168000, 142800, 8000)
    >>> budget.is_over(142_800), budget.is_over(142_801), budget.level(130_000)
    (False, True, <Level.SUMMARIZE: 2>)
    >>> print(budget)
    context window  200,000  given
    output reserve   32,000  given
    hard limit      168,000  context window less output reserve
    safety margin    25,200  15 % of the hard limit
    usable          142,800  soft limit
    fresh tail        8,000  25 % of usable, at least 2,000, at most 8,000, never above half
    PRUNE           100,800  60 % of the hard limit
    SUMMARIZE       126,000  75 % of the hard limit
    URGENT          142,800  85 % of the hard limit
    EMERGENCY       159,600  95 % of the hard limit

    **The window** is, in this order:

    1. what the caller says, here or in `for_model(name, context_window=...)`, whatever the table of models has;
    2. what was `learned` from the provider, which refused a request and said its limit. It narrows what the table has
       and also what the caller said, as the provider will not take more; it never widens anything;
    3. what the table of models has (`for_model`);
    4. unknown: 0 or `None`. Then nothing is guessed: `known` is false, `hard` and `usable` are `None`, nothing is over,
       every level is NORMAL, and only an error of the provider can start a compaction.

    `source` says which of them it was.

    **The hard limit** is the window less the output reserve, and not above `input_limit`, if the provider has one for
    the input alone. An `input_limit` as large as the window means that the output does not count against it (Gemini).

    The one safety margin lies between `usable` and the hard limit. `usable` is the soft limit; a prompt of exactly so
    many tokens fits.

    Raises `BudgetError`, which is a `ValueError`, for what is no number of tokens (negative, fractional, NaN, infinite,
    bool) and for settings of which one can never be reached; `TypeError` for what is no number.
    """

    context_window: int | None
    """Input and output together. 0 or `None`: not known (and kept as `None`)."""
    max_output_tokens: int | None = None
    """What the request asks for, reasoning included. `None`: 20 % of the window, at most 20,000, are assumed."""
    input_limit: int | None = None
    """The provider's limit of the input alone. 0 or `None`: there is none."""
    safety_margin: float = _DEFAULT_MARGIN
    """Share of the hard limit that stays free, for what estimates miss: 0 or more, below 1."""
    _: KW_ONLY
    soft_limit: int | None = None
    """`usable` as a number of tokens, instead of a safety margin. It holds in unknown windows, too."""
    source: WindowSource = "caller"
    """Who says how large the window is; `dataclasses.replace` keeps it unless it is given anew."""

    def __post_init__(self) -> None:
        """Normalise the numbers; reject those that are none, and those that cannot be reached."""
        for name, zero in _FIELDS.items():
            object.__setattr__(self, name, _whole(name, getattr(self, name), zero))
        object.__setattr__(self, "safety_margin", _share("safety_margin", self.safety_margin))
        if self.source not in get_args(WindowSource):
            raise ValueError(f"source: expected {', '.join(get_args(WindowSource))}, got {self.source!r}")
        if (self.source == "unknown") == self.known:
            object.__setattr__(self, "source", "caller" if self.known else "unknown")
        if self.soft_limit is not None and self.safety_margin != _DEFAULT_MARGIN:
            raise BudgetError(
                f"soft_limit: {self.soft_limit:,} tokens stand instead of a safety margin: "
                f"expected no safety_margin beside it, got {self.safety_margin:g}"
            )
        self._check_reach()

    def _check_reach(self) -> None:
        """Raises `BudgetError`, with the numbers, for a setting that can never be reached beside the others."""
        window, hard = self.context_window, self.hard
        if hard is None:
            return
        if window is not None and self.input_limit is not None and self.input_limit > window:
            raise BudgetError(
                f"input_limit: {self.input_limit:,} tokens can never be reached in a context window of {window:,}"
            )
        if window is not None and hard < 1:
            raise BudgetError(
                f"max_output_tokens: {self.reserve:,} tokens leave nothing of a context window of {window:,}"
            )
        terms = f"a hard limit of {hard:,} tokens ({self._hard_terms(numbers=True)})"
        if hard < _LEAST_HARD:
            name = "input_limit" if hard == self.input_limit else "context_window"
            raise BudgetError(f"{name}: some levels can never be reached in {terms}, which is less than {_LEAST_HARD}")
        if self.soft_limit is not None and self.soft_limit > hard:
            raise BudgetError(f"soft_limit: {self.soft_limit:,} tokens can never be reached below {terms}")
        if self.soft_limit is None and hard - self._margin_of(hard) < 1:
            raise BudgetError(f"safety_margin: {self.safety_margin:g} leaves nothing usable of {terms}")

    @classmethod
    def for_model(
        cls,
        model: str | ModelInfo,
        *,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        input_limit: int | None = None,
        safety_margin: float = _DEFAULT_MARGIN,
        soft_limit: int | None = None,
    ) -> ContextBudget:
        """The budget for a model of the table, by any of its names, or for a `ModelInfo`.

        What is given here comes before what the table has: a `context_window` of your own is the window, and of the
        table's limits for the input those that make sense in it stay. A model that is not in the table has no known
        window, unless you give one; see `model_info(name).nearest`. Raises what `model_info` and `ContextBudget` raise.

        >>> ContextBudget.for_model("claude-sonnet-4-5").usable
        153000
        >>> ContextBudget.for_model("my-own-model").known
        False
        """
        info = model if isinstance(model, ModelInfo) else model_info(model)
        known, own_window = info.context_window, _whole("context_window", context_window, "unknown")
        window, limit = own_window or known, _whole("input_limit", input_limit, "unknown")
        by_caller = own_window is not None or not _is_of_the_table(info)
        if limit is None and _still_makes_sense(info.input_limit, known, window):
            limit = info.input_limit
        return cls(
            window,
            max_output_tokens,
            limit,
            safety_margin,
            soft_limit=soft_limit,
            source="caller" if by_caller else "table",
        )

    @property
    def known(self) -> bool:
        """Whether there is a hard limit. If not, nothing is decided before the provider refuses a request."""
        return self.hard is not None

    @property
    def reserve(self) -> int | None:
        """Tokens for the answer: `max_output_tokens`, or what is assumed; `None`: nothing to assume it from."""
        if self.max_output_tokens is not None or self.context_window is None:
            return self.max_output_tokens
        return min(self.context_window // _ASSUMED_SHARE, _ASSUMED_MOST)

    @property
    def hard(self) -> int | None:
        """The most tokens that the provider takes as a prompt, if the answer is to have its reserve."""
        window, limit = self.context_window, self.input_limit
        if window is None or window == limit:
            return limit
        shared = window - (self.reserve or 0)
        return shared if limit is None else min(shared, limit)

    @property
    def margin(self) -> int | None:
        """Tokens between `usable` and the hard limit, rounded up."""
        return None if self.hard is None or self.usable is None else self.hard - self.usable

    @property
    def usable(self) -> int | None:
        """The soft limit: what a prompt should have at most. `None`: not known, and then nothing is over it."""
        if self.soft_limit is not None or self.hard is None:
            return self.soft_limit
        return self.hard - self._margin_of(self.hard)

    @property
    def fresh_tail(self) -> int:
        """The usual budget of the newest messages (see `fresh_tail_budget`); 2,000 if nothing is known, its least."""
        return _UNKNOWN_TAIL if self.usable is None else fresh_tail_budget(self.usable)

    def is_over(self, used: float) -> bool:
        """Whether a prompt of so many tokens is known to be too large: more than `usable`; equality fits.

        Raises `BudgetError` or `TypeError` for what is no number of tokens.
        """
        used = _used(used)
        return self.usable is not None and used > self.usable

    def room(self, used: float) -> int | None:
        """Tokens that can still be added to a prompt of so many: 0 or more; `None`: not known.

        Raises `BudgetError` or `TypeError` for what is no number of tokens.
        """
        used = _used(used)
        return None if self.usable is None else max(0, self.usable - math.ceil(used))

    def level(self, used: float) -> Level:
        """How full the context is with a prompt of so many tokens; in an unknown window always NORMAL.

        It depends on nothing else. Raises `BudgetError` or `TypeError` for what is no number of tokens.
        """
        used, hard = _used(used), self.hard
        if hard is None:
            return Level.NORMAL
        return max(level for level in Level if 100 * used >= level.percent * hard)

    def starts_at(self, level: Level) -> int | None:
        """The least number of tokens at which a level is reached; `None`: not known.

        >>> ContextBudget(200_000).starts_at(Level.EMERGENCY)
        171000
        """
        return None if self.hard is None else -(-Level(level).percent * self.hard // 100)

    def learned(self, window: int | None) -> ContextBudget:
        """The budget after the provider has said that its limit is `window` tokens: the smaller one holds.

        What does not narrow the budget changes nothing, nor do 0 and `None`, which some errors say: then it is the same
        object. A `soft_limit` above the new hard limit gives way to the default margin. Raises `BudgetError` if the
        caller's `max_output_tokens` leave nothing of the window: the provider would refuse every request.

        >>> served = ContextBudget.for_model("claude-opus-4-7").learned(940_000)
        >>> served.context_window, served.hard, served.source
        (940000, 920000, 'learned')
        """
        window = _whole("window", window, "unknown")
        before = self.input_limit if self.context_window is None else self.context_window
        if window is None or (before is not None and window >= before):
            return self
        limit = self.input_limit
        if limit is not None and limit >= window:
            limit = window if before == limit else None  # as large as the window: output still counts apart
        narrowed = replace(self, context_window=window, input_limit=limit, soft_limit=None, source="learned")
        if self.soft_limit is not None and self.soft_limit <= (narrowed.hard or 0):
            return replace(narrowed, soft_limit=self.soft_limit)
        return narrowed

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data, fit for JSON."""
        return {"version": 1, **vars(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ContextBudget:
        """The budget of which `to_dict` gave this. Raises `TypeError` or `ValueError` for anything else."""
        if not isinstance(data, Mapping):
            raise TypeError(f"expected a dict, got {type(data).__name__}")
        names = cls(None).to_dict().keys()
        if data.keys() != names:
            wrong = sorted(map(str, data.keys() ^ names))
            raise ValueError(f"expected the keys {', '.join(names)}; unknown or missing: {', '.join(wrong)}")
        fields = dict(data)
        version = fields.pop("version")
        if isinstance(version, bool) or version != 1:
            raise ValueError(f"version: expected 1, got {version!r}")
        return cls(**fields)

    def __str__(self) -> str:
        """A small table: each number, and where it comes from."""
        rows = [(name, "not known" if tokens is None else f"{tokens:,}", why) for name, tokens, why in self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        lines = (f"{name:<{widths[0]}}  {tokens:>{widths[1]}}  {why}".rstrip() for name, tokens, why in rows)
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, int | None, str]]:
        percent = f"{round(100 * self.safety_margin, 4):g} % of the hard limit"
        tail = "25 % of usable, at least 2,000, at most 8,000, never above half"
        rows: list[tuple[str, int | None, str]] = [
            ("context window", self.context_window, _WINDOW_WORDS[self.source] if self.context_window else ""),
            ("output reserve", self.reserve, "given" if self.max_output_tokens else _ASSUMED),
        ]
        if self.input_limit is not None:
            rows.append(("input limit", self.input_limit, "of the provider, for the input alone"))
        rows += [
            ("hard limit", self.hard, self._hard_terms()),
            ("safety margin", self.margin, percent if self.soft_limit is None else "hard limit less usable"),
            ("usable", self.usable, "soft limit" if self.soft_limit is None else "soft limit, given"),
            ("fresh tail", self.fresh_tail, "the least" if self.usable is None else tail),
        ]
        if self.hard is not None:
            rows += [(str(level), self.starts_at(level), f"{level.percent} % of the hard limit") for level in _ABOVE]
        return rows

    def _hard_terms(self, *, numbers: bool = False) -> str:
        """What the hard limit is, in words."""
        if self.hard is None:
            return "every level is NORMAL"
        if self.hard == self.input_limit:
            return "input limit"
        if not numbers:
            return "context window less output reserve"
        return f"context window {self.context_window:,} less output reserve {self.reserve:,}"

    def _margin_of(self, hard: int) -> int:
        """The safety margin of a hard limit, rounded up."""
        return -(-hard * round(self.safety_margin * _MILLION) // _MILLION)


_ABOVE = tuple(Level)[1:]
_ASSUMED = "assumed: 20 % of the window, at most 20,000"
# The fields that are numbers of tokens, and what 0 means there.
_FIELDS: dict[str, Literal["unknown", "error"]] = {
    "context_window": "unknown",
    "max_output_tokens": "error",
    "input_limit": "unknown",
    "soft_limit": "error",
}
_WINDOW_WORDS: dict[WindowSource, str] = {
    "caller": "given",
    "learned": "learned from the provider",
    "table": "from the table of models",
    "unknown": "",
}


def _still_makes_sense(limit: int | None, table: int | None, window: int | None) -> bool:
    """Whether the table's limit of the input can hold in the window that is used instead of the table's."""
    if limit is None or window is None:
        return True
    return limit <= window if window == table else limit < window and (table is None or window < table)


def _is_of_the_table(info: ModelInfo) -> bool:
    """Whether the limits are the table's, not the caller's own (`dataclasses.replace`, `[1m]` in the name)."""
    if not info.known or not info.name.strip() or info.name.strip().endswith("]"):
        return False
    known = model_info(info.name)
    return (info.context_window, info.input_limit) == (known.context_window, known.input_limit)


def _whole(name: str, value: object, zero: Literal["unknown", "error"]) -> int | None:
    """A number of tokens; `None` for `None`, and for 0 where that means that nothing is known."""
    if value is None:
        return None
    least = 0 if zero == "unknown" else 1
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (bool, float)):
        raise BudgetError(f"{name}: expected a whole number of tokens, {least} or more, got {value!r}")
    if not isinstance(value, SupportsIndex):
        raise TypeError(f"{name}: expected a whole number of tokens, got `{type(value).__name__}`")
    number = index(value)
    if not least <= number <= _LARGEST:
        raise BudgetError(f"{name}: expected a number of tokens, {least} to 1e12, got {value!r}")
    return number or None


def _share(name: str, value: object) -> float:
    """A share below 1."""
    if isinstance(value, bool):
        raise BudgetError(f"{name}: expected a share, 0 or more and below 1, got {value!r}")
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name}: expected a share, got `{type(value).__name__}`")
    if not 0 <= value < 1:  # of NaN neither is true
        raise BudgetError(f"{name}: expected a share, 0 or more and below 1, got {value!r}")
    return float(value)


def _used(value: object) -> float:
    """Tokens of a prompt."""
    if isinstance(value, bool):
        raise BudgetError(f"used: expected a number of tokens, 0 or more, got {value!r}")
    if not isinstance(value, (int, float)) and isinstance(value, SupportsIndex):
        value = index(value)
    if not isinstance(value, (int, float)):
        raise TypeError(f"used: expected a number of tokens, got `{type(value).__name__}`")
    if not 0 <= value < math.inf:
        raise BudgetError(f"used: expected a number of tokens, 0 or more, got {value!r}")
    return value
