"""Writes `python/ctxfast/_core.pyi` from the doc comments and signatures in Rust, or checks that it is up to date.

    python tools/stubs.py            write it
    python tools/stubs.py --check    say whether it is what the code gives, and what mypy's stubtest finds

The generator takes annotations from the Rust signatures word by word; what is done here is to unquote them, to add
the imports that they need and to format the file.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "python" / "ctxfast" / "_core.pyi"
BIN = Path(sys.executable).parent  # of the virtual environment

# What the generator cannot say: `ctxfast.shrinking` and `ctxfast.structure` say it.
ALLOWED = "".join(f"ctxfast._core.{name}.__class_getitem__\n" for name in ("FreshTail", "Pruned", "Repaired"))

# What is in the tuples `items` of some classes.
ITEMS = {"Report": "Edit", "RepairReport": "Fix"}

# The texts that some properties can be.
WORDS = {
    "Edit.kind": "'read', 'edit', 'command', 'search', 'list', 'web', 'agent', 'other'",
    "Edit.reason": "'aged', 'covered', 'edited', 'error', 'clamped'",
    "Report.blocked_by": "'protected_turns', 'protected_tokens', 'protected_steps', 'prune_threshold', "
    "'trigger_tokens', 'kept'",
    "ErrorInfo.kind": "'context_overflow', 'payload_too_large', 'rate_limit', 'output_cap', 'media_limit', "
    "'invalid_history', 'quota', 'content_filter', 'auth', 'server', 'unknown'",
    "ErrorInfo.retry": "'shrink', 'wait', 'change', 'no'",
}

HEADER = "# Generated from the Rust doc comments by tools/stubs.py (`make stubs`): do not edit.\n\n"
IMPORTS = {
    "Callable": "from collections.abc import Callable",
    "Coroutine": "from collections.abc import Coroutine",
    "Iterable": "from collections.abc import Iterable",
    "Mapping": "from collections.abc import Mapping",
    "Sequence": "from collections.abc import Sequence",
    "Literal": "from typing import Literal",
    "EstimatorConfig": "from ctxfast.counting import EstimatorConfig",
    "ImageRule": "from ctxfast.models import ImageRule",
    "ModelInfo": "from ctxfast.models import ModelInfo",
    "PrunePolicy": "from ctxfast.policy import PrunePolicy",
    "SupportsSave": "from ctxfast.policy import SupportsSave",
}


def generate() -> str:
    """The stub as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--locked", "--quiet", "--features", "stubs", "--interpreter", sys.executable, "--out", folder]
        maturin = [str(BIN / "maturin"), "generate-stubs", *options]
        subprocess.run(maturin, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = (Path(folder) / "ctxfast" / "_core.pyi").read_text()
    # it cannot parametrise what is returned as a Python object
    for name, item in ITEMS.items():
        before, line, after = text.partition(f"\nclass {name}:")
        after = after.replace("def items(self, /) -> tuple:", f"def items(self, /) -> tuple[{item}, ...]:", 1)
        text = before + line + after
    for path, words in WORDS.items():
        owner, _, name = path.partition(".")
        getter = rf"(?s)(\nclass {owner}[:(\[].*?\n    def {name}\(self, /\) -> )str"
        text = re.sub(getter, rf"\1Literal[{words}]", text, count=1)
    text = text.replace("-> tuple:", "-> tuple[int, ...]:").replace("-> list:", "-> list[Any]:")
    text = text.replace("-> dict: ...", "-> dict[str, Any]: ...").replace("-> dict:", "-> dict[str, Any]:")
    text = text.replace("-> tuple[Any, tuple]: ...", "-> tuple[Any, tuple[Any, ...]]: ...")
    text = text.replace("tuple[list, ", "tuple[list[Any], ")
    text = text.replace("tuple[dict]", "tuple[dict[str, Any]]")
    # annotations come quoted: "Sequence[object]"
    text = re.sub(r'((?:: |-> ))"([^"\n]+)"', r"\1\2", text)
    imports = [line for name, line in IMPORTS.items() if re.search(rf"\b{name}\b", text)]
    text = re.sub(r"(?m)^(from typing import )", "\n".join(imports) + r"\n\1", text, count=1)
    for arguments in (["check", "--fix-only", "--select", "I,F401", "-"], ["format", "-"]):
        ruff = [str(BIN / "ruff"), *arguments, "--quiet", "--stdin-filename", str(STUB)]
        done = subprocess.run(ruff, cwd=ROOT, check=True, input=text, text=True, stdout=subprocess.PIPE)
        text = done.stdout
    return HEADER + text


def main() -> int:
    """Write or check."""
    text = generate()
    if "--check" not in sys.argv[1:]:
        STUB.write_text(text)
        return 0
    if not STUB.exists() or STUB.read_text() != text:
        print(f"{STUB.relative_to(ROOT)} is not what the Rust code gives: run `make stubs`")
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as allowed:
        allowed.write(ALLOWED)
        allowed.flush()
        stubtest = [str(BIN / "stubtest"), "--allowlist", allowed.name, "ctxfast._core"]
        return subprocess.run(stubtest, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
