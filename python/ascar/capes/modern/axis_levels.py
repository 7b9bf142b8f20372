"""Candidate settings: a first design, lines through the best setting, settings near it and at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.capes.axes import initial, knob_groups, levels, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting

_NEAR, _ANYWHERE, _SPREAD, _FEW = 48, 64, 0.2, 3
_STEPS = np.array([-16, -8, -4, -2, -1, 1, 2, 4, 8, 16])
_DESIGN, _ASIDE = 3, 0.25


class AxisLevels:
    """Levels of some knobs, and settings made of them.

    Knobs of one group (`Axis.group`) move together in the design and on lines of their own.

    Args:
        knobs: the knobs of the settings.
        rng: the source of all random choices.

    Attributes:
        designed: settings that the design has, the initial one included.
    """

    def __init__(self, knobs: Sequence[Axis], rng: np.random.Generator) -> None:
        self._knobs, self._rng = tuple(knobs), rng
        self._levels = [levels(one) for one in self._knobs]
        self._shares = [
            np.array([knob.unit(value) for value in values])
            for knob, values in zip(self._knobs, self._levels, strict=True)
        ]
        self._groups = knob_groups(self._knobs)
        self._few = len(self._groups) <= _FEW
        self.designed = (_DESIGN if self._few else 1) + 2 * len(self._groups)

    def columns(self, indices: NDArray[np.intp]) -> NDArray[np.float64]:
        """(m, knobs): shares of the ranges, for indices of levels."""
        return np.stack([shares[indices[:, at]] for at, shares in enumerate(self._shares)], axis=1)

    def setting(self, indices: NDArray[np.intp]) -> Setting:
        """The setting of one row of indices."""
        return tuple(float(values[index]) for values, index in zip(self._levels, indices, strict=True))

    def indices(self, place: NDArray[np.float64]) -> NDArray[np.intp]:
        """(knobs,): the nearest levels to shares of the ranges."""
        return np.array([np.argmin(np.abs(one - at)) for one, at in zip(self._shares, place, strict=True)])

    def design_point(self, index: int) -> NDArray[np.float64]:
        """(knobs,): shares of the ranges; many groups one by one, few by a sequence that fills the cube.

        The sequence: multiples of a generalised golden ratio (Roberts 2018).

        Args:
            index: 1 for the first one after the initial setting.
        """
        count = len(self._groups)
        place = units(self._knobs, initial(self._knobs))
        if not self._few:  # a random place has too many wrong knobs: one group at a time, up and down
            group = self._groups[(index - 1) % count]
            up = (index <= count) == (place[group[0]] <= 0.5)
            place[group] = np.clip(place[group] + (_ASIDE if up else -_ASIDE), 0, 1)
            return place
        ratio = 2.0
        for _ in range(30):
            ratio = (1 + ratio) ** (1 / (count + 1))
        shares = (0.5 + index / ratio ** np.arange(1, count + 1)) % 1
        for group, share in zip(self._groups, shares, strict=True):
            place[group] = share
        return place

    def around(self, best: NDArray[np.float64], *, fine: bool = True) -> NDArray[np.intp]:
        """(m, knobs): indices of levels: lines through the best setting, settings near it, random ones.

        Args:
            best: shares of the ranges.
            fine: whether lines have every level; else every second one.
        """
        sizes: Any = np.array([len(one) for one in self._levels])
        middle: Any = self.indices(best)
        found: list[NDArray[np.intp]] = []
        few, stride = len(sizes) <= _FEW, 1 if fine else 2
        for at, size in enumerate(sizes):
            steps = np.arange(0, int(size), stride) if few else np.add(middle[at], _STEPS)
            found.append(self._line(middle, [at], steps))
        found += [
            self._line(middle, group, np.arange(0, int(sizes[group[0]]), stride))
            for group in self._groups
            if len(group) > 1
        ]
        near = np.tile(middle, (_NEAR, 1))
        spread = _SPREAD * self._rng.random((_NEAR, 1)) * sizes
        moves = np.rint(spread * self._rng.standard_normal(near.shape)).astype(np.intp)
        turned = self._rng.random(near.shape) < (0.5 if few else 2 / len(sizes))
        found += [near + moves * turned, self._rng.integers(sizes, size=(_ANYWHERE, len(sizes)))]
        return np.clip(np.concatenate(found), 0, sizes - 1).astype(np.intp)

    def _line(
        self, middle: NDArray[np.intp], group: Sequence[int], steps: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        line = np.tile(middle, (len(steps), 1))
        line[:, group] = steps[:, None]
        return line
