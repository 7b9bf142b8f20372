"""In which order a queue let requests go: batches, waits, the age that goes first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_SAME_S = 0.003
"""Times are whole milliseconds, and so are their sums."""


@dataclass(frozen=True, slots=True)
class Run:
    """Requests of one direction that went in a row.

    Attributes:
        is_write: their direction.
        first: the number of the first one.
        length: how many.
    """

    is_write: bool
    first: int
    length: int


@dataclass(frozen=True, slots=True)
class QueueLog:
    """Requests in the order in which the queue let them go.

    Attributes:
        writes: (requests,), whether each writes.
        went_s: (requests,), when it went, since the first did.
        waited_s: (requests,), how long it had waited.
        places: (requests,), where it lies, in requests.
    """

    writes: NDArray[np.bool_]
    went_s: NDArray[np.float64]
    waited_s: NDArray[np.float64]
    places: NDArray[np.int64]

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> QueueLog:
        """As `written` gives it."""
        gaps_ms, waited_ms, places = (
            np.array(found[name].split(), np.int64) for name in ("gaps_ms", "waited_ms", "places")
        )
        writes = np.array([kind == "W" for kind in found["kinds"]])
        return cls(writes, np.cumsum(gaps_ms) / 1000, waited_ms / 1000, places)

    def written(self) -> dict[str, str]:
        """For a file: whole milliseconds, a letter for each direction."""
        went_ms = np.rint((self.went_s - self.went_s[0]) * 1000).astype(int)
        columns = {
            "gaps_ms": np.diff(went_ms, prepend=0),
            "waited_ms": np.rint(self.waited_s * 1000).astype(int),
            "places": self.places,
        }
        texts = {name: " ".join(map(str, column.tolist())) for name, column in columns.items()}
        return {"kinds": "".join("W" if one else "R" for one in self.writes), **texts}

    def cut(self, from_s: float, length_s: float) -> QueueLog:
        """What went in a part of the time."""
        there = (self.went_s >= from_s) & (self.went_s < from_s + length_s)
        return QueueLog(self.writes[there], self.went_s[there], self.waited_s[there], self.places[there])

    @property
    def interval_s(self) -> float:
        """Mean time between two requests."""
        return float(self.went_s[-1] - self.went_s[0]) / (len(self.went_s) - 1)

    def runs(self) -> list[Run]:
        """All but the first and the last one, which may be cut."""
        found: list[Run] = []
        at = 0
        for is_write, run in groupby(self.writes.tolist()):
            length = len(list(run))
            found.append(Run(is_write, at, length))
            at += length
        return found[1:-1]

    def lengths(self, *, is_write: bool) -> list[int]:
        """Of the runs of one direction."""
        return [run.length for run in self.runs() if run.is_write == is_write]

    def ascending(self, *, is_write: bool) -> float:
        """The share of requests of a run that lie behind the one before."""
        steps = [
            after > before
            for run in self.runs()
            if run.is_write == is_write
            for before, after in pairwise(self.places[run.first : run.first + run.length].tolist())
        ]
        return float(np.mean(steps))

    def waits_s(self, share: float) -> float:
        """A quantile of the waits of writes."""
        return float(np.quantile(self.waited_s[self.writes], share))

    def oldest_first(self) -> list[tuple[float, bool]]:
        """For each run of writes: the wait of the oldest write when it began, and whether it began with it.

        Runs near the end are left out, where what waited went after it.
        """
        went, waited = self.went_s[self.writes], self.waited_s[self.writes]
        came = went - waited
        until_s = float(went[-1] - waited.max())
        numbers = np.cumsum(self.writes) - 1
        found: list[tuple[float, bool]] = []
        for run in self.runs():
            at = int(numbers[run.first])
            if not run.is_write or went[at] > until_s:
                continue
            there = (went >= went[at]) & (came <= went[at])
            oldest_s = float((went[at] - came[there]).max())
            found.append((oldest_s, bool(waited[at] >= oldest_s - _SAME_S)))
        return found

    def age_limit_s(self) -> tuple[float, float]:
        """Bounds of the age from which on the oldest write goes first; 0 and inf where it is not seen."""
        found = self.oldest_first()
        low_s = max((age_s for age_s, is_first in found if not is_first), default=0.0)
        high_s = min((age_s for age_s, is_first in found if is_first and age_s > low_s), default=math.inf)
        return low_s, high_s
