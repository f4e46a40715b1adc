"""Every exception that ctxfast raises on purpose, in one small hierarchy."""

from __future__ import annotations

__all__ = ["BudgetError", "CtxfastError", "MessageTypeError", "MessageValueError", "UnknownModelWarning", "UsageError"]


class CtxfastError(Exception):
    """Base class of all errors raised by ctxfast."""


class _ReadingError(CtxfastError):
    """A message or record that cannot be read: what was expected, what came, and where."""

    def __init__(self, expected: str, got: str, path: str) -> None:
        super().__init__(expected, got, path)
        self.expected = expected
        """What was expected, as a phrase: ``"`str` or a list of parts"``."""
        self.got = got
        """What came instead: a type name, or the offending value."""
        self.path = path
        """Where: ``messages[12].content``."""

    def __str__(self) -> str:
        return f"Expected {self.expected}, got {self.got} - at `{self.path}`"


class MessageTypeError(_ReadingError, TypeError):
    """A value inside a message has the wrong type."""


class MessageValueError(_ReadingError, ValueError):
    """A value inside a message has the right type and cannot be used: a missing role, a cycle."""


class BudgetError(CtxfastError, ValueError):
    """A budget or limit that is no number of tokens: negative, zero where that means nothing, NaN, infinite, bool."""


class UnknownModelWarning(UserWarning):
    """A model's name is not in the table: its tokens are counted by a rule for unknown models."""


class UsageError(_ReadingError, ValueError):
    """A provider's usage record that cannot be read: no known field, or a count that is none."""
