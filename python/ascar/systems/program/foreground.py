"""A program that ascar starts, watches and ends, with all that it starts itself.

It leads a session of its own and carries a mark in its environment. The command that ends it (`ascard keeper
--end`) is in the keeper's journal before the program runs its first instruction: whoever is killed, the
program ends. When memory runs out, it is the first to be killed.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ascar.errors import StageFailed
from ascar.program.environment import inherited
from ascar.program.node_binary import find_ascard
from ascar.program.running import GATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO

    from ascar.systems.keeper import Keeper

MARK: Final = "ASCAR_PROGRAM"
_TAIL_LINES = 200
_LINE_BYTES = 4096
_BEGAN = 19  # in stat, among what follows the program's name
_SESSION = 3
_PAGES = 21
_LATER_S = 5.0
_FIRST = "1000"


class Foreground:
    """A running program.

    Args:
        argv: the program and its arguments.
        environment: variables set on top of what it inherits from us.
        directory: its working directory.
        keeper: a keeper of the user, which ends the program when we are gone.
        end_s: seconds that it has to end before it is killed.
        admit: puts it, by its process id, into a control group before its first instruction; None: nowhere.
        hidden: how the names of variables begin that it does not inherit.

    Raises:
        StageFailed: it cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        keeper: Keeper,
        end_s: float,
        *,
        admit: Callable[[int], None] | None = None,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self.name = Path(argv[0]).name
        self._keeper, self._end_s = keeper, end_s
        self._said: deque[bytes] = deque(maxlen=_TAIL_LINES)
        mark = secrets.token_hex(16)
        try:
            self._process = subprocess.Popen(
                [*GATE, *argv],
                cwd=directory,
                env={**inherited(hidden), **environment, MARK: mark},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise StageFailed("change", f"target.start: {argv[0]} cannot be started: {error}") from error
        assert self._process.stdout is not None
        self._hearing = threading.Thread(target=self._hear, args=(self._process.stdout,), daemon=True)
        self._hearing.start()
        try:
            killed_first(self.pid)
            self._ending = ending_of(self.pid, mark, end_s)
            keeper.undo_command(self._ending, limit_s=min(60.0, end_s + _LATER_S))
            if admit is not None:
                admit(self.pid)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        assert self._process.stdin is not None
        with suppress(OSError), self._process.stdin as gate:
            gate.write(b"\n")

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def check_alive(self) -> None:
        """See that it has not ended.

        Raises:
            StageFailed: it has; with its last words.
        """
        status = self._process.poll()
        if status is None:
            return
        self._hearing.join(1.0)
        said = b"\n".join(list(self._said)).decode("utf-8", "replace")
        lines = [line for line in said.splitlines() if line.strip()]
        last = f": {lines[-1][:300]}" if lines else ""
        how = f"exited with {status}" if status >= 0 else f"was killed by signal {-status}"
        raise StageFailed("program", f"{self.name} {how}{last}", said)

    def wait(self, limit_s: float) -> None:
        """Wait until it has ended by itself.

        Raises:
            StageFailed: it has failed, with its last words, or goes on after that many seconds.
        """
        try:
            status = self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise StageFailed("program", f"{self.name} goes on after {limit_s:g} s") from None
        if status != 0:
            self.check_alive()

    def memory_bytes(self) -> float:
        """The resident memory of its session."""
        pages = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with suppress(OSError, IndexError, ValueError):
                    facts = _stat(int(entry.name))
                    if facts[_SESSION] == str(self.pid):
                        pages += int(facts[_PAGES])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))

    def end(self) -> None:
        """End it, and all that it started.

        Raises:
            StageFailed: something of it does not die.
        """
        done = subprocess.run(self._ending, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StageFailed("change", f"{self.name}: does not end: {done.stderr.strip()[:300]}")
        self._process.wait()
        self._hearing.join(1.0)
        self._keeper.undo_forget(self._ending)

    def _hear(self, pipe: IO[bytes]) -> None:
        """Keep the last lines, so that the program never waits for a reader."""
        with suppress(OSError, ValueError), pipe:
            while line := pipe.readline(_LINE_BYTES):
                self._said.append(line.rstrip(b"\n"))


def killed_first(pid: int) -> None:
    """Have the kernel kill a process, and what it starts, before all others when memory runs out (proc(5)).

    A trial may ask for too much, which is to fail the trial, and nothing else on the machine.

    Args:
        pid: the process, before its first instruction.
    """
    with suppress(OSError):  # a container may not let it be written
        Path(f"/proc/{pid}/oom_score_adj").write_text(_FIRST, "ascii")


def ending_of(pid: int, mark: str, end_s: float) -> list[str]:
    """The command that ends a program with all that it started, and finds nothing once it has ended.

    Args:
        pid: the process that leads its session.
        mark: what its environment has as `MARK`.
        end_s: seconds that it has to end before it is killed.
    """
    called = f"{pid}:{_stat(pid)[_BEGAN]}:{mark}"
    return [str(find_ascard()), "keeper", "--end", called, "--grace", f"{end_s:g}"]


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process (proc(5), stat), from the state on."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
