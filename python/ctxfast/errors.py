"""Every exception that ctxfast raises on purpose, in one small hierarchy."""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "CannotFitError",
    "ContextOverflowError",
    "CtxfastError",
    "FileChangedError",
    "MessageTypeError",
    "MessageValueError",
    "OutputError",
    "UnknownModelWarning",
    "UsageError",
    "WindowError",
]


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


class OutputError(CtxfastError, LookupError):
    """A saved tool output cannot be read."""

    def __init__(self, output_id: str, reason: str) -> None:
        """Of the id and what is wrong."""
        super().__init__(output_id, reason)
        self.output_id = output_id
        """The id that was asked for."""
        self.reason = reason
        """What is wrong: the system's words, or ours."""

    def __str__(self) -> str:
        """One line."""
        return f"no saved output {self.output_id!r}: {self.reason}"


class UnknownModelWarning(UserWarning):
    """A model's name is not in the table: its tokens are counted by a rule for unknown models."""


class UsageError(_ReadingError, ValueError):
    """A provider's usage record that cannot be read: no known field, or a count that is none."""


class WindowError(CtxfastError):
    """Something is too large: for the model's window (`ContextOverflowError`), or for a budget (`CannotFitError`)."""


class ContextOverflowError(WindowError):
    """The provider has refused a request because it does not fit the model's context window.

    Numbers are tokens; `None` is "not known". `from_exception` makes one of a provider's error.
    """

    def __init__(
        self,
        model: str | None = None,
        context_window: int | None = None,
        requested_tokens: int | None = None,
        reason: str = "",
    ) -> None:
        """Of what is known."""
        super().__init__(model, context_window, requested_tokens, reason)
        self.model = model
        """Name of the model."""
        self.context_window = context_window
        """Tokens that fit: the model's window, or its server's, which can be smaller."""
        self.requested_tokens = requested_tokens
        """Tokens that were asked for: of the prompt, or of prompt and output where the provider counts both."""
        self.reason = reason
        """What the provider said."""

    def __str__(self) -> str:
        """One line, in the first design's words."""
        model = "unknown" if self.model is None else self.model
        window = "unknown" if self.context_window is None else self.context_window
        requested = "unknown" if self.requested_tokens is None else self.requested_tokens
        text = f"context window exceeded: model={model} window={window} requested={requested}"
        return f"{text} reason={self.reason}" if self.reason else text

    @classmethod
    def from_exception(
        cls,
        error: object,
        *,
        model: str | None = None,
        context_window: int | None = None,
        estimated_tokens: int | None = None,
    ) -> ContextOverflowError | None:
        """The same as `ContextOverflowError`, or `None` if `error` is something else.

        `error` is whatever `ctxfast.classify_error` takes: an exception of any provider's library, a body, a text. What
        it does not say is taken from `model` and `context_window`; an exception becomes the cause of the result, so
        that `raise overflow` shows both. An error of this class is given back as it is.
        """
        if isinstance(error, cls):
            return error
        from ctxfast._core import classify_error

        info = classify_error(error, context_window=context_window, estimated_tokens=estimated_tokens)
        if info.kind != "context_overflow":
            return None
        window = context_window if info.context_window is None else info.context_window
        requested = estimated_tokens if info.requested_tokens is None else info.requested_tokens
        overflow = cls(info.model or model, window, requested, info.message or info.code or "")
        if isinstance(error, BaseException):
            overflow.__cause__ = error
        return overflow


class CannotFitError(WindowError):
    """Messages cannot be made to fit a budget: what must stay is larger. Numbers are tokens."""

    def __init__(self, budget: int, pinned: int, needed: int, largest: str = "") -> None:
        """Of the numbers, and a phrase for the largest thing."""
        super().__init__(budget, pinned, needed, largest)
        self.budget = budget
        """What there is."""
        self.pinned = pinned
        """What is pinned: the system prompt, the task, the tools."""
        self.needed = needed
        """The least that would have to fit."""
        self.largest = largest
        """The largest of what must stay, by the counter alone: ``"messages[0] (user): 20,000 tokens"``."""

    def __str__(self) -> str:
        """A sentence with the numbers."""
        text = f"cannot fit {self.budget:,} tokens: at least {self.needed:,} are needed, {self.pinned:,} of them pinned"
        return f"{text}; the largest is {self.largest}" if self.largest else text


class FileChangedError(CtxfastError, OSError):
    """A file is not the same any more as when its plan was made (`plan_read`): make a new one."""

    def __init__(self, path: str) -> None:
        """Of the file."""
        super().__init__(path)
        self.path = path
        """Where it is."""

    def __str__(self) -> str:
        """What to do."""
        return f"{self.path} has changed since the plan was made: make a new one"
