"""What a `ContextManager` tells of: one small frozen class for each thing that can happen. Numbers are tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxfast._core import RepairReport, Report
from ctxfast.budget import Level
from ctxfast.fitting import FitReport
from ctxfast.reasons import CompactReason
from ctxfast.retention import Part

__all__ = [
    "CannotFit",
    "Detected",
    "Emergency",
    "Event",
    "Fitted",
    "LearnedWindow",
    "Mended",
    "NoProgress",
    "Pruned",
    "Removed",
    "Suggested",
    "Summarised",
    "Warned",
]


@dataclass(frozen=True)
class Event:
    """Something that happened while a request was prepared, or after it was refused."""

    level: Level
    """How full the context was then."""
    used: int
    """Tokens of the prompt then."""


@dataclass(frozen=True)
class Detected(Event):
    """The level has changed."""

    before: Level


@dataclass(frozen=True)
class Warned(Event):
    """The context is at SUMMARIZE or above, for the first time since it was below."""


@dataclass(frozen=True)
class Suggested(Event):
    """The context is at URGENT: compacting now is a good idea (`request_compaction`)."""


@dataclass(frozen=True)
class Mended(Event):
    """Something was wrong with the list that the provider would have refused (`repair`)."""

    report: RepairReport


@dataclass(frozen=True)
class Pruned(Event):
    """Old tool outputs became stubs."""

    report: Report


@dataclass(frozen=True)
class Removed(Event):
    """Tool calls and their outputs are gone that matter least."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Summarised(Event):
    """Messages became a summary."""

    reason: CompactReason
    kind: str
    """How: `structured`, `plain`, `deterministic`, or `segments`, for finished tasks of a few lines each."""
    messages: int
    """How many messages it stands for."""
    after: int
    """Tokens of the prompt afterwards."""


@dataclass(frozen=True)
class Fitted(Event):
    """The list had to be made to fit without a summary."""

    report: FitReport


@dataclass(frozen=True)
class Emergency(Event):
    """The context is at EMERGENCY, or a request was refused: all but the tail is replaced."""

    reason: CompactReason


@dataclass(frozen=True)
class LearnedWindow(Event):
    """A refusal has said, or shown, how large the window is."""

    before: int | None
    window: int | None


@dataclass(frozen=True)
class NoProgress(Event):
    """Compacting again and again does not help: it was needed again at once, three times in a row."""

    largest: tuple[tuple[str, int], ...]
    """The three largest messages, the largest first, and then what stands beside the messages; with their tokens."""


@dataclass(frozen=True)
class CannotFit(Event):
    """A `CannotFitError` is about to be raised."""

    error: Any
