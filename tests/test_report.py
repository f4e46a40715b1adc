"""The report on a conversation and the command line that prints it."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import strategies
from cases import calls_of, pairing, shared_directory, talk
from hypothesis import given
from hypothesis import strategies as st

import ctxfast
from ctxfast import TokenCounter, cli, report
from ctxfast.errors import BudgetError, MessageTypeError, MessageValueError
from ctxfast.logs import load
from ctxfast.report import Output, Pinned, Place, RoleUse, ToolUse, describe

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data"
SESSION = ROOT / "examples" / "session.json"
BY_LENGTH = TokenCounter.from_callable(len, message_overhead=0)

Message = dict[str, Any]


def call(call_id: object, name: str, arguments: Any) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*listed: Message) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(listed)}


def answer(call_id: object, content: str, **more: object) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


OPENAI: list[Message] = [
    {"role": "system", "content": "s" * 10},
    {"role": "user", "content": "u" * 20},
    calls(call("a", "read", '{"path":"x.py"}'), call("b", "bash", '{"command":"ls"}')),
    answer("b", "b" * 7),
    answer("a", "a" * 100),
    calls(call("a", "bash", '{"command":"pwd"}')),
    answer("a", "w" * 30),
    {"role": "assistant", "content": "done"},
]
ANTHROPIC: list[Message] = [
    {"role": "user", "content": "u" * 20},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x.py"}},
            {"type": "tool_use", "id": "b", "name": "bash", "input": {"command": "ls"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": "b" * 7},
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "a" * 100}]},
        ],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "go on"},
            {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "pwd"}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "w" * 30}]},
    {"role": "assistant", "content": "done"},
]
TOOLS = (ToolUse("read", 1, 15, 100, 100), ToolUse("bash", 2, 33, 37, 30))


def test_openai() -> None:
    found = describe(OPENAI, counter=BY_LENGTH)
    assert (found.messages, found.tokens) == (8, BY_LENGTH.messages(OPENAI))
    assert found.roles == (
        RoleUse("tool", 3, 137),
        RoleUse("assistant", 3, 64),
        RoleUse("user", 1, 20),
        RoleUse("system", 1, 10),
    )
    assert found.tools == TOOLS
    assert found.largest == (
        Output(4, "read", 100, "path=x.py"),
        Output(6, "bash", 30, "command=pwd"),
        Output(3, "bash", 7, "command=ls"),
    )
    assert found.tail is None


def test_anthropic() -> None:
    found = describe(ANTHROPIC, counter=BY_LENGTH)
    assert found.tools == TOOLS
    assert [(output.index, output.tokens) for output in found.largest] == [(2, 100), (4, 30), (2, 7)]
    assert {use.role: (use.messages, use.tokens) for use in found.roles} == {
        "user (results)": (2, 137),
        "user": (1, 20),
        "assistant": (3, 4 + 5 + len('{"path":"x.py"}' + '{"command":"ls"}' + '{"command":"pwd"}' + "readbashbash")),
    }


def test_cuts() -> None:
    found = describe(OPENAI).cuts
    assert (found.turns, found.steps, found.safe, found.indices) == (1, 3, 6, 9)
    assert (found.middle, found.middle_is_safe, found.found) == (Place(4, "tool", 0), False, Place(2, "assistant", 2))
    assert describe(OPENAI[:2]).cuts.middle == Place(1, "user", 0)


def test_tail() -> None:
    messages = talk("S U=3000 A[a] T[a]=9000 U2=10 A[b] T[b]=9000 A=20")
    found = describe(messages, counter=BY_LENGTH, window=20_000)
    tail = found.tail
    assert tail is not None
    assert (tail.window, tail.usable, tail.budget) == (20_000, 17_000, ctxfast.fresh_tail_budget(17_000))
    same = ctxfast.select_fresh_tail(messages, tail.budget, counter=BY_LENGTH)
    assert (tail.tokens, tail.start.index, tail.turns) == (same.tokens, same.start, same.turns)
    assert (tail.start, tail.messages) == (Place(7, "assistant", 0), 1)
    assert (tail.pinned, tail.split_turn, tail.over_budget) == ((Pinned(4, "x" * 10),), True, False)


def objects(value: Any) -> Any:
    """Messages as objects with attributes, as SDKs have them; arguments stay what they are."""
    if isinstance(value, list):
        return [objects(item) for item in value]
    if isinstance(value, dict):
        return SimpleNamespace(**{key: item if key == "input" else objects(item) for key, item in value.items()})
    return value


@pytest.mark.parametrize("messages", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_objects_are_read_as_dicts_are(messages: list[Message]) -> None:
    assert describe(objects(messages), window=9_000) == describe(messages, window=9_000)


def test_ids_repeat_and_are_missing() -> None:
    found = describe(
        [
            answer("x", "before any call"),
            calls(call("x", "one", "{}"), call("x", "two", "{}")),
            answer("x", "1"),
            answer("x", "22"),
            calls(call("x", "three", "{}")),
            calls(call("x", "four", "{}")),
            answer("x", "4444"),
            answer("x", "333"),
            calls(call(" ", "blank", "{}")),
            answer(None, "blanks"),
            {"role": "assistant", "content": "", "function_call": {"name": "old", "arguments": "[1]"}},
            {"role": "function", "name": "old", "content": "7777777"},
            {"role": "function", "name": "other", "content": "88888888"},
        ],
        counter=BY_LENGTH,
    )
    assert {use.tool: (use.calls, use.results) for use in found.tools} == {
        "one": (1, 1),
        "two": (1, 2),
        "three": (1, 3),
        "four": (1, 4),
        "blank": (1, 6),
        "old": (1, 7),
        "(no call)": (0, 15),
        "other": (0, 8),
    }


def test_tools_of_the_provider() -> None:
    found = describe(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
                    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "y"}]},
                ],
            }
        ]
    )
    assert [(use.tool, use.calls, use.results > 0) for use in found.tools] == [("web_search", 1, True)]


def test_calls_that_are_listed_twice_count_once() -> None:
    block = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    found = describe([{**calls(call("a", "read", "{}")), "content": [block]}])
    assert [(use.tool, use.calls) for use in found.tools] == [("read", 1)]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"path": "a b", "limit": 20, "all": true}', "path=a b limit=20 all=true"),
        ({"path": "a\nb"}, "path=a b"),
        ("*** Begin Patch\n*** Update", "*** Begin Patch *** Update"),
        ('{"cut": "of', '{"cut": "of'),
        ("[1]", "[1]"),
        ("", ""),
        (None, ""),
        ("{}", ""),
        ('{"text": "' + "x" * 99 + '"}', "text=xxxx…" + "x" * 50),
        ('{"path": "/home/ann/' + "deep/" * 9 + 'app.py", "limit": 5}', "path=/hom…eep/deep/deep/app.py limit=5"),
        ('{"command": "' + "ls -l " * 20 + '"}', "command=" + ("ls -l " * 9)[:51] + "…"),
        ("[" * 100_000, "[" * 59 + "…"),
        ("\x1b[31mred", " [31mred"),
    ],
)
def test_the_first_words_of_arguments(arguments: Any, shown: str) -> None:
    (output,) = describe([calls(call("a", "t", arguments)), answer("a", "x")]).largest
    assert output.arguments == shown


def test_the_five_largest_outputs() -> None:
    sizes = [30, 10, 50, 20, 60, 40]
    messages = [m for n in sizes for m in (calls(call("a", f"t{n}", "{}")), answer("a", "x" * n))]
    assert [output.tool for output in describe(messages).largest] == ["t60", "t50", "t40", "t30", "t20"]


def test_an_empty_list() -> None:
    found = describe([], window=128_000)
    assert (found.messages, found.tokens, found.tools, found.cuts.safe) == (0, 0, (), 1)
    assert found.cuts.middle == Place(0, None, 0)
    assert str(found).startswith("0 messages, about 0 tokens\n")


def test_what_cannot_be_read() -> None:
    with pytest.raises(MessageTypeError, match=r"messages\[1\]\.content"):
        describe([{"role": "user", "content": "x"}, {"role": "user", "content": 7}])
    with pytest.raises(MessageValueError, match=r"messages\[0\]"):
        describe([{"content": "x"}])
    with pytest.raises(MessageTypeError):
        describe([17])
    with pytest.raises(BudgetError):
        describe(OPENAI, window=0)


@given(strategies.conversations, st.integers(2, 10_000))
def test_any_conversation(messages: list[Any], window: int) -> None:
    found = describe(messages, window=window)
    assert found.tokens == ctxfast.count_tokens(messages)
    assert sum(use.tokens for use in found.roles) == sum(map(ctxfast.count_tokens, messages))
    assert found.messages == sum(use.messages for use in found.roles) == len(messages)
    assert json.loads(json.dumps(found.as_dict()))["messages"] == len(messages)
    assert all(line.isprintable() for line in str(found).split("\n"))


# -------------------------------------------------------------------------------------------------------- text

SESSION_REPORT = """\
159 messages, about 42,107 tokens
---------------------------------
role          messages     tokens    share
tool                93     31,019    75.9%
assistant           58      8,593    21.0%
user                 7        733     1.8%
system               1        535     1.3%

tool             calls  arguments   results   largest    share
read_file           21        227    20,406     2,201    50.5%
bash                24        745     8,757     2,626    23.2%
edit_file           43      5,868       973        29    16.7%
web_fetch            2         34       614       587     1.6%
grep                 2         36       178       118     0.5%
glob                 1          6        91        91     0.2%

The largest tool outputs
------------------------
tool           message     tokens  arguments
bash               112      2,626  command=tail -n 60 var/tidemark.log
read_file          115      2,201  path=src/tidemark/store.py
read_file           51      2,090  path=src/tidemark/store.py
read_file           27      1,822  path=src/tidemark/store.py
read_file          130      1,718  path=src/tidemark/cli.py

What a provider would refuse
----------------------------
message  code                        what is wrong
     61  result_out_of_order         the result with id "call_zaRpseRt3oq0zyt7YSsvrmtb" does not…

What pruning old tool outputs frees
-----------------------------------
before                42,107 tokens
now                   nothing (prune_threshold)
reason                   outputs      saved
edited                         9      8,608
aged                           7      7,456
covered                        5      5,960
error                          2        945

The largest reads that are out of date
--------------------------------------
tool           message     tokens  why      what
read_file          115      2,197  edited   src/tidemark/store.py, 184 lines, 8,112 characters
read_file           51      2,086  covered  src/tidemark/store.py, 172 lines, 7,645 characters
read_file           27      1,818  covered  src/tidemark/store.py, 148 lines, 6,621 characters
read_file           35      1,527  edited   src/tidemark/api.py, 114 lines, 5,334 characters
read_file           36      1,373  covered  src/tidemark/cli.py, 106 lines, 4,655 characters

Where it can be cut
-------------------
turns                 6
steps                 58
safe cuts             66 of 160 indices (41%)
cut in the middle     79 (tool): NOT safe, it parts a call from its result
find_safe_cut         77 (assistant, 2 calls)

The fresh tail, if 108,800 tokens are usable
--------------------------------------------
budget                8,000 tokens
tokens                7,608
starts at             119 (assistant, 1 call) of 159
turns                 3
starts inside a turn  yes
pinned                110 'スヌーズ機能、さっそく使っています。ありがとうございます。一つ気になる点があります。タグ一覧の画面では「潮汐」が12件…'
word for word         the last 40 messages"""  # noqa: E501


def test_the_report_on_the_bundled_session() -> None:
    """The one fault is meant: a user speaks while a tool runs."""
    assert str(describe(load(SESSION).messages, window=128_000)) == SESSION_REPORT


def test_long_names_are_clipped_and_columns_stay_aligned() -> None:
    name = "mcp__" + "server" * 10
    text = str(describe([calls(call("a", name, "{}")), answer("a", "x"), {"role": "r" * 20, "content": ""}]))
    assert f"{name[:38]}… " in text
    tables = [table.split("\n") for table in text.split("\n\n")]
    assert len({len(line) for line in tables[0][2:]}) == 1
    assert len({len(line) for line in tables[1]}) == 1


# ------------------------------------------------------------------------------------------------ command line


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The command line's exit code, output and errors."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    return (code, *capsys.readouterr())


def test_report_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "report", SESSION)
    assert (code, err) == (0, "")
    assert out == f"{SESSION} (openai)\n\n{SESSION_REPORT}\n"


def test_report_for_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    """Its tokens, and its window unless another is given."""
    code, out, _ = run(capsys, "report", SESSION, "--model", "claude-opus-4-7", "--json")
    described = json.loads(out)["report"]
    model = ctxfast.model_info("claude-opus-4-7")
    expected = describe(
        load(SESSION).messages, counter=ctxfast.TokenCounter.for_model(model), window=model.context_window
    )
    assert (code, described) == (0, json.loads(json.dumps(expected.as_dict())))
    assert described["tokens"] > 1.5 * describe(load(SESSION).messages).tokens
    _, other, _ = run(capsys, "report", SESSION, "--model", "claude-opus-4-7", "--window", "50000")
    assert "if 42,500 tokens are usable" in other


def test_report_for_a_model_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "report", SESSION, "--model", "claude-opos-4-7")
    assert (code, out) == (2, "")
    assert err.startswith("ctxfast: model: 'claude-opos-4-7' is not in the table; nearest: claude-opus-4")


def test_facts_about_the_file_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "report", DATA / "chat.jsonl")
    assert out.split("\n")[:5] == [
        f"{DATA / 'chat.jsonl'} (openai)",
        "damaged: line 5: a record breaks off: Expecting ',' delimiter; line 6: 8 NUL characters; "
        "line 8: a record breaks off: Unterminated string starting at",
        "several records in one line, all read: line 5",
        "skipped, no messages: 1 role _usage",
        "",
    ]
    _, out, _ = run(capsys, "report", DATA / "request.json")
    assert out.split("\n")[1] == "not in the list: system prompt 3 tokens, tools 24 tokens"


def test_a_compacted_session(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "report", DATA / "claude_code.jsonl")
    assert "compacted once: 4 of 13 messages are still sent; --all shows all\n" in out
    assert "\n4 messages, about" in out
    _, out, _ = run(capsys, "report", DATA / "claude_code.jsonl", "--all")
    assert "compacted once, before message 9 of 13\n" in out
    assert "\n13 messages, about" in out


def test_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "report", DATA / "claude_code.jsonl", "--json", "--window", "32_000")
    found = json.loads(out)
    assert code == 0
    assert found["form"] == "claude-code"
    assert (found["messages_in_file"], found["compactions"], found["skipped"]["API error"]) == (13, [9], 1)
    assert found["report"]["messages"] == 4
    assert found["report"]["tail"]["window"] == 32_000
    found = json.loads(run(capsys, "report", DATA / "chat.jsonl", "--json")[1])
    assert found["damaged"][1] == {"line": 6, "problem": "8 NUL characters"}
    assert found["glued"] == [5]


def test_index_and_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "report", DATA / "requests.jsonl", "--index", "1")[0] == 0
    code, out, err = run(capsys, "report", DATA / "requests.jsonl")
    assert (code, out) == (2, "")
    assert err.startswith("ctxfast: expected an index that says which conversation to read, got 2 conversations")
    assert err.count("\n") == 1
    assert run(capsys, "report", DATA / "chat.jsonl", "--format", "claude-code")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["look"],
        ["report"],
        ["report", SESSION, "--window", "0"],
        ["report", SESSION, "--window", "many"],
        ["report", SESSION, "--window", "-5"],
        ["report", SESSION, "--index", "x"],
        ["report", SESSION, "--format", "x"],
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: Sequence[object]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "error: " in err


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"text",
        b"{}",
        b'[{"role": "user", "content": 7}]',
        b'{"messages": [{"role": "robot\\n"}]}',
        b"\xff\x00",
    ],
)
def test_a_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "log"
    if content is not None:
        file.write_bytes(content)
    code, out, err = run(capsys, "report", file)
    assert (code, out) == (2, "")
    assert err.startswith("ctxfast: ")
    assert err.count("\n") == 1


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version")[:2] == (0, f"ctxfast {ctxfast.__version__}\n")
    assert run(capsys, "report", "--help")[0] == 0


def python(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, timeout=60, **more)


def test_a_closed_pipe_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = python("-m", "ctxfast", "report", SESSION, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = python("-m", "ctxfast", "report", SESSION, stdout=full)
    assert (done.returncode, done.stderr) == (2, "ctxfast: cannot write: No space left on device\n")


def test_a_terminal_that_knows_only_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = python("-m", "ctxfast", "report", SESSION, stdout=subprocess.PIPE, env=environment)
    assert done.returncode == 0
    assert "12\\u4ef6\\u2026'" in done.stdout


def test_the_demo_prints_the_report_and_times() -> None:
    done = python(ROOT / "examples" / "demo.py", stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(SESSION_REPORT)
    assert "\nselect_fresh_tail " in done.stdout


def test_docstrings() -> None:
    assert not doctest.testmod(report).failed


# ------------------------------------------------------------------------------------------------ real sessions


def real_files() -> list[Path]:
    directory = shared_directory()
    return [] if directory is None else sorted((directory / "transcripts" / "claude-code").glob("*"))


@pytest.mark.parametrize("file", real_files(), ids=lambda file: file.name)
def test_real_sessions(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    log = load(file)
    found = describe(log.history, window=128_000)
    assert found.tokens == ctxfast.count_tokens(log.history)
    assert "(no name)" not in {use.tool for use in found.tools}
    assert sum(use.calls for use in found.tools) == sum(len(calls_of(message)) for message in log.history)
    assert ("(no call)" in {use.tool for use in found.tools}) == bool(pairing(log.history).orphans)
    for arguments in ([], ["--all"], ["--json"], ["--window", "8000"]):
        code, out, err = run(capsys, "report", file, *arguments)
        assert (code, err) == (0, "")
        assert all(line.isprintable() for line in out.split("\n"))
