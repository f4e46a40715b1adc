"""The first design's names with its semantics, for drop-in use. New code uses the names of `ctxfast` itself."""

from __future__ import annotations

from ctxfast._core import TokenCounter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CalculateFreshTailBudget", "EstimateMessageTokens", "EstimateToolDefsTokens"]

_ESTIMATOR = TokenCounter.picoclaw("4.0")


def EstimateMessageTokens(message: object) -> int:
    """Tokens of one message by PicoClaw's rule: 4.0 characters per token, rounded up."""
    return _ESTIMATOR.message(message)


def EstimateToolDefsTokens(tools: Sequence[object]) -> int:
    """Tokens of tool definitions by PicoClaw's rule."""
    return _ESTIMATOR.tools(tools)


def CalculateFreshTailBudget(usable_context: int) -> int:
    """The plain clamp: 25 % of `usable_context` tokens, at least 2,000 and at most 8,000, even above the window.

    `ctxfast.fresh_tail_budget` is the same but never above half of the usable context.
    """
    return max(2_000, min(int(usable_context * 0.25), 8_000))
