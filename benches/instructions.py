"""Instructions per message under callgrind: the repeatable measure. `python benches/instructions.py`

The same program runs twice with two numbers of calls; the difference is what the calls alone cost.
"""

from __future__ import annotations

import argparse
import marshal
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MESSAGES = 1_000
CALLS = (5, 25)
CONTENDERS = ("floor", "ctxfast", "loop")


def workload(contender: str, transcript: str, calls: int) -> None:
    """What valgrind runs."""
    # Keeps interned keys interned, and is quicker under valgrind than making the transcript.
    messages = marshal.loads(Path(transcript).read_bytes())
    count = counter(contender)
    for _ in range(calls):
        count(messages)


def counter(contender: str) -> Callable[[list[dict[str, Any]]], int]:
    # Imported here: a contender pays only for its own imports.
    if contender == "ctxfast":
        from benches.counters import FLAT

        count: Callable[[list[dict[str, Any]]], int] = FLAT.messages
        return count
    if contender == "loop":
        from benches import plain_loop

        return plain_loop.count
    from benches import floor

    module, reason = floor.load()
    if module is None:
        raise SystemExit(reason)
    return module.count


def instructions(contender: str, transcript: str, calls: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, __file__, "--run", contender, transcript, str(calls)]
    # Hashes and thus the order of collisions in dicts must not change from run to run.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if found is None:
        raise SystemExit(f"no count in valgrind's output: {run.stderr[-500:]}")
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    run = parser.parse_args().run
    if run:
        workload(run[0], run[1], int(run[2]))
        return
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return
    from benches import floor
    from benches.transcripts import from_json_lines, make_transcript

    module, reason = floor.load()
    if module is None:
        print(f"skipped: {reason}")
        return
    literal = make_transcript(MESSAGES, storage="real")
    with tempfile.TemporaryDirectory() as folder:
        for label, messages in (
            ("keys as literals", literal),
            ("keys from JSON lines", from_json_lines(literal)),
        ):
            transcript = Path(folder, "transcript")
            transcript.write_bytes(marshal.dumps(messages))
            per_message = {}
            for contender in CONTENDERS:
                few, many = (instructions(contender, str(transcript), calls) for calls in CALLS)
                per_message[contender] = (many - few) / (CALLS[1] - CALLS[0]) / MESSAGES
            ratio = per_message["ctxfast"] / per_message["floor"]
            figures = ", ".join(f"{name} {figure:.2f}" for name, figure in per_message.items())
            print(f"instructions per message, {label}: {figures}; ctxfast : floor = {ratio:.2f}")


if __name__ == "__main__":
    main()
