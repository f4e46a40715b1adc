"""The rules of counting and cutting in plain Python: the specification, the tests' oracle, the benchmarks' baseline.

Nothing here is fast and nothing here is clever. The Rust core gives the same answers; where the two differ, one of
them has a bug. The modules follow the data: `reading` a message, `counting` it (and `estimating` its texts,
`declaring` tools; a `ledger` keeps the counts), `structure` (what belongs together), then `validating` the list or
`repairing` it, choosing its `tail`, or `pruning` it (`tools` says what a call is about, `stubs` what stays of its
output), or `fitting` it to a budget (`truncating` says what stays of an output that is too long).
"""

from __future__ import annotations

from ctxfast.reference.counting import CallableCounter, Counter, FlatCounter, picoclaw
from ctxfast.reference.estimating import EstimatorCounter, ExactCounter, count_tokens, default_counter, for_model
from ctxfast.reference.fitting import Fitted, fit_messages
from ctxfast.reference.ledger import TokenLedger
from ctxfast.reference.pruning import Pruned, prune_tool_outputs
from ctxfast.reference.repairing import Repaired, repair
from ctxfast.reference.structure import atoms, find_safe_cut, safe_cuts, step_starts, turn_starts
from ctxfast.reference.tail import FreshTail, fresh_tail_budget, select_fresh_tail
from ctxfast.reference.validating import validate

__all__ = [
    "CallableCounter",
    "Counter",
    "EstimatorCounter",
    "ExactCounter",
    "Fitted",
    "FlatCounter",
    "FreshTail",
    "Pruned",
    "Repaired",
    "TokenLedger",
    "atoms",
    "count_tokens",
    "default_counter",
    "find_safe_cut",
    "fit_messages",
    "for_model",
    "fresh_tail_budget",
    "picoclaw",
    "prune_tool_outputs",
    "repair",
    "safe_cuts",
    "select_fresh_tail",
    "step_starts",
    "turn_starts",
    "validate",
]
