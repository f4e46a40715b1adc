"""Hypothesis strategies for the sessions of agents, with tools of every kind, and for the ways to prune them.

Sessions are built from steps in every form and then, now and then, broken by the edits of `strategies`. Names of tools,
arguments and outputs come from small tables that meet every rule: paths repeat, so that reads are covered and files
edited; outputs name exit codes; commands read files; ids collide.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from strategies import (
    MISSING,
    Message,
    Pair,
    additive_counters,
    assistant_messages,
    edited,
    edits,
    joined,
    mostly_missing,
    present,
    same,
    system_messages,
    user_messages,
    words,
    words_of,
)

from ctxfast import CachePrices, TokenCounter, reference
from ctxfast.policy import TOOL_KINDS, PrunePolicy

ToolArguments = Message | str  # fields, or a text that is no JSON
T = TypeVar("T")

ALL_AT_ONCE = PrunePolicy(
    protected_steps=1,
    protected_tokens=0,
    prune_threshold=0,
    batch="all",
    min_saved=0,
    keep_errors="none",
    keep_tools=(),
    keep_paths=(),
)
"""Replaces whatever the model has seen and a stub makes shorter."""


def often(*weighted: tuple[int, SearchStrategy[T]]) -> SearchStrategy[T]:
    """One of some strategies, so often each (`one_of` does not see that one is named twice)."""
    names = [number for number, (weight, _) in enumerate(weighted) for _ in range(weight)]
    return st.sampled_from(names).flatmap(lambda number: weighted[number][1])


PATHS = (
    *["a.py"] * 6,
    "src/b.md",
    "é.txt",
    "ไทย.rs",
    "docs/x-decision.md",
    'quo"te.py',
    "back\\slash.py",
    "😀",
    "\ud800",
)
LINE_ARGUMENTS: tuple[Message, ...] = (
    *({}, {}, {}, {"offset": 1, "limit": 10}, {"offset": 3, "limit": 5}, {"offset": "5", "limit": "3"}),
    *({"limit": 10}, {"offset": 0, "limit": 0}, {"offset": -3}, {"offset": None, "limit": 3}, {"offset": 10**9}),
    *({"offset": 2.0}, {"offset": True}, {"offset": "12345678901"}, {"limit": 10**40}, {"offset": 999_999_999}),
    *({"start_line": 1, "end_line": 20}, {"start_line": 5}, {"end_line": 8}, {"start_line": 4, "end_line": -1}),
    *({"view_range": [1, 10]}, {"view_range": [5, -1]}, {"view_range": [1]}, {"view_range": "1-5"}),
    *({"view_range": (2, 9)}, {"view_range": [None, 4]}, {"view_range": [[1], {}]}),
)
COMMANDS: tuple[Any, ...] = (
    *(
        "make test",
        "make  lint\nmake test",
        "ls -l",
        "cat {} | wc -l",
        "sed -n '1,2p {}",
        "head {}",
        "cat -x",
        "",
        "cat",
    ),
    *("cat {}", "cat -n '{}'", ' nl -ba "{}" ', "sed -n '3,7p' {}", "sed -n 3,7p {}", "head -n 10 {}", "head -5 {}"),
    *("sed -n '1,9999999999p' {}", "head -n 0 {}", "cat\t{}\v", "cat {} && rm {}", "echo '<tool_call>'", "\x1b[31m{}"),
    *(["bash", "-lc", "cat {}"], ["cat", "{}"], ["sh", "-c", "ls"], ["ls", 5], [], ["\ud800"], "\ud83d{}"),
)
PATCHES = (
    "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch",
    "*** Begin Patch\r\n*** Add File: {}\r\n+x\r\n*** Delete File: a.py\r\n",
    *("*** Update File: \n", "no patch", "*** Update File: {}\n*** Update File: {}\n"),
)


def about(value: Any, path: str) -> Any:
    """A command or a patch that is about a path."""
    return [about(item, path) for item in value] if isinstance(value, list) else str(value).replace("{}", path)


def named(name: str, **fields: Any) -> tuple[str, ToolArguments]:
    return name, present(**fields)


paths = st.sampled_from(PATHS)
path_keys = st.sampled_from(["path", "path", "file_path", "filePath", "target_file", "filename"])
reads: SearchStrategy[tuple[str, ToolArguments]] = st.builds(
    lambda name, key, path, lines: (name, {key: path, **lines}),
    st.sampled_from(["read_file", "read_file", "Read", "view", "mcp__fs__read"]),
    path_keys,
    paths,
    st.sampled_from(LINE_ARGUMENTS),
)
edits_of_files: SearchStrategy[tuple[str, ToolArguments]] = st.builds(
    lambda name, key, path, more: (name, {key: path, **more}),
    st.sampled_from(["edit_file", "Write", "MultiEdit", "str_replace_editor"]),
    path_keys,
    paths,
    st.sampled_from([{}, {"old": "a", "new": "b"}, {"command": "str_replace"}]),
)
patches: SearchStrategy[tuple[str, ToolArguments]] = st.builds(
    lambda key, patch, path: ("apply_patch", about(patch, path) if key is None else {key: about(patch, path)}),
    st.sampled_from([None, "input", "patch", "patchText", "other"]),
    st.sampled_from(PATCHES),
    paths,
)
commands: SearchStrategy[tuple[str, ToolArguments]] = st.builds(
    lambda name, key, command, path: (name, {key: about(command, path)}),
    st.sampled_from(["bash", "bash", "exec", "run_terminal_cmd", "python"]),
    st.sampled_from(["command", "command", "cmd"]),
    st.sampled_from(COMMANDS),
    paths,
)
others: SearchStrategy[tuple[str, ToolArguments]] = st.one_of(
    st.builds(named, st.sampled_from(["grep", "Search"]), pattern=words, path=st.one_of(paths, st.just(MISSING))),
    st.builds(named, st.sampled_from(["glob", "ls", "find_files"]), pattern=st.sampled_from(["*.py", MISSING])),
    st.builds(named, st.just("web_fetch"), url=st.sampled_from(["https://x.org/a", MISSING]), query=mostly_missing),
    st.builds(named, st.sampled_from(["Task", "spawn_agent"]), description=words),
    st.builds(named, st.just("str_replace_editor"), command=st.just("view"), path=paths),
    st.builds(
        named, st.sampled_from(["weird", "", "<tool_call>", "x" * 60, "ไทย", "\ud800", "my_adr"]), path=mostly_missing
    ),
)
tool_uses: SearchStrategy[tuple[str, ToolArguments]] = often(
    (8, reads), (3, edits_of_files), (1, patches), (4, commands), (3, others)
)
"""Names of tools, and what they are called with."""

LINES = (
    *(
        "plain text",
        "",
        "  ",
        "x = 1  # ไทย",
        "😀 ok",
        "déjà vu",
        "\ud800 alone",
        "\x1b[31mred\x1b[0m",
        "a\tb\r",
        "\u2028\x85",
    ),
    *(
        "def f():",
        "class X:",
        "   12\tdef g(x):",
        "00001| class Z",
        "12\u2192fn main() {",
        "3: pub mod x",
        "  def inner():",
    ),
    *(
        "# Title",
        "###### Six",
        "####### Seven",
        "#none",
        "Error: bad",
        "FAILED (failures=1)",
        "fatal: no",
        "a.py:3:x = 1",
    ),
    *(
        "a.py:7:y",
        "b.py:1:z",
        ":5:",
        "https://x.org:80/",
        '{"name": "x"}',
        "<tool_call>",
        "[tool_use: x]",
        "```",
        "<invoke",
    ),
    *(
        "exit code 1",
        "exit status 0",
        "exited after 30 seconds",
        "z" * 90,
        "y" * 300,
        "Traceback (most recent call last):",
    ),
)
EDGES = (
    *[""] * 24,
    *("\n", "\n\n", "exit code: 0", "\nexit code: 0", "\nexit code: 1", "Exit code 2\n", "exit 3", "\nEXIT STATUS = 1"),
    *(
        "\nProcess exited with code -9",
        "<exit_code>127</exit_code>",
        "exit: -5x",
        "exit code 1234567890",
        "\ud800",
        "\nerror",
    ),
)
STUBS_OF_OTHERS = (
    "[Tool output pruned: read, 5 lines, 200 characters]",
    "[Old tool result content cleared]",
    "[gone]",
    "[Tool output pruned" + "!" * 500,
)
long_outputs: SearchStrategy[str] = st.builds(
    lambda begin, lines, count, end: begin + "\n".join(lines * count) + end,
    st.sampled_from(EDGES),
    st.lists(st.sampled_from(LINES), min_size=1, max_size=4),
    st.sampled_from([1, 10, 20, 40, 40, 100]),
    st.sampled_from(EDGES),
)
output_texts: SearchStrategy[str] = often((9, long_outputs), (1, st.sampled_from(["", "ok", *STUBS_OF_OTHERS])))
"""What tools answer."""


@dataclass(frozen=True)
class Use:
    """A call of a tool and what came of it."""

    tool: tuple[str, ToolArguments]
    text: str
    call_id: Any  # "#": one that no other call has
    shape: str  # of the output's content
    fault: str
    json: str  # how the arguments are written


SHAPES = (*["text"] * 12, "part", "parts", "bare", "cached", "image", "images", "nothing", "empty")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
uses: SearchStrategy[Use] = st.builds(
    Use,
    tool_uses,
    output_texts,
    often((3, st.just("#")), (1, st.sampled_from(["#", "a", "b", "", None, MISSING, "\ud800", "é"]))),
    st.sampled_from(SHAPES),
    st.sampled_from(["", "", "", "", "", "is_error", "status", "no error", "truthy"]),
    st.sampled_from(["plain", "plain", "plain", "ascii", "object", "broken", "none"]),
)


def output_content(use: Use) -> Any:
    """The content that holds an output."""
    part = {"type": "text", "text": use.text}
    return {
        "text": use.text,
        "part": [part],
        "parts": [part, {"type": "text", "text": "more"}, {"type": "input_text", "text": use.text[:20]}],
        "bare": (use.text, "more"),
        "cached": [{**part, "cache_control": {"type": "ephemeral"}}, {"type": "refusal", "refusal": "no"}],
        "image": [IMAGE, part],
        "images": [IMAGE, IMAGE],
        "nothing": None,
        "empty": [],
    }[use.shape]


def written_arguments(use: Use) -> Any:
    """Arguments in OpenAI's form."""
    arguments = use.tool[1]
    if use.json == "none":
        return MISSING
    if isinstance(arguments, str) or use.json == "object":
        return arguments
    text = json.dumps(arguments, ensure_ascii=use.json == "ascii")
    return text[:-1] if use.json == "broken" else text


def fault_fields(use: Use) -> Message:
    """How an output says that its tool has failed, or that it has not."""
    faults: dict[str, Message] = {
        "is_error": {"is_error": True},
        "status": {"status": "error"},
        "no error": {"is_error": False, "status": "success"},
        "truthy": {"is_error": 1, "status": "errors"},
    }
    return faults.get(use.fault, {})


def calls_of_step(form: str, uses: Sequence[Use], ids: Sequence[Any], says: Any) -> Message:
    """A response with calls."""
    if form == "anthropic":
        blocks = [
            present(
                type_="tool_use",
                id=call_id,
                name=use.tool[0],
                input=use.tool[1] if isinstance(use.tool[1], dict) else {"input": use.tool[1]},
            )
            for use, call_id in zip(uses, ids, strict=True)
        ]
        return {"role": "assistant", "content": [{"type": "text", "text": says or "t"}, *blocks]}
    functions = [present(name=use.tool[0], arguments=written_arguments(use)) for use in uses]
    if not uses:
        return {"role": "assistant", "content": says}
    if form == "legacy":
        return {"role": "assistant", "content": says, "function_call": functions[0]}
    calls = [
        {
            "openai": present(id=call_id, type_="function", function=function),
            "custom": present(
                id=call_id, type_="custom", custom={"name": use.tool[0], "input": function.get("arguments")}
            ),
            "flat": present(id=call_id, **function),
        }[form]
        for use, call_id, function in zip(uses, ids, functions, strict=True)
    ]
    return {"role": "assistant", "content": says, "tool_calls": calls}


def results_of_step(form: str, uses: Sequence[Use], ids: Sequence[Any]) -> list[Message]:
    """The outputs of its calls."""
    if form in ("anthropic", "one by one"):
        blocks = [
            present(type_="tool_result", tool_use_id=call_id, content=output_content(use), **fault_fields(use))
            for use, call_id in zip(uses, ids, strict=True)
        ]
        groups = [blocks] if form == "anthropic" else [[block] for block in blocks]
        return [{"role": "user", "content": group} for group in groups if group]
    return [
        present(
            role="function" if form == "legacy" else "tool",
            tool_call_id=MISSING if form == "legacy" else call_id,
            name=use.tool[0] if use.json == "ascii" else MISSING,
            content=output_content(use),
            **fault_fields(use),
        )
        for use, call_id in zip(uses, ids, strict=True)
    ]


@dataclass(frozen=True)
class Step:
    """A response and its results; `number` makes ids unique, `wait` is what a user says before the last result."""

    forms: tuple[str, str]
    uses: list[Use]
    turned: bool
    wait: str | None
    says: str | None
    number: int = 0

    def messages(self) -> list[Message]:
        """The messages of the step."""
        calls, results = self.forms
        uses = self.uses[:1] if calls == "legacy" else self.uses
        ids = [f"call_{self.number}_{at}" if use.call_id == "#" else use.call_id for at, use in enumerate(uses)]
        response = calls_of_step(calls, uses, ids, self.says)
        if self.turned:
            uses, ids = uses[::-1], ids[::-1]
        found = results_of_step(results, uses, ids)
        if self.wait is not None and found:
            last = found[-1]
            if last["role"] == "user":
                last["content"].append({"type": "text", "text": self.wait})
            else:
                found.insert(-1, {"role": "user", "content": self.wait})
        return [response, *found]


agent_steps: SearchStrategy[Step] = st.builds(
    Step,
    st.sampled_from(
        [
            *(("openai", "openai"), ("openai", "openai"), ("anthropic", "anthropic"), ("anthropic", "anthropic")),
            *(("legacy", "legacy"), ("custom", "openai"), ("flat", "openai"), ("openai", "one by one")),
        ]
    ),
    often((3, st.lists(uses, min_size=1, max_size=1)), (1, st.lists(uses, max_size=4))),
    st.booleans(),
    st.sampled_from([None, None, None, None, "wait", ""]),
    st.sampled_from([None, "I will look", "ไทย " * 20]),
)


def session(front: list[Message], steps: list[Step | Message]) -> list[Message]:
    """The messages of a session, each its own object."""
    parts = [
        dataclasses.replace(step, number=number).messages() if isinstance(step, Step) else [dict(step)]
        for number, step in enumerate(steps)
    ]
    return joined([dict(message) for message in front], parts)


anything: SearchStrategy[Step | Message] = often((6, agent_steps), (1, user_messages), (1, assistant_messages))
whole_sessions: SearchStrategy[list[Message]] = st.builds(
    session,
    st.lists(system_messages, max_size=1),
    st.one_of(st.lists(anything, max_size=5), st.lists(anything, min_size=4, max_size=12)),
)
broken_sessions: SearchStrategy[list[Message]] = st.builds(
    lambda messages, edits: [dict(message) for message in edited(messages, edits)], whole_sessions, edits
)
sessions: SearchStrategy[list[Message]] = often((3, whole_sessions), (1, broken_sessions))
"""What agents do: they read, edit, run and search, each in its form, with outputs of some size; no object twice."""

kinds_of_objects: SearchStrategy[tuple[str, ...] | None] = st.sampled_from(
    [None, None, None, (), ("reasoning_content", "text"), ("content", "id"), ("role",)]
)
"""What `as_object` takes, or `None` for dicts."""


def scaled(policy: PrunePolicy, scale: int) -> PrunePolicy:
    """A policy for sessions that are so many times shorter."""
    names = ("protected_tokens", "min_batch", "min_saved", "trigger_tokens", "prune_threshold")
    sizes = {name: getattr(policy, name) for name in names}
    changes: dict[str, Any] = {name: value // scale for name, value in sizes.items() if isinstance(value, int)}
    return dataclasses.replace(policy, **changes)


PRESETS: tuple[Callable[[], PrunePolicy], ...] = (
    *(PrunePolicy.default, PrunePolicy.careful, PrunePolicy.thrifty, PrunePolicy.seed),
    *(PrunePolicy.opencode, PrunePolicy.claude_code, PrunePolicy.anthropic_api),
)
own_presets: SearchStrategy[PrunePolicy] = st.builds(
    scaled, st.sampled_from(PRESETS).map(lambda make: make()), st.sampled_from([1, 100, 1000, 1000, 1000, 1000])
)
own_policies: SearchStrategy[PrunePolicy] = st.builds(
    PrunePolicy,
    protected_turns=st.sampled_from([0, 0, 0, 1, 2]),
    protected_steps=st.sampled_from([0, 1, 1, 2, 3]),
    protected_tokens=st.sampled_from([0, 0, 20, 100, 400, 10**15]),
    protected_results=st.sampled_from([0, 0, 0, 1, 3]),
    prune_threshold=st.sampled_from(["auto", "auto", 0, 1, 30, 300, 3000]),
    batch=st.sampled_from(["grid", "grid", "all"]),
    trigger_tokens=st.sampled_from([None, None, None, 0, 300]),
    min_batch=st.sampled_from([0, 0, 10, 100, 1000]),
    horizon_share=st.sampled_from([0, 0.2, 5.0]),
    min_saved=st.sampled_from([0, 0, 0, 1, 5, 20, 200]),
    superseded=st.sampled_from(["join", "join", "start", "off"]),
    keep_errors=st.sampled_from(["open", "open", "all", "none"]),
    keep_tools=st.sampled_from([(), (), (), (), ("agent", "list"), ("re*", "*i*e*"), ("*",), ("OTHER", "")]),
    keep_paths=st.sampled_from([(), (), (), ("*decision*",), ("*.py", "é*")]),
    only_tools=st.sampled_from([None, None, None, None, None, ("Read", "command"), ("read", "edit", "other"), ()]),
    tools=st.sampled_from([(), (), (("we*", "read"), ("", "search")), (("read_file", "edit"), ("Bash", "other"))]),
    stub=st.sampled_from([None, None, None, None, None, None, "[gone]", "ไทย" * 100, "\n" + "x" * 1000]),
)
presets: SearchStrategy[PrunePolicy] = st.builds(
    scaled, st.sampled_from(PRESETS).map(lambda make: make()), st.sampled_from([1, 100, 1000, 1000, 1000, 1000])
)
policies: SearchStrategy[PrunePolicy | None] = often((4, presets), (6, own_policies), (1, st.none()))
prices: SearchStrategy[CachePrices | None] = st.one_of(
    st.sampled_from([None, CachePrices(), CachePrices(cold=True), CachePrices(read=1, write=1)]),
    st.builds(
        CachePrices,
        read=st.sampled_from([0.1, 0.1, 0, 1.0]),
        write=st.sampled_from([1.25, 1.0, 0.0]),
        horizon=st.sampled_from([None, 0, 3, 1000.5]),
    ),
)
pruning_options: SearchStrategy[Message] = st.fixed_dictionaries(
    {
        "policy": policies,
        "protected_tokens": st.sampled_from([None, None, 0, 0, 50, 300]),
        "protected_steps": st.sampled_from([None, 0, 1, 1, 1, 2]),
        "prices": prices,
    },
    optional={
        "protected_turns": st.sampled_from([None, None, 0, 0, 0, 1, 2]),
        "prune_threshold": st.sampled_from([None, "auto", 0, 1, 50, 500]),
        "budget": st.sampled_from([None, 1, 100, 1000.5, 10**30]),
    },
)
"""Arguments of `prune_tool_outputs` with which something happens in a short session."""

plain_counters: SearchStrategy[Pair] = st.sampled_from(
    [
        (TokenCounter.default(), reference.default_counter()),
        (TokenCounter.picoclaw("4.0"), reference.picoclaw("4.0")),
        same(len),
        same(len, 0, 300),
        same(words_of),
    ]
)
pruning_counters: SearchStrategy[Pair] = often((3, plain_counters), (1, additive_counters))
"""Counters of which most give an output more tokens than its stub."""

WORDS_OF_NAMES = ("", "", "x", "mcp__fs__", "My", "ไทย", "_")
tool_names: SearchStrategy[str] = st.builds(
    lambda pattern, word, change: change(word.join(pattern.split("*"))),
    st.sampled_from([pattern for pattern, _ in TOOL_KINDS] + ["todo_write", "*"]),
    st.sampled_from(WORDS_OF_NAMES),
    st.sampled_from([str, str, str.upper, str.title]),
)
"""Names of tools of every kind that is known."""
