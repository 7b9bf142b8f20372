"""Processes of servers that others have started: whether they still run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

_STARTED_FIELD = 22 - 3  # of /proc/PID/stat (proc(5)), counted from the state on
_APART_S = 5.0


class ServerProcess(msgspec.Struct, frozen=True):
    """A process of this machine, which another one with its number is told apart from.

    Attributes:
        pid: the number.
        started_ticks: the time of its start after that of the machine, in clock ticks.
    """

    pid: int
    started_ticks: int

    @classmethod
    def found(cls, pid: int, uptime_s: float, names: tuple[str, ...]) -> ServerProcess | None:
        """The process that a server says it is; None: no process here fits, as in another PID namespace.

        Args:
            pid: the number that the server tells.
            uptime_s: for how long it says that it runs.
            names: what its program may be called.
        """
        fields = _stat(pid)
        if fields is None:
            return None
        name, rest = fields
        ticks = int(rest[_STARTED_FIELD])
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        fits = abs(now_s - ticks / os.sysconf("SC_CLK_TCK") - uptime_s) <= _APART_S
        return cls(pid, ticks) if fits and any(one in name for one in names) else None

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        fields = _stat(self.pid)
        return (
            fields is None
            or fields[1][0] in ("Z", "X")
            or int(fields[1][_STARTED_FIELD]) != self.started_ticks
        )


def pid_is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    fields = _stat(pid)
    return fields is not None and fields[1][0] not in ("Z", "X")


def _stat(pid: int) -> tuple[str, list[str]] | None:
    """The name of a process, and the fields of /proc/PID/stat from its state on; None: there is none."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")
        fields = rest.split()
        return (name.partition("(")[2], fields) if len(fields) > _STARTED_FIELD else None
    except OSError:
        return None
