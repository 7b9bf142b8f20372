"""A node that is processes of this machine: they see all of it, and end with the node."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from ascar.errors import EnvironmentLacks, WorkError
from ascar.nodes.process import ends_with_us, facts_by_shell, finish, put_by_shell, start
from ascar.program.node_binary import find_ascard
from ascar.testbed import inside

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ascar.nodes import Finished, NodeFacts

SOCKET_BYTES_MAX = 107
"""The greatest length of a unix socket's path."""


class ProcessNode:
    """A node of kind "process": a first process, and the descendants that it keeps.

    Args:
        name: what messages call it.
        folder: its folder, in which its programs begin; it is made.
        mark: what its processes carry in their environment.

    Raises:
        EnvironmentLacks: the path of the folder is too long for sockets.
    """

    def __init__(self, name: str, folder: Path, mark: str) -> None:
        self._name, self.folder, self.mark = name, folder, mark
        self._socket = folder / "node.control.sock"
        self._first: subprocess.Popen[bytes] | None = None
        if len(os.fsencode(self._socket)) > SOCKET_BYTES_MAX:
            raise EnvironmentLacks(
                f"folder {str(folder)!r}: too long for the path of a socket; "
                "set ASCAR_RUNTIME_DIR to a shorter one"
            )

    @property
    def name(self) -> str:
        """See `Node.name`."""
        return self._name

    @property
    def ascard(self) -> str:
        """See `Node.ascard`."""
        return str(find_ascard())

    @property
    def alive(self) -> bool:
        """See `TestbedMachine.alive`."""
        first = self._first  # which another thread may take away
        return first is not None and first.poll() is None

    def boot(self, limit_s: float) -> None:
        """See `TestbedMachine.boot`."""
        if self.alive:
            return
        self.cut()  # what is left where only the first process was killed
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stale in self.folder.glob("*.sock"):
            stale.unlink()
        words = [sys.executable, "-I", "-S", inside.__file__, "first", str(self._socket)]
        with (self.folder / "node.log").open("ab") as log:
            try:
                self._first = subprocess.Popen(
                    self._surroundings(words),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self.folder,
                    env={**os.environ, inside.MARK: self.mark},
                    start_new_session=True,
                )
            except OSError as error:
                raise EnvironmentLacks(f"node {self._name}: cannot be started: {error}") from error
        assert self._first.stdout is not None
        ready, _, _ = select.select([self._first.stdout], [], [], limit_s)
        if not ready or self._first.stdout.read(len(inside.READY)) != inside.READY:
            said = (self.folder / "node.log").read_text("utf-8", "replace").strip().splitlines()
            self.cut()
            why = f"not within {limit_s:g} s" if not ready else (said or ["it ended"])[-1][:300]
            raise WorkError(f"node {self._name}: does not start: {why}")

    def cut(self) -> None:
        """See `TestbedMachine.cut`."""
        process = self._first
        if process is not None:
            if process.poll() is None:
                self._kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
            self._first = None
            inside.kill_marked(self.mark)  # where the first process was killed alone before

    def close(self) -> None:
        """See `TestbedMachine.close`."""
        self.cut()

    def run(self, argv: Sequence[str], limit_s: float, stdin: bytes = b"") -> Finished:
        """See `Node.run`."""
        done = finish(self._name, self.words(argv), limit_s, stdin, ends_with_us())
        if done.status in {inside.UNREACHABLE, inside.NOT_FOUND} and done.err.startswith(
            f"node {self._name}: "
        ):
            raise EnvironmentLacks(done.err.strip()[:300])
        return done

    def words(self, argv: Sequence[str]) -> list[str]:
        """See `Node.words`."""
        there = [self._name, str(self._socket), "--", *argv]
        return [sys.executable, "-I", "-S", inside.__file__, "run", *there]

    def open(self, argv: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        """See `Node.open`."""
        return start(self._name, self.words(argv), stderr)

    def put(self, content: bytes, path: str, mode: int = 0o600) -> None:
        """See `Node.put`."""
        put_by_shell(self, content, path, mode)

    def facts(self) -> NodeFacts:
        """See `Node.facts`."""
        return facts_by_shell(self)

    def _surroundings(self, words: Sequence[str]) -> list[str]:
        """The command that starts the first process."""
        return list(words)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the first process and all below it; stopped, it starts nothing meanwhile."""
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
            inside.kill_below(process.pid)
            process.kill()


def wait_for(pid: int, limit_s: float) -> int | None:
    """The only child of a process, once it is there; None where there is none in time."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        if found := inside.below(pid):
            return found[0]
        time.sleep(0.005)
    return None
