"""Recording the file I/O of a running process, or of a command, with strace, for a signature workload."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, InputError, StageFailed
from ascar.features import at_native_pace
from ascar.features.system_calls import SYSTEM_CALLS, parse_system_calls
from ascar.workloads.open_files import open_file_sizes
from ascar.workloads.pace import OperationRate, count_calls, slowdown_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from ascar.features import Trace

RECORD_BYTES_MAX = 512 * 2**20
"""A record that grows beyond this is ended early."""
_LOOK_S = 0.1
_PACE_S = 2.0
_END_S = 10.0
_ATTACH_S = 10.0

# Stops itself until strace is there, then becomes the command.
_WAIT = "import os, signal, sys; os.kill(os.getpid(), signal.SIGSTOP); os.execvp(sys.argv[1], sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """How to record.

    Attributes:
        seconds: the greatest length of the recording.
        under: only files below this directory count; None: all.
        keep: the file for strace's own record; None: it is not kept.
    """

    seconds: float
    under: Path | None = None
    keep: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ProcessTrace:
    """What a process did.

    Attributes:
        trace: the trace at the pace that the process has when it is not traced, as far as that pace is known.
        slowdown: the factor by which tracing slowed the process; None where it is not known.
    """

    trace: Trace
    slowdown: float | None


def record_process(pid: int, recording: RecorderOptions) -> ProcessTrace:
    """The file I/O of a process, its threads and the children it starts, for so long or until it ends.

    Each system call of the process is held up for some tens of microseconds meanwhile. So its pace is counted
    before and after as well, for half as long each, at most 2 s. I/O through mapped memory and io_uring is
    not seen.

    Args:
        pid: the process id.
        recording: the length of the recording and the files to record.

    Raises:
        InputError: there is no such process, or it did no file I/O.
        EnvironmentLacks: strace is missing, or may not trace the process.
        StageFailed: strace failed.
    """
    _check(recording)
    if pid <= 0 or not Path(f"/proc/{pid}").is_dir():
        raise InputError(f"pid = {pid!r}: there is no such process; find it with `pgrep -a NAME`")
    before = _pace(pid, recording)
    return _record(pid, recording, _Begun(f"pid = {pid}", lambda: None, before))


def record_command(command: Sequence[str], recording: RecorderOptions) -> ProcessTrace:
    """The file I/O of a command from its start, for so long or until it ends; then the command is ended.

    What it prints goes to standard error. Its pace is counted afterwards only, if it still runs. Otherwise as
    `record_process`.

    Raises:
        InputError: there is no such command, or it did no file I/O.
    """
    _check(recording)
    if not command or shutil.which(command[0]) is None:
        raise InputError(f"COMMAND = {' '.join(command)!r}: there is no such program")
    with _stopped(command) as process:
        name = f"COMMAND = {command[0]!r}"
        return _record(
            process.pid, recording, _Begun(name, lambda: process.send_signal(signal.SIGCONT), None)
        )


@dataclass(frozen=True, slots=True)
class _Begun:
    """What is to be recorded.

    Attributes:
        who: the name of the process in messages.
        begin: lets it begin.
        before: the pace of the process before it is traced; None where it did not run.
    """

    who: str
    begin: Callable[[], None]
    before: OperationRate | None


def _pace(pid: int, recording: RecorderOptions) -> OperationRate | None:
    """The pace of a process that is not traced."""
    first = count_calls(pid)
    if not first.calls:
        return None
    time.sleep(min(_PACE_S, recording.seconds / 2))
    return first.until(count_calls(pid))


def _check(recording: RecorderOptions) -> None:
    if not recording.seconds > 0:
        raise InputError(f"seconds = {recording.seconds!r}: must be above 0")
    need_strace()


def need_strace() -> None:
    """Refuse to record where strace is missing.

    Raises:
        EnvironmentLacks: it is; the message says how to get it.
    """
    if shutil.which("strace") is None:
        raise EnvironmentLacks(
            "the program strace is missing; install it: "
            "Debian `apt-get install strace`, Fedora `dnf install strace`"
        )


@contextmanager
def _stopped(command: Sequence[str]) -> Generator[subprocess.Popen[bytes]]:
    """The command, stopped before its first step, in a session of its own; at the end it is no more."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WAIT, *command],
        stdin=subprocess.DEVNULL,
        stdout=2,
        start_new_session=True,
    )
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    for number in (signal.SIGTERM, signal.SIGCONT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            if number is not signal.SIGTERM:
                process.wait(_END_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
    process.wait()


def _record(pid: int, recording: RecorderOptions, begun: _Begun) -> ProcessTrace:
    """Attach to a process, let it begin, and read what strace wrote."""
    with tempfile.TemporaryDirectory(prefix="ascar-record-") as directory:
        record = Path(directory) / "record"
        calls = ",".join(f"?{name}" for name in SYSTEM_CALLS)
        options = ["-f", "-ttt", "-T", "-y", "-s", "0", "-q", "-o", str(record), "-e", f"trace={calls}"]
        words = ["strace", *options, "-p", str(pid)]
        sizes = open_file_sizes(pid)
        errors, traced = _trace(words, record, recording.seconds, begun.begin)
        if not record.exists() or record.stat().st_size == 0:
            if "Operation not permitted" in errors:
                raise EnvironmentLacks(
                    f"{begun.who}: strace may not trace it; run as root, or as its owner where "
                    "kernel.yama.ptrace_scope is 0 and the container has CAP_SYS_PTRACE"
                )
            if errors:
                raise StageFailed("record", f"strace wrote nothing: {errors.splitlines()[-1][:200]}", errors)
            raise InputError(f"{begun.who}: it did no file I/O in {recording.seconds:g} s")
        if recording.keep is not None:
            _keep(record, recording.keep)
        under = None if recording.under is None else str(recording.under.resolve())
        with record.open(encoding="utf-8", errors="replace") as lines:
            trace = parse_system_calls(lines, under, sizes)
        slowdown = slowdown_of(traced, (begun.before, _pace(pid, recording)))
        return ProcessTrace(at_native_pace(trace, slowdown or 1.0), slowdown)


def _keep(record: Path, to: Path) -> None:
    try:
        shutil.copyfile(record, to)
    except OSError as error:
        raise InputError(f"{str(to)!r}: cannot be written: {error.strerror}") from error


def _trace(
    command: list[str], record: Path, seconds: float, begin: Callable[[], None]
) -> tuple[str, OperationRate | None]:
    """Run strace for so long; what it said on its standard error, and the pace of the process meanwhile."""
    pid = int(command[-1])
    pace = None
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
        text=True,
        errors="replace",
        start_new_session=True,  # an interrupt from the terminal comes to us, and we end it
    ) as process:
        try:
            _await_attached(process, pid)
            begin()
            first = count_calls(pid)
            end_s = time.monotonic() + seconds
            while process.poll() is None and time.monotonic() < end_s and not _too_large(record):
                time.sleep(min(_LOOK_S, max(0.0, end_s - time.monotonic())))
            pace = first.until(count_calls(pid))
        finally:
            # strace lets the process go when it is interrupted.
            process.send_signal(signal.SIGINT)
            try:
                _, errors = process.communicate(timeout=_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
        return errors.strip(), pace


def _await_attached(strace: subprocess.Popen[str], pid: int) -> None:
    """Wait until the process is traced, or strace has given up."""
    end_s = time.monotonic() + _ATTACH_S
    while strace.poll() is None and time.monotonic() < end_s and _tracer(pid) != strace.pid:
        time.sleep(0.005)


def _tracer(pid: int) -> int:
    """Process id of who traces it; 0 for nobody."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("TracerPid")), 0)


def _too_large(record: Path) -> bool:
    try:
        return record.stat().st_size > RECORD_BYTES_MAX
    except OSError:
        return False
