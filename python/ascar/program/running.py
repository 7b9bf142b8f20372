"""Running a load's program: heard while it runs, held to a time limit, and none of it left behind.

A load can fork, change its session (fio's jobs do) or hang. Whatever it does, when `run_program` returns no
process of it is left (`ascar.program.leftovers`).
"""

from __future__ import annotations

import os
import pwd
import secrets
import selectors
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.errors import StageFailed
from ascar.program.environment import inherited
from ascar.program.gate import wait_until_ready
from ascar.program.leftovers import MARK, kill_marked, start_time

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from ascar.program.gate import StartingGate
    from ascar.workspace import Workspace

STDERR_BYTES_MAX = 16_384
STDIN_BYTES_MAX = 60_000  # fits a pipe, so that writing it never waits

GATE = ("/bin/sh", "-c", 'read _ && exec "$@"', "sh")
"""Before a command: the program waits for a line before it becomes itself, time to write it down or to put it
into its control group. The command comes as positional arguments, so no shell ever parses a user's string."""

_JOIN = 'echo $$ > "$1" && shift && exec "$@"'
_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run.

    Attributes:
        stage: name of the trial's stage, for errors: "fill" or "load".
        argv: the program and its arguments.
        time_limit_s: the program is killed when it runs longer than this.
        stdin: the standard input, at most STDIN_BYTES_MAX.
        interrupt_after_s: the program is asked to end (SIGINT) after this time; None: never.
        interrupt_group: whether its process group is asked, as Ctrl-C does, or the program alone.
        grace_s: once asked, it is killed unless it ends within this.
        output_bytes_max: the program is killed when it writes more than this to stdout.
        environment: variables set on top of ours.
        keep_stdin: whether its standard input stays open until it has ended.
        end_on: a descriptor; once it can be read, the program is asked to end.
        gate: where it waits for others before it begins; its time runs from then on, but for
            `interrupt_after_s`, which counts the wait. None: it begins at once.
        ready: what it writes to standard error once it waits for a line of its input, where it has to
            connect first; empty: it is ready at once.
    """

    stage: str
    argv: Sequence[str]
    time_limit_s: float
    stdin: bytes = b""
    interrupt_after_s: float | None = None
    interrupt_group: bool = True
    grace_s: float = 10.0
    output_bytes_max: int = 256 * 2**20
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    keep_stdin: bool = False
    end_on: int | None = None
    gate: StartingGate | None = None
    ready: bytes = b""


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """How a program ended.

    Attributes:
        status: exit status; negative: the signal that killed it.
        stderr: the last STDERR_BYTES_MAX bytes of its standard error, as text.
        seconds: the run time.
        interrupted: whether it was asked to end.
    """

    status: int
    stderr: str
    seconds: float
    interrupted: bool


def run_program(
    program: Program, workspace: Workspace, hear: Callable[[bytes, float], bool] | None = None
) -> ProgramExit:
    """Run a program in a workspace: in its directory, as its user, inside its control group.

    Args:
        program: the program to run.
        workspace: the place to run it in.
        hear: called with each piece of standard output and the seconds since the start; True asks the
            program to end.

    Raises:
        StageFailed: it cannot be started, ran out of time, wrote too much, or did not end when asked.
        Unstarted: all was over before it could begin.
    """
    mark = secrets.token_hex(16)
    with _started(program, workspace, mark) as (process, start_s, said, held_s):
        watch = _Watch(_after(program, held_s), process, start_s, hear)
        watch.stderr += said
        problem = watch.until_it_ends()
        seconds = watch.seconds()
    stderr = bytes(watch.stderr).decode("utf-8", "replace")
    if (node := workspace.node) is not None and (last := node.last_words) is not None:
        raise StageFailed(program.stage, f"node {node.name}: it is gone", f"{last.strip()}\n{stderr}")
    if problem:
        raise StageFailed(program.stage, f"{_name(program)} {problem}", stderr)
    return ProgramExit(process.wait(), stderr, seconds, watch.interrupted_at_s is not None)


def check(program: Program, ended: ProgramExit) -> None:
    """Refuse a program's failure.

    Raises:
        StageFailed: it was not asked to end, and its exit status is not 0.
    """
    if ended.interrupted or ended.status == 0:
        return
    how = (
        f"was killed by {_signal_name(-ended.status)}" if ended.status < 0 else f"exited with {ended.status}"
    )
    words = ended.stderr.strip().splitlines()
    last = f": {words[-1][:200]}" if words else ""
    raise StageFailed(program.stage, f"{_name(program)} {how}{last}", ended.stderr)


class _Watch:
    """Hears a program until it ends or must be killed."""

    def __init__(
        self,
        program: Program,
        process: subprocess.Popen[bytes],
        start_s: float,
        hear: Callable[[bytes, float], bool] | None,
    ) -> None:
        self.program = program
        self.process = process
        self.hear = hear
        self.stderr = bytearray()
        self.interrupted_at_s: float | None = None
        self._heard_bytes = 0
        self._start_s = start_s

    def seconds(self) -> float:
        return time.monotonic() - self._start_s

    def until_it_ends(self) -> str:
        """Empty once the program has ended; else why it has to be killed."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        exited = os.pidfd_open(self.process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for source in (self.process.stdout, self.process.stderr):
                    os.set_blocking(source.fileno(), False)
                    selector.register(source, selectors.EVENT_READ)
                selector.register(exited, selectors.EVENT_READ)
                if self.program.end_on is not None:
                    selector.register(self.program.end_on, selectors.EVENT_READ)
                return self._listen(selector, exited)
        finally:
            os.close(exited)

    def _listen(self, selector: selectors.BaseSelector, exited: int) -> str:
        while True:
            events = selector.select(self._patience_s())
            ended = False
            for key, _ in events:
                if key.fd == exited:
                    ended = True
                elif key.fd == self.program.end_on:
                    selector.unregister(key.fd)
                    self._interrupt()
                else:
                    self._take(selector, key.fileobj)
            if self._heard_bytes > self.program.output_bytes_max:
                return f"wrote more than {self.program.output_bytes_max} bytes to its standard output"
            if ended:
                # A child that outlives it may hold the pipes open, so the end of file is not waited for.
                self._drain(selector)
                return ""
            if problem := self._overdue():
                return problem

    def _take(self, selector: selectors.BaseSelector, source: Any) -> bool:
        """One piece from a pipe; False when there is none."""
        try:
            chunk = os.read(source.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            selector.unregister(source)
            return False
        if source is self.process.stderr:
            self.stderr += chunk
            del self.stderr[:-STDERR_BYTES_MAX]
            return True
        self._heard_bytes += len(chunk)
        if self.hear is not None and self.hear(chunk, self.seconds()):
            self._interrupt()
        return True

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """What is left in the pipes, but no more than the limit."""
        for source in (self.process.stdout, self.process.stderr):
            if any(key.fileobj is source for key in list(selector.get_map().values())):
                while self._take(selector, source) and self._heard_bytes <= self.program.output_bytes_max:
                    pass

    def _patience_s(self) -> float:
        """Seconds until something has to be done about the program."""
        due_s = [self.program.time_limit_s]
        if self.interrupted_at_s is not None:
            due_s.append(self.interrupted_at_s + self.program.grace_s)
        elif self.program.interrupt_after_s is not None:
            due_s.append(self.program.interrupt_after_s)
        return max(0.0, min(due_s) - self.seconds()) + 0.001

    def _overdue(self) -> str:
        now_s, asked_at_s = self.seconds(), self.interrupted_at_s
        if now_s >= self.program.time_limit_s:
            return f"ran longer than its limit of {self.program.time_limit_s:g} s and was killed"
        if asked_at_s is not None and now_s >= asked_at_s + self.program.grace_s:
            return f"did not end within {self.program.grace_s:g} s of being asked to and was killed"
        after_s = self.program.interrupt_after_s
        if asked_at_s is None and after_s is not None and now_s >= after_s:
            self._interrupt()
        return ""

    def _interrupt(self) -> None:
        if self.interrupted_at_s is None:
            self.interrupted_at_s = self.seconds()
            with suppress(ProcessLookupError):
                if self.program.interrupt_group:
                    os.killpg(self.process.pid, signal.SIGINT)
                else:
                    self.process.send_signal(signal.SIGINT)


def _after(program: Program, held_s: float) -> Program:
    """The program with what is left of the time after which it is asked to end."""
    if program.interrupt_after_s is None:
        return program
    return replace(program, interrupt_after_s=max(0.0, program.interrupt_after_s - held_s))


@contextmanager
def _started(
    program: Program, workspace: Workspace, mark: str
) -> Generator[tuple[subprocess.Popen[bytes], float, bytes, float]]:
    """The running program, when it began, what it said before, and how long it waited to begin.

    Nothing of it runs afterwards, whatever happens in between.
    """
    assert len(program.stdin) <= STDIN_BYTES_MAX
    account = _account(program, workspace)
    place, argv = _placed(program, workspace, account, mark)
    if workspace.node is not None:
        account = _Account()  # there alone
    environment = {
        **inherited(workspace.hidden),
        **workspace.environment,
        **program.environment,
        **account.environment,
        MARK: mark,
    }
    try:
        process = subprocess.Popen(
            [*GATE, *argv],
            cwd=place,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            user=account.uid,
            group=account.gid,
            extra_groups=account.groups,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StageFailed(program.stage, f"{_name(program)} cannot be started: {error}") from error
    begun = 0
    try:
        begun = start_time(process.pid)
        if workspace.admit is not None:
            workspace.admit(process.pid)
        assert process.stdin is not None
        said, held_s = b"", 0.0
        if program.gate is not None:
            begun_s = time.monotonic()
            said = _wait_at_gate(program, process)
            held_s = time.monotonic() - begun_s
        # Before it is let go: on a busy machine it may have run for milliseconds before we run again.
        start_s = time.monotonic()
        with suppress(BrokenPipeError):
            process.stdin.write(b"\n" + program.stdin)
            process.stdin.flush()
            if not program.keep_stdin:
                process.stdin.close()
        yield process, start_s, said, held_s
    finally:
        kill_marked(process, mark, begun)
        if workspace.node is not None:
            workspace.node.end_load(f"{MARK}={mark}")
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _placed(
    program: Program, workspace: Workspace, account: _Account, mark: str
) -> tuple[Path, Sequence[str]]:
    """The directory that the program here begins in, and its words; on a node, it stands for another one."""
    if workspace.node is None:
        return workspace.directory, program.argv
    given = {**workspace.environment, **program.environment, **account.environment, MARK: mark}
    there = ["env", "-C", str(workspace.directory), *(f"{name}={value}" for name, value in given.items())]
    if account.uid is not None:
        there += ["setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--init-groups"]
    if workspace.group is not None:
        there = ["sh", "-c", _JOIN, "join", str(workspace.group / "cgroup.procs"), *there]
    return Path("/"), workspace.node.load_words([*there, *program.argv], group=program.interrupt_group)


def _wait_at_gate(program: Program, process: subprocess.Popen[bytes]) -> bytes:
    """Wait until the program and all others are ready; what it said until then.

    Raises:
        StageFailed: it was not ready within its time limit.
        Unstarted: all was over before.
    """
    assert program.gate is not None
    assert process.stdin is not None
    said = b""
    if program.ready:
        with suppress(BrokenPipeError):
            process.stdin.write(b"\n")
            process.stdin.flush()
        said, is_ready = wait_until_ready(program, process)
        if not is_ready:
            return said  # it has ended, and its status says why
    program.gate.wait()
    return said


@dataclass(frozen=True, slots=True)
class _Account:
    """Whom a program runs as; None: as ourselves."""

    uid: int | None = None
    gid: int | None = None
    groups: list[str | int] | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def _account(program: Program, workspace: Workspace) -> _Account:
    """The workspace's user."""
    if workspace.user is None:
        return _Account()
    try:
        entry = pwd.getpwnam(workspace.user)
    except KeyError as error:
        problem = f"there is no user {workspace.user!r}; name another in target.user"
        raise StageFailed(program.stage, problem) from error
    environment = {"USER": entry.pw_name, "LOGNAME": entry.pw_name, "HOME": entry.pw_dir}
    if workspace.node is not None:  # root starts it there
        return _Account(entry.pw_uid, entry.pw_gid, environment=environment)
    if os.geteuid() == entry.pw_uid:
        return _Account(environment=environment)
    if os.geteuid() != 0:
        problem = f"only root can run a load as user {workspace.user!r}; leave target.user out"
        raise StageFailed(program.stage, problem)
    return _Account(entry.pw_uid, entry.pw_gid, [*os.getgrouplist(entry.pw_name, entry.pw_gid)], environment)


def _name(program: Program) -> str:
    return Path(program.argv[0]).name


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
