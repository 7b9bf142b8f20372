"""A RocksDB database of a study's own: no process of its own, but for the programs that open it.

PLACE/data           the database
PLACE/saved-LAYOUT   a copy of it as the load's fill left it, by the options that say how files are written
PLACE/options        the OPTIONS file of the trial
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.program import Program, check, run_program
from ascar.program.rocksdb import DATABASE, OPEN, OPTIONS, OptionsInForce, RocksPrograms
from ascar.systems.own_server.server import OwnServer

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from ascar.workspace import Workspace

_QUIET_S = 0.2
_LOOK_S = 0.02
_SAVED = "saved-"


class RocksDatabase(OwnServer[RocksPrograms]):
    """The database."""

    name = "RocksDB"
    layout: str = ""
    """The name of the copy that belongs to the options of the trial."""
    in_force: OptionsInForce = OptionsInForce()
    """What RocksDB made of the options of the trial."""

    @property
    def saved(self) -> Path:
        """The copy that trials with this layout start from."""
        return self.place / f"{_SAVED}{self.layout}"

    @property
    def options(self) -> Path:
        """The OPTIONS file of the trial."""
        return self.place / "options"

    @property
    def reached(self) -> Mapping[str, str]:
        """The paths of the database and of its OPTIONS file."""
        return {DATABASE: str(self.data), OPTIONS: str(self.options)}

    def lay_out(self, words: Sequence[str]) -> None:
        """Say how files are written from now on; of other layouts, only the first copy is kept."""
        self.layout = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
        copies = sorted(self.place.glob(f"{_SAVED}*"), key=lambda path: path.stat().st_mtime)
        if not self.saved.exists():
            for path in copies[1:]:
                self._remove(path)

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Write the OPTIONS file, and open an empty database with it.

        Raises:
            StageFailed: RocksDB refuses an option; with its last words.
            WorkError: db_bench was replaced in mid-study.
        """
        self._write(self.options, "".join(f"{line}\n" for line in lines))
        scratch = self.place / "scratch"
        self._remove(scratch)
        self._make(scratch)
        words = self.programs.opening(scratch, self.options, f"--benchmarks={OPEN}", "--num=1")
        try:
            self._check_not_replaced(words[0])
            self._run(words, limit_s=limit_s)
            self.in_force = OptionsInForce.of(scratch)
        finally:
            self._remove(scratch)

    def ping(self, limit_s: float) -> None:
        """Nothing runs that could answer."""

    def check_alive(self) -> None:
        """Nothing runs that could end."""

    def catch_up(self, lines: Sequence[str], workspace: Workspace, limit_s: float) -> None:
        """Open the database, which writes its memtables to files, and wait until nothing is to be compacted.

        Args:
            lines: the OPTIONS file that says when files are compacted.
            workspace: where and under which limits db_bench runs.
            limit_s: seconds that it may take.

        Raises:
            StageFailed: it takes longer, or fails.
        """
        if not (self.data / "CURRENT").exists():
            return
        options = self.place / "options-drain"
        self._write(options, "".join(f"{line}\n" for line in lines))
        words = self.programs.opening(
            self.data, options, "--benchmarks=waitforcompaction", "--use_existing_db=1", "--num=1"
        )
        watch = _Watch(self.data / "LOG", workspace)
        with watch.until_quiet() as quiet:
            program = Program("drain", words, limit_s, end_on=quiet)
            check(program, run_program(program, replace(workspace, admit=watch.admit)))

    def _shut_down(self) -> None:
        """Nothing runs."""

    def _answers(self) -> bool:
        return True

    def _reason(self, said: str) -> str | None:  # noqa: ARG002
        return None


class _Watch:
    """Tells once an opened database has had no work for a moment: all threads sleep, none waits for the disk.

    RocksDB's LOG would say it too, but reaches the file seconds later.

    Args:
        log: the LOG, which each opening makes anew.
        workspace: where the database is opened.
    """

    def __init__(self, log: Path, workspace: Workspace) -> None:
        self._log, self._before, self._admit = log, _identity(log), workspace.admit
        self._pid: int | None = None
        self._over = threading.Event()

    def admit(self, pid: int) -> None:
        """Take note of the program, and let it into its control group."""
        self._pid = pid
        if self._admit is not None:
            self._admit(pid)

    @contextmanager
    def until_quiet(self) -> Generator[int]:
        """A descriptor that can be read once there is nothing left to do."""
        quiet, told = os.pipe()
        thread = threading.Thread(target=self._look, args=(told,), daemon=True)
        thread.start()
        try:
            yield quiet
        finally:
            self._over.set()
            thread.join()
            os.close(quiet)
            os.close(told)

    def _look(self, told: int) -> None:
        busy_s = time.monotonic()
        while not self._over.wait(_LOOK_S):
            now_s = time.monotonic()
            if self._pid is None or _identity(self._log) in (None, self._before) or _works(self._pid):
                busy_s = now_s
            elif now_s - busy_s > _QUIET_S:
                os.write(told, b"\n")
                return


def _works(pid: int) -> bool:
    """Whether a thread of a process runs, or waits for the disk (proc(5), stat)."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                if (task / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] in "RD":
                    return True
    return False


def _identity(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
