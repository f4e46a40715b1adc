"""Making a list of messages shorter: the fresh tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from ctxfast import _core
from ctxfast._core import fresh_tail_budget

__all__ = ["FreshTail", "fresh_tail_budget", "select_fresh_tail"]

if TYPE_CHECKING:
    # The generated stub cannot say that the kept messages have the type of the messages that came in.
    from collections.abc import Sequence

    M = TypeVar("M")

    class FreshTail(Generic[M]):
        """What `select_fresh_tail` has chosen. Frozen."""

        @property
        def start(self) -> int: ...
        @property
        def pinned(self) -> tuple[int, ...]: ...
        @property
        def tokens(self) -> int: ...
        @property
        def turns(self) -> int: ...
        @property
        def split_turn(self) -> bool: ...
        @property
        def over_budget(self) -> bool: ...
        @property
        def messages(self) -> list[M]: ...

    def select_fresh_tail(
        messages: Sequence[M],
        budget: float = 8_000,
        *,
        min_turns: int = 2,
        max_tokens: float | None = None,
        counter: _core.TokenCounter | None = None,
    ) -> FreshTail[M]:
        """See `help(ctxfast.select_fresh_tail)`."""

else:
    FreshTail = _core.FreshTail
    select_fresh_tail = _core.select_fresh_tail
