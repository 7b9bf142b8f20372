"""Configurations as rows of numbers in which squared Euclidean distance means what it should.

Per parameter, between two configurations:

- numbers and ordered values: the squared difference of their positions in [0, 1], on the parameter's scale,
  by rank where the values are a list;
- categories: 1 where they differ;
- special values, and a parameter that does not apply (Cao's "n/a"): a point of its own, at height sqrt(3)/2
  above the middle of the numbers, so 0.75 to 1 from any of them and 1.5 from another special one.

All of these are distances between points of a Euclidean space, so a stationary kernel on them is positive
definite. The columns of a parameter form a group, which shares one length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.space import Choices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ascar.space import Configuration, Domain, Space, Value

__all__ = ["Columns"]

_APART = 1 / np.sqrt(2.0)  # one-hot columns of this height are at squared distance 1
_HEIGHT = np.sqrt(0.75)
_CACHE_MAX = 200_000


@dataclass(frozen=True, slots=True)
class _Group:
    """One parameter's columns: start, width, and how a value fills them."""

    name: str
    domain: Domain
    start: int
    width: int
    places: dict[Value, tuple[tuple[int, float], ...]]
    absent: tuple[tuple[int, float], ...]

    def fill(self, row: NDArray[np.float64], value: Value | None) -> None:
        if value is None:
            cells = self.absent
        elif value in self.places:
            cells = self.places[value]
        else:
            assert not isinstance(self.domain, Choices), "every choice has its place"
            assert isinstance(value, (int, float)), "a range holds numbers"
            row[self.start] = self.domain.position(value)
            return
        for column, height in cells:
            row[column] = height


@dataclass(slots=True)
class Columns:
    """The encoding of one space, with a cache of rows.

    Attributes:
        groups: int (D,), the index in `names` of the parameter that each column belongs to.
        names: parameters that can vary, in the space's order; the others carry no information.
    """

    groups: NDArray[np.intp]
    names: tuple[str, ...]
    _layout: tuple[_Group, ...]
    _cache: dict[Configuration, NDArray[np.float64]] = field(
        default_factory=dict["Configuration", "NDArray[np.float64]"]
    )

    @classmethod
    def of(cls, space: Space) -> Columns:
        """The encoding for a space."""
        layout: list[_Group] = []
        start = 0
        for parameter in space.parameters:
            domain = space.domain(parameter.name)
            conditional = parameter.condition is not None
            if domain.size == 1 and not conditional:
                continue
            layout.append(_group(parameter.name, domain, conditional=conditional, start=start))
            start += layout[-1].width
        widths = [group.width for group in layout]
        return cls(
            np.repeat(np.arange(len(layout)), widths), tuple(group.name for group in layout), tuple(layout)
        )

    @property
    def width(self) -> int:
        """D, the columns of a row."""
        return len(self.groups)

    def rows(self, configurations: Iterable[Configuration]) -> NDArray[np.float64]:
        """float64 (n, D): one row a configuration."""
        rows = [self._row(configuration) for configuration in configurations]
        return np.array(rows, np.float64).reshape(len(rows), self.width)

    def _row(self, configuration: Configuration) -> NDArray[np.float64]:
        row = self._cache.get(configuration)
        if row is None:
            row = np.zeros(self.width)
            for group in self._layout:
                group.fill(row, configuration.get(group.name))
            if len(self._cache) < _CACHE_MAX:
                self._cache[configuration] = row
        return row


def _group(name: str, domain: Domain, *, conditional: bool, start: int) -> _Group:
    """Lay out a parameter's columns from `start` on."""
    if not isinstance(domain, Choices):
        # The position, then one column a special value, then one for "does not apply".
        outside = len(domain.special) + conditional
        cells = [((start, 0.5), (start + 1 + index, _HEIGHT)) for index in range(outside)]
        places: dict[Value, tuple[tuple[int, float], ...]] = dict(zip(domain.special, cells, strict=False))
        return _Group(name, domain, start, 1 + outside, places, cells[-1] if conditional else ())
    size = len(domain.values)
    if domain.ordered and size > 2:
        places = {value: ((start, rank / (size - 1)),) for rank, value in enumerate(domain.values)}
        absent = ((start, 0.5), (start + 1, _HEIGHT)) if conditional else ()
        return _Group(name, domain, start, 1 + conditional, places, absent)
    kinds = size + conditional
    if kinds == 2:
        places = {value: ((start, float(rank)),) for rank, value in enumerate(domain.values)}
        return _Group(name, domain, start, 1, places, ((start, 1.0),) if conditional else ())
    places = {value: ((start + rank, _APART),) for rank, value in enumerate(domain.values)}
    return _Group(name, domain, start, kinds, places, ((start + size, _APART),) if conditional else ())
