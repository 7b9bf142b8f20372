"""The file I/O of a process, from what `strace -f -ttt -T -y -s 0` writes to a file.

Positions of `read` and `write`, which name none, are followed from the opening of the file on; where a file
was open before, its position then counts as 0. I/O through mapped memory and io_uring makes no such system
calls, and is not seen.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.features.trace import Trace, TraceOperation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

READS = ("read", "pread64", "readv", "preadv", "preadv2")
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
OPENS = ("open", "openat", "creat")
SYNCS = ("fsync", "fdatasync", "sync_file_range")
STATS = ("stat", "lstat", "fstat", "newfstatat", "statx")
DELETES = ("unlink", "unlinkat")
SYSTEM_CALLS = (*READS, *WRITES, *OPENS, *SYNCS, *STATS, *DELETES, "close", "lseek")
"""What strace has to trace."""

_POSITIONED = frozenset(("pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2"))
_DEVICES = ("fd/", "full", "null", "ptmx", "pts/", "random", "std", "tty", "urandom", "zero")
_PSEUDO = ("/proc/", "/sys/", *(f"/dev/{name}" for name in _DEVICES))
_POSITION_MAX = 2**62

_LINE = re.compile(r"(\d{1,10})\s+(\d{1,12}\.\d+)\s+(.*)", re.ASCII | re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>\s?(.*)", re.DOTALL)
_UNFINISHED = re.compile(r"(.*?)\s*<unfinished \.\.\.>\s*$", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\)\s+=\s+(-?\d{1,19})(?:<([^>]*)>)?.*?(?:<(\d+\.\d+)>)?\s*$", re.DOTALL)
_DESCRIPTOR = re.compile(r"\s*(\d{1,9})<(.*?)>(?=\s*(?:,|$))", re.DOTALL)
_LAST = re.compile(r",\s*(-?\d{1,19})\s*$")
_LAST_BUT_FLAGS = re.compile(r",\s*(-?\d{1,19}),\s*[A-Z_|x0-9]+\s*$")
_WORKING = re.compile(r"\s*AT_FDCWD<(/[^>]*)>")
_BASE = re.compile(r"\s*(?:AT_FDCWD|\d{1,9})<(/[^>]*)>", re.ASCII)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class _State:
    """Where each open file stands, and the calls that were begun and not ended.

    Attributes:
        under: only files below this directory count, where one is given.
        directory: the working directory that was last told.
        sizes: the known sizes of files when the trace began, by path.
    """

    under: str | None = None
    directory: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    position: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    files: dict[str, int] = field(default_factory=dict[str, int])
    begun: dict[str, tuple[float, str]] = field(default_factory=dict[str, tuple[float, str]])
    rows: list[tuple[float, int, int, int, int, int, float, int]] = field(
        default_factory=list[tuple[float, int, int, int, int, int, float, int]]
    )


def parse_system_calls(
    lines: Iterable[str], under: str | None = None, sizes: Mapping[str, int] | None = None
) -> Trace:
    """A trace from strace's lines.

    Args:
        lines: the lines of strace's output.
        under: only files below this directory count, an absolute path; None: all.
        sizes: the known sizes in bytes of files when the trace began, by path.

    Raises:
        InputError: no line describes file I/O.
    """
    state = _State(None if under is None else under.rstrip("/") + "/", sizes=sizes or {})
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        thread, seconds, text = found[1], float(found[2]), found[3]
        unfinished, resumed = _UNFINISHED.match(text), _RESUMED.match(text)
        if unfinished:
            state.begun[thread] = (seconds, unfinished[1])
            continue
        if resumed:
            begun = state.begun.pop(thread, None)
            if begun is None:
                continue
            seconds, text = begun[0], begun[1] + resumed[2]
        _call(state, int(thread), seconds, text)
    if not state.rows:
        where = "" if under is None else f" below {under}"
        raise InputError(
            f"no line describes file I/O{where}; write the trace with `strace -f -ttt -T -y -s 0 -o FILE`"
        )
    names = (*("seconds", "operation", "thread", "file"), *("offset_bytes", "size_bytes", "latency_s"))
    return Trace.of(dict(zip((*names, "start_bytes"), zip(*state.rows, strict=True), strict=True)))


def _call(state: _State, thread: int, seconds: float, text: str) -> None:
    """Take one whole call."""
    found = _CALL.match(text)
    if found is None or int(found[3]) < 0:
        return
    name, arguments, result = found[1], found[2], int(found[3])
    working = _WORKING.match(arguments)
    if working is not None:
        state.directory = working[1]
    latency_s = float(found[5]) if found[5] else float("nan")

    def row(operation: TraceOperation, path: str, offset: int = 0, size: int = 0) -> None:
        wanted = state.under is None or path.startswith(state.under)
        if wanted and offset + size < _POSITION_MAX and not path.startswith(_PSEUDO):
            file = state.files.setdefault(path, len(state.files))
            start_bytes = state.sizes.get(path, -1)
            state.rows.append((seconds, operation, thread, file, offset, size, latency_s, start_bytes))

    if name in OPENS:
        _open(state, name, arguments, (result, found[4] or ""), row)
    elif name in DELETES or (name in STATS and name != "fstat"):
        quoted = _QUOTED.search(arguments)
        if quoted is not None:
            path = _absolute(state, arguments, quoted[1])
            row(TraceOperation.DELETE if name in DELETES else TraceOperation.STAT, path)
    else:
        _by_descriptor(state, name, arguments, result, row)


def _absolute(state: _State, arguments: str, path: str) -> str:
    """A path with the directory that it is relative to, as far as that was told."""
    found = _BASE.match(arguments)
    if path.startswith("/"):
        return path
    base = found[1] if found is not None else state.directory
    return posixpath.join(base or "/", path)


def _open(state: _State, name: str, arguments: str, opened: tuple[int, str], row: _Row) -> None:
    descriptor, path = opened
    if not path.startswith("/"):
        return
    made = name == "creat" or ("O_CREAT" in arguments and ("O_EXCL" in arguments or "O_TRUNC" in arguments))
    state.position[path, descriptor] = 0
    row(TraceOperation.CREATE if made else TraceOperation.OPEN, path)


def _by_descriptor(state: _State, name: str, arguments: str, result: int, row: _Row) -> None:
    """A call whose first argument is a file descriptor with its path."""
    found = _DESCRIPTOR.match(arguments)
    if found is None or not found[2].startswith("/"):
        return
    descriptor, path = int(found[1]), found[2]
    key = (path, descriptor)
    if name in READS or name in WRITES:
        operation = TraceOperation.READ if name in READS else TraceOperation.WRITE
        if name in _POSITIONED:
            number = (_LAST_BUT_FLAGS if name.endswith("v2") else _LAST).search(arguments)
            offset = int(number[1]) if number else 0
        else:
            offset = state.position.get(key, 0)
            state.position[key] = offset + result
        # A read that gives nothing has met the file's end.
        if offset >= 0 and result > 0:
            row(operation, path, offset, result)
    elif name == "lseek":
        state.position[key] = result
    elif name in SYNCS:
        row(TraceOperation.SYNC, path)
    elif name == "fstat":
        row(TraceOperation.STAT, path)
    elif name == "close":
        state.position.pop(key, None)
        row(TraceOperation.CLOSE, path)


if TYPE_CHECKING:
    from typing import Protocol

    class _Row(Protocol):
        """Keeps one operation."""

        def __call__(self, operation: TraceOperation, path: str, offset: int = 0, size: int = 0) -> None: ...
