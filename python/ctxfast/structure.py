"""What belongs together in a list of messages, and where it can be cut."""

from __future__ import annotations

from ctxfast._core import atoms, find_safe_cut, safe_cuts, step_starts, turn_starts

__all__ = ["atoms", "find_safe_cut", "safe_cuts", "step_starts", "turn_starts"]
