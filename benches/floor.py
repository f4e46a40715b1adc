"""Builds and imports `floor.c`, the honest floor: `load()` gives the module or says why there is none."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Protocol, cast

FOLDER = Path(__file__).resolve().parent


class Floor(Protocol):
    """The functions of the C module."""

    def count(self, messages: list[dict[str, Any]], /) -> int: ...

    def suffix(self, messages: list[dict[str, Any]], budget: int, /) -> int: ...

    def newest_user(self, messages: list[dict[str, Any]], /) -> int: ...

    def newlines(self, texts: list[str], /) -> int: ...


@functools.cache
def load() -> tuple[Floor | None, str]:
    """The module and "", or `None` and the reason. Compiled when the source has changed."""
    target = FOLDER / "build" / f"_floor{sysconfig.get_config_var('EXT_SUFFIX')}"
    source = FOLDER / "floor.c"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        reason = _compile(source, target)
        if reason:
            return None, reason
    spec = importlib.util.spec_from_file_location("_floor", target)
    if spec is None or spec.loader is None:
        return None, f"cannot import {target.name}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Floor, module), ""


def _compile(source: Path, target: Path) -> str:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if os.name != "posix" or shutil.which(compiler[0]) is None:
        return "no C compiler for floor.c"
    include = sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").exists():
        return f"no Python.h in {include}"
    target.parent.mkdir(exist_ok=True)
    flags = ["-O3", "-fPIC", "-shared", f"-I{include}"]
    if sysconfig.get_config_var("LDSHARED") and "dynamic_lookup" in sysconfig.get_config_var("LDSHARED"):
        flags += ["-undefined", "dynamic_lookup"]
    # Compiled beside the target and renamed: two processes may do this at once.
    unfinished = target.with_suffix(f".{os.getpid()}")
    command = [*compiler, *flags, str(source), "-o", str(unfinished)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return f"floor.c does not compile: {run.stderr.strip()[:500]}"
    unfinished.replace(target)
    return ""
