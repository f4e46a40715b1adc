"""Making a list of messages shorter: old tool outputs as stubs, the fresh tail."""

from __future__ import annotations

from ctxfast import _core
from ctxfast._core import CachePrices, Edit, Report, fresh_tail_budget

__all__ = [
    "CachePrices",
    "Edit",
    "FreshTail",
    "Pruned",
    "Report",
    "fresh_tail_budget",
    "prune_tool_outputs",
    "select_fresh_tail",
]

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of ctxfast
if TYPE_CHECKING:
    # The generated stub cannot say that the kept messages have the type of the messages that came in.
    from collections.abc import Sequence
    from typing import Any, ClassVar, Generic, Literal, TypeVar, final

    from ctxfast.policy import PrunePolicy, SupportsSave

    M = TypeVar("M")

    @final
    class FreshTail(Generic[M]):
        """What `select_fresh_tail` has chosen. Its fields cannot be set."""

        __hash__: ClassVar[None]  # type: ignore[assignment]

        def __eq__(self, other: object, /) -> bool:
            """Whether the same was chosen, with equal messages."""
            raise NotImplementedError

        @property
        def start(self) -> int:
            """Index of the first message of the tail."""
            raise NotImplementedError

        @property
        def pinned(self) -> tuple[int, ...]:
            """Indices of the user messages that are kept with it."""
            raise NotImplementedError

        @property
        def tokens(self) -> int:
            """Tokens of the tail and the pinned messages."""
            raise NotImplementedError

        @property
        def turns(self) -> int:
            """Turns that the tail touches."""
            raise NotImplementedError

        @property
        def split_turn(self) -> bool:
            """Whether it starts inside a turn."""
            raise NotImplementedError

        @property
        def over_budget(self) -> bool:
            """Whether even the least has more tokens than it may."""
            raise NotImplementedError

        @property
        def messages(self) -> list[M]:
            """Leading system messages, pinned messages, the tail."""
            raise NotImplementedError

    def select_fresh_tail(
        messages: Sequence[M],
        budget: float = 8_000,
        *,
        min_turns: int = 2,
        max_tokens: float | None = None,
        counter: _core.TokenCounter | None = None,
    ) -> FreshTail[M]:
        """The newest messages that fit a budget, and the user messages that they need.

        One budget in tokens of `counter`, in this order: the newest atom, always; the task (the newest user message
        that says something) and the head (the one that opens the turn into which the cut falls), pinned in front;
        older atoms, whole, while everything fits. Up to the start of the `min_turns`-th newest turn the limit is
        `max_tokens` (default: `budget`). System messages at the start stay and are not counted. Raises `BudgetError`
        for a budget below 1. The whole text: `help(ctxfast.select_fresh_tail)`.
        """
        raise NotImplementedError

    @final
    class Pruned(Generic[M]):
        """What `prune_tool_outputs` gives. Its fields cannot be set."""

        __hash__: ClassVar[None]  # type: ignore[assignment]

        def __eq__(self, other: object, /) -> bool:
            """Whether the same was done, with equal messages."""
            raise NotImplementedError

        @property
        def messages(self) -> list[M]:
            """A new list: the same messages, stubs in the place of old tool outputs."""
            raise NotImplementedError

        @property
        def report(self) -> Report:
            """What was replaced, and what that saves."""
            raise NotImplementedError

    def prune_tool_outputs(
        messages: Sequence[M],
        protected_turns: int | None = None,
        prune_threshold: int | Literal["auto"] | None = None,
        *,
        protected_tokens: int | None = None,
        protected_steps: int | None = None,
        budget: float | None = None,
        prices: CachePrices | None = ...,
        policy: PrunePolicy | None = None,
        previous: Report | Pruned[Any] | None = None,
        counter: _core.TokenCounter | None = None,
        store: SupportsSave | None = None,
    ) -> Pruned[M]:
        """Old tool outputs as stubs, everything else as it is: a new list, and a report of what was done.

        Protected are the outputs of the newest `protected_steps` steps (3), the newest `protected_tokens` tokens of
        output (10,000) and the newest `protected_turns` turns (0). `prune_threshold="auto"` replaces the rest once that
        pays at these cache `prices` (default: `CachePrices()`; `None`: no cache); a number of tokens replaces batches
        that free so many each. `budget` is the number
        of usable tokens, `previous` the report of the last call on the same list; each output is saved in `store`
        before it is replaced. The whole text: `help(ctxfast.prune_tool_outputs)`.
        """
        raise NotImplementedError

else:
    FreshTail = _core.FreshTail
    Pruned = _core.Pruned
    prune_tool_outputs = _core.prune_tool_outputs
    select_fresh_tail = _core.select_fresh_tail
