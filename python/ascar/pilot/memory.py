"""A series kept in constant memory: when it is full, neighbouring batches are merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNITS_MAX = 2_048


@dataclass(slots=True)
class BatchMemory:
    """The batches since some moment, in units of one or more.

    Units stay a whole part of the period; where no wider one is, the older half is forgotten instead.

    Attributes:
        bins: batches in a period; 1 where there is none.
    """

    bins: int
    _width: int = 1
    _places: list[int] = field(default_factory=list[int], repr=False)
    _totals: list[float] = field(default_factory=list[float], repr=False)
    _counts: list[int] = field(default_factory=list[int], repr=False)

    def add(self, index: int, value: float) -> None:
        """Keep a batch; indexes increase."""
        place = index // self._width
        if self._places and self._places[-1] == place:
            self._totals[-1] += value
            self._counts[-1] += 1
            return
        if len(self._places) == _UNITS_MAX:
            self._shrink()
            self.add(index, value)
            return
        self._places.append(place)
        self._totals.append(value)
        self._counts.append(1)

    def series(self) -> tuple[NDArray[np.float64], NDArray[np.float64], int, int]:
        """Places and means of the units, units in a period, and batches in a unit."""
        values = np.array(self._totals, np.float64) / np.array(self._counts, np.float64)
        return np.array(self._places, np.float64), values, max(self.bins // self._width, 1), self._width

    def _shrink(self) -> None:
        if self.bins > 1 and self.bins % (2 * self._width) != 0:
            half = _UNITS_MAX // 2
            del self._places[:half], self._totals[:half], self._counts[:half]
            return
        self._width *= 2
        places, totals, counts = self._places, self._totals, self._counts
        self._places, self._totals, self._counts = [], [], []
        for place, total, count in zip(places, totals, counts, strict=True):
            if self._places and self._places[-1] == place // 2:
                self._totals[-1] += total
                self._counts[-1] += count
            else:
                self._places.append(place // 2)
                self._totals.append(total)
                self._counts.append(count)
