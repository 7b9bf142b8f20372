"""Observations: the same indicators of the same nodes each tick, on scales from -1 to 1."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.capes.messages.ticks import Row

_GROWTH = 16.0


@dataclass(frozen=True, slots=True)
class ObservationLayout:
    """The nodes and indicators of an observation, its rows and columns.

    Attributes:
        nodes: the names of the nodes.
        names: the names of the indicators; a node need not have all.
    """

    nodes: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls, rows: Mapping[str, Iterable[str]], nodes: Sequence[str], indicators: Sequence[str]
    ) -> ObservationLayout:
        """The layout of the nodes and indicators that patterns choose."""
        kept = [node for node in sorted(rows) if chosen(node, nodes)]
        names = sorted({name for node in kept for name in rows[node] if chosen(name, indicators)})
        return cls(tuple(kept), tuple(names))


def chosen(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns, with `*` and `?`, fits."""
    return any(name == one or fnmatchcase(name, one) for one in patterns)


class Observer:
    """Scales values to x / (|x| + r), where r is an indicator's usual size.

    r is the mean over the nodes when there was first something other than zero. It follows only what is
    sixteen times as large: scales that moved would make old and new ticks look different.

    Args:
        layout: the nodes and indicators that are observed.
        usual: (indicators,), sizes known from before; 0 where there is none.

    Attributes:
        layout: see above.
        usual: (indicators,), sizes; 0 while nothing but zero was seen.
    """

    def __init__(self, layout: ObservationLayout, usual: NDArray[np.float64] | None = None) -> None:
        self.layout = layout
        self.usual = np.zeros(len(layout.names)) if usual is None else usual.copy()
        self._rows = {name: at for at, name in enumerate(layout.nodes)}
        self._columns = {name: at for at, name in enumerate(layout.names)}
        self._places: dict[tuple[str, ...], tuple[NDArray[np.intp], NDArray[np.intp]]] = {}

    def matrix(self, rows: Mapping[str, Row]) -> NDArray[np.float64]:
        """(nodes, indicators): a tick's values; NaN where there is none."""
        found = np.full((len(self._rows), len(self._columns)), np.nan)
        for node, (names, values) in rows.items():
            at = self._rows.get(node)
            if at is not None:
                own, theirs = self.places(names)
                found[at, own] = np.array(values, float)[theirs]
        return found

    def places(self, names: tuple[str, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Columns here, and where they are in a row with these names."""
        known = self._places.get(names)
        if known is None:
            if len(self._places) > 1_000:  # layouts come and go
                self._places.clear()
            pairs = [(self._columns[name], at) for at, name in enumerate(names) if name in self._columns]
            known = np.array([one for one, _ in pairs], np.intp), np.array([one for _, one in pairs], np.intp)
            self._places[names] = known
        return known

    def scaled(self, matrix: NDArray[np.float64]) -> NDArray[np.float32]:
        """(nodes, indicators): on scales from -1 to 1; NaN where there is none."""
        there = np.isfinite(matrix)
        known = np.where(there, matrix, 0.0)
        size = np.abs(known)
        mean = size.sum(0) / np.maximum(there.sum(0), 1)
        self.usual = np.where((mean > _GROWTH * self.usual) & np.isfinite(mean), mean, self.usual)
        # Where all was zero until now, zero stays zero.
        below = size + np.where(self.usual > 0, self.usual, 1.0)
        return np.where(there, known / below, np.nan).astype(np.float32)
