"""What the trial that is running has read so far, for whoever looks on; gone once it has ended.

A file beside the study's lock, on the machine that runs it: a line a reading, the trial's number in each. It
is not a part of the history: nothing depends on it, and what cannot be written or read is left out.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_MAX = 1_000_000
_READINGS_MAX = 2_000


class Latest:
    """The readings of one study's running trial.

    Args:
        directory: the directory of the lock files.
        name: the study's.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / f"{name}.readings"
        self._held: int | None = None
        self._bytes = 0

    def note(self, trial: int, second: float, score: float) -> None:
        """Add a reading; the first of another trial takes the place of all before."""
        line = f"{trial} {second!r} {score!r}\n"
        fresh = trial != self._held
        self._held, self._bytes = trial, len(line) + (0 if fresh else self._bytes)
        if self._bytes > _BYTES_MAX:
            return
        with suppress(OSError), self._path.open("w" if fresh else "a", encoding="ascii") as file:
            file.write(line)

    def remove(self) -> None:
        """Nothing is running any more."""
        with suppress(OSError):
            self._path.unlink()

    def read(self, trial: int) -> list[tuple[float, float]]:
        """Seconds and scores of a trial, the last 2,000; none where nobody notes them here."""
        try:
            with self._path.open("rb") as file:
                lines = file.read(2 * _BYTES_MAX).split(b"\n")[:-1]
        except OSError:
            return []
        found: list[tuple[float, float]] = []
        for line in lines:
            parts = line.split()
            with suppress(ValueError):
                if len(parts) == 3 and int(parts[0]) == trial:
                    second, score = float(parts[1]), float(parts[2])
                    if math.isfinite(second) and math.isfinite(score):
                        found.append((second, score))
        return found[-_READINGS_MAX:]
