"""How large the next prompt is: `UsageAnchor`, an estimate that what the provider has counted so far corrects."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ctxfast._core import TokenCounter
from ctxfast.errors import BudgetError
from ctxfast.usage import Usage

__all__ = ["UsageAnchor"]


class _Point(NamedTuple):
    """A request, in tokens."""

    prompt: int
    """As the provider has counted it."""
    estimate: int
    """As the counter has counted it."""


# The slope's weights: an increment's estimate is off by about a tenth, and by 30 tokens of frames (source: a simulation
# of 1,500 sessions with estimators of known and unknown families).
_RELATIVE_NOISE = 0.10
_TOKENS_NOISE = 30
# Chosen so that real sessions pass and reported failures do not: no counter is off by more than this factor,
_FACTOR = 4
# what a client adds unseen between two requests is not more than these tokens and a quarter of the prompt,
_UNSEEN = 10_000
# and in a first one not more than these (first prompts of 24 real coding sessions: 4,420 to 78,868).
_UNSEEN_AT_FIRST = 100_000
# No prompt has more than so many context windows; above 1, for the window that is given may be a rounded one.
_WINDOWS = 1.25
_LARGEST = 10**12  # tokens; more is no prompt's
_LARGEST_ESTIMATE = 2**64


class UsageAnchor:
    """Says how many tokens the next prompt has: what the provider counted last, and an estimate of what came since.

    An estimate misses what it does not see (the provider's own instructions, reminders of the client) and is off by a
    factor, if the model's tokens are not the counter's. Both show in what the provider has counted:

    >>> anchor = UsageAnchor()
    >>> messages = [{"role": "user", "content": "Fix the test."}]
    >>> anchor.predict(messages)  # an estimate
    9
    >>> anchor.observe({"input_tokens": 15_012, "output_tokens": 9}, messages)  # what was sent, and what came back
    True
    >>> messages.append({"role": "assistant", "content": "Which test do you mean?"})
    >>> anchor.predict(messages)
    15022

    The factor, the slope, is learned from how much the prompt grows when the estimate does, never from the prompt as a
    whole, for what the estimate misses does not grow with it. It is kept for each model. `spread` is how far from 1 it
    may be, as a standard deviation: 0.06 is right for a counter that was made for the model's family, 0.3 for others
    (source: a simulation of 1,500 sessions). `context_window`, in tokens, tells records that no prompt can have; 0 or
    `None`: it is not known.

    Records are wrong at times: totals of many requests, one of twice the size. Those are not believed; if the next one
    agrees, it is. One object is for one conversation, and for one thread at a time.
    """

    __slots__ = ("_counter", "_first", "_last", "_setup", "_slopes", "_spread", "_suspect", "_window")

    def __init__(
        self, counter: TokenCounter | None = None, *, context_window: int | None = None, spread: float = 0.3
    ) -> None:
        """`counter` estimates; without one it is `TokenCounter.default()`. Raises `TypeError` or `ValueError`."""
        if counter is not None and not isinstance(counter, TokenCounter):
            raise TypeError(f"counter: expected a TokenCounter, got {type(counter).__name__}")
        if context_window is not None:
            if isinstance(context_window, bool) or not isinstance(context_window, int):
                raise TypeError(f"context_window: expected a number of tokens, got {context_window!r}")
            if not 0 <= context_window <= _LARGEST:
                raise BudgetError(f"context_window: expected 0 to 1e12 tokens, got {context_window!r}")
        if not 0.001 <= _number(spread, "spread") <= 10:
            raise ValueError(f"spread: expected 0.001 to 10, got {spread!r}")
        self._counter = TokenCounter.default() if counter is None else counter
        self._window = context_window or None
        self._spread = float(spread)
        self._setup: tuple[str, str] | None = None  # the model, and a hash of system prompt and tools
        self._first: _Point | None = None
        self._last: _Point | None = None
        self._suspect: _Point | None = None  # the newest record, if it was not believed
        self._slopes: dict[str, tuple[float, float]] = {}  # by model: numerator and denominator

    def observe(
        self,
        usage: object,
        messages: Sequence[object],
        *,
        system: object = None,
        tools: Any = None,
        model: str = "",
        estimate: int | None = None,
    ) -> bool:
        """Takes what the provider has counted for a request; returns whether it was believed.

        `usage` is a `Usage`, or what `Usage.from_provider` reads; without a count of the prompt it is ignored.
        `messages`, `system` and `tools` are what was *sent*. Another system prompt, other tools or another model begin
        anew; the slope of a model is kept. `estimate` is what the counter says of all that, if it is known already
        (of a `TokenLedger`, say). Raises `UsageError` and what the counter raises.
        """
        usage = usage if isinstance(usage, Usage) else Usage.from_provider(usage)
        if usage is None or usage.prompt_tokens is None:
            return False
        point = _Point(usage.prompt_tokens, self._estimate(messages, system, tools, estimate))
        setup = (model, digest(system, tools))
        if setup != self._setup:
            self._setup = setup
            self._first = self._last = self._suspect = None
        suspect, self._suspect = self._suspect, None
        if not 0 < point.prompt <= (_LARGEST if self._window is None else _WINDOWS * self._window):
            return False
        if self._is_plausible(point):
            if self._last is not None:
                self._learn(model, point.prompt - self._last.prompt, point.estimate - self._last.estimate)
        elif suspect is not None and self._agrees(point, suspect):
            self._first = None
        else:
            self._suspect = point
            return False
        self._first = self._first or point
        self._last = point
        return True

    def predict(
        self,
        messages: Sequence[object],
        *,
        system: object = None,
        tools: Any = None,
        model: str = "",
        estimate: int | None = None,
    ) -> int:
        """Tokens of the prompt of a request with these messages, rounded up; it changes nothing.

        When the list has shrunk since the last record, after a compaction, what the estimate misses is taken from the
        first record, and nothing less than the estimate times the slope is predicted. `estimate` is that of `observe`.
        Raises what the counter raises.
        """
        estimate = self._estimate(messages, system, tools, estimate)
        known = self._last is not None and self._setup == (model, digest(system, tools))
        return math.ceil(self._expected(estimate) if known else self.slope(model) * estimate)

    def slope(self, model: str = "") -> float:
        """Tokens of this model for one of the counter's; 1 until something was learned."""
        numerator, denominator = self._slopes.get(model, (1.0, 1.0))
        return numerator / denominator

    def _estimate(self, messages: Sequence[object], system: object, tools: Any, known: int | None) -> int:
        if known is not None:
            return known
        if system is None:
            return self._counter.messages(messages, tools)
        return self._counter.request({"messages": messages, "system": system, "tools": tools})

    def _expected(self, estimate: int) -> float:
        """The prompt's tokens in the setup of the last observation."""
        slope = self.slope(self._setup[0] if self._setup else "")
        if self._first is None or self._last is None:
            return slope * estimate
        if estimate >= self._last.estimate:
            return self._last.prompt + slope * (estimate - self._last.estimate)
        return max(self._first.prompt + slope * (estimate - self._first.estimate), slope * estimate)

    def _is_plausible(self, point: _Point) -> bool:
        """Whether a prompt can have this size, after what is known."""
        if self._last is None:
            limit = _FACTOR * point.estimate + _UNSEEN_AT_FIRST
            return point.prompt <= (limit if self._window is None else max(limit, self._window))
        grown = point.estimate - self._last.estimate
        if grown < 0:
            expected = self._expected(point.estimate)
            return point.prompt <= expected * 1.25 + _UNSEEN
        before = self._last.prompt
        return before / 2 <= point.prompt <= before * 1.25 + _UNSEEN + _FACTOR * grown

    def _agrees(self, point: _Point, suspect: _Point) -> bool:
        """Whether it follows from a record that was not believed: the prompt is indeed so large.

        Totals of many requests grow by a whole prompt each time, which is little beside a large total: so they may not
        differ by more than half of what the prompt should have.
        """
        grown = point.estimate - suspect.estimate
        slope = self.slope(self._setup[0] if self._setup else "")
        tolerance = min(0.05 * suspect.prompt + _FACTOR * abs(grown), max(self._expected(point.estimate) / 2, 2_000))
        return abs(point.prompt - (suspect.prompt + slope * grown)) <= tolerance

    def _learn(self, model: str, prompt: int, estimate: int) -> None:
        """An increment: the slope's mean, given that it is about 1 and that increments are noisy."""
        if estimate <= 0:
            return
        prompt_used = min(max(float(prompt), estimate / _FACTOR), float(estimate * _FACTOR))
        prior = 1 / self._spread**2
        numerator, denominator = self._slopes.get(model, (prior, prior))
        weight = 1 / ((_RELATIVE_NOISE * estimate) ** 2 + _TOKENS_NOISE**2)
        self._slopes[model] = (
            numerator + weight * estimate * prompt_used,
            denominator + weight * estimate * estimate,
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the counter as plain data, fit for JSON. Of system prompt and tools it has a hash only."""
        return {
            "version": 1,
            "context_window": self._window,
            "spread": self._spread,
            "setup": None if self._setup is None else list(self._setup),
            "first": None if self._first is None else list(self._first),
            "last": None if self._last is None else list(self._last),
            "suspect": None if self._suspect is None else list(self._suspect),
            "slopes": {model: list(sums) for model, sums in self._slopes.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], counter: TokenCounter | None = None) -> UsageAnchor:
        """The anchor of which `to_dict` gave this, with a counter, which must be the same as before.

        Raises `TypeError` or `ValueError` for anything else.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"expected a dict, got {type(data).__name__}")
        names = cls().to_dict().keys()
        if data.keys() != names:
            wrong = sorted(map(str, data.keys() ^ names))
            raise ValueError(f"expected the keys {', '.join(names)}; unknown or missing: {', '.join(wrong)}")
        if isinstance(data["version"], bool) or data["version"] != 1:
            raise ValueError(f"version: expected 1, got {data['version']!r}")
        anchor = cls(counter, context_window=data["context_window"], spread=data["spread"])
        setup = data["setup"]
        if setup is not None:
            model, digest = _pair(setup, "setup")
            if not isinstance(model, str) or not isinstance(digest, str):
                raise TypeError(f"setup: expected a model and a hash, got {setup!r}")
            anchor._setup = (model, digest)
        anchor._first, anchor._last, anchor._suspect = (
            None if data[name] is None else _point(data[name], name) for name in ("first", "last", "suspect")
        )
        if (anchor._first is None) != (anchor._last is None):
            raise ValueError("first and last: expected both or none")
        if setup is None and (anchor._first is not None or anchor._suspect is not None):
            raise ValueError("setup: expected one beside observations, got None")
        if not isinstance(data["slopes"], Mapping):
            raise TypeError(f"slopes: expected a dict, got {type(data['slopes']).__name__}")
        for model, sums in data["slopes"].items():
            if not isinstance(model, str):
                raise TypeError(f"slopes: expected names of models, got {model!r}")
            path = f"slopes.{model}"
            numerator, denominator = (_number(item, path) for item in _pair(sums, path))
            if not (denominator > 0 and 0.99 / _FACTOR <= numerator / denominator <= 1.01 * _FACTOR):
                raise ValueError(f"{path}: expected two sums, their ratio 1/{_FACTOR} to {_FACTOR}, got {sums!r}")
            anchor._slopes[model] = (numerator, denominator)
        return anchor

    def __repr__(self) -> str:
        """What it knows, for people."""
        last = "nothing observed" if self._last is None else f"last {self._last.prompt:,} tokens"
        slope = self.slope(self._setup[0] if self._setup else "")
        return f"<UsageAnchor: {last}, slope {slope:.2f}, {self._counter!r}>"


def _number(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{path}: expected a number, got {value!r}")
    if not abs(value) <= 1e300:  # nor of NaN
        raise ValueError(f"{path}: expected a finite number, got {value!r}")
    return float(value)


def _pair(value: object, path: str) -> tuple[object, object]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"{path}: expected two values, got {value!r}")
    return value[0], value[1]


def _point(value: object, path: str) -> _Point:
    prompt, estimate = _pair(value, path)
    for count, largest in ((prompt, _LARGEST), (estimate, _LARGEST_ESTIMATE)):
        if isinstance(count, bool) or not isinstance(count, int):
            raise TypeError(f"{path}: expected two numbers of tokens, got {value!r}")
        if not 0 <= count <= largest:
            raise ValueError(f"{path}: expected two numbers of tokens, got {value!r}")
    assert isinstance(prompt, int)
    assert isinstance(estimate, int)
    return _Point(prompt, estimate)


def digest(system: object, tools: object) -> str:
    """Equal for equal system prompts and tools, in this process and others."""
    try:
        text = json.dumps([system, tools], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(_plain([system, tools], ()), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object, inside: tuple[int, ...]) -> Any:
    """Anything as plain data: objects by their public fields, without addresses; where it ends in itself, it is cut."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if id(value) in inside or len(inside) > 50:
        return "..."
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item, inside) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [_plain(item, inside) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, type) or callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    fields = {**getattr(value, "__dict__", {}), **(getattr(value, "__pydantic_extra__", None) or {})}
    public = {name: _plain(item, inside) for name, item in fields.items() if not name.startswith("_")}
    return [type(value).__qualname__, public]
