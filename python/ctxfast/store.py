"""A directory in which tool outputs are kept, each under a name made of its content."""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ctxfast._core import output_hash, text_size, write_output
from ctxfast.errors import OutputError

__all__ = ["OutputStore"]

_ID = re.compile("(?:[a-z0-9_]{1,60}-)?([0-9a-f]{16}(?:[0-9a-f]{16})?)(?:-[1-9])?", re.ASCII)
_PREFIX, _SUFFIX = "ctxfast-", ".txt"
_UNFINISHED = re.compile(r"ctxfast\.[0-9a-f]{16}\.tmp", re.ASCII)
_HOUR = 3_600.0
_LARGE = 1 << 20  # bytes
_PIECE = 1 << 13  # characters that are compared together
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_tidied: dict[str, float] = {}  # when this process has looked for old files, by directory


@dataclass(frozen=True, init=False)
class OutputStore:
    """Tool outputs on disk, each in a file of its own that only its owner can read.

    `OutputStore.default()` is the one in the user's cache directory. A file's name is the tool's name and a hash of
    the content: the same output of the same tool is saved once. Files are written whole or not at all, with mode
    0600, in a directory that is made with 0700; links are not followed, and nothing is ever written over. Any number
    of threads and processes may use a directory at the same time. Frozen and picklable: nothing is kept open.

    Works as the `store` of `prune_tool_outputs`, `truncate_tool_output` and `fit_tool_results`. Raises `ValueError`
    for limits that cannot be meant.
    """

    directory: str
    """Where the files are: an absolute path. It is made when it is needed."""
    max_age_days: float | None = 7
    """`sweep` removes what was not saved or loaded for so many days; `None`: age does not matter."""
    max_total_bytes: int | None = 1 << 30
    """`sweep` leaves at most so many bytes in own files, the newest, and nothing larger is saved; `None`: no limit."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        max_age_days: float | None = 7,
        max_total_bytes: int | None = 1 << 30,
    ) -> None:
        """In a directory, which need not exist."""
        for name, value in (("max_age_days", max_age_days), ("max_total_bytes", max_total_bytes)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name}: expected a number or None, got {value!r}")
            if not 0 <= value < math.inf:
                raise ValueError(f"{name}: expected 0 or more, got {value!r}")
        path = os.fspath(directory)
        if not isinstance(path, str):
            raise TypeError(f"directory: expected str or a path, got {directory!r}")
        object.__setattr__(self, "directory", os.path.abspath(path))
        object.__setattr__(self, "max_age_days", max_age_days)
        object.__setattr__(self, "max_total_bytes", max_total_bytes)

    @classmethod
    def default(cls) -> OutputStore:
        """The store in the user's cache directory.

        That is `$XDG_CACHE_HOME/ctxfast/outputs`, or `~/.cache/ctxfast/outputs`, on macOS
        `~/Library/Caches/ctxfast/outputs`, on Windows `%LOCALAPPDATA%\\ctxfast\\outputs`.
        """
        return cls(os.path.join(_cache_directory(), "ctxfast", "outputs"))

    def save(self, text: str | bytes, tool_name: str | None = None) -> str | None:
        """Saves an output and gives it its id; `None` if it could not be saved: a full disk raises nothing.

        A text is written as UTF-8, with lone surrogates as if they were characters; bytes as they are.
        """
        return self.put(text, tool_name)[0]

    def put(self, text: str | bytes, tool_name: str | None = None) -> tuple[str | None, str | None]:
        """The same, and if there is no id, the reason: `(id, None)` or `(None, "No space left on device")`."""
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"text: expected str or bytes, got {type(text).__name__}")
        try:
            size = _size(text)
            if self.max_total_bytes is not None and size > self.max_total_bytes:
                return None, "larger than max_total_bytes"
            for _ in range(2):  # somebody may remove the directory meanwhile
                try:
                    return self._put(text, size, _clean(tool_name or "")), None
                except FileNotFoundError:
                    _make_directory(self.directory)
            return self._put(text, size, _clean(tool_name or "")), None
        except (OSError, ValueError) as error:
            return None, _reason(error)

    def _put(self, text: str | bytes, size: int, name: str) -> str:
        unfinished = os.path.join(self.directory, f"ctxfast.{os.urandom(8).hex()}.tmp")
        is_written = size > _LARGE  # then it is read only once
        try:
            digest = write_output(unfinished, text) if is_written else output_hash(text)
            numbers = [digest[:16], digest, *(f"{digest}-{number}" for number in range(1, 10))]
            for number in numbers:  # the longer ones if something else has that name
                output_id = f"{name}-{number}" if name else number
                path = self._file(output_id)
                for _ in range(2):
                    there = _is_same(path, text, size)
                    if there:
                        return output_id
                    if there is False:
                        break
                    if not is_written:
                        write_output(unfinished, text)
                        is_written = True
                    if _publish(unfinished, path):
                        return output_id
            raise OSError(errno.EEXIST, "all names are taken")
        finally:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)

    def load(self, output_id: str) -> str:
        """The output with an id, as it was saved. Raises `OutputError` if it is not there or was damaged.

        Bytes that are no UTF-8 have lone surrogates in their place (`surrogateescape`): `load_bytes` gives them as
        they were.
        """
        content = self.load_bytes(output_id)
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return content.decode("utf-8", "surrogateescape")

    def load_bytes(self, output_id: str) -> bytes:
        """The bytes of the file of an output. Raises `OutputError` as `load` does."""
        path = self.path(output_id)
        try:
            with open(_open(str(path)), "rb") as file:
                content = file.read()
                _renew(file.fileno(), str(path))
        except (OSError, ValueError) as error:
            raise OutputError(output_id, _reason(error)) from error
        match = _ID.fullmatch(output_id)
        if match is None or not output_hash(content).startswith(match[1]):
            raise OutputError(output_id, "the file was damaged")
        return content

    def path(self, output_id: str) -> Path:
        """The file of an output, be it there or not. Raises `OutputError` for what is no id."""
        if not isinstance(output_id, str) or not _ID.fullmatch(output_id):
            raise OutputError(str(output_id), "not an id of this store")
        return Path(self._file(output_id))

    def sweep(self, keep: Iterable[str] = ()) -> list[str]:
        """Removes own files that are too old, and the oldest of what is too much in total; gives their names.

        `keep` are the ids that are still referred to (`saved_ids(messages)`): they stay, however old they are. Other
        people's files, links and directories are never touched. Raises nothing: what cannot be removed stays.
        """
        names = [keep] if isinstance(keep, str) else keep
        kept = {os.path.basename(name).removeprefix(_PREFIX).removesuffix(_SUFFIX) for name in names}
        return self._sweep({f"{_PREFIX}{name}{_SUFFIX}" for name in kept}, youngest=0)

    def tidy(self) -> list[str]:
        """`sweep` without `keep`, at most once an hour and process; what is younger than an hour stays.

        That is what happens to the default store by itself.
        """
        now = time.monotonic()
        if now - _tidied.get(self.directory, -math.inf) < _HOUR:
            return []
        _tidied[self.directory] = now
        return self._sweep(set(), youngest=_HOUR)

    def _sweep(self, keep: set[str], youngest: float) -> list[str]:
        now = time.time()
        own = sorted(self._own(now))
        total = sum(size for _, size, _ in own)
        removed = []
        for modified, size, name in own:  # the oldest first
            age = now - modified
            is_old = self.max_age_days is not None and age > self.max_age_days * 24 * _HOUR
            is_too_much = self.max_total_bytes is not None and total > self.max_total_bytes
            if not is_old and not is_too_much:
                continue
            if name in keep or age < youngest:
                continue
            if self._remove(name, modified):
                removed.append(name)
                total -= size
        return removed

    def _own(self, now: float) -> Iterator[tuple[float, int, str]]:
        """When own files were last used, their bytes and names; what a crash has left goes on the way."""
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    name = entry.name
                    unfinished = _UNFINISHED.fullmatch(name) is not None
                    if not unfinished and not _is_own_name(name):
                        continue
                    with contextlib.suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        if not stat.S_ISREG(status.st_mode) or not _is_mine(status):
                            continue
                        if not unfinished:
                            yield status.st_mtime, status.st_size, name
                        elif now - status.st_mtime > _HOUR:
                            os.unlink(entry.path)
        except (OSError, ValueError):
            return

    def _remove(self, name: str, modified: float) -> bool:
        """Removes a file, unless it is used at this moment: whoever saves the same output again renews its time."""
        path = os.path.join(self.directory, name)
        aside = os.path.join(self.directory, f"ctxfast.{os.urandom(8).hex()}.tmp")
        try:
            if os.stat(path, follow_symlinks=False).st_mtime != modified:
                return False
            os.rename(path, aside)
        except OSError:
            return False
        try:
            if os.stat(aside, follow_symlinks=False).st_mtime != modified:
                _publish(aside, path)
                return False
            return True
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                os.unlink(aside)

    def _file(self, output_id: str) -> str:
        return os.path.join(self.directory, f"{_PREFIX}{output_id}{_SUFFIX}")


def _clean(tool_name: str) -> str:
    """A tool's name as part of a file's: short, of letters that every system allows, and still one of its own."""
    small = tool_name.lower()
    clean = re.sub("[^a-z0-9_]+", "_", small[:400], flags=re.ASCII).strip("_")[:40]
    if clean == small:
        return clean
    digest = output_hash(small)[:8]
    return f"{clean}_{digest}" if clean else digest


def _is_own_name(name: str) -> bool:
    is_framed = name.startswith(_PREFIX) and name.endswith(_SUFFIX)
    return is_framed and _ID.fullmatch(name[len(_PREFIX) : -len(_SUFFIX)]) is not None


def _is_mine(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _size(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) else text_size(text)[1]


def _open(path: str) -> int:
    """Opens a regular file for reading, through no link."""
    if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    descriptor = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def _is_same(path: str, text: str | bytes, size: int) -> bool | None:
    """Whether a file holds an output, whose time is renewed then; `None` if nothing is there."""
    try:
        with open(_open(path), "rb") as file:
            if os.fstat(file.fileno()).st_size != size:
                return False
            for start in range(0, len(text), _PIECE):
                piece = text[start : start + _PIECE]
                wanted = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
                if file.read(len(wanted)) != wanted:
                    return False
            _renew(file.fileno(), path)
    except FileNotFoundError:
        return None
    except OSError:
        if os.path.lexists(path):
            return False
        raise
    # somebody may have removed it for its age just before its time was renewed
    return True if os.path.lexists(path) else None


def _renew(descriptor: int, path: str) -> None:
    with contextlib.suppress(OSError):
        os.utime(descriptor if os.utime in os.supports_fd else path)


def _publish(unfinished: str, path: str) -> bool:
    """Gives a finished file its name, if nobody else has it."""
    try:
        os.link(unfinished, path)
        return True
    except FileExistsError:
        return False
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            return False
        os.rename(unfinished, path)
        return True


def _reason(error: OSError | ValueError) -> str:
    """The system's words, or our own."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None or number in (errno.EEXIST, errno.EINVAL):
        return getattr(error, "strerror", None) or str(error)
    return os.strerror(number)


def _make_directory(path: str) -> None:
    """Makes a directory and those above it that are missing, for nobody else, whatever the umask is."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    for directory in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
            with contextlib.suppress(OSError):  # some file systems have no permissions
                os.chmod(directory, 0o700)


@functools.cache
def _made_up_home() -> str:
    """A directory for this process alone, where nobody knows what the user's home is."""
    try:
        return tempfile.mkdtemp(prefix="ctxfast-")
    except OSError:
        return os.path.join(tempfile.gettempdir(), "ctxfast")  # saving will say what is wrong


def _cache_directory() -> str:
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        home = _made_up_home()
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches")
    named = os.environ.get("XDG_CACHE_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home, ".cache")  # as its specification says
