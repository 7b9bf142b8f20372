"""The processes of a session: started, supervised, restarted when they fail, given up in the end."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ascar.errors import EnvironmentLacks, InputError, WorkError
from ascar.messaging import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_LOG_BYTES_MAX = 10 << 20
_LAST_WORDS_MAX = 400
_BAD_INPUT = 2


@dataclass(slots=True)
class RestartPolicy:
    """When something that keeps dying is started again, and when it is given up; time is an argument.

    Attributes:
        deaths_max: deaths within `period_s` that are one too many.
        period_s: see there.
        pause_s: the pause before the first restart; it doubles with each further one, up to `pause_max_s`.
        pause_max_s: see there.
    """

    deaths_max: int = 6
    period_s: float = 120.0
    pause_s: float = 0.5
    pause_max_s: float = 15.0
    _deaths_s: list[float] = field(default_factory=list[float])

    def died(self, now_s: float) -> float | None:
        """Note a death: when to start again; None: it is given up."""
        self._deaths_s = [at for at in self._deaths_s if now_s - at < self.period_s] + [now_s]
        count = len(self._deaths_s)
        if count >= self.deaths_max:
            return None
        return now_s + min(self.pause_s * 2 ** (count - 1), self.pause_max_s)


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """A process ended that should not have.

    Attributes:
        part: the name of the process.
        status: exit status; below zero: minus the signal.
        words: the last line of its log.
    """

    part: str
    status: int
    words: str


class ManagedProcess:
    """One process.

    It ends with us, whatever ends us: the kernel then sends it SIGTERM, on which agents put knobs back. It
    has to be started by a thread that stays.

    Args:
        name: the name for people.
        words: the program and its arguments.
        folder: the working folder, which also holds the log NAME.log.
        clock: seconds, monotonic.
    """

    def __init__(
        self, name: str, words: Sequence[str], folder: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.restarts = 0
        self.log = folder / f"{name}.log"
        self._words, self._folder, self._clock = list(words), folder, clock
        self._patience = RestartPolicy()
        self._process: subprocess.Popen[bytes] | None = None
        self._due_s: float | None = None

    @property
    def pid(self) -> int | None:
        """Of the process; None while there is none."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    @property
    def standing(self) -> dict[str, Any]:
        """As P.session tells it."""
        state = "running" if self.pid is not None else "waiting" if self._due_s is not None else "ended"
        return {"state": state, "pid": self.pid, "restarts": self.restarts}

    def check(self) -> None:
        """Whether its file is right.

        Raises:
            InputError: it is not; in the program's words.
            EnvironmentLacks: the program does not know the command, or does not run.
        """
        done = self._ask("--check")
        if done.returncode == _BAD_INPUT:
            raise InputError(f"{self.name}: {_one_line(done.stderr)}")
        if done.returncode != 0:
            raise EnvironmentLacks(f"{self.name}: `{' '.join(self._words[:3])}`: {_one_line(done.stderr)}")

    def start(self) -> None:
        """Start it.

        Raises:
            EnvironmentLacks: it cannot be started.
        """
        self._due_s = None
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        try:
            with private_log(self.log) as log:
                self._process = subprocess.Popen(
                    bound(self._words, signal.SIGTERM),
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # ^C is for us: we end it when its turn comes
                )
        except OSError as error:
            raise EnvironmentLacks(f"{self.name}: cannot be started: {error}") from None

    def watch(self) -> ProcessExit | None:
        """Start it again when its time has come; the death that was noticed now, if any.

        Raises:
            WorkError: it has died too often, or is gone for good.
        """
        now_s = self._clock()
        if self._due_s is not None:
            if now_s >= self._due_s:
                self.restarts += 1
                self.start()
            return None
        if self._process is None or self._process.poll() is None:
            return None
        death = ProcessExit(self.name, self._process.returncode, last_words(self.log))
        self._process = None
        self._due_s = self._patience.died(now_s)
        if self._due_s is None:
            raise WorkError(
                f"{self.name}: died {self._patience.deaths_max} times within "
                f"{self._patience.period_s:g} s, and is given up: {death.words}; see {self.log}"
            )
        return death

    def end(self, patience_s: float) -> None:
        """End it, politely, then for certain; more than once is allowed."""
        self._due_s = None
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()

    def _ask(self, word: str) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [*self._words, word], cwd=self._folder, capture_output=True, timeout=60, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EnvironmentLacks(f"{self.name}: cannot be run: {error}") from None


def private_log(path: Path) -> IO[bytes]:
    """A log, opened to add to it, that only its owner may read; one that is there stays open to its group."""
    log = open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 - returned
    mode = stat.S_IMODE(os.fstat(log.fileno()).st_mode)
    if mode & stat.S_IRWXO:
        with contextlib.suppress(OSError):  # another's, or of a file system without rights
            os.fchmod(log.fileno(), mode & ~stat.S_IRWXO)
    return log


def last_words(log: Path) -> str:
    """The last line of a log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 10 * _LAST_WORDS_MAX))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "no words"
    return lines[-1][:_LAST_WORDS_MAX] if lines else "no words"


def _one_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_LAST_WORDS_MAX] if lines else "no words"
