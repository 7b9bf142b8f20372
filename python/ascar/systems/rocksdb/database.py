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
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.program import Program, check, run_program
from ascar.program.rocksdb import DATABASE, OPEN, OPTIONS, OptionsInForce, RocksPrograms
from ascar.systems.own_server.server import OwnServer
from ascar.systems.rocksdb.event_log import DatabaseEvents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ascar.workspace import Workspace

_QUIET_S = 0.2
_LOOK_S = 0.02
_OPENED = "DB pointer "
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

    def create(self) -> None:
        """Make an empty directory, in which the fill makes the database.

        Raises:
            StageFailed: it cannot be made.
        """
        self._remove(self.data)
        self._make(self.data)

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Write the OPTIONS file, and open an empty database with it.

        Raises:
            StageFailed: RocksDB refuses an option; with its last words.
        """
        self._write(self.options, "".join(f"{line}\n" for line in lines))
        scratch = self.place / "scratch"
        self._remove(scratch)
        self._make(scratch)
        words = self.programs.opening(scratch, self.options, f"--benchmarks={OPEN}", "--num=1")
        try:
            self._asked(words, "open an empty database", limit_s)
            self.in_force = OptionsInForce.of(scratch)
        except StageFailed as failure:
            raise StageFailed("change", failure.message, failure.stderr) from None
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
        before, over = _identity(self.data / "LOG"), threading.Event()
        end, told = os.pipe()
        watching = threading.Thread(target=self._tell_when_quiet, args=(before, over, told), daemon=True)
        try:
            watching.start()
            program = Program("drain", words, limit_s, end_on=end)
            check(program, run_program(program, workspace))
        finally:
            over.set()
            watching.join()
            os.close(end)
            os.close(told)

    def _tell_when_quiet(self, before: int | None, over: threading.Event, told: int) -> None:
        """Write to a pipe once the database is open and has had no work for a moment."""
        path, events, at, last_s, is_open = self.data / "LOG", DatabaseEvents(), 0, time.monotonic(), False
        while not over.wait(_LOOK_S):
            if _identity(path) in (None, before):
                continue  # the LOG is that of an earlier opening
            text, at = _since(path, at)
            for line in text.splitlines():
                events.hear(line)
                is_open = is_open or _OPENED in line
            now_s = time.monotonic()
            if text or events.running or not is_open:
                last_s = now_s
            elif now_s - last_s > _QUIET_S:
                os.write(told, b"\n")
                return

    def _shut_down(self) -> None:
        """Nothing runs."""

    def _answers(self) -> bool:
        return True

    def _reason(self, said: str) -> str | None:  # noqa: ARG002
        return None


def _identity(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _since(path: Path, at: int) -> tuple[str, int]:
    """The whole lines of a file after a position, and the position after them."""
    try:
        with path.open("rb") as file:
            file.seek(at)
            found = file.read()
    except OSError:
        return "", at
    whole = found[: found.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace"), at + len(whole)
