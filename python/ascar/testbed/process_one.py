"""Process 1 of a node that is a kernel: runs the programs that its serial line asks for, several at once.

It is started inside the node, so it needs nothing but Python itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from contextlib import suppress

from ascar.testbed.frames import (
    CLOSES_INPUT,
    KILLS,
    PIECE_BYTES,
    WINDOW_BYTES,
    FrameKind,
    FrameReader,
    frame,
    room,
    room_of,
    status,
    status_of,
)

_READ_BYTES = 1 << 16
# What Python ignores, and what a shell would have its background ignore.
_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT)


class RunningProgram:
    """A program, its pipes, and what is under way to and from it."""

    def __init__(self, channel: int, words: list[str], at_close: bytes) -> None:
        self.channel = channel
        self.at_close = at_close
        self.room = WINDOW_BYTES
        self.pending = bytearray()
        self.input_ended = False
        self.lost = False
        self.status: int | None = None
        theirs, (self.stdin, self.stdout, self.stderr) = zip(*_pipes(), strict=True)
        try:
            self.pid = os.posix_spawnp(
                words[0],
                words,
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, one, number) for number, one in enumerate(theirs)],
                setsid=True,
                setsigdef=_SIGNALS,
            )
        except BaseException:
            for one in (self.stdin, self.stdout, self.stderr):
                os.close(one)
            raise
        finally:
            for one in theirs:
                os.close(one)
        for one in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(one, False)

    def send(self, number: int) -> None:
        """Send it a signal; below 0: its process group."""
        if self.status is None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number) if number > 0 else os.killpg(self.pid, -number)

    def kill(self) -> None:
        """Kill it with its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


class ProcessOne:
    """All programs of a node, and its line.

    Args:
        line: the serial line, open.
    """

    def __init__(self, line: int) -> None:
        self._line = line
        self._reader = FrameReader()
        self._programs: dict[int, RunningProgram] = {}
        self._files: dict[int, RunningProgram] = {}
        self._ends, wake = os.pipe()
        os.set_blocking(self._ends, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._poll = select.poll()
        self._poll.register(line, select.POLLIN)
        self._poll.register(self._ends, select.POLLIN)

    def serve(self) -> None:
        """Say that the node is up, and run programs until the power is cut."""
        self._say(0, FrameKind.HELLO)
        while True:
            for file, _ in self._poll.poll():
                if file == self._line:
                    self._listen()
                elif file == self._ends:
                    self._reap()
                elif file in self._files:  # what came before may have closed it
                    self._move(self._files[file], file)

    def _listen(self) -> None:
        data = os.read(self._line, _READ_BYTES)
        self._say(0, FrameKind.TAKEN, room(len(data)))
        for channel, kind, content in self._reader.feed(data):
            if kind == FrameKind.START:
                self._start(channel, content)
            elif (program := self._programs.get(channel)) is not None:
                self._take(program, kind, content)

    def _start(self, channel: int, content: bytes) -> None:
        at_close, *words = content.split(b"\0")
        try:
            program = RunningProgram(channel, [os.fsdecode(word) for word in words], at_close)
        except (OSError, ValueError) as error:
            self._say(channel, FrameKind.FAILED, status(getattr(error, "errno", None) or 0))
            return
        self._programs[channel] = program
        for one in (program.stdin, program.stdout, program.stderr):
            self._files[one] = program
        self._look(program)

    def _take(self, program: RunningProgram, kind: FrameKind, content: bytes) -> None:
        match kind:
            case FrameKind.INPUT:
                program.pending += content
            case FrameKind.INPUT_END:
                program.input_ended = True
            case FrameKind.ROOM:
                program.room += room_of(content)
            case FrameKind.SIGNAL:
                program.send(status_of(content))
            case FrameKind.CLOSE:
                program.lost = program.input_ended = True
                if program.at_close == KILLS:
                    program.kill()
                else:
                    assert program.at_close == CLOSES_INPUT
            case _:
                raise ValueError(f"a node is not told {kind!r}")
        self._feed(program)
        self._look(program)

    def _move(self, program: RunningProgram, file: int) -> None:
        if file == program.stdin:
            self._feed(program)
        else:
            self._drain(program, file)
        self._look(program)

    def _feed(self, program: RunningProgram) -> None:
        """Give it its input as far as it takes it."""
        taken = 0
        try:
            while program.stdin >= 0 and program.pending:
                count = os.write(program.stdin, program.pending[:PIECE_BYTES])
                del program.pending[:count]
                taken += count
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._close(program, "stdin")
        if program.stdin < 0:
            taken += len(program.pending)
            program.pending.clear()
        elif program.input_ended and not program.pending:
            self._close(program, "stdin")
        if taken:
            self._say(program.channel, FrameKind.ROOM, room(taken))

    def _drain(self, program: RunningProgram, file: int) -> bool:
        """Pass on a piece of its output; whether there was one."""
        try:
            piece = os.read(file, PIECE_BYTES)
        except BlockingIOError:
            return False
        if not piece:
            self._close(program, "stdout" if file == program.stdout else "stderr")
        elif not program.lost:
            program.room -= len(piece)
            kind = FrameKind.OUTPUT if file == program.stdout else FrameKind.ERRORS
            self._say(program.channel, kind, piece)
        return bool(piece)

    def _look(self, program: RunningProgram) -> None:
        """Wait for what it can do next, or say that it has ended."""
        if program.status is not None and (
            program.stdout < 0 or (program.lost and program.at_close == KILLS)
        ):
            self._end(program)
            return
        self._watch(program.stdin, select.POLLOUT if program.pending else 0)
        may_say = program.lost or program.room > 0
        for one in (program.stdout, program.stderr):
            self._watch(one, select.POLLIN if may_say else 0)

    def _watch(self, file: int, events: int) -> None:
        if file < 0:
            return
        if events:
            self._poll.register(file, events)
        else:
            with suppress(KeyError):
                self._poll.unregister(file)

    def _end(self, program: RunningProgram) -> None:
        # What it had written is in the pipe; what still runs in its background may write for ever.
        left = _READ_BYTES // PIECE_BYTES
        while program.stderr >= 0 and left and self._drain(program, program.stderr):
            left -= 1
        for name in ("stdin", "stdout", "stderr"):
            self._close(program, name)
        del self._programs[program.channel]
        assert program.status is not None
        self._say(program.channel, FrameKind.ENDED, status(program.status))

    def _close(self, program: RunningProgram, name: str) -> None:
        file = getattr(program, name)
        if file >= 0:
            self._watch(file, 0)
            del self._files[file]
            os.close(file)
            setattr(program, name, -1)

    def _reap(self) -> None:
        """Take note of all that have ended: also of orphans, which are given to process 1."""
        with suppress(BlockingIOError):
            os.read(self._ends, _READ_BYTES)
        while True:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for program in list(self._programs.values()):
                if program.pid == pid and program.status is None:
                    program.status = os.waitstatus_to_exitcode(how)
                    self._look(program)

    def _say(self, channel: int, kind: FrameKind, content: bytes = b"") -> None:
        said = memoryview(frame(channel, kind, content))
        while said:
            said = said[os.write(self._line, said) :]


def _pipes() -> list[tuple[int, int]]:
    """Pipes for input, output and errors: the end of the program, ours."""
    (stdin, ours), (out, stdout), (err, stderr) = os.pipe(), os.pipe(), os.pipe()
    return [(stdin, ours), (stdout, out), (stderr, err)]


def _make_raw(line: int) -> None:
    """Let all bytes pass as they are."""
    mode = termios.tcgetattr(line)
    mode[0] = mode[1] = mode[3] = 0
    mode[2] = (mode[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8 | termios.CLOCAL | termios.CREAD
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    termios.tcsetattr(line, termios.TCSANOW, mode)


def main() -> None:
    """Serve the line that the first argument names."""
    line = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)
    _make_raw(line)
    ProcessOne(line).serve()
