"""The first design's names with its semantics, for drop-in use. New code uses the names of `ctxfast` itself."""

from __future__ import annotations

from ctxfast._core import TokenCounter, prune_tool_outputs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    from ctxfast.reasons import CompactReason
    from ctxfast.summary import SUMMARY_TEMPLATE as SummaryTemplate
    from ctxfast.truncate import TruncatedResult

    ContextCompressReasonProactive = CompactReason.PROACTIVE
    ContextCompressReasonRetry = CompactReason.RETRY
    FRESH_TAIL_COUNT = 32

__all__ = [
    "FRESH_TAIL_COUNT",
    "CalculateFreshTailBudget",
    "ContextCompressReasonProactive",
    "ContextCompressReasonRetry",
    "EstimateMessageTokens",
    "EstimateToolDefsTokens",
    "PruneToolOutputs",
    "SummaryTemplate",
    "TruncateToolOutput",
    "TruncatedResult",
    "UseStructuredSummaries",
]

UseStructuredSummaries = True
"""The first design's switch, as it was by default; here it is `CompactionPolicy(use_structured_summaries=...)`."""

_ESTIMATOR = TokenCounter.picoclaw("4.0")
_STUB = "[Tool output pruned — use expand for details]"


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


def PruneToolOutputs(
    messages: Sequence[Any],
    protectedTurns: int,
    pruneThreshold: int,
    *,
    unit: Literal["turns", "messages"] = "turns",
) -> Sequence[Any]:
    """The messages with old tool outputs as stubs; the list itself if that are fewer than `pruneThreshold` outputs.

    Outputs in the newest `protectedTurns` turns stay; 0 or less: nothing is pruned. With `unit="turns"` this is
    `ctxfast.prune_tool_outputs` with `PrunePolicy.seed()`: real turns, stubs with facts, never a longer text, calls
    and their results together. `unit="messages"` does what the first design's code does, to the letter: it
    protects so many *messages* and replaces the content of each older message of role `tool` by one fixed text, be that
    longer, an error, or what the model is about to read. Raises `ValueError` for another unit.
    """
    if unit not in ("turns", "messages"):
        raise ValueError(f"unit: expected 'turns' or 'messages', got {unit!r}")
    if not messages or protectedTurns <= 0:
        return messages
    if unit == "turns":
        from ctxfast.policy import PrunePolicy

        pruned = prune_tool_outputs(messages, protectedTurns, policy=PrunePolicy.seed(), counter=_ESTIMATOR)
        return messages if len(pruned.report.items) < pruneThreshold else pruned.messages
    border = max(0, len(messages) - protectedTurns)
    old = [index for index, message in enumerate(messages[:border]) if message["role"] == "tool"]
    if len(old) < pruneThreshold:
        return messages
    result = list(messages)
    for index in old:
        result[index] = {**messages[index], "content": _STUB}
    return result


def TruncateToolOutput(
    output: str, maxLines: int = 2_000, maxBytes: int = 51_200, toolName: str = "tool"
) -> TruncatedResult[str]:
    """The head of a long tool output, all of it in a file: `ctxfast.truncate_tool_output` with `keep="head"`.

    The first design kept the head of every tool's output and wrote `picoclaw_tool_<tool>_<pid>.txt`, readable by
    everybody, over an earlier one; here each output has a file of its own, readable by its owner.
    """
    from ctxfast.truncate import truncate_tool_output

    return truncate_tool_output(output, maxLines, maxBytes, toolName, keep="head")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The names that were deprecated in the first design, too: each warns on its first use.

        `ContextCompressReasonProactive` and `ContextCompressReasonRetry` are the members of `ctxfast.CompactReason`.
        `FRESH_TAIL_COUNT` is the fixed number of messages that the fresh tail had; nothing uses it.
        """
        if name == "TruncatedResult":
            from ctxfast.truncate import TruncatedResult

            return TruncatedResult
        if name == "SummaryTemplate":
            from ctxfast.summary import SUMMARY_TEMPLATE

            return SUMMARY_TEMPLATE
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import warnings

        from ctxfast.reasons import CompactReason

        value, successor = {
            "ContextCompressReasonProactive": (CompactReason.PROACTIVE, "CompactReason.PROACTIVE"),
            "ContextCompressReasonRetry": (CompactReason.RETRY, "CompactReason.RETRY"),
            "FRESH_TAIL_COUNT": (32, "fresh_tail_budget"),
        }[name]
        warnings.warn(f"{name} is deprecated: use ctxfast.{successor}", DeprecationWarning, stacklevel=2)
        globals()[name] = value  # found without this function from now on, so that it warns once
        return value
