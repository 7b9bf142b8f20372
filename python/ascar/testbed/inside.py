"""What stands behind a node that is processes of this machine: its first process, and the way to it.

It imports nothing but the standard library, so that it starts in milliseconds:

    inside.py first SOCKET               be the first process of a node until standard input ends
    inside.py run NAME SOCKET -- WORDS   run a program of the node as if it were this one
    inside.py remove FOLDER MARK         when standard input ends: kill what has the mark, remove the folder

A program that runs in a node has the input, the output and the environment of who asked for it. Its
descendants belong to the first process, whatever groups and sessions they make, and end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any, NoReturn

MARK = "ASCAR_TESTBED"
"""The variable of the environment by which processes of a testbed are known: FOLDER:RUN:NODE."""
LOCK = "run.lock"
"""The file that whoever runs a testbed holds locked, in its folder."""
READY = b"ready\n"
"""What the first process says when programs can be run."""
UNREACHABLE, NOT_FOUND = 255, 127
"""Exit statuses of `run` besides the program's: the node is off, or was cut; the program is not there."""
_LENGTH = struct.Struct("!I")
_WHY_MAX = 300
_REQUEST_BYTES_MAX = 8 << 20
_REQUEST_S = 10.0
_ASKING_MAX = 128
_END_S = 5.0
_LOOK_S = 0.005
_PATIENCE_S = 10.0
_REMOVED_S = 2.0
_PR_SET_CHILD_SUBREAPER = 36
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LIKE_NEW = (*_PASSED_ON, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


class _Request:
    """What a caller asks for, as far as it has come.

    Args:
        caller: its connection, which does not block.
    """

    def __init__(self, caller: socket.socket) -> None:
        self.caller = caller
        self._length: int | None = None
        self._content = bytearray()
        self.given: list[int] = []
        self.end_s = time.monotonic() + _REQUEST_S

    def whole(self) -> dict[str, Any]:
        """The request, once all of it has come.

        Raises:
            BlockingIOError: more of it is to come.
            OSError, ValueError: it is no request.
        """
        if self._length is None:
            head, self.given, _, _ = socket.recv_fds(self.caller, _LENGTH.size, 3)
            for one in self.given:
                os.set_inheritable(one, False)
            if len(head) != _LENGTH.size or len(self.given) != 3:
                raise ValueError("a request that ends early")
            self._length = _LENGTH.unpack(head)[0]
            if self._length > _REQUEST_BYTES_MAX:
                raise ValueError(f"a request of more than {_REQUEST_BYTES_MAX} bytes")
        while len(self._content) < self._length:
            piece = self.caller.recv(self._length - len(self._content))
            if not piece:
                raise ValueError("a request that ends early")
            self._content += piece
        asked: dict[str, Any] = json.loads(self._content)
        return asked

    def close(self) -> None:
        """Close the files that came with it."""
        for one in self.given:
            os.close(one)
        self.given = []


class _First:
    """The first process of a node. Nobody who asks holds up the others, whatever he sends or leaves unsent.

    Args:
        path: the socket on which it is asked.
    """

    def __init__(self, path: str) -> None:
        self._asking: dict[socket.socket, _Request] = {}
        self._waiting: dict[int, socket.socket] = {}  # the one who waits for each program
        self._late_s: dict[int, float] = {}  # programs whose caller is gone: when they are killed
        self._listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - pathlib takes its time to be imported
        self._listener.bind(path)
        self._listener.listen(128)
        self._woken, woken_by = os.pipe()
        for end in (self._woken, woken_by):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken_by, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Run programs until standard input ends."""
        with selectors.DefaultSelector() as self._selector:
            for source in (0, self._woken, self._listener):
                self._selector.register(source, selectors.EVENT_READ)
            os.write(1, READY)
            while True:
                found = {key.fileobj for key, _ in self._selector.select(self._pause_s())}
                if 0 in found and not os.read(0, 1):
                    return
                if self._woken in found:
                    os.read(self._woken, 4096)
                self._reap()
                for source in found:
                    if source is self._listener:
                        self._accept()
                    elif source in self._asking:
                        self._begin(self._asking[source])
                    elif isinstance(source, socket.socket):
                        self._hear(source)
                self._end_silent()
                self._end_late()

    def _pause_s(self) -> float | None:
        if self._late_s:
            return _LOOK_S
        return _REQUEST_S / 10 if self._asking else None

    def _accept(self) -> None:
        """Listen to the next caller; of too many the one who has been silent longest is told off."""
        try:
            caller, _ = self._listener.accept()
        except OSError:  # no more files can be open
            time.sleep(_LOOK_S)
            return
        caller.setblocking(False)
        if len(self._asking) >= _ASKING_MAX:
            self._refuse(next(iter(self._asking.values())), "others ask")
        self._asking[caller] = _Request(caller)
        self._selector.register(caller, selectors.EVENT_READ)

    def _refuse(self, request: _Request, why: str) -> None:
        del self._asking[request.caller]
        self._selector.unregister(request.caller)
        request.close()
        _tell(request.caller, {"refused": why})

    def _end_silent(self) -> None:
        for request in list(self._asking.values()):
            if time.monotonic() > request.end_s:
                self._refuse(request, f"it was not asked for within {_REQUEST_S:g} s")

    def _begin(self, request: _Request) -> None:
        """Start what a caller asks for, once all of it has come."""
        try:
            asked = request.whole()
            environment = {**asked["environment"], MARK: os.environ[MARK]}
            pid = os.posix_spawnp(
                asked["words"][0],
                asked["words"],
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, one, at) for at, one in enumerate(request.given)],
                setsid=True,
                setsigmask=(),
                setsigdef=_LIKE_NEW,
            )
        except BlockingIOError:
            return
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
            self._refuse(request, why[:_WHY_MAX])
        else:
            del self._asking[request.caller]
            self._waiting[pid] = request.caller
            request.close()

    def _hear(self, caller: socket.socket) -> None:
        """Pass on signals; a caller that is gone wants an end."""
        pid = next((pid for pid, one in self._waiting.items() if one is caller), None)
        if pid is None:
            return
        try:
            signals = caller.recv(64)
        except BlockingIOError:
            return
        except OSError:
            signals = b""
        if not signals:
            self._selector.unregister(caller)
            self._late_s[pid] = time.monotonic() + _END_S
        for number in signals or (signal.SIGTERM,):
            with contextlib.suppress(OSError, ValueError):
                os.killpg(pid, number)

    def _reap(self) -> None:
        """Tell of programs that have ended; orphans just go."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            late = self._late_s.pop(pid, None)
            caller = self._waiting.pop(pid, None)
            if caller is None:
                continue
            if late is None:
                self._selector.unregister(caller)
            _tell(caller, {"status": os.waitstatus_to_exitcode(status)})

    def _end_late(self) -> None:
        for pid, at_s in list(self._late_s.items()):
            if time.monotonic() > at_s:
                self._late_s[pid] = at_s + _END_S
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP)
                    kill_below(pid)  # those in sessions of their own, too
                    os.killpg(pid, signal.SIGKILL)


def _tell(caller: socket.socket, answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        caller.sendall(json.dumps(answer).encode() + b"\n")
    caller.close()


def first(path: str) -> None:
    """Be the first process of a node; when it ends, all of it does."""
    if os.getpid() != 1:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        _First(path).serve()
    finally:
        kill_below(os.getpid())


def run(name: str, path: str, words: list[str]) -> NoReturn:
    """Run a program in a node, and end as it ends."""
    asking = socket.socket(socket.AF_UNIX)
    request = json.dumps({"words": words, "environment": dict(os.environ)}).encode()
    try:
        asking.connect(path)
        socket.send_fds(asking, [_LENGTH.pack(len(request))], [0, 1, 2])
        for number in _PASSED_ON:
            signal.signal(number, lambda number, _: _pass_on(asking, number))
        asking.sendall(request)
        # The program has them now: who reads or writes on their other ends must see it close them.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        line = asking.makefile("rb").readline()
        answer = json.loads(line) if line else {}
    except (OSError, ValueError):
        answer = {}
    if "refused" in answer:
        _end(f"node {name}: {words[0]}: cannot be started: {answer['refused']}", NOT_FOUND)
    if "status" not in answer:
        _end(f"node {name}: is off, or was cut", UNREACHABLE)
    status = answer["status"]
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError, ValueError):  # those that nobody can handle
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def _pass_on(asking: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):
        asking.send(bytes([number]))


def _end(line: str, status: int) -> NoReturn:
    sys.stderr.write(f"{line}\n")
    sys.exit(status)


def remove(folder: str, mark: str) -> None:
    """Wait until who started us ends or says that nothing is left; in the first case remove what is."""
    if os.read(0, 1):
        return
    kill_marked(mark)
    with contextlib.suppress(OSError):
        held = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CLOEXEC)  # noqa: PTH118 - see above
        lock(held, _REMOVED_S)
        import shutil

        shutil.rmtree(folder)


def lock(file: int, limit_s: float) -> None:
    """Lock a file that others lock for a moment each, to see whether somebody keeps it locked.

    Raises:
        BlockingIOError: somebody keeps it locked.
    """
    end_s = time.monotonic() + limit_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end_s:
                raise
            time.sleep(_LOOK_S)
        else:
            return


def kill_marked(mark: str) -> None:
    """Kill every process whose mark begins so with all below it, until there is none."""
    start = f"{MARK}={mark}".encode()

    def carriers() -> list[int]:
        found: list[int] = []
        for pid in _others():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                if any(one.startswith(start) for one in file.read().split(b"\0")):
                    found.append(pid)
        return found

    end_s = time.monotonic() + _PATIENCE_S
    while (left := carriers()) and time.monotonic() < end_s:
        # Stopped, they give their orphans to nobody else, and start nothing.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in left:
                if number == signal.SIGKILL:
                    kill_below(pid)
                _send(pid, number)
        time.sleep(_LOOK_S)


def kill_below(pid: int) -> None:
    """Kill all descendants of a process, until it has none; it must be stopped, or be this one."""
    for one in below(pid):
        _send(one, signal.SIGKILL)
    end_s = time.monotonic() + _PATIENCE_S
    dead = {os.getpid()}  # or to be left alone
    before: list[int] | None = None
    # One who forks and ends is never there when all processes have been looked at. But whoever is left is
    # below a living child, and nobody takes away the dead: if only these are there twice, nobody is left.
    while time.monotonic() < end_s:
        children = _children(pid)
        new = [one for one in children if one not in dead]
        for one in new:
            _send(one, signal.SIGKILL)
        dead.update(one for one in new if not _lives(one))
        if dead.issuperset(children) and children == before:
            return
        if children == before:
            time.sleep(_LOOK_S)
        before = children


def _children(pid: int) -> list[int]:
    """The children of a process, also those that are dead."""
    try:
        found: list[int] = []
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - see above
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):  # it is gone, or this kernel does not tell
        return [one for one in _others() if _state(one)[1] == pid] if _state(pid)[0] else []
    return found


def _lives(pid: int) -> bool:
    return _state(pid)[0] not in {b"Z", b"X", b""}


def _state(pid: int) -> tuple[bytes, int]:
    """The letter of a process's state, and its parent; of none: nothing, and 0."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        facts = file.read().rpartition(b")")[2].split()
        return facts[0], int(facts[1])
    return b"", 0


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def below(pid: int) -> list[int]:
    """The living descendants of a process, as this machine numbers them."""
    children: dict[int, list[int]] = {}
    living: set[int] = set()
    for one in _others():
        state, parent = _state(one)
        children.setdefault(parent, []).append(one)
        if state not in {b"Z", b"X", b""}:
            living.add(one)
    found = list(children.get(pid, ()))
    for one in found:
        found += children.get(one, ())
    return [one for one in found if one in living]


def _others() -> list[int]:
    """All processes but this one."""
    numbers = {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208 - see above
    return sorted(numbers - {os.getpid()})


def main(words: list[str]) -> None:
    """Do what the first word says."""
    match words:
        case ["first", path]:
            first(path)
        case ["run", name, path, "--", *program] if program:
            run(name, path, program)
        case ["remove", folder, mark]:
            remove(folder, mark)
        case _:
            raise SystemExit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
