"""Saved outputs: names, permissions, what stands in the way, full disks, many processes, sweeping."""

from __future__ import annotations

import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxfast import OutputError, OutputStore, truncate_tool_output
from ctxfast._core import output_hash

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")
TEXTS = [
    "",
    "\n",
    "plain",
    "a\r\nb\x00\x1b[0m",
    "ไทย 😀 é",
    "\ud83d lone \udc80",
    "é" * 100_000,
    "x" * 3_000_000,
    "汉" * 500_000,
]


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    return OutputStore(tmp_path / "outputs")


def names(store: OutputStore) -> list[str]:
    directory = Path(store.directory)
    return sorted(os.listdir(directory)) if directory.is_dir() else []


def saved(store: OutputStore, text: str | bytes, tool: str | None = None) -> str:
    output_id = store.save(text, tool)
    assert output_id is not None, store.put(text, tool)
    return output_id


# ------------------------------------------------------------------------------------------------- saving, loading


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_comes_back_as_it_was(store: OutputStore, text: str) -> None:
    output_id = saved(store, text)
    assert re.fullmatch("[0-9a-f]{16}", output_id)
    assert store.load(output_id) == text
    assert store.path(output_id).read_bytes() == text.encode("utf-8", "surrogatepass")
    assert saved(store, text) == output_id
    assert names(store) == [f"ctxfast-{output_id}.txt"]


@given(st.text(st.characters(codec=None), max_size=300) | st.binary(max_size=300))
def test_every_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str | bytes) -> None:
    store = OutputStore(tmp_path_factory.getbasetemp() / "every")
    output_id = saved(store, text)
    if isinstance(text, str):
        assert store.load(output_id) == text
        assert store.load_bytes(output_id) == text.encode("utf-8", "surrogatepass")
    else:
        assert store.load_bytes(output_id) == text


def test_bytes_that_are_no_text(store: OutputStore) -> None:
    output_id = saved(store, b"\xff\x00abc")
    assert store.load(output_id) == "\udcff\x00abc"
    assert store.load_bytes(output_id) == b"\xff\x00abc"
    wrong: Any = 5
    with pytest.raises(TypeError, match="text: expected str or bytes"):
        store.save(wrong)


def test_a_thousand_equal_outputs_are_one_file(store: OutputStore) -> None:
    ids = {saved(store, "same", "bash") for _ in range(1_000)}
    assert len(ids) == len(names(store)) == 1


TOOLS = [
    *("../../etc/cron.d/x", "/etc/passwd", "a\x00b", "A" * 300, "CON", "..", "a/b", "a_b", "ไทย/ไฟล์", "ไทย", "a b"),
    *("nul", "com1.txt", "-rf", "~", "*", "a\nb", "\ud800", "x" * 100_000, "ctxfast-", ".", "C:\\windows"),
]


def test_names_of_tools(store: OutputStore) -> None:
    ids = [saved(store, "same", tool) for tool in TOOLS]
    assert len(set(ids)) == len(TOOLS) == len(names(store))
    for output_id in ids:
        assert re.fullmatch("[a-z0-9_]{1,60}-[0-9a-f]{16}", output_id)
        assert store.path(output_id).resolve().parent == Path(store.directory).resolve()
        assert store.load(output_id) == "same"
    assert saved(store, "same", "Bash") == saved(store, "same", "bash")
    assert saved(store, "same", "") == saved(store, "same", None)


@pytest.mark.parametrize(
    "output_id", ["", "x", "../x", "a/../0123456789abcdef", "0123456789ABCDEF", "a\x00", "0" * 17, "/etc/passwd"]
)
def test_what_is_no_id(store: OutputStore, output_id: str) -> None:
    for ask in (store.path, store.load, store.load_bytes):
        with pytest.raises(OutputError, match="not an id of this store"):
            ask(output_id)


def test_an_output_that_is_not_there(store: OutputStore) -> None:
    with pytest.raises(LookupError, match="no saved output '0123456789abcdef': No such file"):
        store.load("0123456789abcdef")
    output_id = saved(store, "text")
    store.path(output_id).write_text("texT")
    with pytest.raises(OutputError, match="damaged"):
        store.load(output_id)


def test_what_a_store_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = OutputStore(tmp_path)
    assert store == OutputStore(str(tmp_path))
    assert hash(store) == hash(OutputStore(tmp_path))
    assert pickle.loads(pickle.dumps(store)) == copy.deepcopy(store) == store
    assert eval(repr(store)) == store
    with pytest.raises(AttributeError):
        store.directory = "x"  # type: ignore[misc]
    monkeypatch.chdir(tmp_path)
    relative = OutputStore("here")
    monkeypatch.chdir("/")
    assert relative.directory == str(tmp_path / "here")
    for options in ({"max_age_days": -1}, {"max_total_bytes": float("nan")}, {"max_age_days": float("inf")}):
        with pytest.raises(ValueError, match="expected 0 or more"):
            OutputStore(tmp_path, **options)
    wrong: Any = "7"
    with pytest.raises(TypeError, match="max_age_days"):
        OutputStore(tmp_path, wrong)
    wrong = b"bytes"
    with pytest.raises(TypeError, match="directory"):
        OutputStore(wrong)


def test_the_default_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert OutputStore.default().directory == str(tmp_path / ".cache" / "ctxfast" / "outputs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert OutputStore.default().directory == str(tmp_path / "cache" / "ctxfast" / "outputs")
    monkeypatch.setattr("sys.platform", "darwin")
    assert OutputStore.default().directory == str(tmp_path / "Library" / "Caches" / "ctxfast" / "outputs")


# ----------------------------------------------------------------------------------------------------- permissions


@contextlib.contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@POSIX
@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o777])
def test_permissions(tmp_path: Path, mask: int) -> None:
    store = OutputStore(tmp_path / "new" / "outputs")
    with umask(mask):
        small, large = saved(store, "secret", "bash"), saved(store, "secret" * 1_000_000)
        assert store.load(small) == "secret"
    for output_id in (small, large):
        assert stat.S_IMODE(store.path(output_id).stat().st_mode) == 0o600
    for directory in (tmp_path / "new", tmp_path / "new" / "outputs"):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


# ------------------------------------------------------------------------------------------- what stands in the way


@POSIX
@pytest.mark.parametrize(
    "obstacle", ["link", "link to nowhere", "link to an equal file", "fifo", "directory", "other text", "longer"]
)
def test_something_else_has_the_name(store: OutputStore, tmp_path: Path, obstacle: str) -> None:
    """It is not followed, not read for ever, not written over: the output gets a longer name."""
    text = "output\n" * 100
    first = saved(store, text, "bash")
    path = store.path(first)
    path.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(text if obstacle == "link to an equal file" else "precious")
    if obstacle == "fifo":
        os.mkfifo(path)
    elif obstacle == "directory":
        path.mkdir()
    elif obstacle == "link to nowhere":
        path.symlink_to(tmp_path / "nowhere")
    elif obstacle.startswith("link"):
        path.symlink_to(elsewhere)
    else:
        path.write_text(text[::-1] if obstacle == "other text" else text + "x")
    second = saved(store, text, "bash")
    assert len(second) == len(first) + 16
    assert store.load(second) == text
    assert saved(store, text, "bash") == second
    assert not (tmp_path / "nowhere").exists()
    assert elsewhere.read_text() in ("precious", text)
    if obstacle != "other text" and obstacle != "longer":
        with pytest.raises(OutputError):
            store.load(first)


@POSIX
def test_all_names_are_taken(store: OutputStore) -> None:
    digest = output_hash("text")
    for name in [digest[:16], digest, *(f"{digest}-{number}" for number in range(1, 10))]:
        store.path(name).parent.mkdir(exist_ok=True)
        store.path(name).symlink_to("nowhere")
    assert store.put("text") == (None, "all names are taken")
    assert not any(name.endswith(".tmp") for name in names(store))


def test_a_file_in_the_way_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = OutputStore(tmp_path / "file" / "sub")
    output_id, reason = store.put("text")
    assert output_id is None
    assert reason is not None
    assert "irectory" in reason
    assert store.save("x" * 3_000_000) is None
    assert store.sweep() == []
    result = truncate_tool_output("x\n" * 1_000, 10, store=store)
    assert (result.full_path, result.save_error) == (None, reason)
    assert f"could not be saved ({reason})" in result.preview
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("directory", ["a\x00b", "x" * 300, "\ud800"])
def test_names_that_are_no_directory(tmp_path: Path, directory: str) -> None:
    store = OutputStore(os.path.join(tmp_path, directory))
    output_id, reason = store.put("text")
    assert output_id is None
    assert reason
    assert store.sweep() == []
    with pytest.raises(OutputError):
        store.load("0123456789abcdef")


@POSIX
def test_a_directory_whose_name_is_no_unicode(tmp_path: Path) -> None:
    store = OutputStore(os.path.join(tmp_path, os.fsdecode(b"\xff")))
    output_id = store.save("text")
    if output_id is None:
        pytest.skip("a file system that takes no such names")
    assert store.load(output_id) == "text"


def test_a_directory_that_vanishes(store: OutputStore) -> None:
    for text in ("first", "x" * 3_000_000):
        output_id = saved(store, text)
        for name in names(store):
            os.unlink(os.path.join(store.directory, name))
        os.rmdir(store.directory)
        assert store.sweep() == []
        assert saved(store, text) == output_id


@POSIX
def test_a_directory_in_which_nobody_may_write(tmp_path: Path) -> None:
    """In a process that is not root: root may write everywhere."""
    tmp_path.chmod(0o755)
    directory = tmp_path / "outputs"
    directory.mkdir()
    directory.chmod(0o555)
    code = (
        "import os, sys\n"
        "from ctxfast import OutputStore, truncate_tool_output\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "store = OutputStore(sys.argv[1])\n"
        "result = truncate_tool_output('x\\n' * 5_000, 100, store=store)\n"
        "print(result.save_error, result.full_path, store.sweep(), OutputStore(sys.argv[1] + '/new').save('x'))\n"
    )
    for above in directory.parents:  # of pytest's, only for its owner
        if above.stat().st_uid == os.geteuid() and not above.stat().st_mode & 0o001 and above != Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o011)
    done = subprocess.run([sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=True)
    assert done.stdout == "Permission denied None [] None\n"
    assert os.listdir(directory) == []


@POSIX
def test_a_full_disk(tmp_path: Path) -> None:
    """A small file system, where one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        store = OutputStore(disk / "outputs")
        small = saved(store, "small")
        for text in ("x" * 400_000, "ไทย" * 1_000_000):
            assert store.put(text) == (None, "No space left on device")
        assert names(store) == [f"ctxfast-{small}.txt"]  # no half of a file
        assert store.load(small) == "small"
        result = truncate_tool_output("line\n" * 500_000, store=store)
        assert result.save_error == "No space left on device"
        assert "could not be saved (No space left on device): ask for less at a time]" in result.preview
        ids = [store.save(str(number) * 10_000) for number in range(100)]
        assert None in ids
        assert all(store.load(one) for one in ids if one is not None)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@POSIX
def test_a_file_that_may_not_be_so_large(store: OutputStore) -> None:
    """The stand-in for a full disk where nothing can be mounted: a limit of the process."""
    code = (
        "import resource, sys\n"
        "from ctxfast import OutputStore\n"
        "store = OutputStore(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "print(store.put('x' * 3_000_000), store.put('y' * 200_000), store.put('z')[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, store.directory], capture_output=True, text=True, check=True)
    assert done.stdout == "(None, 'File too large') (None, 'File too large') None\n"
    assert len(names(store)) == 1


@POSIX
def test_a_file_system_without_links(store: OutputStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    for text in ("text", "x" * 3_000_000):
        output_id = saved(store, text)
        assert store.load(output_id) == text
        assert saved(store, text) == output_id
    assert len(names(store)) == 2


# -------------------------------------------------------------------------------------------- threads and processes


def write_many(directory: str, number: int) -> None:
    """A process: outputs of its own and outputs that all write, and somebody sweeps meanwhile."""
    store = OutputStore(directory)
    for count in range(1_000):
        text = f"{number if count % 2 else 'all'} {count}\n" * (1 + count % 50)
        output_id = store.save(text, "bash")
        assert output_id is not None
        assert store.load(output_id) == text
        if count % 100 == number:
            assert store.sweep() == []


def test_ten_processes_write_a_thousand_outputs_each(store: OutputStore) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=write_many, args=(store.directory, number)) for number in range(10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 10
    assert len(names(store)) == 10 * 500 + 500  # and nothing unfinished
    for name in names(store):
        text = store.load(name.removeprefix("ctxfast-").removesuffix(".txt"))
        first = text.partition("\n")[0] + "\n"
        assert text == first * (1 + int(first.split()[1]) % 50)


def test_many_threads(store: OutputStore) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for count in range(200):
                text = f"{count}\n" * 40_000 if count % 50 == 0 else f"{count}"
                assert store.load(saved(store, text)) == text
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(names(store)) == 200


def test_an_old_output_that_is_saved_again_is_not_swept(store: OutputStore) -> None:
    """The sweeper has seen that a file is old, and then somebody saves the same output."""
    output_id = saved(store, "text")
    path = store.path(output_id)
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            store.sweep()

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for _ in range(500):
            with contextlib.suppress(FileNotFoundError):
                os.utime(path, (1, 1))
            assert store.save("text") == output_id
            deadline = time.monotonic() + 5
            while True:
                try:
                    assert store.load(output_id) == "text"
                    break
                except OutputError:  # aside for a moment, which can be long if its thread has to wait
                    assert time.monotonic() < deadline
    finally:
        stop.set()
        sweeper.join()


# --------------------------------------------------------------------------------------------------------- sweeping

DAY = 24 * 3_600


def age(store: OutputStore, output_id: str, days: float) -> str:
    then = time.time() - days * DAY
    os.utime(store.path(output_id), (then, then))
    return output_id


def test_what_is_swept(store: OutputStore, tmp_path: Path) -> None:
    old, kept, new = (saved(store, text, "bash") for text in ("old", "kept", "new"))
    age(store, old, 8)
    age(store, kept, 100)
    age(store, new, 6.9)
    directory = Path(store.directory)
    foreign = ["notes.txt", "bash-0123456789abcdef.txt", "ctxfast-x.txt", "ctxfast-0123456789abcdef.txt.bak", ".hidden"]
    for name in foreign:
        (directory / name).write_text("mine")
        os.utime(directory / name, (1, 1))
    (directory / "ctxfast-00000000000000ff.txt").mkdir()
    precious = tmp_path / "precious"
    precious.write_text("x")
    os.utime(precious, (1, 1))
    if sys.platform != "win32":
        (directory / "ctxfast-0000000000000000.txt").symlink_to(precious)
    before = set(names(store))
    assert store.sweep(keep=[kept]) == [f"ctxfast-{old}.txt"]
    assert before - set(names(store)) == {f"ctxfast-{old}.txt"}
    assert precious.read_text() == "x"
    assert store.sweep(keep=[kept]) == []
    assert store.sweep(keep=kept) == []  # one id
    assert store.sweep(keep=[f"/anywhere/ctxfast-{kept}.txt"]) == []
    assert store.sweep() == [f"ctxfast-{kept}.txt"]


def test_too_much_in_total(tmp_path: Path) -> None:
    store = OutputStore(tmp_path, max_age_days=None, max_total_bytes=1_000)
    ids = [age(store, saved(store, str(number) * 300), 10 - number) for number in range(6)]
    removed = store.sweep(keep=[ids[0]])
    assert removed == [f"ctxfast-{one}.txt" for one in ids[1:4]]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 1_000
    assert [store.load(one)[0] for one in (ids[0], ids[4], ids[5])] == ["0", "4", "5"]
    assert store.put("x" * 1_001) == (None, "larger than max_total_bytes")
    assert OutputStore(tmp_path, None, None).sweep() == []
    assert len(OutputStore(tmp_path, 0).sweep()) == 3


def test_loading_renews(store: OutputStore) -> None:
    output_id = age(store, saved(store, "text"), 30)
    assert store.load(output_id) == "text"
    assert store.sweep() == []


def test_what_a_crash_has_left(store: OutputStore) -> None:
    saved(store, "text")
    directory = Path(store.directory)
    unfinished = [directory / f"ctxfast.{digit * 16}.tmp" for digit in "ab"]
    for path in unfinished:
        path.write_text("half")
    os.utime(unfinished[0], (1, 1))
    assert store.sweep() == []
    assert [path.exists() for path in unfinished] == [False, True]


def test_the_default_store_is_tidied(store: OutputStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    default = OutputStore.default()
    old = age(default, saved(default, "old"), 8)
    result = truncate_tool_output("x\n" * 100, 10)
    assert names(default) == [f"ctxfast-{result.output_id}.txt"]
    age(default, saved(default, "old"), 8)
    assert default.tidy() == []  # once an hour
    assert default.load(old) == "old"
    other = age(store, saved(store, "old"), 8)
    truncate_tool_output("x\n" * 100, 10, store=store)
    assert store.load(other) == "old"  # only the default one


def test_json_is_saved_as_it_is(store: OutputStore) -> None:
    blocks = [{"type": "text", "text": "x\ud800" * 10}, {"type": "text", "text": "y\n" * 100}]
    result = truncate_tool_output(blocks, 5, store=store)
    assert json.loads(store.load(result.output_id or "")) == blocks
