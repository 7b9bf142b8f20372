"""Made-up systems: many mixed parameters, few of which matter, alone and in pairs, with a known optimum."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ascar.space import (
    ChangeCost,
    Choices,
    Parameter,
    Space,
    boolean,
    categorical,
    floating,
    integer,
    ordinal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.space import Domain, Value

LANDSCAPE_VERSION = 1
"""Raised when the same seed makes another landscape."""

_KNOTS = 9
_COST = ChangeCost.DYN_APP
_BASE = 1000.0


@dataclass(frozen=True, slots=True, eq=False)
class Landscape:
    """value = 1000 exp(Σ_i g_i(x_i) + Σ_ij h_ij(x_i) h_ji(x_j)) over the effective parameters.

    Each g and h is a table over a parameter's choices, or piecewise linear between knots on a range's scale.
    The exponent is linear in each parameter between knots, so its maximum lies on knots and is found exactly
    by looking at all their combinations.

    Attributes:
        space: all parameters, effective or not.
        effective: names of those that matter.
        alone: the effect g of each parameter by name, float64 (levels,).
        paired: the interactions by pair of names: h of the first and h of the second parameter.
        best: the greatest value.
    """

    space: Space
    effective: tuple[str, ...]
    alone: Mapping[str, NDArray[np.float64]]
    paired: Mapping[tuple[str, str], tuple[NDArray[np.float64], NDArray[np.float64]]]
    best: float

    @classmethod
    def make(cls, parameters: int, effective: int, seed: int) -> Landscape:
        """A landscape from a seed.

        Args:
            parameters: the number of parameters; their kinds take turns.
            effective: the number of parameters with an effect; at most 7, so that the optimum can be found
                exactly.
            seed: the seed of the whole landscape.
        """
        assert 0 < effective <= min(parameters, 7), "the optimum is found by looking at all combinations"
        rng = np.random.default_rng([seed, parameters, effective])
        space = Space(tuple(_parameter(index) for index in range(parameters)), name=f"mixed-{parameters}")
        chosen = tuple(
            space.names[int(at)] for at in sorted(rng.choice(parameters, effective, replace=False))
        )
        alone = {name: _curve(space.domain(name), rng, 0.25) for name in chosen}
        paired = {
            pair: (_curve(space.domain(pair[0]), rng, 0.3), _curve(space.domain(pair[1]), rng, 0.3))
            for pair in combinations(chosen, 2)
            if rng.random() < 0.4
        }
        return cls(space, chosen, alone, paired, _BASE * float(np.exp(_highest(chosen, alone, paired))))

    def value(self, configuration: Mapping[str, Value]) -> float:
        """The value at a configuration."""
        at = {name: _place(self.space.domain(name), configuration[name]) for name in self.effective}
        total = sum(_level(curve, at[name]) for name, curve in self.alone.items())
        for (one, two), (first, second) in self.paired.items():
            total += _level(first, at[one]) * _level(second, at[two])
        return _BASE * float(np.exp(total))


def _parameter(index: int) -> Parameter:
    """The index-th parameter; kinds take turns."""
    name = f"p{index:03d}"
    match index % 6:
        case 0:
            return boolean(name, default=False, cost=_COST)
        case 1:
            return categorical(name, ("none", "fair", "deadline", "budget"), default="none", cost=_COST)
        case 2:
            return ordinal(name, (512, 1024, 2048, 4096, 8192), default=1024, cost=_COST)
        case 3:
            return integer(name, (1, 64), default=8, cost=_COST)
        case 4:
            return integer(name, (16, 1_048_576), log=True, default=128, cost=_COST)
        case _:
            return floating(name, (0.0, 1.0), default=0.5, cost=_COST)


def _curve(domain: Domain, rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
    """Levels of one effect: independent over categories, smooth over ordered values."""
    if isinstance(domain, Choices) and not domain.ordered:
        levels = rng.normal(size=domain.size)
    else:
        place = np.linspace(0, 1, domain.size if isinstance(domain, Choices) else _KNOTS)
        peak, slope = rng.uniform(-0.2, 1.2), rng.normal()
        levels = -4 * (place - peak) ** 2 + slope * place + 0.1 * rng.normal(size=len(place))
    levels = levels - levels.mean()
    return scale * levels / max(float(levels.std()), 1e-9)


def _place(domain: Domain, value: Value) -> float:
    """Where a value lies among the levels of its curve, as a fractional index."""
    if isinstance(domain, Choices):
        return float(domain.values.index(value))
    assert isinstance(value, (int, float)), "a range holds numbers"
    return domain.position(value) * (_KNOTS - 1)


def _level(curve: NDArray[np.float64], place: float) -> float:
    below = min(int(place), len(curve) - 1)
    above = min(below + 1, len(curve) - 1)
    share = place - below
    return float(curve[below]) * (1 - share) + float(curve[above]) * share


def _highest(
    names: tuple[str, ...],
    alone: Mapping[str, NDArray[np.float64]],
    paired: Mapping[tuple[str, str], tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> float:
    """The greatest exponent over all combinations of knots."""
    axis = {name: index for index, name in enumerate(names)}
    total = np.zeros([1] * len(names))

    def along(name: str, curve: NDArray[np.float64]) -> NDArray[np.float64]:
        shape = [1] * len(names)
        shape[axis[name]] = len(curve)
        return curve.reshape(shape)

    for name, curve in alone.items():
        total = total + along(name, curve)
    for (one, two), (first, second) in paired.items():
        total = total + along(one, first) * along(two, second)
    return float(total.max())
