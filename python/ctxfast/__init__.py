"""ctxfast keeps an LLM agent's conversation inside the model's context window: it counts and cuts message lists."""

from __future__ import annotations

from ctxfast._core import OPTIMISED as _OPTIMISED
from ctxfast._core import VERSION as __version__
from ctxfast._core import ErrorInfo, TextLedger, TokenCounter, TokenLedger, classify_error, count_tokens
from ctxfast.errors import (
    BudgetError,
    CannotFitError,
    ContextOverflowError,
    CtxfastError,
    FileChangedError,
    MessageTypeError,
    MessageValueError,
    OutputError,
    UsageError,
    WindowError,
)
from ctxfast.shrinking import (
    CachePrices,
    Edit,
    FreshTail,
    Pruned,
    Report,
    fresh_tail_budget,
    prune_tool_outputs,
    select_fresh_tail,
)
from ctxfast.structure import (
    Fix,
    Problem,
    Repaired,
    RepairReport,
    atoms,
    find_safe_cut,
    remove,
    repair,
    safe_cuts,
    step_starts,
    turn_starts,
    validate,
)

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of ctxfast's
if TYPE_CHECKING:
    from ctxfast.anchor import UsageAnchor
    from ctxfast.budget import ContextBudget, Level
    from ctxfast.compaction import CompactionPolicy, to_anthropic_context_management
    from ctxfast.counting import EstimatorConfig
    from ctxfast.file_reading import ReadLog, ReadPlan, plan_read
    from ctxfast.fitting import Dropped, FitReport, Fitted, fit_messages, keep_last
    from ctxfast.manager import ContextManager, Prepared
    from ctxfast.models import ModelInfo, model_info
    from ctxfast.planning import SessionPlan, Task, plan_session
    from ctxfast.policy import FitPolicy, PrunePolicy
    from ctxfast.reasons import CompactReason
    from ctxfast.recall import RecallTool, recall_tool, restore, saved_ids
    from ctxfast.retention import Part, Priority, Segment, priorities, segments
    from ctxfast.store import OutputStore
    from ctxfast.summary import (
        SUMMARY_TEMPLATE,
        FoundSummary,
        Summary,
        SummaryCheck,
        SummaryProblem,
        acondense,
        asummarise,
        build_condensed_prompt,
        build_summary_prompt,
        check_summary,
        condense,
        fallback_summary,
        find_summary,
        finished_segments,
        insert_summary,
        segment_line,
        summarise,
    )
    from ctxfast.truncate import TruncatedResult, fit_tool_results, truncate_tool_output
    from ctxfast.usage import Usage

__all__ = [
    "SUMMARY_TEMPLATE",
    "BudgetError",
    "CachePrices",
    "CannotFitError",
    "CompactReason",
    "CompactionPolicy",
    "ContextBudget",
    "ContextManager",
    "ContextOverflowError",
    "CtxfastError",
    "Dropped",
    "Edit",
    "ErrorInfo",
    "EstimatorConfig",
    "FileChangedError",
    "FitPolicy",
    "FitReport",
    "Fitted",
    "Fix",
    "FoundSummary",
    "FreshTail",
    "Level",
    "MessageTypeError",
    "MessageValueError",
    "ModelInfo",
    "OutputError",
    "OutputStore",
    "Part",
    "Prepared",
    "Priority",
    "Problem",
    "PrunePolicy",
    "Pruned",
    "ReadLog",
    "ReadPlan",
    "RecallTool",
    "RepairReport",
    "Repaired",
    "Report",
    "Segment",
    "SessionPlan",
    "Summary",
    "SummaryCheck",
    "SummaryProblem",
    "Task",
    "TextLedger",
    "TokenCounter",
    "TokenLedger",
    "TruncatedResult",
    "Usage",
    "UsageAnchor",
    "UsageError",
    "WindowError",
    "__version__",
    "acondense",
    "asummarise",
    "atoms",
    "build_condensed_prompt",
    "build_summary_prompt",
    "check_summary",
    "classify_error",
    "condense",
    "count_tokens",
    "fallback_summary",
    "find_safe_cut",
    "find_summary",
    "finished_segments",
    "fit_messages",
    "fit_tool_results",
    "fresh_tail_budget",
    "insert_summary",
    "keep_last",
    "model_info",
    "plan_read",
    "plan_session",
    "priorities",
    "prune_tool_outputs",
    "recall_tool",
    "remove",
    "repair",
    "restore",
    "safe_cuts",
    "saved_ids",
    "segment_line",
    "segments",
    "select_fresh_tail",
    "step_starts",
    "summarise",
    "to_anthropic_context_management",
    "truncate_tool_output",
    "turn_starts",
    "validate",
]

if not _OPTIMISED:
    import warnings

    warnings.warn(
        "ctxfast was built without optimisation: build it with --release before you measure anything",
        RuntimeWarning,
        stacklevel=2,
    )

if not TYPE_CHECKING:  # type checkers know the names above and should know no others
    _LATER = {
        "CompactReason": "reasons",
        "CompactionPolicy": "compaction",
        "ContextBudget": "budget",
        "ContextManager": "manager",
        "Dropped": "fitting",
        "EstimatorConfig": "counting",
        "FitPolicy": "policy",
        "FitReport": "fitting",
        "Fitted": "fitting",
        "FoundSummary": "summary",
        "Level": "budget",
        "ModelInfo": "models",
        "OutputStore": "store",
        "Part": "retention",
        "Prepared": "manager",
        "Priority": "retention",
        "PrunePolicy": "policy",
        "ReadLog": "file_reading",
        "ReadPlan": "file_reading",
        "RecallTool": "recall",
        "SUMMARY_TEMPLATE": "summary",
        "Segment": "retention",
        "SessionPlan": "planning",
        "Summary": "summary",
        "SummaryCheck": "summary",
        "SummaryProblem": "summary",
        "Task": "planning",
        "TruncatedResult": "truncate",
        "Usage": "usage",
        "UsageAnchor": "anchor",
        "acondense": "summary",
        "asummarise": "summary",
        "build_condensed_prompt": "summary",
        "build_summary_prompt": "summary",
        "check_summary": "summary",
        "condense": "summary",
        "fallback_summary": "summary",
        "find_summary": "summary",
        "finished_segments": "summary",
        "fit_messages": "fitting",
        "fit_tool_results": "truncate",
        "insert_summary": "summary",
        "keep_last": "fitting",
        "model_info": "models",
        "plan_read": "file_reading",
        "plan_session": "planning",
        "priorities": "retention",
        "recall_tool": "recall",
        "restore": "recall",
        "saved_ids": "recall",
        "segment_line": "summary",
        "segments": "retention",
        "summarise": "summary",
        "to_anthropic_context_management": "compaction",
        "truncate_tool_output": "truncate",
    }

    def __getattr__(name: str) -> object:
        """Import on first use what needs slow modules of the standard library (`dataclasses`: 4 to 10 ms)."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(f"ctxfast.{_LATER[name]}"), name)

    def __dir__() -> list[str]:
        return __all__
