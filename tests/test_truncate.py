"""Truncated outputs: what a preview keeps, what its line says, and limits of every kind; outputs that share a room."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import ctxfast
from ctxfast import (
    BudgetError,
    MessageTypeError,
    OutputStore,
    TokenCounter,
    TruncatedResult,
    fit_tool_results,
    truncate_tool_output,
)

LENGTH = TokenCounter.from_callable(len, message_overhead=0)  # a token is a character
GAP = re.compile(
    r"\[Tool output truncated: (?:([\d,]+) lines?, )?([\d,]+) bytes? omitted, (?:saved as (\S+?)|not saved)(\. .+)?\]"
)
NOT_KEPT = "not saved. The rest was not kept: ask for less at a time]"
FAMILY = "👨‍👩‍👧‍👦"
CLUSTERS = ["ก", "กี่", "ที่", FAMILY, "🇹🇭", "é", "汉", "한", "x", " ", "\n", "\r\n"]


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    return OutputStore(tmp_path / "outputs")


def files(store: OutputStore) -> list[str]:
    directory = Path(store.directory)
    return sorted(entry.name for entry in directory.iterdir()) if directory.is_dir() else []


def lines_of(text: str) -> int:
    """As the first design counts them, which is the most that anybody would."""
    return len(text.split("\n"))


def bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


# ------------------------------------------------------------------------------------------ what is short enough


def test_a_short_output_is_the_same_and_nothing_is_saved(store: OutputStore) -> None:
    texts: list[str] = ["", "\n", "a", "x\n" * 2_000, "x" * 51_200, "ab\r\n" * 100, "a\x00b", "\ud800"]
    for text in texts:
        result = truncate_tool_output(text, store=store)
        assert result.preview is text
        assert (result.was_truncated, result.full_path, result.hint, result.kept) == (False, None, "", "all")
        assert (result.total_lines, result.total_bytes) == (
            len(text.split("\n")) - text.endswith("\n") - (not text),
            bytes_of(text),
        )
    blocks: list[Any] = [{"type": "text", "text": "short"}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert truncate_tool_output(blocks, store=store).preview is blocks
    assert truncate_tool_output(b"bytes", store=store).preview == "bytes"
    assert files(store) == []


def test_limits_are_inclusive(store: OutputStore) -> None:
    text = "four\n" * 4
    assert truncate_tool_output(text, 4, 20, max_tokens=20, counter=LENGTH, store=store).preview is text
    for limits in ({"max_lines": 3}, {"max_bytes": 19}, {"max_tokens": 19, "counter": LENGTH}):
        result = truncate_tool_output(text, **limits, store=None)
        assert result.was_truncated


def test_no_limits() -> None:
    text = "x\n" * 100_000
    assert truncate_tool_output(text, None, None, store=None).preview is text


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, True])
@pytest.mark.parametrize("name", ["max_lines", "max_bytes", "max_tokens"])
def test_what_is_no_limit(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value, "store": None}
    with pytest.raises(BudgetError, match=name):
        truncate_tool_output("text", **options)
    with pytest.raises(TypeError, match=name):
        truncate_tool_output("text", **{**options, name: "many"})


@pytest.mark.parametrize("name", ["max_lines", "max_bytes", "max_tokens"])
def test_limits_of_zero(name: str, store: OutputStore) -> None:
    options: dict[str, Any] = {name: 0, "store": store}
    result: TruncatedResult[str] = truncate_tool_output("text\n", **options)
    assert (result.preview, result.kept, result.was_truncated) == ("", "none", True)
    assert result.full_path is not None
    assert Path(result.full_path).read_text() == "text\n"
    assert truncate_tool_output("", **options).was_truncated is False


@pytest.mark.parametrize("output", [None, 5, {"a": 1}, {1, 2}, object()])
def test_what_is_no_output(output: Any) -> None:
    with pytest.raises(TypeError, match="output: expected"):
        truncate_tool_output(output)


def test_wrong_arguments() -> None:
    wrong: Any = "middle"
    with pytest.raises(ValueError, match="keep"):
        truncate_tool_output("x", keep=wrong)
    with pytest.raises(ValueError, match="store"):
        truncate_tool_output("x", store=wrong)
    wrong = object()
    with pytest.raises(TypeError, match="store"):
        truncate_tool_output("x", store=wrong)
    with pytest.raises(TypeError, match="tool_name"):
        truncate_tool_output("x", tool_name=wrong)
    with pytest.raises(TypeError, match="counter"):
        truncate_tool_output("x", max_tokens=5, counter=wrong)


# --------------------------------------------------------------------------------------------- what a preview keeps

LOG = "".join(f"line {number}\n" for number in range(1, 1_001))


@pytest.mark.parametrize(
    ("tool", "keep", "head", "tail"),
    [
        ("bash", "auto", 20, 80),
        ("mcp__server__run_command", "auto", 20, 80),
        ("read_file", "auto", 100, 0),
        ("web_fetch", "auto", 50, 50),
        ("tool", "auto", 50, 50),
        ("bash", "head", 100, 0),
        ("read_file", "tail", 0, 100),
        ("read_file", "both", 50, 50),
        ("bash", "both", 20, 80),
    ],
)
def test_ends_by_the_kind_of_tool(tool: str, keep: Any, head: int, tail: int) -> None:
    result = truncate_tool_output(LOG, 101, tool_name=tool, keep=keep, store=None)
    lines = LOG.splitlines()
    gap = f"[Tool output truncated: 900 lines, {result.omitted_bytes:,} bytes omitted, {NOT_KEPT}"
    assert result.preview.split("\n") == [*lines[:head], gap, *lines[len(lines) - tail :]]
    assert result.kept == ("both" if head and tail else "head" if head else "tail")
    assert result.hint == "The rest was not kept: ask for less at a time"
    assert (result.omitted_lines, result.total_lines, result.total_bytes) == (900, 1_000, len(LOG))


def test_the_line_in_the_gap_is_fixed(store: OutputStore) -> None:
    result = truncate_tool_output(LOG, 11, tool_name="Bash", store=store)
    assert result.full_path == str(store.path(result.output_id or ""))
    assert result.hint == f"Full text: {result.full_path}"
    assert result.preview == (
        "line 1\nline 2\n"
        f"[Tool output truncated: 990 lines, 8,808 bytes omitted, saved as {result.output_id}. {result.hint}]\n"
        "line 993\nline 994\nline 995\nline 996\nline 997\nline 998\nline 999\nline 1000"
    )
    assert re.fullmatch("bash-[0-9a-f]{16}", result.output_id or "")
    assert truncate_tool_output(LOG, 11, tool_name="Bash", store=store) == result
    assert files(store) == [f"ctxfast-{result.output_id}.txt"]


def test_one_giant_line_is_cut_inside(store: OutputStore) -> None:
    text = f"HEAD{'x' * 20_000_000}TAIL"
    result = truncate_tool_output(text, store=store)
    assert result.preview.startswith("HEADxxx")
    assert result.preview.endswith("xxxTAIL")
    assert 51_000 < bytes_of(result.preview) <= 51_200
    assert result.omitted_lines == 0
    assert store.load(result.output_id or "") == text


def test_crlf_and_nul(store: OutputStore) -> None:
    text = "one\r\ntwo\x00\r\n" * 1_000
    result = truncate_tool_output(text, 11, tool_name="bash", store=store)
    head, gap, tail = re.split(r"\n(\[.*\])\n", result.preview)
    assert head == "one\r\ntwo\x00"
    assert tail == "one\r\ntwo\x00\r\n" * 3 + "one\r\ntwo\x00"
    assert GAP.fullmatch(gap)
    assert store.load_bytes(result.output_id or "") == text.encode()


def test_short_forms_of_the_line(store: OutputStore) -> None:
    """Where there is no room for the path, the id; where there is none for that, a plain piece."""
    text = "word " * 1_000
    long, short, none = (truncate_tool_output(text, max_bytes=limit, store=store) for limit in (1_000, 150, 60))
    assert long.hint in long.preview
    assert short.hint not in short.preview
    assert f"saved as {short.output_id}]" in short.preview
    assert none.preview == text[:60]
    assert none.hint == long.hint
    assert len({one.output_id for one in (long, short, none)}) == 1


def test_a_directory_that_cannot_be_shown(tmp_path: Path) -> None:
    store = OutputStore(tmp_path / "new\nline]")
    result = truncate_tool_output(LOG, 10, store=store)
    assert f"omitted, saved as {result.output_id}]" in result.preview
    assert result.full_path is not None
    assert Path(result.full_path).read_text() == LOG


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Lines of clusters, some of them many times over."""
    pieces = st.lists(st.sampled_from([*CLUSTERS, "\n", "\n", "word ", "\ud83d", "\r"]), max_size=60)
    return "".join(draw(pieces)) * draw(st.sampled_from([1, 1, 2, 30]))


LIMITS = st.none() | st.integers(0, 12) | st.integers(0, 400)


@given(
    texts(),
    LIMITS,
    LIMITS,
    LIMITS,
    st.sampled_from(["auto", "head", "tail", "both"]),
    st.sampled_from(["bash", "read", "x"]),
)
def test_every_preview(
    text: str,
    lines: int | None,
    size: int | None,
    tokens: int | None,
    keep: Literal["auto", "head", "tail", "both"],
    tool: str,
) -> None:
    result = truncate_tool_output(text, lines, size, tool, max_tokens=tokens, counter=LENGTH, keep=keep, store=None)
    preview = result.preview
    fits = [
        lines is None or len(text.split("\n")) - text.endswith("\n") - (not text) <= lines,
        size is None or bytes_of(text) <= size,
        tokens is None or len(text) <= tokens,
    ]
    assert result.was_truncated is (not all(fits))
    if all(fits):
        assert preview is text
        return
    assert preview == "" or lines is None or lines_of(preview) <= lines
    assert size is None or bytes_of(preview) <= size
    assert tokens is None or len(preview) <= tokens
    assert len(preview) < len(text)
    assert bytes_of(preview) < bytes_of(text)
    gap = GAP.search(preview)
    head, tail = (preview, "") if keep == "head" or (keep != "tail" and tool != "bash") else ("", preview)
    if gap is not None:
        head, tail = preview[: gap.start()].removesuffix("\n"), preview[gap.end() :].removeprefix("\n")
        assert int(gap[2].replace(",", "")) == result.omitted_bytes
        assert int((gap[1] or "0").replace(",", "")) == result.omitted_lines
    assert text.startswith(head)
    assert text.endswith((tail, tail + "\n", tail + "\r\n"))
    assert bytes_of(head) + bytes_of(tail) + result.omitted_bytes == bytes_of(text)
    again = truncate_tool_output(preview, lines, size, tool, max_tokens=tokens, counter=LENGTH, keep=keep, store=None)
    assert again.preview is preview


@given(
    st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=80), st.integers(0, 60), st.sampled_from(["head", "tail"])
)
def test_no_cut_inside_a_cluster(clusters: list[str], limit: int, keep: Any) -> None:
    text = "".join(clusters)
    result = truncate_tool_output(text, max_bytes=limit, keep=keep, store=None)
    assume(result.was_truncated and GAP.search(result.preview) is None)
    places = {sum(map(len, clusters[:count])) for count in range(len(clusters) + 1)}
    if keep == "head":
        assert len(result.preview) in places
    else:
        ends = [len(text.removesuffix(end)) for end in ("", "\n", "\r\n")]  # it ends without a line break
        starts = [end - len(result.preview) for end in ends if text[:end].endswith(result.preview)]
        assert places & set(starts)


@pytest.mark.parametrize("text", [FAMILY * 9_000, "ที่นี่" * 30_000, "🇹🇭" * 20_000, "e\u0301" * 60_000])
def test_thai_and_emoji_at_the_cut(text: str) -> None:
    cluster = next(one for one in (FAMILY, "ที่นี่", "🇹🇭", "e\u0301") if text.startswith(one))
    whole = ["ที่", "นี่"] if cluster == "ที่นี่" else [cluster]
    for limit in range(1_000, 1_040):
        preview = truncate_tool_output(text, max_bytes=limit, store=None).preview
        for part in re.split(r"\n\[.*\]\n", preview):
            assert re.fullmatch(f"(?:{'|'.join(whole)})+", part), limit
        assert limit - bytes_of(preview) < 3 * bytes_of(cluster) + 20


# ---------------------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize("limit", [0, 1, 10, 40, 100, 1_000, 5_000])
def test_limits_in_tokens(limit: int, store: OutputStore) -> None:
    counter = TokenCounter.for_model("gpt-4o")
    for text in (LOG * 10, "ภาษาไทย" * 5_000, "x" * 100_000, json.dumps({"key": list(range(9_000))})):
        result = truncate_tool_output(text, max_tokens=limit, counter=counter, store=store)
        assert counter.text(result.preview) <= limit
        if limit >= 100:
            assert counter.text(result.preview) >= 0.75 * limit
            assert GAP.search(result.preview)


def test_tokens_without_a_counter() -> None:
    preview = truncate_tool_output(LOG, max_tokens=200, store=None).preview
    assert 150 <= TokenCounter.default().text(preview) <= 200


# -------------------------------------------------------------------------------------------------------- cleaning


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\x1b[1;34mblue\x1b[0m text", "blue text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ end", "link end"),
        ("\x1b]0;title\x07shell$", "shell$"),
        ("\x1b]never ends\nnext", "never ends\nnext"),
        ("\x1b[2K\x1b[1Ggone\x1b[3", "gone"),
        ("\x1b(Bascii\x1b=\x1b>\x1b", "ascii"),
        ("a\x00b\x01c\x7fd\x9be", "abcd"),
        ("tab\tand\r\nbreaks stay\r", "tab\tand\r\nbreaks stay\r"),
        ("é ไทย 😀", "é ไทย 😀"),
        ("\x1bPdevice\x1b\\x", "x"),
    ],
)
def test_cleaning(text: str, clean: str, store: OutputStore) -> None:
    result = truncate_tool_output(text, clean=True, store=store)
    assert result.preview == clean
    assert result.was_truncated is False
    if text == clean:
        assert result.full_path is None
        assert result.preview is text
    else:
        assert store.load(result.output_id or "") == text


def test_a_long_output_is_cleaned_at_its_ends(store: OutputStore) -> None:
    line = "\x1b[31mred\x1b[0m and a lot of words \x00\n"
    text = line * 50_000
    result = truncate_tool_output(text, clean=True, tool_name="bash", store=store)
    head, gap, tail = re.split(r"\n(\[.*\])\n", result.preview)
    assert set(head.split("\n")) == set(tail.split("\n")) == {"red and a lot of words "}
    assert bytes_of(result.preview) > 40_000
    assert store.load(result.output_id or "") == text
    found = GAP.fullmatch(gap)
    assert found is not None
    kept = bytes_of(head) + bytes_of(tail)
    assert kept + int(found[2].replace(",", "")) == len(text)


def test_cleaning_takes_linear_time() -> None:
    for text in ("\x1b]" * 200_000, "\x1b[" + "0;" * 300_000, "\x1b]" + "x" * 500_000, "\x9b" * 500_000):
        truncate_tool_output(text, None, None, clean=True, store=None)


# ---------------------------------------------------------------------------------------------------- bytes, blocks


def test_bytes(store: OutputStore) -> None:
    assert truncate_tool_output("ไทย".encode(), store=store).preview == "ไทย"
    assert truncate_tool_output(bytearray(b"ab"), store=store).preview == "ab"
    assert files(store) == []
    broken = b"\xff\xfe\x00text"
    result = truncate_tool_output(broken, store=store)
    assert result.preview == "\ufffd\ufffd\x00text"
    assert store.load_bytes(result.output_id or "") == broken
    long = "ไทย\n".encode() * 100_000
    result = truncate_tool_output(long, tool_name="bash", store=store)
    assert bytes_of(result.preview) <= 51_200
    assert "\ufffd" not in result.preview
    assert (result.total_lines, result.total_bytes) == (100_000, len(long))
    assert store.load_bytes(result.output_id or "") == long


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def test_content_blocks(store: OutputStore) -> None:
    blocks: list[Any] = [
        {"type": "text", "text": LOG, "cache_control": {"type": "ephemeral"}},
        IMAGE,
        {"type": "text", "text": LOG},
    ]
    result = truncate_tool_output(blocks, 11, store=store)
    text, image = result.preview
    assert image is IMAGE
    assert text["cache_control"] == {"type": "ephemeral"}
    assert text["text"].startswith("line 1\n")
    assert text["text"].endswith("\nline 1000")
    assert lines_of(text["text"]) == 11
    assert json.loads(store.load(result.output_id or "")) == blocks
    assert blocks[0]["text"] is LOG


def test_blocks_that_are_no_text_go_only_if_they_must(store: OutputStore) -> None:
    counter = TokenCounter.from_callable(len, message_overhead=0, media_tokens=500)
    blocks: list[Any] = [{"type": "text", "text": LOG}, IMAGE]
    result = truncate_tool_output(blocks, max_tokens=800, counter=counter, store=store)
    assert counter.content(result.preview) <= 800
    assert result.preview[1] is IMAGE
    result = truncate_tool_output(blocks, max_tokens=499, counter=counter, store=store)
    assert len(result.preview) == 1
    assert "1 attachment left out. Full text: " in result.preview[0]["text"]
    only: list[Any] = [IMAGE, IMAGE]
    result = truncate_tool_output(only, max_tokens=499, counter=counter, store=store)
    assert result.was_truncated
    assert "2 attachments left out" in result.preview[0]["text"]
    assert json.loads(store.load(result.output_id or "")) == only


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(0, 60))
def test_many_parts_in_few_tokens(parts: list[str], limit: int) -> None:
    """A counter gives parts other tokens than their text as one."""
    counter = TokenCounter.default()
    blocks: list[Any] = [{"type": "text", "text": text} for text in parts]
    result = truncate_tool_output(blocks, max_tokens=limit, counter=counter, store=None)
    assert counter.content(result.preview) <= limit
    assert result.was_truncated is (counter.content(blocks) > limit) or result.was_truncated


def test_blocks_that_cannot_be_read(store: OutputStore) -> None:
    class Evil:
        type = "text"

        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("no")

    class Text(str):
        def __len__(self) -> int:
            raise RuntimeError("no")

        def __getitem__(self, key: Any) -> str:
            raise RuntimeError("no")

    with pytest.raises((MessageTypeError, RuntimeError)):
        truncate_tool_output([{"type": "text", "text": LOG}, {"type": "x", "data": b"bytes"}, Evil()], 10, store=store)
    evil = Text(LOG)
    assert truncate_tool_output(evil, 10, store=store).preview == truncate_tool_output(LOG, 10, store=store).preview
    short = Text("short")
    assert truncate_tool_output(short, store=store).preview is short


# ---------------------------------------------------------------------------------------------------------- stores


def test_without_a_store() -> None:
    result = truncate_tool_output(LOG, 10, store=None)
    assert (result.full_path, result.output_id, result.save_error) == (None, None, None)
    assert NOT_KEPT in result.preview


def test_the_default_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    result = truncate_tool_output(LOG, 10)
    assert result.full_path == str(tmp_path / "ctxfast" / "outputs" / f"ctxfast-{result.output_id}.txt")
    assert Path(result.full_path).read_text() == LOG


def test_a_path_as_store(tmp_path: Path) -> None:
    result = truncate_tool_output(LOG, 10, store=tmp_path / "x")
    assert (tmp_path / "x" / f"ctxfast-{result.output_id}.txt").read_text() == LOG


class Shelf:
    """A store of somebody else."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def save(self, text: str) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("shelf/1", None),
        (OSError("disk full"), "OSError"),
        (None, "the store gave no id"),
        (5, "the store gave no id"),
        ("", "the store gave no id"),
        ("a\nb", "the store gave no id"),
        ("x" * 201, "the store gave no id"),
    ],
)
def test_other_stores(answer: Any, error: str | None) -> None:
    result = truncate_tool_output(LOG, 10, store=Shelf(answer))
    assert (result.full_path, result.save_error) == (None, error)
    if error is None:
        assert (result.output_id, result.hint) == (answer, "Saved as shelf/1")
        assert "omitted, saved as shelf/1]" in result.preview
    else:
        assert result.output_id is None
        assert f"not saved. The rest could not be saved ({error}): ask for less at a time]" in result.preview


# ---------------------------------------------------------------------------------------------------------- memory


def test_memory_of_a_huge_output(store: OutputStore) -> None:
    """At most twice the limit in bytes, beside the output itself."""
    text = "2026-11-29 level=info msg=ok path=/srv/a/b/c\n" * 2_300_000
    assert len(text) > 100_000_000
    for one in ("bash", "read_file", "tool"):
        tracemalloc.start()
        result = truncate_tool_output(text, tool_name=one, store=store)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 2 * 51_200
        assert Path(result.full_path or "").stat().st_size == len(text)


def test_memory_that_python_does_not_know(store: OutputStore) -> None:
    """The same of the whole process, in which a copy of the output would be seen."""
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from ctxfast import OutputStore, truncate_tool_output\n"
        "most = lambda: int(re.search(r'VmHWM:\\s*([0-9]+) kB', Path('/proc/self/status').read_text())[1])\n"
        "text = sys.argv[2] * (100_000_000 // len(sys.argv[2].encode()))\n"
        "store = OutputStore(sys.argv[1])\n"
        "truncate_tool_output(text[:5_000_000], store=store)\n"
        "Path('/proc/self/clear_refs').write_text('5')\n"
        "before = most()\n"
        "assert truncate_tool_output(text, store=store).full_path\n"
        "print(most() - before)\n"
    )
    for unit in ("a line of a log\n", "ที่นี่มีข้อความ\n"):
        command = [sys.executable, "-c", code, store.directory, unit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "clear_refs" in done.stderr or "NoneType" in done.stderr:
            pytest.skip("a system that does not say how much memory was in use at most")
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 1_000  # KB: pages of the interpreter itself come and go


# -------------------------------------------------------------------------------------------------- sharing a room


def test_short_results_stay_and_long_ones_share(store: OutputStore) -> None:
    results = ["x" * 10_000, "short", "y" * 20_000, "z" * 900]
    fitted = fit_tool_results(results, 5_000, counter=LENGTH, store=store)
    sizes = [len(one.preview) for one in fitted]
    assert sum(sizes) <= 5_000
    assert [one.was_truncated for one in fitted] == [True, False, True, False]
    assert (5_000 - 905) / 2 * 0.9 <= sizes[0] <= (5_000 - 905) / 2 + 1
    assert 0.9 <= sizes[0] / sizes[2] <= 1.1
    assert [store.load(one.output_id) for one in fitted if one.output_id] == [results[0], results[2]]


def test_enough_room() -> None:
    results: list[Any] = ["a", b"b", [{"type": "text", "text": "c"}]]
    fitted = fit_tool_results(results, 1_000, counter=LENGTH, store=None)
    assert [one.preview for one in fitted] == ["a", "b", results[2]]
    assert fit_tool_results([], 0, store=None) == []


def test_each_by_its_kind() -> None:
    fitted = fit_tool_results([LOG, LOG], 2_000, tool_names=["read_file", "bash"], counter=LENGTH, store=None)
    assert [one.kept for one in fitted] == ["head", "both"]


def test_wrong_arguments_of_fit() -> None:
    wrong: Any = -1
    with pytest.raises(BudgetError, match="room"):
        fit_tool_results(["a"], wrong)
    with pytest.raises(ValueError, match="tool_names"):
        fit_tool_results(["a"], 5, tool_names=["x", "y"])
    wrong = "text"
    with pytest.raises(TypeError, match="results"):
        fit_tool_results(wrong, 5)


@given(st.lists(texts(), max_size=6), st.integers(0, 400))
def test_what_fits_a_room(results: list[str], room: int) -> None:
    fitted = fit_tool_results(results, room, counter=LENGTH, store=None)
    assert sum(len(one.preview) for one in fitted) <= room
    for one, text in zip(fitted, results, strict=True):
        assert one.preview is text or (one.was_truncated and len(one.preview) < len(text))
    if sum(map(len, results)) <= room:
        assert [one.preview for one in fitted] == results
    elif results:  # nobody is cut below an equal share while others have more
        least = room // len(results)
        assert all(not one.was_truncated for one, text in zip(fitted, results, strict=True) if len(text) <= least)


def test_the_first_designs_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxfast import compat

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = compat.TruncateToolOutput(LOG, 10, 10_000, "bash")
    assert isinstance(result, compat.TruncatedResult)
    assert result.kept == "head"
    assert compat.TruncatedResult is ctxfast.TruncatedResult
