"""When a conversation is compacted and how far: `CompactionPolicy`, plain data, with presets of other agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from ctxfast._core import CachePrices
from ctxfast.policy import FitPolicy, PrunePolicy

__all__ = ["CompactionPolicy", "to_anthropic_context_management"]

Auto = Literal["off", "prune", "all"]
PruneAt = Literal["pays", "level"]


@dataclass(frozen=True)
class CompactionPolicy:
    """What a `ContextManager` does by itself, and when. Frozen, plain data: `to_dict`, `from_dict`.

    Raises `TypeError` or `ValueError` for what cannot be meant.
    """

    auto: Auto = "all"
    """`"off"`: nothing but repairs, and events. `"prune"`: old tool outputs, and what must go so that the request fits.
    `"all"`: summaries, too."""
    fit: FitPolicy = field(default_factory=FitPolicy)
    """What pruning protects (`fit.prune`), and what stays when a list has to fit."""
    prune_at: PruneAt = "pays"
    """`"pays"`: old tool outputs go as soon as that pays (`prune_tool_outputs`, `"auto"`). `"level"`: from the level
    PRUNE on."""
    prices: CachePrices | None = field(default_factory=CachePrices)
    """What tokens cost; `None`: the provider has no cache."""
    cache_ttl: float = 3_600.0
    """Seconds after which the provider's cache is taken to have expired: then any saving pays. (Of gaps of more than an
    hour between two requests of Claude Code 79 % were cold, of 5 to 60 minutes 41 %: 15,104 requests of real sessions.)
    """
    low_water: float = 0.6
    """What a list is brought down to that has to fit, as a share of the room (`fit_messages`)."""
    compact_at: float | None = None
    """Everything but the tail becomes a summary at this share of the hard limit, or when there is more than the budget
    has usable: with 0.93 that comes first unless its `safety_margin` is smaller than 0.07. `None`: by levels."""
    trigger_tool_calls: int | None = None
    """And after so many tool calls since the last time."""
    tail_tokens: int | None = None
    """Tokens of the newest messages that stay word for word; `None`: `ContextBudget.fresh_tail`."""
    summary_tokens: int = 4_000
    """The most that a summary may have. (Claude Code's have a median of 3,000 and at most 6,100 tokens in 95 public
    sessions.)"""
    use_structured_summaries: bool = True
    """Summaries with sections; `False`: plain ones."""
    summarize_timeout: float = 120.0
    """Seconds after which a summariser that does not answer is given up."""

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for name, words in (("auto", get_args(Auto)), ("prune_at", get_args(PruneAt))):
            if getattr(self, name) not in words:
                raise ValueError(f"{name}: expected {', '.join(map(repr, words))}, got {getattr(self, name)!r}")
        for name, class_ in (("fit", FitPolicy), ("prices", (CachePrices, type(None)))):
            if not isinstance(getattr(self, name), class_):
                raise TypeError(f"{name}: got `{type(getattr(self, name)).__name__}`")
        for name in ("trigger_tool_calls", "tail_tokens", "summary_tokens"):
            value = getattr(self, name)
            if value is None and name != "summary_tokens":
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}: expected a whole number, 1 or more, got {value!r}")
            if value < 1:
                raise ValueError(f"{name}: expected a whole number, 1 or more, got {value!r}")
        for name, most in (
            ("low_water", 1.0),
            ("compact_at", 1.0),
            ("summarize_timeout", 1e6),
            ("cache_ttl", 1e9),
        ):
            value = getattr(self, name)
            if value is None and name == "compact_at":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name}: expected a number above 0, at most {most:g}, got {value!r}")
            if not 0 < value <= most:  # of NaN neither is true
                raise ValueError(f"{name}: expected a number above 0, at most {most:g}, got {value!r}")
        if not isinstance(self.use_structured_summaries, bool):
            raise TypeError(f"use_structured_summaries: expected True or False, got {self.use_structured_summaries!r}")

    @classmethod
    def default(cls) -> CompactionPolicy:
        """Old outputs when that pays; by levels from there on."""
        return cls()

    @classmethod
    def careful(cls) -> CompactionPolicy:
        """The same with `PrunePolicy.careful()`."""
        return cls(fit=FitPolicy(PrunePolicy.careful()))

    @classmethod
    def thrifty(cls) -> CompactionPolicy:
        """The same with `PrunePolicy.thrifty()`, and further down when something has to go."""
        return cls(fit=FitPolicy(PrunePolicy.thrifty()), low_water=0.5)

    @classmethod
    def seed(cls) -> CompactionPolicy:
        """The first design's: old outputs from 60 % on, also after 20 tool calls."""
        return cls(fit=FitPolicy(PrunePolicy.seed()), prune_at="level", trigger_tool_calls=20)

    @classmethod
    def opencode(cls) -> CompactionPolicy:
        """OpenCode's: pruning of 20,000 beyond the newest 40,000 tokens, a summary when the usable window is full."""
        return cls(fit=FitPolicy(PrunePolicy.opencode()), compact_at=1.0, tail_tokens=8_000)

    @classmethod
    def claude_code(cls) -> CompactionPolicy:
        """Claude Code's: micro-compaction, and a summary at 167,000 of the 180,000 tokens of a window of 200,000.

        The default margin of a `ContextBudget` begins earlier: theirs is `ContextBudget(200_000, soft_limit=167_000)`.
        """
        return cls(fit=FitPolicy(PrunePolicy.claude_code()), compact_at=167 / 180)

    @classmethod
    def codex(cls) -> CompactionPolicy:
        """Codex's: no pruning, a summary at 90 %, 20,000 tokens of the newest messages.

        Its share is one of the window, here it is one of the hard limit; the default margin of 15 % begins earlier.
        """
        never = PrunePolicy(only_tools=())
        return cls(fit=FitPolicy(never), compact_at=0.9, tail_tokens=20_000)

    @classmethod
    def anthropic_api(cls) -> CompactionPolicy:
        """Anthropic's `clear_tool_uses_20250919` by default, done here: from 100,000 tokens on all but 3 outputs."""
        return cls(auto="prune", fit=FitPolicy(PrunePolicy.anthropic_api()))

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data, fit for JSON."""
        prices = self.prices
        plain = {**asdict(replace(self, prices=None)), "version": 1}
        if prices is not None:
            plain["prices"] = {name: getattr(prices, name) for name in ("read", "write", "horizon", "cold")}
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CompactionPolicy:
        """The policy of which `to_dict` gave this, also after JSON. Raises `TypeError` or `ValueError` for others."""
        if not isinstance(data, Mapping):
            raise TypeError(f"expected a dict, got {type(data).__name__}")
        fields = dict(data)
        version = fields.pop("version", None)
        if isinstance(version, bool) or version != 1:
            raise ValueError(f"version: expected 1, got {version!r}")
        known = cls.__dataclass_fields__.keys()
        if fields.keys() != known:
            wrong = sorted(map(str, fields.keys() ^ known))
            raise ValueError(f"expected the keys {', '.join(known)}; unknown or missing: {', '.join(wrong)}")
        fit = dict(fields["fit"])
        prune = {name: _tuples(value) for name, value in dict(fit.pop("prune")).items()}
        fields["fit"] = FitPolicy(prune=PrunePolicy(**prune), **fit)
        if fields["prices"] is not None:
            fields["prices"] = CachePrices(**fields["prices"])
        return cls(**fields)


def _tuples(value: Any) -> Any:
    """Lists as tuples, which JSON does not know."""
    return tuple(_tuples(item) for item in value) if isinstance(value, (list, tuple)) else value


def to_anthropic_context_management(policy: CompactionPolicy | PrunePolicy) -> dict[str, Any]:
    """The `context_management` of a request with which Anthropic's servers clear tool results as a policy says.

    What a policy says and the server cannot do is left out: protection in tokens and steps becomes a number of results
    (`keep`: `protected_results` or, without it, `protected_steps`), and nothing is kept by path, error or kind of tool.
    Where a policy has no `trigger_tokens`, the server's default holds (100,000). Names of tools that stay (without `*`)
    go into `exclude_tools`. Source: the types of the `anthropic` package 2.14.0 (`clear_tool_uses_20250919`). Raises
    `TypeError` for anything but a policy.

    >>> from ctxfast.policy import PrunePolicy
    >>> to_anthropic_context_management(PrunePolicy.anthropic_api())["edits"][0]["trigger"]
    {'type': 'input_tokens', 'value': 100000}
    """
    prune = policy.fit.prune if isinstance(policy, CompactionPolicy) else policy
    if not isinstance(prune, PrunePolicy):
        raise TypeError(f"policy: expected a CompactionPolicy or PrunePolicy, got `{type(prune).__name__}`")
    if prune.only_tools == ():
        return {"edits": []}  # nothing is pruned
    least = prune.min_batch if prune.prune_threshold == "auto" else prune.prune_threshold
    edit: dict[str, Any] = {
        "type": "clear_tool_uses_20250919",
        "keep": {"type": "tool_uses", "value": prune.protected_results or max(prune.protected_steps, 1)},
        "clear_tool_inputs": False,
    }
    if prune.trigger_tokens is not None:
        edit["trigger"] = {"type": "input_tokens", "value": prune.trigger_tokens}
    if least:
        edit["clear_at_least"] = {"type": "input_tokens", "value": least}
    exact = [name for name in prune.keep_tools if "*" not in name]
    if exact:
        edit["exclude_tools"] = exact
    return {"edits": [edit]}
