"""What truncating costs: 100 MB against a plain write of the same bytes, what is short enough, 1,000 small outputs."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.timing import interleaved
from ctxfast import OutputStore, truncate_tool_output

SIZE = 100_000_000  # bytes
LIMIT = 3.0  # times a plain write of the same bytes: the gate


def huge() -> Iterator[tuple[str, str]]:
    """Name, text: of one, two and four bytes a character in memory."""
    yield "log", ("2026-11-29 level=info msg=ok path=/srv/a/b/c\n" * (SIZE // 45 + 1))[:SIZE]
    yield "one line", "x" * SIZE
    yield "Thai", "ที่นี่มีข้อความ\n" * (SIZE // 46)
    yield "emoji", "some words, then 👨‍👩‍👧 and more\n" * (SIZE // 46)


def fresh(directory: Path) -> Callable[[], Path]:
    """A path that is new in each round, in a directory without the earlier ones."""
    numbers = itertools.count()

    def make() -> Path:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return directory / str(next(numbers))

    return make


@pytest.mark.parametrize(("name", "text"), [pytest.param(name, text, id=name) for name, text in huge()])
def test_huge(tmp_path: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both write a new file in each round; the plain write of a text encodes it, as ours has to."""
    content = text.encode()
    new_file, new_store = fresh(tmp_path / "plain"), fresh(tmp_path / "ours")

    def plain() -> None:
        new_file().write_bytes(content)

    def plain_text() -> None:
        new_file().write_text(text, encoding="utf-8", newline="")

    def ours() -> None:
        truncate_tool_output(text, tool_name="bash", store=OutputStore(new_store()))

    store = OutputStore(tmp_path / "check")
    result = truncate_tool_output(text, tool_name="bash", store=store)
    assert store.load_bytes(result.output_id or "") == content
    assert len(result.preview.encode()) <= 51_200
    store.path(result.output_id or "").unlink()
    times = interleaved({"plain": plain, "plain_text": plain_text, "ours": ours}, seconds=0.5, cold=True)
    by_bytes, by_text = times.ratio("ours", "plain"), times.ratio("ours", "plain_text")
    milliseconds = {one: times[one] * 1_000 for one in ("ours", "plain", "plain_text")}
    with capsys.disabled():
        print(
            f"\n{name}: truncate {milliseconds['ours']:.0f} ms, write of the bytes {milliseconds['plain']:.0f} ms "
            f"(ratio {by_bytes:.1f}), write of the text {milliseconds['plain_text']:.0f} ms (ratio {by_text:.1f})"
        )
    assert by_text <= LIMIT
    assert by_bytes <= LIMIT or not text.isascii()  # the bytes that are written plainly were encoded before


def test_short(benchmark: BenchmarkFixture) -> None:
    benchmark.group = "truncate"
    text = "a line of a file\n" * 500
    assert truncate_tool_output(text, tool_name="read").preview is text
    benchmark(truncate_tool_output, text, tool_name="read")


def test_saved_before(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    benchmark.group = "truncate"
    store, text = OutputStore(tmp_path), "a line of a file\n" * 10_000
    result = truncate_tool_output(text, tool_name="bash", store=store)
    assert store.load(result.output_id or "") == text
    benchmark(truncate_tool_output, text, tool_name="bash", store=store)


def test_tokens(benchmark: BenchmarkFixture) -> None:
    benchmark.group = "truncate"
    counter, text = ctxfast.TokenCounter.for_model("gpt-5"), "a line of a file\n" * 10_000
    result = truncate_tool_output(text, max_tokens=2_000, counter=counter, store=None)
    assert 1_800 <= counter.text(result.preview) <= 2_000
    benchmark(truncate_tool_output, text, max_tokens=2_000, counter=counter, store=None)


def test_save(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Outputs of 10 KB, each a new file."""
    benchmark.group = "truncate"
    store, numbers = OutputStore(tmp_path), itertools.count()
    assert store.load(store.save("text") or "") == "text"
    benchmark(lambda: store.save(f"{next(numbers)} output\n" * 1_000))
    assert len(os.listdir(tmp_path)) == next(numbers) + 1
