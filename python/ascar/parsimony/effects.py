"""What each changed parameter probably brings, by the trials of the search: the order of leaving out."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log, log2
from typing import TYPE_CHECKING

import numpy as np

from ascar.space.diagram import holds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.objective import Objective
    from ascar.results.trial import Trial
    from ascar.space import Configuration, Space
    from ascar.space.domain import Value

# An effect below this share of the margin, or of the greatest effect, is none at first sight.
_SMALL, _SMALL_BESIDE = 0.5, 0.1
_RIDGE = 1.0


@dataclass(frozen=True, slots=True)
class Changed:
    """The parameters in which a configuration departs from the default, with what each of them brings.

    Attributes:
        space: the space.
        best: the configuration.
        effects: the estimated loss where one goes back to its default, as a logarithm, by name.
        margin: the loss that does not matter.
    """

    space: Space
    best: Configuration
    effects: Mapping[str, float]
    margin: float

    @classmethod
    def of(
        cls, space: Space, best: Configuration, trials: Sequence[Trial], objective: Objective, margin: float
    ) -> Changed:
        """Estimate the effects from trials."""
        names = [name for name in space.departures(best) if name not in space.pinned]
        return cls(space, best, _effects(space, best, names, trials, objective), margin)

    @property
    def ordered(self) -> tuple[str, ...]:
        """The names, the most important first; among alike ones the cheap to change come first."""

        def rank(name: str) -> tuple[float, int, float]:
            effect = self.effects[name]
            level = floor(log2(effect / self.margin)) if self._matters(name) else -99
            return -level, self.space[name].cost.rank, -effect

        return tuple(sorted(self.effects, key=rank))

    @property
    def guess(self) -> int:
        """How many of them probably matter; at least one."""
        return max(1, sum(self._matters(name) for name in self.effects))

    def _matters(self, name: str) -> bool:
        least = max(_SMALL * self.margin, _SMALL_BESIDE * max(self.effects.values()))
        return self.effects[name] > least

    def keeping(self, kept: Sequence[str]) -> tuple[tuple[str, ...], Configuration] | None:
        """The configuration in which every other parameter has its default.

        A parameter that a kept one depends on, by its condition or by a constraint, is kept too.

        Returns:
            The names that are kept, in order, and the configuration; None if no more names make it valid.
        """
        ordered, names = self.ordered, set(kept)
        while True:
            found = self.space.with_default_of(self.best, [name for name in ordered if name not in names])
            coupled = self._coupled(names, found)
            if not coupled:
                break
            names.add(next(name for name in ordered if name in coupled))
        if not self.space.is_valid(found):
            return None
        return tuple(name for name in ordered if name in names and name in found), found

    def _coupled(self, names: set[str], found: Configuration) -> set[str]:
        """The parameters that conditions of kept ones, and broken constraints, name beside the kept ones."""
        values = {name: found.get(name) for name in self.space.names}
        formulas = [rule for rule in self.space.constraints if holds(rule, values) is False]
        inactive = (self.space[name].condition for name in names if name not in found)
        formulas += [condition for condition in inactive if condition is not None]
        return {name for formula in formulas for name in formula.names if name in self.effects} - names


def _effects(
    space: Space, best: Configuration, names: Sequence[str], trials: Sequence[Trial], objective: Objective
) -> dict[str, float]:
    """A linear model of the scores in how far each parameter is from the best value, near ones counting more.

    Ridge regression, as trials may be fewer than parameters; each trial weighs less the further it is from
    the best, so that effects are those that hold there.
    """
    usable = [one for one in trials if one.usable and one.score is not None]
    if len(usable) < 3 or not names:
        return dict.fromkeys(names, 0.0)
    far = np.array([[_distance(space, best, name, one.configuration) for name in names] for one in usable])
    scores = np.array([one.score for one in usable], np.float64)
    size = abs(float(scores.mean())) or 1.0
    values = objective.sign * (np.log(scores) if (scores > 0).all() else scores / size)
    weights = np.exp(-4.0 * far.mean(axis=1))
    centre = weights @ far / weights.sum()
    shifted = far - centre
    gram = (shifted.T * weights) @ shifted
    target = (shifted.T * weights) @ (values - weights @ values / weights.sum())
    ridge = _RIDGE * weights.mean() * np.eye(len(names))
    slopes = np.asarray(np.linalg.solve(gram + ridge, target), np.float64)
    return {name: -float(slope) for name, slope in zip(names, slopes, strict=True)}


def _distance(space: Space, best: Configuration, name: str, other: Configuration) -> float:
    """How far a value is from the best's: 0 at the best's, 1 at the default's and beyond."""
    here, there, default = best[name], other.get(name), space[name].default
    if there == here:
        return 0.0
    numbers = [_number(value) for value in (here, there, default)]
    if None in numbers:
        return 1.0
    first, second, third = (float(number) for number in numbers if number is not None)
    if min(first, second, third) > 0:
        first, second, third = log(first), log(second), log(third)
    return min(1.0, abs(second - first) / abs(third - first)) if third != first else 1.0


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
