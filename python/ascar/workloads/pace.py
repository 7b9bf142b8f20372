"""How fast a process reads and writes, counted by the kernel at no cost to it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Count:
    """Reads and writes so far.

    Attributes:
        at_s: the time of the count, on the monotonic clock.
        calls: the numbers of reads and writes since the process began, by process id.
    """

    at_s: float
    calls: Mapping[int, int]

    def until(self, later: Count) -> OperationRate | None:
        """The pace from here to a later count, of the processes that lived all the time; None without any."""
        lasting = self.calls.keys() & later.calls.keys()
        done = sum(later.calls[pid] - self.calls[pid] for pid in lasting)
        seconds = later.at_s - self.at_s
        return OperationRate(done / seconds) if lasting and done > 0 and seconds > 0 else None


@dataclass(frozen=True, slots=True)
class OperationRate:
    """Reads and writes a second."""

    calls_per_s: float


def count_calls(pid: int) -> Count:
    """The reads and writes of a process and its descendants; those that cannot be read are left out."""
    at_s = time.monotonic()
    found = {one: calls for one in (pid, *_descendants(pid)) if (calls := _calls(one)) is not None}
    return Count(at_s, found)


def slowdown_of(traced: OperationRate | None, untraced: tuple[OperationRate | None, ...]) -> float | None:
    """How much slower a process goes while it is traced; None where that is not known.

    Counted are the times before and after tracing. Unless the process went faster in all of them, the
    difference is no matter of tracing: then 1.
    """
    known = [pace.calls_per_s for pace in untraced if pace is not None]
    if traced is None or not known:
        return None
    if min(known) <= traced.calls_per_s:
        return 1.0
    return sum(known) / len(known) / traced.calls_per_s


def _calls(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/io").read_text("ascii")
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        return int(fields["syscr"]) + int(fields["syscw"])
    except (OSError, ValueError, KeyError):
        return None


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name before it may hold anything, brackets included.
            parent = int(status.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    found: list[int] = []
    todo = [pid]
    while todo:
        of = children.get(todo.pop(), [])
        found += of
        todo += of
    return found
