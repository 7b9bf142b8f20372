"""Recording the file I/O of a running process, with strace, for a signature workload."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, InputError, StageFailed
from ascar.features.system_calls import SYSTEM_CALLS, parse_system_calls

if TYPE_CHECKING:
    from ascar.features import Trace

__all__ = ["RECORD_BYTES_MAX", "record_process"]

RECORD_BYTES_MAX = 2 * 2**30
"""A record that grows beyond this is ended early."""
_LOOK_S = 0.2
_END_S = 10.0


def record_process(pid: int, seconds: float) -> Trace:
    """The file I/O of a process, its threads and the children it starts, for so long or until it ends.

    Each system call of the process is held up for some tens of microseconds meanwhile. I/O through mapped
    memory and io_uring is not seen.

    Args:
        pid: its process id.
        seconds: how long to record.

    Raises:
        InputError: there is no such process, or it did no file I/O.
        EnvironmentLacks: strace is missing, or may not trace the process.
        StageFailed: strace failed.
    """
    if not seconds > 0:
        raise InputError(f"seconds = {seconds!r}: must be more than 0")
    if pid <= 0 or not Path(f"/proc/{pid}").is_dir():
        raise InputError(f"pid = {pid!r}: there is no such process; find it with `pgrep -a NAME`")
    strace = shutil.which("strace")
    if strace is None:
        raise EnvironmentLacks(
            "the program strace is missing; install it: "
            "Debian `apt install strace`, Fedora `dnf install strace`"
        )
    with tempfile.TemporaryDirectory(prefix="ascar-record-") as directory:
        record = Path(directory) / "record"
        calls = ",".join(f"?{name}" for name in SYSTEM_CALLS)
        options = ["-f", "-ttt", "-T", "-y", "-s", "0", "-q", "-o", str(record), "-e", f"trace={calls}"]
        errors = _trace([strace, *options, "-p", str(pid)], record, seconds)
        if not record.exists() or record.stat().st_size == 0:
            if "Operation not permitted" in errors:
                raise EnvironmentLacks(f"pid = {pid}: strace may not trace it; run as root, or as its owner")
            if errors:
                raise StageFailed("record", f"strace wrote nothing: {errors.splitlines()[-1][:200]}", errors)
            raise InputError(f"pid = {pid}: it did no file I/O in {seconds:g} s")
        with record.open(encoding="utf-8", errors="replace") as lines:
            return parse_system_calls(lines)


def _trace(command: list[str], record: Path, seconds: float) -> str:
    """Run strace for so long; what it said on its standard error."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        text=True,
        errors="replace",
    ) as process:
        left_s = seconds
        try:
            while left_s > 0 and not _too_large(record):
                try:
                    process.wait(min(left_s, _LOOK_S))
                    break
                except subprocess.TimeoutExpired:
                    left_s -= _LOOK_S
        finally:
            # strace lets the process go when it is interrupted.
            process.send_signal(signal.SIGINT)
            try:
                _, errors = process.communicate(timeout=_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
        return errors.strip()


def _too_large(record: Path) -> bool:
    try:
        return record.stat().st_size > RECORD_BYTES_MAX
    except OSError:
        return False
