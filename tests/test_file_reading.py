"""How files are read in parts: what a plan covers, what it costs, what it finds, and files that are none."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxfast import BudgetError, ContextBudget, FileChangedError, ReadLog, TokenCounter, plan_read
from ctxfast import text_files as text_files_module
from ctxfast.file_reading import ReadPlan
from ctxfast.outlines import Headings, json_entries, kind_of_file, outliner, record_keys
from ctxfast.text_files import Block, Index, TextFile, index_lines

ROOT = Path(__file__).parent.parent
COUNTER = TokenCounter.default()
BY_LENGTH = TokenCounter.from_callable(len)
WORDS = [
    "total",
    "of",
    "the",
    "items",
    "is",
    "not",
    "what",
    "the",
    "test",
    "expects:",
    "see",
    "order.py,",
    "line",
    "88",
    "(retries=3)",
]


def write(directory: Path, name: str, text: str | bytes) -> Path:
    path = directory / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def texts(plan: ReadPlan) -> list[str]:
    return list(plan.read())


def prose(lines: int, width: int = 12) -> str:
    return "".join(" ".join(WORDS[(line + word) % len(WORDS)] for word in range(width)) + "\n" for line in range(lines))


def kinds(plan: ReadPlan) -> list[str]:
    return [step.kind for step in plan.steps]


# ------------------------------------------------------------------------------------------------ goals


def test_structure_is_the_first_fifty_lines_and_an_outline(tmp_path: Path) -> None:
    text = "# Guide\n" + prose(60) + "## Use\n" + prose(10) + "### Deep\n" + prose(5) + "## End\nlast\n"
    plan = plan_read(write(tmp_path, "guide.md", text))
    assert kinds(plan) == ["head", "outline"]
    head, outline = texts(plan)
    assert head == "".join(text.splitlines(keepends=True)[:50])
    assert [line.strip() for line in outline.split("\n")] == [
        "Guide (1)",
        "Use (62-78)",
        "Deep (73-78)",
        "End (79)",
    ]
    assert plan.steps[0].tokens == COUNTER.text(head)
    assert plan.steps[1].tokens == COUNTER.text(outline)
    assert (plan.kind, plan.lines, plan.lines_estimated, plan.whole) == ("markdown", 80, False, COUNTER.text(text))


@pytest.mark.parametrize(
    ("name", "found"),
    [("Use", "Use"), ("## use", "Use"), ("de", "Deep"), ("nd", "End"), ("Guide", "Guide")],
)
def test_only_the_section(tmp_path: Path, name: str, found: str) -> None:
    parts = {
        "Guide": "# Guide\nhello\n\n",
        "Use": "## Use\nuse it\n",
        "Deep": "### Deep\ndown\n",
        "End": "## End\nlast\n",
    }
    path = write(tmp_path, "guide.md", "".join(parts.values()))
    whole = {"Guide": "".join(parts.values()), "Use": parts["Use"] + parts["Deep"], "Deep": parts["Deep"]}
    plan = plan_read(path, section=name)
    assert texts(plan) == [whole.get(found, parts[found])]
    assert plan.found
    assert plan.goal == "section"


def test_headings_in_code_and_front_matter_are_none(tmp_path: Path) -> None:
    text = (
        "---\ntitle: x\n---\n# One\n```sh\n# no\n~~~\n# no\n```\nTwo\n---\n| a |\n---\n#no\n####### no\nThree\n=====\n"
    )
    plan = plan_read(write(tmp_path, "a.md", text))
    assert [(entry.title, entry.line, entry.level) for entry in plan.outline] == [
        ("One", 4, 1),
        ("Two", 10, 2),
        ("Three", 16, 1),
    ]


@pytest.mark.parametrize(
    ("name", "text", "titles"),
    [
        ("a.py", "import x\nclass A(B):\n    def f(self):\n        pass\nasync def g():\n    defer = 1\n", "A f g"),
        (
            "a.rs",
            "use x;\npub(crate) struct A<T> {\n}\nimpl Show for A {\n    fn f(&self) {}\n}\nlet x = 1;\n",
            "A Show f",
        ),
        ("a.ts", "export default class A {\n}\nexport const f = (x) => x\nconst no = 1\ninterface I {}\n", "A f I"),
        ("a.go", "package x\nfunc (t *T) Row() int {\n}\ntype T struct {\n}\n", "Row T"),
    ],
)
def test_definitions(tmp_path: Path, name: str, text: str, titles: str) -> None:
    path = write(tmp_path, name, text)
    plan = plan_read(path)
    assert len(plan.outline) == len(titles.split())
    for title in titles.split():
        (part,) = texts(plan_read(path, section=title))
        assert title in part.split("\n")[0]


def test_a_definition_ends_where_the_next_one_begins(tmp_path: Path) -> None:
    text = (
        "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n\ndef h():\n    return 3\n"
    )
    path = write(tmp_path, "a.py", text)
    assert texts(plan_read(path, section="f")) == ["    def f(self):\n        return 1\n\n"]
    assert texts(plan_read(path, section="A")) == [text.partition("def h")[0]]
    assert texts(plan_read(path, section="h")) == ["def h():\n    return 3\n"]


def test_a_query_gives_the_lines_around(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(1, 201)]
    lines[99] = "here is the NEEDLE\n"
    lines[103] = "another needle\n"
    plan = plan_read(write(tmp_path, "log.txt", "".join(lines)), query="needle")
    (step,) = plan.steps
    assert (step.kind, step.offset, step.last) == ("match", 95, 124)
    assert texts(plan) == ["".join(lines[94:124])]
    assert "100, 104" in step.why
    pattern = plan_read(plan.path, query=re.compile(r"^line 1\d\d$", re.MULTILINE))
    assert pattern.steps[0].offset == 96


def test_what_is_not_found_gives_the_structure(tmp_path: Path) -> None:
    plan = plan_read(write(tmp_path, "a.md", "# A\nb\n"), section="Costs")
    assert not plan.found
    assert kinds(plan) == ["head", "outline"]
    assert "'Costs' was not found: this is the structure" in plan.notes


def test_a_section_that_is_no_heading_is_searched_for(tmp_path: Path) -> None:
    plan = plan_read(write(tmp_path, "a.md", "# A\nthe costs are high\n"), section="costs")
    assert plan.found
    assert kinds(plan) == ["match"]


def test_small_files_are_read_whole_and_large_ones_in_chunks(tmp_path: Path) -> None:
    small = plan_read(write(tmp_path, "a.txt", prose(500)), "all")
    assert kinds(small) == ["all"]
    large = plan_read(write(tmp_path, "b.txt", prose(1_201)), "all")
    assert [(step.kind, step.offset, step.limit) for step in large.steps] == [
        ("chunk", 1, 500),
        ("chunk", 501, 500),
        ("chunk", 1001, 201),
    ]
    assert large.peak < large.tokens
    assert "".join(texts(large)) == prose(1_201)


def test_the_tail(tmp_path: Path) -> None:
    plan = plan_read(write(tmp_path, "a.log", prose(300)), "tail")
    assert [(step.offset, step.limit) for step in plan.steps] == [(251, 50)]
    assert texts(plan) == ["".join(prose(300).splitlines(keepends=True)[-50:])]
    short = plan_read(plan.path, "tail", room=100)
    assert short.tokens <= 100
    assert prose(300).endswith(texts(short)[0])
    assert short.steps[0].last == 300
    line = plan_read(write(tmp_path, "long.log", "x\n" + "word " * 50_000), "tail", room=100)
    assert (line.steps[0].unit, line.fits) == ("bytes", True)
    assert "word " * 20 in texts(line)[0]


# ------------------------------------------------------------------------------------------------ JSON


def test_json_by_key(tmp_path: Path) -> None:
    data = {"name": "x", "cards": [{"id": 1}, {"id": 2}], "meta": {"cards": "no", "deep": {"a": ["}", '"']}}}
    for indent in (None, 2):
        path = write(tmp_path, "a.json", json.dumps(data, indent=indent))
        plan = plan_read(path)
        assert kinds(plan) == ["outline"]
        assert [entry.title for entry in plan.outline] == ["name", "cards", "meta"]
        for key, value in data.items():
            (part,) = texts(plan_read(path, section=key))
            assert json.loads("{" + part.strip().rstrip(",") + "}") == {key: value}
        unit = plan_read(path, section="meta").steps[0].unit
        assert unit == ("bytes" if indent is None else "lines")


def test_a_list_by_number(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", json.dumps([{"id": number} for number in range(9_000)]))
    plan = plan_read(path, section=8_500)
    assert texts(plan) == ['{"id": 8500}']
    assert "only the first 5,000 members are in the outline" in plan.notes


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.dictionaries(st.text('ab"\\{}[]:,é\n', max_size=4), values, max_size=6) | st.lists(values, max_size=6),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)
def test_members_are_those_of_a_parser(data: Any, indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps(data, indent=indent, ensure_ascii=ascii_only).encode()
    found = list(json_entries(raw))
    items = list(data.items()) if isinstance(data, dict) else [(None, value) for value in data]
    assert len(found) == len(items)
    for number, (entry, (key, value)) in enumerate(zip(found, items, strict=True)):
        part = raw[entry.start : entry.stop]
        if key is None:
            assert (json.loads(part), entry.key) == (value, str(number))
        else:
            assert json.loads(b"{" + part + b"}") == {key: value}
        assert entry.line == raw.count(b"\n", 0, entry.start) + 1
        assert entry.last == raw.count(b"\n", 0, entry.stop) + 1


@given(st.dictionaries(st.text(max_size=4), values, max_size=6), st.data())
def test_of_json_that_breaks_off_whole_members_are_found(data: dict[str, Any], draw: st.DataObject) -> None:
    raw = json.dumps(data).encode()
    cut = draw.draw(st.integers(0, len(raw)))
    for entry in list(json_entries(raw[:cut]))[:-1]:
        assert json.loads(b"{" + raw[entry.start : entry.stop] + b"}")


def test_json_lines_by_filter_and_tail(tmp_path: Path) -> None:
    records = [
        json.dumps({"id": number, "status": "failed" if number % 40 == 7 else "ok"}) + "\n" for number in range(200)
    ]
    path = write(tmp_path, "a.jsonl", "".join(records))
    structure = plan_read(path)
    assert texts(structure) == ["".join(records[:3]), "each record: id: number, status: text"]
    found = plan_read(path, query='"failed"')
    assert texts(found) == [records[number] for number in (7, 47, 87, 127, 167)]
    assert texts(plan_read(path, "tail")) == ["".join(records[-50:])]
    little = plan_read(path, query='"failed"', room=40)
    assert little.tokens <= 40
    assert any("of 5 matches are left out" in note for note in little.notes)


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("x", '{"a": 1}\n{"a": 2}\n', "jsonl"),
        ("x", '{"a": 1}', "json"),
        ("x", '[\n  {"a"', "json"),
        ("x", "[section]\nkey = 1\n", "text"),
        ("x.ini", "{% if %}", "text"),
        ("X.JSONL", "", "jsonl"),
        ("x.py", "{", "code"),
    ],
)
def test_kinds_of_files(name: str, head: str, kind: str) -> None:
    assert kind_of_file(name, head) == kind


def test_what_a_record_holds() -> None:
    assert record_keys('{"a": true, "b": {"c": 1}, "d": 1.5}') == "a: yes or no, b: object of 1, d: number"
    assert record_keys("[1, 2]") == "list of 2"
    assert record_keys("{broken") == ""


# ------------------------------------------------------------------------------------------------ laws

lines_of_text = st.lists(
    st.sampled_from(
        ["", "word", "# Heading", "日本語のテキスト", "naïve café 🙂", "x = {'a': [1, 2]}", "y" * 300, "\ttab\x0b"]
    )
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30),
    max_size=60,
)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])


@given(
    lines_of_text,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    encodings,
    st.integers(1, 20),
    st.none() | st.integers(0, 400),
    st.integers(1, 3_000),
    st.integers(16, 300),
)
@example(["0\x80"], "\n", False, "utf-8", 1, 1, 1, 16)  # the last character has two bytes
@example(["00\u0800"], "\n", False, "utf-8", 1, 2, 1, 16)  # half of the bytes is in a character
@example(["", "", "word", "00\U00010000\U00010000\U00010000\U00010000"], "\r\n", False, "utf-16", 1, None, 38, 16)
@example(["", "", "word", "# Heading"], "\r\n", False, "utf-16", 1, None, 37, 16)  # the limit is in a character
def test_chunks_cover_the_file_exactly(
    lines: list[str],
    end: str,
    closed: bool,
    encoding: str,
    chunk_lines: int,
    room: int | None,
    scan_bytes: int,
    block: int,
) -> None:
    text = end.join(lines) + (end if closed else "")
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files_module, "BLOCK", block)
        path = write(Path(directory), "a.txt", text.encode(encoding))
        plan = plan_read(path, "all", room=room, chunk_lines=chunk_lines, scan_bytes=scan_bytes, counter=BY_LENGTH)
        parts = texts(plan)
    if plan.kind == "binary":
        assert "\0" in text or text.startswith("\ufeff")
        return
    if not plan.steps:
        assert not text or (room is not None and room < 2)
        return
    assert "".join(parts) == text.encode(encoding).decode(encoding)
    begin = {"utf-8": 0, "utf-8-sig": 3, "utf-16": 2}[encoding]
    assert [step.start for step in plan.steps] == [begin, *(step.stop for step in plan.steps[:-1])]
    assert plan.steps[-1].stop == plan.size
    real = re.findall(r"[^\n]*\n|[^\n]+$", text)
    for step, part in zip(plan.steps, parts, strict=True):
        assert step.kind == "rest" or room is None or step.tokens == len(part) <= room
        if step.unit == "lines":
            assert part == "".join(real[step.offset - 1 : step.last])
    if not plan.lines_estimated:
        assert plan.lines == len(real)


@given(lines_of_text, st.integers(0, 300), st.sampled_from(["structure", "tail", "section", "query"]), st.booleans())
def test_nothing_has_more_than_the_room(lines: list[str], room: int, goal: str, is_markdown: bool) -> None:
    how: dict[str, Any] = {"section": {"section": "Heading"}, "query": {"query": "word"}}.get(goal, {"goal": goal})
    with tempfile.TemporaryDirectory() as directory:
        path = write(Path(directory), "a.md" if is_markdown else "a.txt", "\n".join(lines))
        plan = plan_read(path, room=room, counter=BY_LENGTH, **how)
        parts = texts(plan)
    assert plan.peak <= room
    assert plan.fits == bool(plan.steps)
    for step, part in zip(plan.steps, parts, strict=True):
        assert step.tokens == len(part)
    if goal == "query" and plan.steps and plan.found:
        assert any("word" in part.lower() for part in parts)


@given(st.binary(max_size=400), st.integers(1, 9), st.integers(1, 60), st.integers(16, 100))
def test_any_bytes_give_a_plan(raw: bytes, chunk_lines: int, room: int, block: int) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files_module, "BLOCK", block)
        path = write(Path(directory), "a.md", raw)
        for goal in ("structure", "all", "tail"):
            plan = plan_read(path, goal, chunk_lines=chunk_lines, room=room)
            assert len(texts(plan)) == len(plan.steps)
            if goal == "all" and plan.steps:
                assert [step.start for step in plan.steps[1:]] == [step.stop for step in plan.steps[:-1]]
                assert plan.steps[-1].stop == plan.size
            json.dumps(plan.as_dict())
            assert str(plan)
        plan_read(path, query="a", room=room)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["prose", "code", "log", "json", "thai", "base64"]),
            st.integers(1, 60),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 2**32),
)
def test_estimates_are_within_a_quarter(parts: list[tuple[str, int]], seed: int) -> None:
    text = "".join(passage(kind, size, seed + number) for number, (kind, size) in enumerate(parts))
    with tempfile.TemporaryDirectory() as directory:
        plan = plan_read(write(Path(directory), "a.txt", text), "all")
        true = COUNTER.text(text)
        assert abs(plan.whole - true) <= 0.25 * true
        for step, part in zip(plan.steps, plan.read(), strict=True):
            assert abs(step.tokens - COUNTER.text(part)) <= 0.25 * COUNTER.text(part) + 1


def passage(kind: str, size: int, seed: int) -> str:
    """Some kilobytes of text of a kind."""
    state = seed
    words = []
    for _ in range(size * 30):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        words.append(state >> 40)
    match kind:
        case "prose":
            return " ".join(WORDS[word % len(WORDS)] for word in words) + "\n"
        case "code":
            return "".join(f"    value_{word % 97} = total(items[{word % 13}], rate=0.{word % 10})\n" for word in words)
        case "log":
            return "".join(f"2026-03-{word % 28 + 1:02} INFO worker {word} done in {word % 900} ms\n" for word in words)
        case "json":
            return json.dumps([{"id": word, "ok": word % 2 == 0} for word in words]) + "\n"
        case "thai":
            return "ระบบจัดการบริบทของแบบจำลองภาษา\n" * size
    return "".join(f"{word:06x}" for word in words) + "\n"


# ------------------------------------------------------------------------------------------------ large files


def test_of_a_large_file_little_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = prose(1_000)
    path = write(tmp_path, "big.log", text * 400)
    read = 0
    real = os.read

    def counting(descriptor: int, size: int) -> bytes:
        nonlocal read
        raw = real(descriptor, size)
        read += len(raw)
        return raw

    monkeypatch.setattr(os, "read", counting)
    plan = plan_read(path, "structure", scan_bytes=1 << 20)
    assert plan.size > 24_000_000
    assert read < 3_000_000
    assert plan.lines_estimated
    assert plan.lines is not None
    assert abs(plan.lines - 400_000) < 100_000
    assert abs(plan.whole - 400 * COUNTER.text(text)) < 100 * COUNTER.text(text)
    assert any("looked at the first" in note for note in plan.notes)
    chunks = plan_read(path, "all", scan_bytes=1 << 20)
    assert kinds(chunks)[-1] == "rest"
    assert chunks.steps[-1].stop == plan.size
    assert (chunks.steps[-1].unit, chunks.steps[-1].limit) == ("lines", None)
    tail = plan_read(path, "tail", scan_bytes=1 << 20)
    assert tail.steps[0].unit == "bytes"  # nobody has counted the lines before it
    assert texts(tail) == ["".join(text.splitlines(keepends=True)[-50:])]


def test_a_sparse_gigabyte(tmp_path: Path) -> None:
    path = write(tmp_path, "big.json", '{"a": 1, "b": {"c": [2]}, "rest": "' + "x" * 10_000)
    os.truncate(path, 1 << 30)
    plan = plan_read(path)
    assert [entry.title for entry in plan.outline] == ["a", "b"]
    assert any("looked at the first" in note for note in plan.notes)
    assert texts(plan_read(path, section="b")) == ['"b": {"c": [2]}']


def test_one_giant_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "日本語 word " * 40_000)
    plan = plan_read(path, room=2_000)
    assert [(step.kind, step.unit) for step in plan.steps] == [("head", "bytes")]
    assert plan.tokens <= 2_000
    assert "\ufffd" not in texts(plan)[0]
    chunks = plan_read(path, "all", room=4_000)
    assert all(step.tokens <= 4_000 for step in chunks.steps if step.kind == "chunk")
    assert "".join(texts(chunks)) == "日本語 word " * 40_000
    found = plan_read(write(tmp_path, "b.txt", "日 " * 50_000 + "needle" + " 本" * 50_000), query="needle", room=3_000)
    assert "needle" in texts(found)[0]
    assert found.steps[0].unit == "bytes"


# ------------------------------------------------------------------------------------------------ files that are none


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        plan_read(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="directory"):
        plan_read(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="FIFO"):
        plan_read(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        monkey = os.path.relpath(tmp_path / "s")
        listener.bind(monkey if len(monkey) < 100 else f"/tmp/ctxfast-test-{os.getpid()}")
        name = listener.getsockname()
        with pytest.raises(OSError, match="socket"):
            plan_read(name)
        os.unlink(name)
    with pytest.raises(OSError, match="device"):
        plan_read("/dev/zero")
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        plan_read(tmp_path / "a")


def test_links_are_followed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "# A\n")
    (tmp_path / "link.md").symlink_to(path)
    assert texts(plan_read(tmp_path / "link.md", "all")) == ["# A\n"]


@pytest.mark.parametrize(
    "raw", [b"\x7fELF\x02\x01\x01" + b"\0" * 50, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "abc".encode("utf-32")]
)
def test_binary_files_have_no_steps(tmp_path: Path, raw: bytes) -> None:
    plan = plan_read(write(tmp_path, "a.bin", raw), "all")
    assert (plan.kind, plan.steps, plan.lines, plan.fits) == ("binary", (), None, False)
    assert "no text" in plan.notes[0]


def test_a_log_with_lost_blocks_is_text(tmp_path: Path) -> None:
    plan = plan_read(write(tmp_path, "a.log", b"first line\n" * 20 + b"\0" * 40 + b"\nlast line\n"), "all")
    assert plan.kind == "text"


@pytest.mark.parametrize("raw", [b"", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_empty_files(tmp_path: Path, raw: bytes) -> None:
    plan = plan_read(write(tmp_path, "a.md", raw), section="x")
    assert (plan.steps, plan.lines, plan.whole, plan.found) == ((), 0, 0, False)
    assert "empty" in plan.notes[0]


def test_invalid_text_is_named(tmp_path: Path) -> None:
    plan = plan_read(write(tmp_path, "a.txt", b"good\nb\xffd\n"), "all")
    assert "invalid UTF-8 from byte 6 on, read as U+FFFD" in plan.notes
    assert texts(plan) == ["good\nb\ufffdd\n"]
    own = plan_read(write(tmp_path, "b.txt", "\ufffd is fine\n"), "all")
    assert own.notes == ()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16(tmp_path: Path, encoding: str) -> None:
    text = "# Heading\r\n" + "plain text ਊ ਗ\r\n" * 40 + "## Costs\r\ntwo 🙂\r\n"
    path = write(tmp_path, "a.md", text.encode(encoding))
    assert texts(plan_read(path, "all")) == [text]
    assert texts(plan_read(path, section="Costs")) == ["## Costs\r\ntwo 🙂\r\n"]


def test_a_file_that_changes_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", prose(10))
    plan = plan_read(path, "all")
    write(tmp_path, "a.txt", prose(11))
    with pytest.raises(FileChangedError, match="has changed"):
        texts(plan)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        texts(plan)


def test_a_file_that_grows_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.log", prose(10))
    real: Callable[..., bytes] = TextFile.read
    grown = 0

    def growing(self: TextFile, start: int, stop: int) -> bytes:
        nonlocal grown
        if grown < times:
            grown += 1
            with path.open("a") as file:
                file.write("one more line\n")
        return real(self, start, stop)

    monkeypatch.setattr(TextFile, "read", growing)
    times = 1
    once = plan_read(path, "all")
    assert once.lines == 11  # the second look is the one that counts
    assert once.notes == ()
    times = 10**6
    always = plan_read(path, "all")
    assert "the file is being changed while it is looked at" in always.notes


def test_a_file_that_shrinks_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.log", prose(3_000))
    real: Callable[..., bytes] = TextFile.read
    calls = 0

    def shrinking(self: TextFile, start: int, stop: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 3:
            os.truncate(path, 5_000)
        return real(self, start, stop)

    monkeypatch.setattr(TextFile, "read", shrinking)
    plan = plan_read(path, "all")
    assert plan.size == 5_000
    assert "".join(texts(plan)) == prose(3_000)[:5_000]


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"goal": "some"}, ValueError, "goal"),
        ({"goal": "section"}, ValueError, "needs"),
        ({"goal": "all", "section": "x"}, ValueError, "section"),
        ({"section": "x", "query": "y"}, ValueError, "both"),
        ({"section": " "}, ValueError, "empty"),
        ({"query": ""}, ValueError, "empty"),
        ({"query": 5}, TypeError, "query"),
        ({"query": re.compile(b"x")}, TypeError, "bytes"),
        ({"section": True}, TypeError, "section"),
        ({"room": -1}, BudgetError, "room"),
        ({"room": True}, TypeError, "room"),
        ({"room": 5, "used": 3}, TypeError, "ContextBudget"),
        ({"room": ContextBudget(9_000)}, TypeError, "used"),
        ({"chunk_lines": 0}, ValueError, "chunk_lines"),
        ({"scan_bytes": 1.5}, TypeError, "scan_bytes"),
    ],
)
def test_settings_that_mean_nothing(settings: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        plan_read(ROOT / "README.md", **settings)


def test_the_room_of_a_budget(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", prose(900))
    budget = ContextBudget(20_000)
    plan = plan_read(path, "all", room=budget, used=budget.usable - 2_000 if budget.usable else 0)
    assert plan.room == 2_000
    assert all(step.tokens <= 2_000 for step in plan.steps)
    assert {choice.goal: choice.fits for choice in plan.choices}["all"] is False
    assert plan_read(path, "all", room=ContextBudget(None), used=0).room is None
    full = plan_read(path, "all", room=0)
    assert (full.steps, full.fits) == ((), False)
    assert "nothing of it fits 0 tokens" in full.notes


@given(st.lists(st.text("ab\n", max_size=40), max_size=10), st.integers(1, 5), st.integers(16, 40))
def test_lines_are_found(parts: list[str], every: int, block: int) -> None:
    text = "".join(parts)
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files_module, "BLOCK", block)
        with TextFile(write(Path(directory), "a", text)) as file:
            *blocks, index = index_lines(file, every, 1 << 20)
            assert isinstance(index, Index)
            starts = [0, *(match.end() for match in re.finditer("\n", text))]
            starts = [start for start in starts if start < len(text)]
            assert index.lines == len(starts)
            assert [index.start_of(file, line) for line in range(1, len(starts) + 1)] == starts
            assert "".join(block.text for block in blocks if isinstance(block, Block)) == text


def test_outlines_do_not_depend_on_blocks() -> None:
    text = "# A\n```\n# no\n```\n## B\n" * 50
    whole, pieces = outliner("markdown", ""), outliner("markdown", "")
    assert isinstance(whole, Headings)
    assert isinstance(pieces, Headings)
    whole.feed(Block(1, 0, text.encode(), text, True))
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        pieces.feed(Block(number, 0, line.encode(), line, True))
    assert whole.entries() == pieces.entries()
    assert len(whole.entries()) == 100


# ------------------------------------------------------------------------------------------------ the log


def test_what_was_read_before_is_not_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", prose(900))
    log = ReadLog()
    plan = plan_read(path, "all", log=log)
    first = plan.steps[0]
    log.record(path, first.offset, first.last, summary="nothing but words")
    again = plan_read(path, "all", log=log)
    assert kinds(again) == ["reuse", "chunk"]
    assert texts(again)[0] == "nothing but words"
    assert again.steps[0].tokens == COUNTER.text("nothing but words")
    assert again.steps[1] == plan.steps[1]
    log.record(path, 501, summary="and more of them")
    assert kinds(plan_read(path, "all", log=log)) == ["reuse", "reuse"]
    assert kinds(plan_read(path, log=log)) == ["reuse"]
    assert kinds(plan_read(path, query="line", log=log))[0] == "reuse"


def test_a_summary_no_shorter_than_the_lines_is_not_used(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "short\n")
    log = ReadLog()
    log.record(path, summary="a long story about a short file " * 5)
    assert kinds(plan_read(path, "all", log=log)) == ["all"]


def test_without_a_summary_it_is_still_there(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", prose(20))
    log = ReadLog()
    log.record(path)
    plan = plan_read(path, "all", log=log)
    assert (kinds(plan), plan.tokens) == (["reuse"], 0)
    assert "read before, unchanged" in texts(plan)[0]


def test_changes_are_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "one\ntwo\nthree\n")
    log = ReadLog()
    log.record(path, 1, 2)
    log.record(path, 3)
    assert [(known.first, known.last) for known in log.unchanged(path)] == [(1, 2), (3, 3)]
    stamp = path.stat()
    write(tmp_path, "a.txt", "one\ntwo\nTHREE\n")  # the same size
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # and the same time
    assert [(known.first, known.last) for known in log.unchanged(path)] == [(1, 2)]
    write(tmp_path, "a.txt", "one\r\ntwo\r\nthree\r\nfour")  # other ends of lines, one line more
    assert log.covering(path, 1, 3)
    assert not log.covering(path, 1, 4)
    path.unlink()
    assert log.unchanged(path) == ()
    assert log.get(path) is not None
    log.forget(path)
    assert log.get(path) is None


def test_a_touched_file_is_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", prose(5))
    log = ReadLog()
    log.record(path)
    os.utime(path, ns=(1, 1))
    assert log.covering(path, 1, 5)


def test_the_log_is_plain_data(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", prose(5))
    log = ReadLog(str(tmp_path))
    log.record("a.txt", 2, 3, summary="two lines – one idea")
    assert ReadLog.from_dict(json.loads(json.dumps(log.to_dict()))) == log
    log.save(tmp_path / "log.json")
    assert ReadLog.load(tmp_path / "log.json") == log
    assert log.get(path) == log.get("a.txt")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "log.json"]
    for wrong in (
        {},
        {"version": 2},
        {"version": 1, "root": 3, "entries": []},
        {"version": 1, "root": "", "entries": [1]},
    ):
        with pytest.raises(ValueError, match="expected"):
            ReadLog.from_dict(wrong)
    with pytest.raises(ValueError, match="lines from 1"):
        log.record(path, 3, 2)


@given(lines_of_text.filter(bool), st.data())
def test_what_is_recorded_is_unchanged(lines: list[str], data: st.DataObject) -> None:
    lines = [line.replace("\n", " ").replace("\r", " ") for line in lines]
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    changed = data.draw(st.integers(1, len(lines)))
    with tempfile.TemporaryDirectory() as directory:
        path = write(Path(directory), "a.txt", "".join(f"{line}\n" for line in lines))
        log = ReadLog()
        log.record(path, first, last)
        assert log.covering(path, first, last)
        lines[changed - 1] += "!"
        write(Path(directory), "a.txt", "".join(f"{line}\n" for line in lines))
        assert bool(log.covering(path, first, last)) == (not first <= changed <= last)


def transcript(*rounds: tuple[str, dict[str, Any], str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number, (tool, arguments, output) in enumerate(rounds):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": str(number), "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": output})
    return messages


def numbered(lines: list[str], form: str, first: int = 1) -> str:
    return "\n".join(form.format(number) + line for number, line in enumerate(lines, first))


@pytest.mark.parametrize(
    ("tool", "form", "before", "behind"),
    [
        ("Read", "{:>6}→", "", "\n\n<system-reminder>\nbe careful\n</system-reminder>"),
        ("read", "{:05}| ", "<file>\n", "\n\n(End of file - total 4 lines)\n</file>"),
        ("read_file", "{:>6}\t", "", ""),
        ("read_file", "", "", ""),
    ],
)
def test_a_transcript_knows_what_was_read(tmp_path: Path, tool: str, form: str, before: str, behind: str) -> None:
    lines = ["def f():", "    return 1", "", "x = f()"]
    path = write(tmp_path, "a.py", "\n".join(lines) + "\n")
    output = before + numbered(lines, form) + behind
    log = ReadLog.from_messages(transcript((tool, {"file_path": "a.py"}, output)), root=tmp_path)
    plan = plan_read(path, "all", log=log)
    assert (kinds(plan), plan.tokens) == (["reuse"], 0)
    assert "messages[2]" in plan.steps[0].why
    write(tmp_path, "a.py", "\n".join([*lines[:-1], "x = f() + 1"]) + "\n")
    assert kinds(plan_read(path, "all", log=log)) == ["all"]


def test_parts_failures_edits_and_stubs_of_a_transcript(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 11)]
    path = write(tmp_path, "a.txt", "\n".join(lines) + "\n")
    name = str(path)
    part = ("Read", {"file_path": name, "offset": 3, "limit": 4}, numbered(lines[2:6], "{:>6}→", 3))
    shell = ("bash", {"command": f"sed -n '7,10p' {name}"}, "\n".join(lines[6:]))
    log = ReadLog.from_messages(transcript(part, shell))
    assert [(known.first, known.last) for known in log.unchanged(path)] == [(3, 6), (7, 10)]
    assert log.covering(path, 4, 9)
    assert not log.covering(path, 2, 9)
    edit = ("Edit", {"file_path": name, "old_string": "a", "new_string": "b"}, "done")
    failed_edit = (*edit[:2], "Error: String to replace not found")
    assert ReadLog.from_messages(transcript(part, edit)).get(path) is None
    assert ReadLog.from_messages(transcript(part, failed_edit)).get(path) is not None
    failed = (*part[:2], "Error: no such file")
    stub = (*part[:2], "[Tool output pruned: Read a.txt, 10 lines, 80 characters]")
    assert ReadLog.from_messages(transcript(failed, stub)).entries == {}


def test_a_log_of_a_real_session() -> None:
    from ctxfast.logs import load

    log = ReadLog.from_messages(load(ROOT / "examples" / "session.json").messages)
    assert log.entries
    assert all(not log.unchanged(path) for path in log.entries)  # these files are not here


def test_the_text_of_a_plan(tmp_path: Path) -> None:
    path = write(tmp_path, "a.md", "# A\n" + prose(600))
    plan = plan_read(path, "all", room=3_000)
    first, room, *rest = str(plan).split("\n")
    assert first.startswith(f"{path}: markdown, 601 lines, ")
    assert room == "room for 3,000 tokens"
    assert len([line for line in rest if line.startswith("  chunk")]) == len(plan.steps)
    assert any(line.startswith("otherwise: structure ~") for line in rest)
