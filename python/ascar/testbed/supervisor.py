"""The process that holds a testbed: it starts all of it, answers commands, and ends all of it.

Everything that it starts has the end of a pipe of which this process alone has the other end.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from ascar import typed
from ascar.errors import AscarError, InputError, WorkError
from ascar.results.testbed import TestbedStanding
from ascar.testbed.file import TestbedFile  # noqa: TC001  # msgspec reads the annotation
from ascar.testbed.folder import TestbedFolder, TestbedRunner
from ascar.testbed.running import RunningTestbed

if TYPE_CHECKING:
    from types import FrameType

_LOOK_S = 0.25
_REQUEST_BYTES_MAX = 1 << 20
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class TestbedOrder(msgspec.Struct, frozen=True):
    """What the process is told on standard input.

    Attributes:
        wanted: the testbed.
        file: the path of its file, for messages.
        folder: its folder.
    """

    wanted: TestbedFile
    file: str
    folder: str


class _Ended(BaseException):
    """Somebody asks it to end."""


class _Answers:
    """Answers what commands ask, a line of JSON each.

    Args:
        testbed: what they ask of.
        runner: who holds it.
        path: the socket.
    """

    def __init__(self, testbed: RunningTestbed, runner: TestbedRunner, path: Path) -> None:
        self._testbed, self._runner, self._folder = testbed, runner, path.parent
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()

    def standing(self) -> TestbedStanding:
        """How the testbed stands."""
        self._testbed.look()
        return TestbedStanding(
            testbed=self._runner.name,
            pid=self._runner.pid,
            file=self._runner.file,
            started_at=datetime.fromtimestamp(self._runner.started_s, UTC).isoformat(timespec="seconds"),
            folder=str(self._folder),
            nodes=self._testbed.nodes(),
            disks=self._testbed.disks(),
            proxies=self._testbed.proxies(),
            agents=self._testbed.agents(),
            connections=self._testbed.connections(),
        )

    def _serve(self) -> None:
        while True:
            try:
                asking, _ = self._listener.accept()
            except OSError:  # no more files can be open
                time.sleep(_LOOK_S)
                continue
            threading.Thread(target=self._answer_one, args=(asking,), daemon=True).start()

    def _answer_one(self, asking: socket.socket) -> None:
        with asking, suppress(OSError):
            asking.settimeout(10)
            line = asking.makefile("rb").readline(_REQUEST_BYTES_MAX)
            try:
                answer = {"ok": msgspec.to_builtins(self._answer(json.loads(line)))}
            except AscarError as error:
                answer = {"error": error.message, "status": error.exit_status}
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                answer = {"error": f"cannot be understood: {error!r:.200}", "status": 1}
            except (OSError, subprocess.SubprocessError) as error:  # such as a full file system
                answer = {"error": _said(error, str(self._folder)), "status": 1}
            asking.settimeout(None)
            asking.sendall(json.dumps(answer).encode() + b"\n")

    def _answer(self, asked: dict[str, Any]) -> Any:
        match asked["ask"]:
            case "status":
                pass
            case "words":
                return self._testbed.machine(asked["node"]).words(asked["words"])
            case "cut":
                self._testbed.cut(asked["node"])
            case "boot":
                self._testbed.boot(asked["node"])
            case other:
                raise InputError(f"ask = {other!r:.80}: must be one of status, words, cut, boot")
        return self.standing()


def hold(order: TestbedOrder) -> NoReturn:
    """Hold a testbed until somebody asks for its end."""
    for number in _SIGNALS:
        signal.signal(number, _end)
    try:
        with TestbedFolder(Path(order.folder)) as folder:
            runner = TestbedRunner(os.getpid(), order.wanted.name, order.file, time.time())
            folder.announce(runner)  # from now on somebody can end it
            with RunningTestbed(order.wanted, folder, _tell) as testbed:
                answers = _Answers(testbed, runner, folder.control)
                _say({"up": msgspec.to_builtins(answers.standing())})
                _close_output()
                end = _noted_end()
                while not end.poll(1000 * _LOOK_S):
                    testbed.look()
        sys.exit(0)
    except _Ended:
        _fail(WorkError(f"testbed {order.wanted.name!r}: somebody ended it before it was up"))
        sys.exit(0)
    except AscarError as error:
        _fail(error)
        sys.exit(error.exit_status)
    except OSError as error:
        _fail(WorkError(_said(error, order.folder)))
        sys.exit(1)


def _end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
    for one in _SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise _Ended


def _noted_end() -> select.poll:
    """What is ready once somebody asks for the end: from now on, signals are noted and interrupt nothing.

    What a signal raises may come just after a lock was taken, such as that of a process which is looked at,
    and before what would give it back: whoever then waits for the process waits for ever.
    """
    noted, note = os.pipe()
    os.set_blocking(note, False)
    signal.set_wakeup_fd(note, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    end = select.poll()
    end.register(noted, select.POLLIN)
    return end


def _said(error: OSError | subprocess.SubprocessError, place: str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or place}: {error.strerror}"
    return str(error)[:300]


def _fail(error: AscarError) -> None:
    with suppress(WorkError):
        _say({"error": error.message, "status": error.exit_status})


def _tell(stage: str) -> None:
    _say({"stage": stage})


def _say(line: dict[str, Any]) -> None:
    try:
        os.write(1, json.dumps(line).encode() + b"\n")
    except OSError:
        raise WorkError("nobody waits for the testbed any more") from None


def _close_output() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for one in (0, 1, 2):
        os.dup2(nothing, one)


def main() -> None:
    """Take the order, and carry it out."""
    order = typed.decode(sys.stdin.buffer.read(), TestbedOrder)
    os.chdir("/")  # the folder of the user may be moved or unmounted meanwhile
    hold(order)


if __name__ == "__main__":
    main()
