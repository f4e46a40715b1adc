"""What pruning keeps and when it pays: `PrunePolicy`, plain data, with presets. `CachePrices` is what a token costs.

`FitPolicy` is what `fit_messages` keeps beside that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from ctxfast._core import CachePrices, tool_kinds

__all__ = ["TOOL_KINDS", "CachePrices", "FitPolicy", "PrunePolicy", "SupportsSave"]

TOOL_KINDS: tuple[tuple[str, str], ...] = tuple(tool_kinds())
"""Patterns of tools' names and what kind of tool they are; the first that matches counts, and else it is "other"."""

_KINDS = ("read", "edit", "command", "search", "list", "web", "agent", "other")
_COUNTS = ("protected_turns", "protected_steps", "protected_tokens", "protected_results", "min_batch", "min_saved")
_CHOICES = {"batch": ("grid", "all"), "superseded": ("join", "start", "off"), "keep_errors": ("open", "all", "none")}
_PATTERNS = ("keep_tools", "keep_paths")
_CLEARED = "[Old tool result content cleared]"  # the text of OpenCode and of Claude Code


class SupportsSave(Protocol):
    """Where tool outputs are saved before they are replaced: the `store` of `prune_tool_outputs`."""

    def save(self, text: str, /) -> str | None:
        """Saves an output and gives it an id, which its stub names. The same text should have the same id.

        `None`: it could not be saved.
        """
        ...


@dataclass(frozen=True)
class PrunePolicy:
    """What `prune_tool_outputs` protects, keeps and waits for. Frozen, hashable, plain data (`dataclasses.asdict`).

    The defaults were found by replaying 1,023 real agent sessions: 13 % cheaper than never to prune on sessions that
    were not used for the choice, no session more than 7 % dearer, a new cache prefix in 3.7 % of the requests (a
    simulation of these rules; the presets' figures are from it, too).
    Raises `TypeError` or `ValueError` for what cannot be meant.
    """

    protected_turns: int = 0
    """Tool outputs in so many of the newest turns are protected. A guard of the first design: in most agent sessions
    the newest two turns are the whole session, so that it frees nothing."""
    protected_steps: int = 3
    """Those in so many of the newest steps. What the model has not seen yet is protected in any case."""
    protected_tokens: int = 10_000
    """So many of the newest tokens of tool output; the output that crosses the border is not protected, nor is any
    older one. At most a quarter of `budget`, if there is one."""
    protected_results: int = 0
    """So many of the newest tool outputs (Anthropic's API counts like this)."""

    prune_threshold: int | Literal["auto"] = "auto"
    """`"auto"`: all that is not protected, once that pays (see `prune_tool_outputs`). A number of tokens: in batches
    that free so many each, counted from the start of the list, so that the same outputs are pruned on every call."""
    batch: Literal["grid", "all"] = "grid"
    """What a number as `prune_threshold` means: `"grid"` as above; `"all"`: everything that is not protected, once that
    has more tokens (before it is replaced) than the number, as OpenCode and Claude Code do."""
    trigger_tokens: int | None = None
    """Nothing is pruned until the list has more tokens than this."""
    min_batch: int = 10_000
    """`"auto"`: the least that a batch saves, in tokens; at most a tenth of `budget`, if there is one."""
    horizon_share: float = 0.2
    """`"auto"`: so many requests are expected to come for each step so far (3 at least, 40 at most)."""
    min_saved: int = 200
    """The least that replacing one output saves, in tokens. Small outputs bring regrets and save nothing."""

    superseded: Literal["join", "start", "off"] = "join"
    """Reads that were covered by a later read, or whose file was edited since: they join a batch from inside
    `protected_tokens`, count towards starting one (`"auto"` only), or are treated like all others."""
    keep_errors: Literal["open", "all", "none"] = "open"
    """`"open"`: errors stay until the same tool succeeds on the same target: the newest 10 whole, as long as they have
    at most 4,000 tokens together, older ones as their last error line. `"all"`: they stay. `"none"`: like others."""
    keep_tools: tuple[str, ...] = ("agent", "list", "*decision*", "adr*", "*_adr*", "*ask*user*", "exitplanmode")
    """Outputs that are never pruned: kinds of tools, or patterns of names (`*` is anything; case does not matter; a
    word in small letters that is a kind means that kind, and tools of that name).
    Default: sub-agents' answers, which are summaries already, listings, of which 46 % are needed again, and what users
    have answered and decided."""
    keep_paths: tuple[str, ...] = ("*decision*", "adr*", "*/adr/*", "*/adrs/*", "*/adr-*", "*/adr_*", "*/adr0*")
    """Outputs about these paths are never pruned, likewise. Default: records of decisions."""
    only_tools: tuple[str, ...] | None = None
    """Only outputs of these kinds or names are pruned, likewise. `None`: all that are not kept."""
    tools: tuple[tuple[str, str], ...] = ()
    """What kind of tool a name is: `(pattern, kind)`, asked before `TOOL_KINDS`; kinds as there."""
    stub: str | None = None
    """The text that replaces an output. `None`: a line of facts and up to three lines of what was there."""

    def __post_init__(self) -> None:
        """Reject what cannot be meant: a clear error now instead of a silent no-op later."""
        for name in _COUNTS:
            _check_count(name, getattr(self, name))
        if self.trigger_tokens is not None:
            _check_count("trigger_tokens", self.trigger_tokens)
        if isinstance(self.prune_threshold, str) and self.prune_threshold != "auto":
            raise ValueError(f"prune_threshold: expected 'auto' or a whole number, got {self.prune_threshold!r}")
        if self.prune_threshold != "auto":
            _check_count("prune_threshold", self.prune_threshold, "'auto' or a whole number")
        share = self.horizon_share
        if isinstance(share, bool) or not isinstance(share, (int, float)):
            raise TypeError(f"horizon_share: expected a number, got {share!r}")
        if not 0 <= share <= 1_000_000:  # of NaN neither is true
            raise ValueError(f"horizon_share: expected 0 to 1,000,000, got {share!r}")
        for name, words in _CHOICES.items():
            if getattr(self, name) not in words:
                *others, last = map(repr, words)
                raise ValueError(f"{name}: expected {', '.join(others)} or {last}, got {getattr(self, name)!r}")
        if self.stub is not None and not isinstance(self.stub, str):
            raise TypeError(f"stub: expected a text or None, got {self.stub!r}")
        if self.stub is not None:
            _check_texts("stub", (self.stub,))
            if not self.stub.strip():
                raise ValueError("stub: expected a text that says something, got a blank one")
        for name in (*_PATTERNS, *(() if self.only_tools is None else ("only_tools",))):
            patterns = getattr(self, name)
            if not isinstance(patterns, tuple) or not all(isinstance(item, str) for item in patterns):
                raise TypeError(f"{name}: expected a tuple of patterns, got {patterns!r}")
            _check_texts(name, patterns)
        if not isinstance(self.tools, tuple):
            raise TypeError(f"tools: expected a tuple of pairs of a pattern and a kind, got {self.tools!r}")
        for entry in self.tools:
            if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)):
                raise TypeError(f"tools: expected pairs of a pattern and a kind, got {entry!r}")
            _check_texts("tools", entry[:1])
            if entry[1] not in _KINDS:
                raise ValueError(f"tools: expected a kind of {', '.join(_KINDS)}, got {entry[1]!r}")

    @classmethod
    def default(cls) -> PrunePolicy:
        """What `prune_tool_outputs` does without a policy."""
        return cls()

    @classmethod
    def careful(cls) -> PrunePolicy:
        """Keeps more: 7 % cheaper than never to prune where the default is 13 %, with half of its regrets."""
        return cls(protected_steps=5, protected_tokens=15_000, min_saved=500)

    @classmethod
    def thrifty(cls) -> PrunePolicy:
        """Keeps less: 22 % cheaper than never to prune, with twice the regrets of the default and more cache breaks."""
        return cls(
            protected_steps=2,
            protected_tokens=5_000,
            min_batch=5_000,
            horizon_share=0.3,
            min_saved=100,
            superseded="start",
        )

    @classmethod
    def seed(cls) -> PrunePolicy:
        """The first design's rule: everything before the newest two turns, as soon as there is anything to save.

        But for what stays by default: sub-agents' answers, listings, decisions, open errors.
        """
        return cls(
            protected_turns=2,
            protected_steps=1,
            protected_tokens=0,
            prune_threshold=0,
            batch="all",
            min_saved=0,
            superseded="off",
        )

    @classmethod
    def opencode(cls) -> PrunePolicy:
        """OpenCode's constants (`compaction.ts`): two turns and 40,000 tokens protected, more than 20,000 to free.

        Errors are never pruned there, nor is the tool `skill`.
        """
        return cls(
            protected_turns=2,
            protected_steps=1,
            protected_tokens=40_000,
            prune_threshold=20_000,
            batch="all",
            min_saved=0,
            superseded="off",
            keep_errors="all",
            keep_tools=("skill",),
            keep_paths=(),
            stub=_CLEARED,
        )

    @classmethod
    def claude_code(cls) -> PrunePolicy:
        """Claude Code's micro-compaction (2.1.12 to 2.1.22, measured in its logs): 40,000 tokens protected, no guard of
        turns, more than 20,000 to free, errors cleared like all others, of its own tools only."""
        return cls(
            protected_steps=1,
            protected_tokens=40_000,
            prune_threshold=20_000,
            batch="all",
            min_saved=0,
            superseded="off",
            keep_errors="none",
            keep_tools=(),
            keep_paths=(),
            only_tools=("Read", "Bash", "Grep", "Glob", "Edit", "MultiEdit", "Write", "WebFetch", "WebSearch"),
            stub=_CLEARED,
        )

    @classmethod
    def anthropic_api(cls) -> PrunePolicy:
        """Anthropic's `clear_tool_uses_20250919` by default: from 100,000 tokens on all but the newest 3 outputs."""
        return cls(
            protected_steps=1,
            protected_tokens=0,
            protected_results=3,
            prune_threshold=0,
            batch="all",
            trigger_tokens=100_000,
            min_saved=0,
            superseded="off",
            keep_errors="none",
            keep_tools=(),
            keep_paths=(),
            stub=_CLEARED,
        )


@dataclass(frozen=True)
class FitPolicy:
    """What `fit_messages` keeps. Frozen, hashable, plain data. Raises `TypeError` for what is no policy or flag."""

    prune: PrunePolicy = field(default_factory=PrunePolicy)
    """Which old tool outputs go first, and how many of the newest steps are the last to go. When it pays is not asked:
    `prune_threshold`, `batch`, `trigger_tokens`, `min_batch` and `horizon_share` say nothing here."""
    pin_first: bool = True
    """The first user message stays if it has at most 10 % of the budget: most sessions begin with what they are about.
    """
    clamp_user: bool = False
    """Where nothing else is left to go, what users say is cut like a tool output, large messages first. By default that
    is a `CannotFitError`."""

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        if not isinstance(self.prune, PrunePolicy):
            raise TypeError(f"prune: expected a PrunePolicy, got `{type(self.prune).__name__}`")
        for name in ("pin_first", "clamp_user"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name}: expected True or False, got {getattr(self, name)!r}")


def _check_texts(name: str, texts: tuple[str, ...]) -> None:
    """Texts without lone surrogates."""
    for text in texts:
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise ValueError(f"{name}: expected text without lone surrogates, got {text!r}")


def _check_count(name: str, value: object, expected: str = "a whole number") -> None:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected {expected}, got {value!r}")
    if value < 0:
        raise ValueError(f"{name}: expected 0 or more, got {value!r}")
