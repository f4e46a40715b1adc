"""What stays of an old tool output, by the kind of tool: the text is fixed, for a changed one breaks prompt caches."""

from __future__ import annotations

import dataclasses
import json
from types import ModuleType
from typing import Any

import pytest
from cases import by_length
from test_prune import ALL, Message, session

TEXT = "x" * 500  # so that the stub is shorter


def step(number: int, name: str = "read", output: str = "", **arguments: Any) -> list[Message]:
    """A call and its result."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    ]


STUBS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    # name: tool, arguments, output, stub
    "a file": (
        "Read",
        {"file_path": "src/app.py"},
        f"     1\timport os\n     2\t\n     3\tdef main():\n     4\t    {TEXT}\n     5\tclass Shop(\n",
        "Read src/app.py, 5 lines, <n> characters]\ndef main():",
    ),
    "some lines of a class": (
        "read",
        {"path": "a.ts", "offset": 10, "limit": 5},
        f"00010|   private total(): number {{\n00011|     return {TEXT}\n00012|   }}",
        "read a.ts, lines 10 to 14, <n> characters]\nprivate total(): number {",
    ),
    "lines without an outline": (
        "Read",
        {"path": "a.json", "start_line": 3},
        f'<path>a.json</path>\n3: {{\n4:   "version": 1, {TEXT}',
        'Read a.json, lines 3 to the end, <n> characters]\n"version": 1, ' + "x" * 65 + "…",
    ),
    "a document": (
        "read",
        {"path": "README.md"},
        f"# Shop\n\n{TEXT}\n\n## Use\n",
        "read README.md, 5 lines, <n> characters]\n# Shop\n## Use",
    ),
    "a file by the shell": (
        "exec_command",
        {"cmd": "cd /srv && sed -n '1,9p' app.py"},
        f"Chunk ID: 7d\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\ndef main():\n{TEXT}",
        "exec_command sed -n '1,9p' app.py, lines 1 to 9, exit code 0, <n> characters]\ndef main():",
    ),
    "a failed command": (
        "Bash",
        {"command": "export A=1 && pytest -q\necho $?"},
        f"{TEXT}\nE   AssertionError: 5 != 6\n1 failed\nnpm error code 1\nexit code: 1",
        "Bash pytest -q echo $?, exit code 1, 5 lines, <n> characters]\nE   AssertionError: 5 != 6\n1 failed",
    ),
    "a command": (
        "shell",
        {"command": ["bash", "-lc", "make test"]},
        f"{TEXT}\nno errors\n\x1b[32m53 passed\x1b[0m, 0 failed\n$",
        "shell make test, 4 lines, <n> characters]\n53 passed, 0 failed",
    ),
    "a command that shows": (
        "bash",
        {"command": "git log --oneline"},
        f"ab12 Fix error in total\ncd34 Add shop\n{TEXT}",
        "bash git log --oneline, 3 lines, <n> characters]\nab12 Fix error in total\ncd34 Add shop\n" + "x" * 79 + "…",
    ),
    "a search by the shell": (
        "bash",
        {"command": "rg -n total src"},
        f"a.py:3:total = 1\na.py:9:{TEXT}\nb.py:7:total",
        "bash rg -n total src, 3 matches in 2 files, <n> characters]\na.py:3:total = 1\na.py:9:"
        + "x" * 72
        + "…\nb.py:7:total",
    ),
    "a search": (
        "Grep",
        {"pattern": "total", "path": "src/"},
        f"src/a.py:3:total = 1\nsrc/a.py-4-{TEXT}\n--\nsrc/b.py:7:total",
        'Grep "total" in src/, 2 matches in 2 files, <n> characters]\na.py:3:total = 1\na.py-4-'
        + "x" * 72
        + "…\nb.py:7:total",
    ),
    "a search that counts itself": (
        "grep",
        {"pattern": "a"},
        f"Found 28 matches\na.py:\n  Line 3: {TEXT}",
        'grep "a", 28 matches, <n> characters]\nFound 28 matches\na.py:\nLine 3: ' + "x" * 71 + "…",
    ),
    "a listing": (
        "list_dir",
        {"path": "src"},
        f"src/a.py\nsrc/{TEXT}\n(Results are truncated)",
        "list_dir src, 2 entries, <n> characters]\na.py\n" + "x" * 79 + "…\n(Results are truncated)",
    ),
    "a page": (
        "WebFetch",
        {"url": "https://example.org/guide"},
        f"Guide\n```sh\n# no heading\n```\n# How to\n{TEXT}\n## Next",
        "WebFetch https://example.org/guide, 7 lines, <n> characters]\n# How to\n## Next",
    ),
    "an edit": ("edit_file", {"path": "a.py", "old": "x"}, f"done\n{TEXT}", "edit_file a.py, 2 lines, <n> characters]"),
    "a failed edit": (
        "Edit",
        {"file_path": "a.py"},
        f"<tool_use_error>String to replace not found\n{TEXT}",
        "Edit a.py, failed, 2 lines, <n> characters]\n<tool_use_error>String to replace not found\n" + "x" * 79 + "…",
    ),
    "a patch": (
        "apply_patch",
        {"input": "*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n*** End Patch"},
        TEXT,
        "apply_patch a.py and 1 more, 1 line, <n> characters]",
    ),
    "an agent": (
        "Task",
        {"description": "find the bug", "prompt": "p"},
        f"task_id: 7\nThe bug is in total.\n{TEXT}\nIt adds one.",
        "Task find the bug, 4 lines, <n> characters]\nThe bug is in total.\n" + "x" * 79 + "…\nIt adds one.",
    ),
    "an unknown tool": (
        "get_order",
        {"ids": [1], "order": 17, "customer": "Ann", "note": "x"},
        f'{{"name": "Ann"}}{TEXT}',
        "get_order order=17, customer=Ann, 1 line, <n> characters]",
    ),
    "nothing known": ("", {}, f"{TEXT}\n\n", f"tool, 2 lines, <n> characters]\n{'x' * 79}…"),
}


@pytest.mark.parametrize("name", STUBS)
def test_stub(package: ModuleType, name: str) -> None:
    tool, arguments, output, expected = STUBS[name]
    policy = dataclasses.replace(ALL, keep_errors="none")
    messages = session(step(0, name=tool, output=output, **arguments), step(1))
    pruned = package.prune_tool_outputs(messages, policy=policy, counter=by_length(package))
    assert pruned.messages[2]["content"] == f"[Tool output pruned: {expected.replace('<n>', str(len(output)))}"
