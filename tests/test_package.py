"""What holds for the package as a whole: imports, versions, the rules for its sources."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ctxfast

ROOT = Path(__file__).parent.parent


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a statement imports beyond those of a bare interpreter."""
    script = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_import_is_light() -> None:
    """No third-party module, and none of the standard library's slow ones."""
    loaded = modules_after("import ctxfast")
    assert loaded <= {"ctxfast", "__future__"}, loaded


def test_configuration_is_imported_on_first_use() -> None:
    assert "dataclasses" in modules_after("import ctxfast; ctxfast.EstimatorConfig")
    with pytest.raises(AttributeError, match="no attribute 'Estimator'"):
        ctxfast.Estimator  # type: ignore[attr-defined] # noqa: B018
    assert dir(ctxfast) == sorted(ctxfast.__all__)


def test_the_version_stands_in_one_place() -> None:
    manifest = (ROOT / "Cargo.toml").read_text()
    assert re.findall(r'(?m)^version = "(.+)"$', manifest) == [ctxfast.__version__]
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
    assert ctxfast.__version__ in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("pattern", ["unsafe", ".unwrap()", ".expect(", "panic!", "unreachable!", "todo!"])
def test_sources_keep_the_rules(pattern: str) -> None:
    """Unsafe code in a file of the core and one of the binding, each block with its reason; nothing that panics."""
    found = []
    for path in sorted((ROOT / "rust").rglob("src/**/*.rs")):
        code = path.read_text().partition("#[cfg(test)]")[0]
        lines = [line for line in code.splitlines() if pattern in line and not line.strip().startswith("//")]
        found += [path.name] if lines else []
        if pattern == "unsafe":
            assert code.count("unsafe {") <= code.count("// SAFETY:")
    assert found == (["dispatch.rs", "memory.rs"] if pattern == "unsafe" else [])


def test_a_build_without_optimisation_warns() -> None:
    script = (
        "import ctxfast._core as c, sys; sys.modules['ctxfast._core'].OPTIMISED = False; sys.modules.pop('ctxfast');"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", script + "import ctxfast"], stderr=subprocess.PIPE, text=True, check=True
    )
    assert "built without optimisation" in done.stderr
