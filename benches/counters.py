"""The flat counter of the benchmarks, of the core and of the reference: 2.5 characters per token, rounded up.

What it costs to walk, to decide and to write is measured with a counter that looks at no character.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import ctxfast
from ctxfast import reference

CONFIG = ctxfast.EstimatorConfig(chars_per_token=2.5)
FLAT = ctxfast.TokenCounter.flat(CONFIG)
REFERENCE = reference.FlatCounter(CONFIG)


def flat(module: ModuleType) -> Any:
    """The counter that fits a module: `ctxfast` or its reference."""
    return FLAT if module is ctxfast else REFERENCE
