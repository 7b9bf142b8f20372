"""Rounds of several commands at once: one session of several sources (Li's thesis, sections 4.2 and 6.3.1).

All commands of a round start together, each on its node: none begins before every connection stands. The
round ends when the last of them has ended.
What a source reads is named after it: "client.mb_per_s".
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import AscarError, InputError
from ascar.pilot.round import Round
from ascar.program.gate import StartingGate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.pilot.command import CommandRunner

SOURCES_MAX = 100


@dataclass(frozen=True, slots=True)
class Source:
    """One of the commands of a round.

    Attributes:
        name: the name that its readings are called by.
        runner: carries out its part of a round.
    """

    name: str
    runner: CommandRunner

    def __post_init__(self) -> None:
        """Check the name.

        Raises:
            InputError: it is no identifier.
        """
        if not self.name.isidentifier():
            raise InputError(f"source {self.name!r:.80}: a name must be letters, digits and '_'")


@dataclass(frozen=True, slots=True)
class SeveralSources:
    """Runs commands at the same time, one round at a time.

    Attributes:
        sources: the commands, at least one.
        cut_off: the names of those that the end of the session's time cut off in the last round.
    """

    sources: Sequence[Source]
    cut_off: list[str] = field(default_factory=list[str], init=False, compare=False)

    def __post_init__(self) -> None:
        """Check the sources.

        Raises:
            InputError: there is none, there are too many, or two have one name.
        """
        if not 1 <= len(self.sources) <= SOURCES_MAX:
            raise InputError(f"{len(self.sources)} sources: must be 1 to {SOURCES_MAX}")
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"source {twice[0]!r} is given twice: give each a name of its own")

    @property
    def adjustable(self) -> bool:
        """Whether some command takes a work amount."""
        return any(source.runner.adjustable for source in self.sources)

    def __call__(self, work_amount: float | None, left_s: float) -> Round | None:
        """Run one round; None where it was cut off because the session's time was over.

        Raises:
            AscarError: a command failed; the others are ended, and its message begins with the source's name.
        """
        parts = _Parts(len(self.sources), work_amount, left_s)
        threads = [
            threading.Thread(target=parts.run, args=(source,), name=f"ascar-{source.name}")
            for source in self.sources
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            parts.end()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        finally:
            parts.close()
        if parts.error is not None:
            raise parts.error
        return self._together(parts, work_amount, left_s)

    def _together(self, parts: _Parts, work_amount: float | None, left_s: float) -> Round | None:
        """The parts as one round, in the order of the sources."""
        done = [(source.name, parts.rounds.get(source.name)) for source in self.sources]
        told = [(name, part) for name, part in done if part is not None]
        self.cut_off[:] = [name for name, part in done if part is None or not part.readings]
        values = {f"{name}.{key}": row for name, part in told for key, row in part.unit_readings.items()}
        units = {f"{name}.{key}": one for name, part in told for key, one in part.units.items()}
        # A part without a duration was cut off, and with it the round.
        if self.cut_off:
            return Round(left_s, None, {}, values, units) if values and work_amount is None else None
        readings = {f"{name}.{key}": value for name, part in told for key, value in part.readings.items()}
        return Round(max(part.seconds for _, part in told), work_amount, readings, values, units)


class _Parts:
    """A round under way: what its sources have come to."""

    def __init__(self, sources: int, work_amount: float | None, left_s: float) -> None:
        self.rounds: dict[str, Round | None] = {}
        self.error: BaseException | None = None
        self._work_amount = work_amount
        self._left_s = left_s
        self._lock = threading.Lock()
        self._gate = StartingGate(sources)
        self._end_on = os.eventfd(0, os.EFD_CLOEXEC)

    def run(self, source: Source) -> None:
        """One source's part, in its own thread; the first that fails ends the others."""
        try:
            done = source.runner.run(self._work_amount, self._left_s, self._end_on, self._gate)
            with self._lock:
                self.rounds[source.name] = done
            self._gate.shut()  # one whose time was over before it began is not waited for
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            with self._lock:
                if self.error is None:
                    if isinstance(error, AscarError):
                        error.message = f"source {source.name}: {error.message}"
                        error.args = (error.message, *error.args[1:])
                    self.error = error
            self.end()

    def end(self) -> None:
        """Ask every command to end, and let none begin."""
        self._gate.shut()
        os.eventfd_write(self._end_on, 1)

    def close(self) -> None:
        """Give back the descriptor."""
        os.close(self._end_on)
