"""What `import ctxfast` costs a fresh interpreter, and which modules it brings in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

# Printed by the fresh interpreter: top-level names of the modules that were not there before.
NEW_MODULES = """
import sys
before = set(sys.modules)
import ctxfast
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def run(code: str) -> str:
    """Run code in a fresh interpreter; its output."""
    return subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True).stdout


def starter(code: str) -> Callable[[], object]:
    """A function that starts a fresh interpreter for `code`."""
    return lambda: run(code)


def third_party_modules() -> set[str]:
    """Modules besides the standard library and ctxfast that `import ctxfast` loads."""
    return set(run(NEW_MODULES).split()) - set(sys.stdlib_module_names) - {"ctxfast"}
