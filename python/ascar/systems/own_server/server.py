"""A server of a study's own: a directory, a process or several, a socket only for its account.

    PLACE/data      the data of the running server
    PLACE/saved     a copy of it as the load's fill left it, from which each trial starts
    PLACE/load      where the load runs
    PLACE           the socket; nothing listens on the network

The keeper of the user ends the processes and removes PLACE if we are killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from ascar.errors import StageFailed, WorkError
from ascar.program.environment import inherited
from ascar.systems.program.foreground import Foreground

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.program.account import Account
    from ascar.systems.keeper import Keeper

_LOOK_S = 0.02
_END_S = 30.0
_GRACE_S = 2.0
_STAGE_S = 600.0


class ServerPrograms(Protocol):
    """The programs of one version of a server."""

    @property
    def folder(self) -> Path:
        """The directory of the programs."""
        ...


P = TypeVar("P", bound=ServerPrograms)


class OwnServer(Generic[P]):
    """The server; nothing runs until it is launched.

    Args:
        programs: the version to run.
        account: whom it runs as.
        place: the directory, which exists and belongs to the account.
        keeper: a keeper of the user.
        fixed: settings as the server takes them, which no configuration overrides.
    """

    name: ClassVar[str]
    """The name for people."""
    variables: ClassVar[tuple[str, ...]] = ()
    """How the names of variables begin that lead its programs to another server, such as MYSQL_HOST."""

    def __init__(
        self, programs: P, account: Account, place: Path, keeper: Keeper, fixed: Sequence[str] = ()
    ) -> None:
        self.programs, self.account, self.place = programs, account, place
        self._fixed = fixed
        self.admit: Callable[[int], None] | None = None
        """Puts a process of the filled server, by its id, into the control group that limits its memory."""
        self._keeper = keeper
        self._processes: list[Foreground] = []
        self._seen: dict[str, tuple[int, int, int]] = {}

    @property
    def data(self) -> Path:
        """The directory of the data."""
        return self.place / "data"

    @property
    def saved(self) -> Path:
        """The copy that trials start from; it is there once `save` was called."""
        return self.place / "saved"

    @property
    def reached(self) -> Mapping[str, str]:
        """The variables by which a load finds the server."""
        raise NotImplementedError

    def create(self) -> None:
        """Make an empty directory of data.

        Raises:
            StageFailed: it cannot be made.
        """
        self._remove(self.data)
        self._make(self.data)

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Start the server with lines of its configuration file, and wait until it answers.

        Raises:
            StageFailed: it does not start, e.g. since it refuses a setting; with its last words.
        """
        raise NotImplementedError

    def ping(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        raise NotImplementedError

    def save(self) -> None:
        """Keep the data as it is as the state from which trials start; the server is stopped."""
        self._remove(self.saved)
        self.data.rename(self.saved)

    def load(self) -> None:
        """Make the data as it was saved, on disk and not in memory; the server is stopped.

        Raises:
            StageFailed: it cannot be copied.
        """
        self._remove(self.data)
        self._run(["cp", "-a", "--reflink=auto", "--", str(self.saved), str(self.data)], as_us=True)
        self._run(["sync", "-f", str(self.data)], as_us=True)
        for folder, _, names in os.walk(self.place):
            for name in names:
                with suppress(OSError), Path(folder, name).open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def check_alive(self) -> None:
        """See that the server runs.

        Raises:
            StageFailed: it does not.
        """
        if not self._processes:
            raise StageFailed("program", f"the {self.name} server is not running")
        for process in self._processes:
            process.check_alive()

    def stop(self) -> None:
        """End the server; it writes what is not written. What was started last ends first."""
        try:
            with suppress(StageFailed):
                self.check_alive()
                self._shut_down()
        finally:
            while self._processes:
                self._processes.pop().end()

    def _shut_down(self) -> None:
        """Ask the server to end, and wait until it has."""
        raise NotImplementedError

    def _answers(self) -> bool:
        """Whether the server takes requests."""
        raise NotImplementedError

    def _reason(self, said: str) -> str | None:
        """The line of the server's last words that says why it ended, rather than that it did."""
        raise NotImplementedError

    def _launch(self, argv: Sequence[str], environment: Mapping[str, str], limit_s: float) -> None:
        """Start the server's program, and wait until it answers."""
        self._start(argv, environment)
        self._wait_until(self._answers, limit_s)

    def _start(self, argv: Sequence[str], environment: Mapping[str, str]) -> Foreground:
        """Start a program of the server.

        Raises:
            WorkError: it was replaced in mid-study.
        """
        admit = self.admit if self.saved.exists() else None
        self._check_not_replaced(argv[0])
        words = self.account.run(*argv)
        process = Foreground(
            words, environment, self.place, self._keeper, _END_S, admit=admit, hidden=self.variables
        )
        self._processes.append(process)
        return process

    def _wait_until(self, answers: Callable[[], bool], limit_s: float, look_s: float = _LOOK_S) -> None:
        """Wait until what was started answers; where it does not, the server is stopped."""
        begun_s = time.monotonic()
        while not answers():
            try:
                self.check_alive()
            except StageFailed as failure:
                self.stop()
                reason = self._reason(failure.stderr) or failure.message
                problem = f"the {self.name} server does not start: {reason}"[:400]
                raise StageFailed("change", problem, failure.stderr) from None
            if time.monotonic() - begun_s > limit_s:
                self.stop()
                raise StageFailed("change", f"the {self.name} server does not answer after {limit_s:g} s")
            time.sleep(look_s)

    def _asked(self, argv: Sequence[str], statement: str, limit_s: float) -> str:
        """What a client of the server prints of a statement.

        Args:
            argv: the client's program and its arguments, the statement among them.
            statement: the statement, for people.
            limit_s: seconds that it may take.

        Raises:
            StageFailed: the server refuses it, or does not answer in time.
        """
        words = self.account.run(*argv)
        known = inherited(self.variables)
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=limit_s, check=False, cwd=self.place, env=known
            )
        except subprocess.TimeoutExpired:
            problem = f"the {self.name} server does not answer within {limit_s:g} s: {statement[:80]}"
            raise StageFailed("program", problem) from None
        if done.returncode != 0:
            self.check_alive()  # a server that died says why, and its client only that it is gone
            raise StageFailed("program", f"{self.name}: {last_line(done.stderr)}", done.stderr)
        return done.stdout

    def _make(self, path: Path) -> None:
        """Make a directory of the server's account."""
        try:
            path.mkdir()
            self._give(path)
        except OSError as error:
            raise StageFailed("change", f"{path}: {error.strerror}") from error

    def _write(self, path: Path, text: str, *, private: bool = False) -> None:
        """Write a file of the server's account; a private one can be read by it and root alone."""
        mode = 0o600 if private else 0o666
        try:
            with open(
                path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)
            ) as file:
                file.write(text)
            self._give(path)
        except OSError as error:
            raise StageFailed("change", f"{path}: {error.strerror}") from error

    def _give(self, path: Path) -> None:
        if self.account.name is not None:
            os.chown(path, self.account.uid, self.account.gid)

    def _remove(self, path: Path) -> None:
        try:
            if path.exists():
                shutil.rmtree(path)
        except OSError as error:
            raise StageFailed("change", f"{error.filename}: {error.strerror}") from error

    def _run(self, *programs: Sequence[str], as_us: bool = False, limit_s: float = _STAGE_S) -> None:
        """Run programs that end by themselves, side by side.

        If we are killed, they are ended before their files are removed.
        """
        started: list[Foreground] = []
        try:
            for argv in programs:
                words = list(argv) if as_us else self.account.run(*argv)
                started.append(
                    Foreground(words, {}, self.place, self._keeper, _GRACE_S, hidden=self.variables)
                )
            for argv, process in zip(programs, started, strict=True):
                self._await(process, Path(argv[0]).name, limit_s)
        finally:
            for process in started:
                process.end()

    def _check_not_replaced(self, program: str) -> None:
        """See that a program is the one that ran before.

        Raises:
            WorkError: it is not, as after an upgrade of its package: what was measured does not compare.
        """
        with suppress(OSError):  # whoever starts it says so
            told = Path(program).stat()
            present = (told.st_ino, told.st_size, told.st_mtime_ns)
            if self._seen.setdefault(program, present) != present:
                raise WorkError(f"{program} was replaced in mid-study, as by an upgrade; the study ends")

    @staticmethod
    def _await(process: Foreground, name: str, limit_s: float) -> None:
        try:
            process.wait(limit_s)
        except StageFailed as failure:
            problem = last_line(failure.stderr) if failure.stderr else failure.message
            raise StageFailed("change", f"{name}: {problem}", failure.stderr) from None


def last_line(text: str) -> str:
    """The last line of what a program said."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "no message"
