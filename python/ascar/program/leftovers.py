"""What a program leaves behind: every process of it is found by a mark, and killed.

Each program carries a mark of its own in its environment, which its children inherit, whatever session or
group of processes they put themselves into.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

MARK = "ASCAR_LOAD"
"""The variable of the environment that carries the mark."""
_CHUNK_BYTES = 65_536
_KILL_S = 5.0
_KILL_LOOKS_MIN = 20  # a machine that stands still for seconds must not make the first look the last
_LISTINGS_MAX = 50
_START_TIME, _ENV_START = 19, 47  # in stat, among what follows the program's name; env_end comes next
_NO_ENVIRONMENT_S = 1.0  # longer than a process waits for its turn in the middle of exec


def start_time(pid: int) -> int:
    """When a process began, in clock ticks since the boot (proc(5): starttime).

    Raises:
        OSError: the process is gone.
    """
    return int(_facts(str(pid))[_START_TIME])


def kill_marked(process: subprocess.Popen[bytes], mark: str, begun: int) -> None:
    """Kill a program and every process that carries its mark.

    Args:
        process: the program.
        mark: what `MARK` is set to in its environment.
        begun: its start time, see `start_time`; 0: not known.
    """
    if _ended_without_children(process):
        process.wait()
        return
    deadline_s = time.monotonic() + _KILL_S
    looks, unseen = 0, _Unseen(begun)
    if process.poll() is None:
        # Stopped first, so that it cannot start more children while its children are looked for.
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
    while True:
        left, all_known = _marked(mark, unseen)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            with suppress(ProcessLookupError):
                process.kill()
        elif not left and all_known:
            return
        looks += 1
        if looks >= _KILL_LOOKS_MIN and time.monotonic() > deadline_s:
            return  # stuck in the kernel: nothing more can be done from here
        time.sleep(0.005)


def _ended_without_children(process: subprocess.Popen[bytes]) -> bool:
    """Whether the program has ended, and no process has begun on this machine since the program began.

    Process ids are given out in turn, and its own is not free before it is waited for: so while it is the one
    that was given out last (proc(5): loadavg), there is nothing of it to be looked for.
    """
    if process.returncode is not None:
        return False
    with suppress(OSError):
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return _content("/proc/loadavg").split()[-1:] == [str(process.pid).encode()]
    return False


def _marked(mark: str, unseen: _Unseen) -> tuple[list[int], bool]:
    """Ids of the processes that carry a mark and have not ended, and whether no other may be one.

    One that ends before it is looked at may have left a child that was not listed yet: so they are listed
    again until each has been looked at.
    """
    wanted = f"{MARK}={mark}".encode()
    found: list[int] = []
    all_known = True
    looked_at: set[str] = set()
    for _ in range(_LISTINGS_MAX):
        fresh = [entry for entry in os.listdir("/proc") if entry.isdigit() and entry not in looked_at]  # noqa: PTH208
        if not fresh:
            return found, all_known
        looked_at.update(fresh)
        for entry in fresh:
            with suppress(OSError):  # it has ended, or it is not ours
                environment = _content(f"/proc/{entry}/environ")
                if wanted in environment:
                    found.append(int(entry))
                elif not environment and unseen.may_be_child(entry):
                    all_known = False
    return found, False


def _content(path: str) -> bytes:
    """A file of /proc, by system calls alone: hundreds are read after every run of a program."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(descriptor, _CHUNK_BYTES)]
        while parts[-1]:
            parts.append(os.read(descriptor, _CHUNK_BYTES))
    finally:
        os.close(descriptor)
    return b"".join(parts)


class _Unseen:
    """Processes whose environment cannot be seen, from look to look.

    While the kernel gives a process a new environment, the old one cannot be seen. Where the new one begins
    and ends (proc(5), stat: env_start, env_end) is then 0, or the same, as for a process that has none. Each
    program has its own elsewhere: so one that stays as it is has none.

    Args:
        begun: the start time of the program that is looked for: what began earlier is none of its children.
    """

    def __init__(self, begun: int) -> None:
        self._begun = begun
        self._places: dict[str, tuple[bytes, float]] = {}

    def may_be_child(self, process: str) -> bool:
        """Whether a process without an environment may be becoming another program.

        Raises:
            OSError: it has no program, as the kernel's own threads and those that have ended, or is gone.
        """
        os.readlink(f"/proc/{process}/exe")  # noqa: PTH115
        facts = _facts(process)
        if int(facts[_START_TIME]) < self._begun:
            return False
        start, end = facts[_ENV_START : _ENV_START + 2]
        now_s = time.monotonic()
        place, since_s = self._places.get(process, (b"", now_s))
        if start != end or end in {b"0", b""} or place != start:
            self._places[process] = (start, now_s)
            return True
        return now_s - since_s < _NO_ENVIRONMENT_S


def _facts(process: str) -> list[bytes]:
    """What /proc/PID/stat says behind the program's name (proc(5)).

    Raises:
        OSError: the process is gone.
    """
    return _content(f"/proc/{process}/stat").rpartition(b")")[2].split()
