"""What belongs together in a list of messages, where it can be cut, and what a provider would refuse."""

from __future__ import annotations

from ctxfast._core import Problem, atoms, find_safe_cut, safe_cuts, step_starts, turn_starts, validate

__all__ = ["Problem", "atoms", "find_safe_cut", "safe_cuts", "step_starts", "turn_starts", "validate"]
