"""Session logs: damaged lines, chat messages in JSON and JSON Lines, sessions of Claude Code.

The logs in `data/` are made up. Real ones are read from the optional data, and compared with what the loaders there
find; those tests are skipped without.
"""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import strategies  # noqa: F401  (its profile says how many examples Hypothesis tries)
from cases import (
    blocks,
    calls_of,
    has_user_text,
    key_of,
    load_cases,
    pairing,
    results_of,
    shared_directory,
    transcript_loaders,
)
from hypothesis import given
from hypothesis import strategies as st

import ctxfast
from ctxfast import logs
from ctxfast.errors import CtxfastError
from ctxfast.logs import Damage, Log, LogError, load, read_jsonl
from ctxfast.logs.jsonl import read_lines
from ctxfast.logs.log import Source

DATA = Path(__file__).parent / "data"

Record = dict[str, Any]


@pytest.mark.parametrize("module", [module.name for module in pkgutil.iter_modules(logs.__path__)])
def test_docstrings(module: str) -> None:
    assert not doctest.testmod(importlib.import_module(f"ctxfast.logs.{module}")).failed


def test_importing_ctxfast_imports_none_of_it() -> None:
    code = "import sys, ctxfast; print([name for name in sys.modules if name in ('json', 'ctxfast.logs', 'argparse')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# -------------------------------------------------------------------------------------------------- JSON Lines


def problems(data: bytes) -> list[int]:
    """Numbers of the lines that are damaged."""
    return [damage.line for damage in read_jsonl(data)[1]]


@pytest.mark.parametrize(
    ("data", "records", "damaged"),
    [
        (b"", [], []),
        (b"\n\r\n  \n", [], []),
        (b'{"a":1}\r\n\r\n{"b":2}', [{"a": 1}, {"b": 2}], []),
        (b'\xef\xbb\xbf{"a":1}\n\xef\xbb\xbf{"b":2}\n', [{"a": 1}, {"b": 2}], []),
        (b'{"a":1}{"b":2}\t{"c":3}\n', [{"a": 1}, {"b": 2}, {"c": 3}], []),
        (b'[\n{"a":1},\n{"b":2},\n', [{"a": 1}, {"b": 2}], [1]),
        (b'{"a":1}\n{"b":', [{"a": 1}], [2]),
        (b'{"a":1}\n{"b":"x', [{"a": 1}], [2]),
        (b'\0\0{"a":1}\0\0{"b":2}\n\0\0\n', [{"a": 1}, {"b": 2}], [1, 1, 2]),
        (b'{"a":"x\0\0","b":2}\n{"c":3}', [{"c": 3}], [1]),
        (b'{"a":"tab\there"}', [{"a": "tab\there"}], []),
        (b'{"a":"cut{"b":2}{"c":3}', [{"b": 2}, {"c": 3}], [1]),
        (b'{"a":"cut { "b" :2}', [{"b": 2}], [1]),
        (b'{"a":{"n":1},"b":{"b":2}\n{"b":3}', [{"b": 2}, {"b": 3}], [1]),
        (b'{"a":{"n":1},"b":{"n":2}\n{"b":3}', [{"b": 3}], [1]),
        (b'{"a":[{"n":1},{"n":2},\n{"b":3}', [{"b": 3}], [1]),
        (b'{"a":"\\{"b":2}', [{"b": 2}], [1]),
        (b'{"a":"\\u12{"b":2}', [{"b": 2}], [1]),
        (b'st of a record"}]}{"b":2}', [{"b": 2}], [1]),
        (b'"}{"b":2}', [{"b": 2}], [1]),
        (b'12:00 started\n{"b":2}', [{"b": 2}], [1]),
        (b'12:00 {"b":2}', [{"b": 2}], [1]),
        (b'null\n[1]\n[{"a":1}]\n"x"\n17\n{"b":2}', [{"b": 2}], [1, 2, 3, 4, 5]),
        (b'{"a":' + b"9" * 5_000 + b'}\n{"b":2}', [{"b": 2}], [1]),
        (b'{"a":' * 5_000 + b'\n{"b":2}', [{"b": 2}], [1]),
        (b'{"a":"\xff\xfe"}\n{"b":2}', [{"a": "\ufffd\ufffd"}, {"b": 2}], [1]),
        (b'{"a":"\xff\n{"b":2}', [{"b": 2}], [1]),
        ('{"a":"ä"}\r\n{"b":2}'.encode("utf-16"), [{"a": "ä"}, {"b": 2}], []),
        (b'{"a":"\\ud800"}', [{"a": "\ud800"}], []),
        ('{"a":"x\u2028y"}'.encode(), [{"a": "x\u2028y"}], []),
    ],
)
def test_read_jsonl(data: bytes, records: list[Record], damaged: list[int]) -> None:
    assert read_jsonl(data)[0] == records
    assert problems(data) == damaged


def test_the_problem_is_named_with_its_line() -> None:
    _, damaged = read_jsonl(b'{"a":1}\n{"b":"cut{"c":2}\n\0\0\0\nnothing\n\xff{"d":1}')
    assert damaged == [
        Damage(2, "a record breaks off: Expecting ',' delimiter"),
        Damage(3, "3 NUL characters"),
        Damage(4, "no record, but 'nothing': Expecting value"),
        Damage(5, "no record, but '\ufffd{\"d\":1}': Expecting value"),
    ]
    assert damaged[0] == (2, "a record breaks off: Expecting ',' delimiter")


def test_glued_lines_are_numbered() -> None:
    lines = read_lines(b'{"a":1}\n{"b":2}{"c":3}\n{"d":"cut{"e":5}\n')
    assert (lines.glued, lines.numbers) == ([2], [1, 2, 2, 3])


@pytest.mark.parametrize(
    "case", [case for case in load_cases() if case["call"] == "read_jsonl"], ids=lambda c: c["file"]
)
def test_case(case: Record) -> None:
    data = json.loads(f'"{case["text_escaped"]}"').encode()
    expected = dict(item.rsplit(":", 1) for item in case["expected_property"])
    records, damaged = read_jsonl(data)
    assert {"records": str(len(records)), "reports:damaged": str(len(damaged))} == expected


HOSTILE = {
    "brace": b"{",
    "bracket": b"[",
    "brace and quote": b'{"',
    "nested": b'{"a":',
    "never closed": b'{"a":1,',
    "closed inside": b'{"a":{}x',
    "cut behind nested": b'{"a":[{"a":1},',
    "deep and cut": b'{"a":' * 900 + b"x",
    "quotes": b'"{',
    "escaped": b'{"a":"\\"{',
    "blanks": b"{ ",
    "not ASCII": '{"é→":'.encode(),
    "not UTF-8": b"\xff{",
    "NUL": b"\0{",
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_time_is_linear_on_one_hostile_line(unit: bytes) -> None:
    def seconds(size: int) -> float:
        data = unit * (size // len(unit)) + b'\n{"last":1}'
        start = time.perf_counter()
        assert read_jsonl(data)[0][-1] == {"last": 1}
        return time.perf_counter() - start

    assert seconds(4_000_000) < 3  # 0.1 to 0.5 s where this was written; quadratic: hours


TYPES = ("user", "assistant", "progress")
TEXTS = st.text(st.sampled_from('ab{}[]":,\\ \té→😀\ud800\0'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    """A record: all begin with the same key, as those of a log do."""
    return {"type": draw(st.sampled_from(TYPES)), **draw(st.dictionaries(TEXTS, VALUES, max_size=4))}


def dumps(record: Record, compact: bool) -> bytes:
    text = json.dumps(record, ensure_ascii=compact, separators=(",", ":") if compact else None)
    return text.encode("utf-8", "replace" if compact else "surrogatepass")


@st.composite
def damaged_files(draw: st.DrawFn) -> tuple[bytes, list[Record]]:
    """The bytes of a log with damage in it, and its undamaged records.

    No record has brackets without their partners on both sides of it in its line: that is how nested ones look.
    """
    compact = draw(st.booleans())
    data = dumps({"type": "first"}, compact) + b"\n"
    whole: list[Record] = [{"type": "first"}]
    for record in draw(st.lists(records(), max_size=8)):
        if data.endswith(b"\n"):
            other = dumps(draw(records()), compact)
            at = draw(st.integers(1, len(other) - 1))
            torn = [other[:at], other[at:], other[:at] + b"\n", other[at:] + b"\n"]
            noise = [b"\n\n", b"\xef\xbb\xbf", b"\0\0\0", b"\0\n", b"noise\n", b"\xc3\n", b" \t", b"[", b"1 "]
            data += draw(st.sampled_from([b"", *torn, *noise]))
        line = dumps(record, compact)
        whole.append(json.loads(line.decode("utf-8", "replace")))
        data += line + draw(st.sampled_from([b"\n", b"\r\n", b"", b"\0\n", b" garbage\n"]))
    if data.endswith(b"\n"):
        data += dumps(draw(records()), compact)[: draw(st.integers(0, 20))]
    return data, whole


def is_subsequence(some: list[Record], all_of_them: list[Record]) -> bool:
    rest = iter(all_of_them)
    return all(any(record == other for other in rest) for record in some)


@given(damaged_files())
def test_undamaged_records_are_all_read(file: tuple[bytes, list[Record]]) -> None:
    data, whole = file
    found, _ = read_jsonl(data)
    assert is_subsequence(whole, found)


@given(st.lists(records(), max_size=8), st.sampled_from([b"\n", b"\r\n", b"", b"\n\n", b",\n"]))
def test_nothing_is_damaged_in_whole_files(whole: list[Record], end: bytes) -> None:
    data = b"".join(dumps(record, compact=True) + end for record in whole)
    assert read_jsonl(data) == (whole, [])


@given(st.binary(max_size=60) | TEXTS.map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_can_be_read(data: bytes) -> None:
    for record in read_jsonl(data)[0]:
        assert isinstance(record, dict)


# ----------------------------------------------------------------------------------------------- finding the form


def write(path: Path, content: object) -> Path:
    """A file with JSON, JSON Lines (of a list of strings) or bytes."""
    file = path / "log"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(json.dumps(content), encoding="utf-8")
    return file


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    with pytest.raises(OSError, match=r".*"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "got", "line"),
    [
        (b"", "an empty file", None),
        (b"\n\0 ", "3 bytes without text", None),
        ("text", "a string", None),
        (17, "a number", None),
        ({}, "an empty object", None),
        ({"info": {}, "messages": [{"parts": []}]}, "an object with 'info', 'messages'", None),
        ([{"kwargs": {}}, 1], "a list of 2 that begins with an object with 'kwargs'", None),
        (b"# Notes\n\nNo log at all.\n", "no whole JSON (Expecting value)", 1),
        (b'{\n "messages": [\n  {\n   "role":', "no whole JSON (Expecting value)", 4),
        (b"[1]\n[2]\n", "no whole JSON (Extra data)", 2),
        (
            b'\n{"kind":1,"payload":{}}\n{"kind":2}\n',
            "2 records, the first of them an object with 'kind', 'payload'",
            2,
        ),
        (b"[" * 100_000, "no whole JSON (nested too deeply)", 1),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "no whole JSON (Expecting value)", 1),
    ],
)
def test_a_file_that_is_no_log(tmp_path: Path, content: object, got: str, line: int | None) -> None:
    with pytest.raises(LogError) as caught:
        load(write(tmp_path, content))
    error = caught.value
    assert isinstance(error, CtxfastError)
    assert (error.got, error.line, error.path) == (got, line, str(tmp_path / "log"))
    assert str(error) == f"expected {error.expected}, got {got}, in {error.path}{f' line {line}' if line else ''}"


def test_text_with_a_bit_of_json_in_it_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no whole JSON"):
        load(write(tmp_path, b"# A chapter\n" * 20 + b'{"role": "user", "content": "as an example"}\n'))


def test_the_form_can_be_given(tmp_path: Path) -> None:
    assert load(DATA / "chat.jsonl", "openai") == load(DATA / "chat.jsonl")
    with pytest.raises(LogError, match="expected a record with `type` user or assistant"):
        load(DATA / "chat.jsonl", "claude-code")
    with pytest.raises(LogError, match="expected messages with a `role`"):
        load(DATA / "claude_code.jsonl", "openai")
    with pytest.raises(ValueError, match="form: expected one of 'auto', 'claude-code', 'openai', got 'gpt'"):
        load(DATA / "chat.jsonl", "gpt")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------- chat messages

CHAT: list[Record] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello?", "name": "ann"},
    {"role": "assistant", "content": "Hello."},
]


@pytest.mark.parametrize(
    "content",
    [
        CHAT,
        {"model": "m", "messages": CHAT},
        {"conversation": CHAT},
        {"task_id": 1, "traj": CHAT},
        {"trajectory": [], "history": CHAT},
        {"url": "/v1/chat", "body": {"messages": CHAT}},
        {"request": {"messages": CHAT}, "response": {}},
        [{"messages": CHAT}],
        [CHAT],
        lines(*CHAT),
        lines({"messages": CHAT}),
        json.dumps(CHAT, indent=2).encode(),
        b"\xef\xbb\xbf" + json.dumps({"messages": CHAT}, indent=2).encode(),
        json.dumps({"messages": CHAT}, indent=2).encode("utf-16"),
    ],
)
def test_chat_messages(tmp_path: Path, content: object) -> None:
    log = load(write(tmp_path, content))
    assert log.messages == log.history == CHAT
    assert log == Log("openai", CHAT, CHAT)
    assert load(tmp_path / "log", index=0) == log


def test_a_request_body() -> None:
    log = load(DATA / "request.json")
    assert log.system == "Be brief."
    assert log.tools is not None
    assert [tool["function"]["name"] for tool in log.tools] == ["read"]
    assert [message["role"] for message in log.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert repr(log) == "Log('openai', 5 of 5 messages, damaged=0, skipped=0)"


def test_a_message_in_each_line_with_damage() -> None:
    log = load(DATA / "chat.jsonl")
    assert log.messages == load(DATA / "request.json").messages
    assert [damage.line for damage in log.damaged] == [5, 6, 8]
    assert log.skipped == {"role _usage": 1}
    assert log.glued == (5,)


def test_several_conversations_are_chosen_by_index(tmp_path: Path) -> None:
    path = DATA / "requests.jsonl"
    with pytest.raises(LogError, match=r"expected an index .* got 2 conversations, one in each record, in .*requests"):
        load(path)
    assert len(load(path, index=0).messages) == 1
    assert load(path, index=1).messages == load(DATA / "request.json").messages
    assert load(path, index=1).skipped == {"no role": 1}
    for index in (-1, 2, True, "1"):
        with pytest.raises(LogError, match="expected an index of a conversation, 0 to 1, got"):
            load(path, index=index)  # type: ignore[arg-type]
    with pytest.raises(LogError, match="one in each entry of the list"):
        load(write(tmp_path, [{"traj": CHAT}, {"traj": CHAT}]))
    with pytest.raises(LogError, match="expected an index of a conversation, 0, got 1"):
        load(DATA / "chat.jsonl", index=1)
    with pytest.raises(LogError, match="expected an index of a conversation, 0, got 1"):
        load(DATA / "claude_code.jsonl", index=1)


def test_what_is_no_message_is_counted(tmp_path: Path) -> None:
    entries = [*CHAT, {"role": "_checkpoint"}, {"role": "_checkpoint"}, {"type": "event"}, {"id": 1}, "text", None]
    log = load(write(tmp_path, {"messages": entries}))
    assert log.messages == CHAT
    assert log.skipped == {"role _checkpoint": 2, "type event": 1, "no role": 1, "a string": 1, "null": 1}


def test_an_empty_conversation(tmp_path: Path) -> None:
    assert load(write(tmp_path, [])).messages == []
    assert load(write(tmp_path, {"messages": []})).messages == []


def test_results_with_a_list_of_ids(tmp_path: Path) -> None:
    log = load(write(tmp_path, {"history": [CHAT[1], {"role": "tool", "content": "x", "tool_call_ids": ["c1"]}]}))
    assert log.messages[1]["tool_call_id"] == "c1"


# -------------------------------------------------------------------------------------------------- Claude Code


def user(content: object, **more: object) -> Record:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def assistant(message_id: str | None, *content: Record, **more: object) -> Record:
    return {"type": "assistant", "message": {"id": message_id, "role": "assistant", "content": list(content)}, **more}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def call(call_id: Any, name: str = "Read") -> Record:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def result(call_id: Any, words: str = "done") -> Record:
    return {"type": "tool_result", "tool_use_id": call_id, "content": words}


def short(messages: list[Record]) -> str:
    """Messages in a short notation: `U:text`, `A[a,b]:text`, `R[a,b]:text` for results with text behind them."""
    words = []
    for message in messages:
        ids = [key_of(block["id"]) for block in blocks(message, "tool_use")]
        answered = [key_of(block["tool_use_id"]) for block in blocks(message, "tool_result")]
        content = message["content"]
        said = content if isinstance(content, str) else "+".join(block["text"] for block in blocks(message, "text"))
        letter = "A" if message["role"] == "assistant" else "R" if answered else "U"
        words.append(
            letter + (f"[{','.join(ids + answered)}]" if ids or answered else "") + (f":{said}" if said else "")
        )
    return " ".join(words)


def claude(path: Path, *records: Record) -> Log:
    log = load(write(path, lines(*records)))
    assert log.form == "claude-code"
    return log


def test_a_session_with_everything() -> None:
    log = load(DATA / "claude_code.jsonl")
    assert log.compactions == (9,)
    assert log.history[9:] == log.messages
    assert [message["role"] for message in log.history] == [
        *("user", "assistant", "user", "user", "assistant", "user", "assistant", "user", "assistant"),
        *("user", "assistant", "user", "assistant"),
    ]
    assert [block["type"] for block in log.history[1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert log.history[1]["content"][0]["signature"] == "c2ln"
    assert results_of(log.history[2]) == ["toolu_1", "toolu_2"]
    assert log.history[3] == {"role": "user", "content": "Run the tests too."}
    assert [block["type"] for block in log.history[5]["content"]] == ["tool_result", "text"]
    assert log.messages[0]["content"].startswith("This session is being continued.")
    assert log.messages[1]["content"] == [text("Fixed: `total` subtracted one.")]  # preserved
    assert log.injected == (9,)
    assert (log.damaged, log.glued, log.system, log.tools) == ((), (), None, None)
    kinds = ["summary", "file-history-snapshot", "progress", "attachment/task_reminder", "sub-agent", "API error"]
    assert log.skipped == dict.fromkeys([*kinds, "repeated line", "system/turn_duration"], 1)
    assert pairing(log.history).orphans == []
    assert [index for index, _ in pairing(log.history).unanswered] == [12]


def test_stream_json() -> None:
    log = load(DATA / "stream.jsonl")
    assert short(log.messages) == "A[toolu_1]:Ich lese die Datei. R[toolu_1] A:Fertig."
    assert log.skipped == {"system/init": 1, "sub-agent": 1, "result/success": 1}


def test_lines_of_one_response_are_one_message(tmp_path: Path) -> None:
    log = claude(
        tmp_path,
        user("u"),
        assistant("m1", call("a")),
        user([result("a")]),
        assistant("m1", call("b"), text("t")),
        user([result("b")]),
        assistant("m2", text("v")),
    )
    assert short(log.messages) == "U:u A[a,b]:t R[a,b] A:v"


def test_results_stand_directly_behind_their_calls(tmp_path: Path) -> None:
    log = claude(
        tmp_path,
        assistant("m1", call("a"), call("b"), call("c")),
        user([result("b")]),
        user("wait"),
        user([result("a"), text("more")]),
        assistant("m2", call("d")),
        user([result("c")]),
        user([result("d")]),
    )
    assert short(log.messages) == "A[a,b,c] R[b,a,c] U:wait U:more A[d] R[d]"
    assert not pairing(log.messages).orphans


def test_what_the_client_adds_joins_the_message_before(tmp_path: Path) -> None:
    log = claude(
        tmp_path,
        user("caveat", isMeta=True),
        user("/command"),
        user("the skill", isMeta=True),
        assistant("m1", call("a")),
        user([result("a")]),
        user([text("a skill")], isMeta=True),
        user("thanks"),
    )
    assert short(log.messages) == "U:caveat U:/command+the skill A[a] R[a]:a skill U:thanks"
    assert log.injected == (0,)


def test_ids_of_responses_may_come_again(tmp_path: Path) -> None:
    log = claude(
        tmp_path,
        assistant("m", text("one")),
        user("u"),
        assistant("m", text("two")),
        assistant("m", text("three"), requestId="r"),
        assistant(None, text("four")),
        assistant(None, text("five")),
    )
    assert short(log.messages) == "A:one U:u A:two A:three A:four A:five"


def test_ids_of_calls_may_be_equal_or_missing(tmp_path: Path) -> None:
    log = claude(
        tmp_path,
        user([result("x")]),
        assistant("m1", call("x"), call("x")),
        user([result("x", "1")]),
        user([result("x", "2")]),
        assistant("m2", call("x"), call(None)),
        user([result("x", "3"), result(None), result("y"), result({}), result("x", "4")]),
    )
    assert short(log.messages) == "R[x] A[x,x] R[x,x] A[x,] R[x,,y,,x]"


def test_compactions(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}
    log = claude(
        tmp_path,
        *(user("u1"), assistant("m1", call("a")), boundary, user("s1", isCompactSummary=True)),
        *(assistant("m1", call("b")), user([result("a"), result("b")])),
        *(user("s2", isCompactSummary=True), user("u2"), boundary),
    )
    assert short(log.history) == "U:u1 A[a] U:s1 A[b] R[a,b] U:s2 U:u2"
    assert log.compactions == (2, 5, 7)
    assert short(log.messages) == "U:s2 U:u2"  # nothing was written after the last compaction
    assert log.injected == (2, 5)
    assert repr(log) == "Log('claude-code', 2 of 7 messages, damaged=0, skipped=0)"


def test_a_log_that_begins_with_a_compaction(tmp_path: Path) -> None:
    log = claude(tmp_path, user("s", isCompactSummary=True), user("u"))
    assert (log.compactions, log.messages == log.history) == ((0,), True)


@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedMessages": {"anchorUuid": "4", "uuids": ["2", "3", "lost", 7]}},
        {"preservedSegment": {"anchorUuid": "4", "headUuid": "2", "tailUuid": "3"}},
    ],
)
def test_preserved_messages_come_again_behind_the_summary(tmp_path: Path, metadata: Record) -> None:
    log = claude(
        tmp_path,
        *(user("u1", uuid="1"), assistant("m1", call("a"), uuid="2"), user([result("a")], uuid="3")),
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "compactMetadata": metadata},
        *(user("s", uuid="4", isCompactSummary=True), user("u2", uuid="5")),
    )
    assert short(log.history) == "U:u1 A[a] R[a] U:s A[a] R[a] U:u2"
    assert log.compactions == (3,)


def test_the_log_of_a_sub_agent(tmp_path: Path) -> None:
    log = claude(tmp_path, user("task", isSidechain=True), assistant("m", text("answer"), isSidechain=True))
    assert short(log.messages) == "U:task A:answer"
    log = claude(tmp_path, user("u"), user("task", isSidechain=True), user("task", parent_tool_use_id="a"))
    assert short(log.messages) == "U:u"
    assert log.skipped == {"sub-agent": 2}


def test_records_of_odd_shapes(tmp_path: Path) -> None:
    log = claude(
        tmp_path,
        *(user("u"), {"type": "user"}, user(""), user([]), user(17), assistant("m"), {}, {"type": 3}),
        *({"type": "assistant", "message": "x"}, {"type": "attachment", "attachment": 1}),
        *({"type": "attachment", "subtype": "queued_command"}, {"type": "system", "subtype": "compact_boundary"}),
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preservedSegment": {"headUuid": {}}}},
        user(["bare", {"type": "image"}]),
    )
    assert log.messages == [{"role": "user", "content": ["bare", {"type": "image"}]}]
    assert sum(log.skipped.values()) == 10


JSON = st.recursive(st.none() | st.integers() | st.sampled_from(["a", "b", "", "text"]), st.lists, max_leaves=3)
BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking"]) | JSON},
    optional={"id": JSON, "tool_use_id": JSON, "name": st.just("n"), "text": st.just("t"), "thinking": st.just("t")},
)
RECORDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "system", "attachment"])},
    optional={
        "subtype": st.sampled_from(["compact_boundary", "x"]) | JSON,
        "uuid": st.sampled_from(["a", "b", "c"]) | JSON,
        "message": JSON | st.fixed_dictionaries({"content": JSON | st.lists(BLOCKS | JSON)}, optional={"id": JSON}),
        "isMeta": st.booleans(),
        "isSidechain": st.booleans(),
        "isCompactSummary": st.booleans(),
        "isApiErrorMessage": st.booleans(),
        "attachment": st.fixed_dictionaries({"type": st.just("queued_command")}, optional={"prompt": JSON}),
        "compactMetadata": JSON
        | st.fixed_dictionaries(
            {"preservedMessages": st.fixed_dictionaries({"uuids": JSON, "anchorUuid": JSON}) | JSON}
        )
        | st.fixed_dictionaries(
            {"preservedSegment": st.fixed_dictionaries({"headUuid": JSON, "tailUuid": JSON, "anchorUuid": JSON})}
        ),
    },
)


@given(st.lists(RECORDS, max_size=10))
def test_no_record_is_too_odd(records: list[Record]) -> None:
    source = Source("log", None, read_lines(lines(*records)))
    try:
        log = logs.find(source, "auto", None)
    except LogError:
        return
    if log.form == "claude-code":
        assert all(message["role"] in ("user", "assistant") and message["content"] for message in log.history)
        assert log.messages == log.history[len(log.history) - len(log.messages) :]
        assert all(index <= len(log.history) for index in log.compactions)


# --------------------------------------------------------------------------------------------------- real sessions


def real_files(*forms: str) -> list[Path]:
    directory = shared_directory()
    if directory is None:
        return []
    return [file for form in forms for file in sorted((directory / "transcripts" / form).glob("*"))]


@pytest.mark.parametrize("file", real_files("claude-code", "claude-stream-json"), ids=lambda file: file.name)
def test_real_sessions_of_claude_code(file: Path) -> None:
    log = load(file)
    assert log.form == "claude-code"
    theirs = transcript_loaders().load(file, file.parent.name)[0]["messages"]
    if "sub-agent" not in file.name:  # the loader leaves all messages of sub-agents out, in their own logs too
        assert sum(len(calls_of(message)) for message in log.history) == sum(len(m["calls"]) for m in theirs)
        assert sum(len(results_of(message)) for message in log.history) == sum(m["role"] == "tool" for m in theirs)
        roles = [message["role"] for message in log.history]
        assert roles.count("assistant") == sum(message["role"] == "assistant" for message in theirs)
        assert len(log.compactions) == sum(message["role"] == "boundary" for message in theirs)
    assert log.messages

    unreadable = set()
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        try:
            json.loads(line or b"{}")
        except ValueError:
            unreadable.add(number)
    assert unreadable == {damage.line for damage in log.damaged} | set(log.glued)

    for messages in (log.messages, log.history):
        spans = ctxfast.atoms(messages)
        assert [start for start, _ in spans] + [len(messages)] == [0] + [stop for _, stop in spans]
        assert set(range(len(messages) + 1)) >= set(ctxfast.safe_cuts(messages))
        assert len(ctxfast.turn_starts(messages)) <= sum(map(has_user_text, messages))
    for index, message in enumerate(log.history):  # Anthropic's form: all results of a message directly behind it
        answers = results_of(log.history[index + 1]) if index + 1 < len(log.history) else []
        assert set(calls_of(message)) <= set(answers) or index + 1 == len(log.history) or not answers


def test_what_is_damaged_in_real_files(shared: Path) -> None:
    logs_of_files = {file.name: load(file) for file in real_files("claude-code")}
    assert {name: log.glued for name, log in logs_of_files.items() if log.glued} == {"37_995ebed6e4_2.jsonl": (128,)}
    assert not any(log.damaged for log in logs_of_files.values())  # the two records of that line are both whole


@pytest.mark.parametrize("file", real_files("claude-code", "codex-rollout", "pi"), ids=lambda file: file.name)
def test_real_records_survive_damage_around_them(file: Path) -> None:
    random_numbers = random.Random(file.name)
    raw = [line for line in file.read_bytes().split(b"\n") if line.strip()]
    whole = read_jsonl(b"\n".join(raw[:200]))[0]
    torn = []
    for line in raw[:200]:
        cut = random_numbers.choice(raw[:200])
        at = random_numbers.randrange(1, len(cut))
        torn.append(random_numbers.choice([b"", cut[:at], cut[at:], cut[:at] + b"\n", b"\0" * 9, b"\r\n"]) + line)
    found, _ = read_jsonl(b"\n".join(torn))
    assert is_subsequence(whole, found)


def test_real_chats(shared: Path) -> None:
    trajectories = shared / "transcripts" / "tau-bench" / "gpt-4o-airline.json"
    if not trajectories.exists():
        pytest.skip("no trajectories of tau-bench")
    with pytest.raises(LogError, match="got 40 conversations"):
        load(trajectories)
    theirs = transcript_loaders().load(trajectories, "tau-bench")
    for index, transcript in enumerate(theirs):
        log = load(trajectories, index=index)
        assert [message["role"] for message in log.messages] == [m["role"] for m in transcript["messages"]]
        assert pairing(log.messages).orphans == []
