"""Which workload runs: a surface for each, told apart by name where announced, else by what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ascar.capes.knobs import units
from ascar.capes.surface import Surface

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.knobs import Knob, Setting

__all__ = ["Looks", "Regime", "Regimes"]

_ODD_ERRORS, _ODD_SHARE = 8.0, 0.05
_APART, _NEAR, _LOOKS_ERRORS = 0.1, 0.05, 5.0
_VISITS_MIN = 2
_ODD_MAX = 2
_KEPT_MAX = 32


class Looks(NamedTuple):
    """Indicators during a visit.

    Attributes:
        mean: (indicators,), over ticks and nodes.
        variance: (indicators,), of that mean.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def of(cls, ticks: NDArray[np.float64]) -> Looks:
        """Of the ticks' means over nodes, (ticks, indicators)."""
        count = len(ticks)
        if count < 2:
            return cls(ticks.mean(0), np.full(ticks.shape[1], np.inf))
        return cls(ticks.mean(0), ticks.var(0, ddof=1) / count)


class Regime(NamedTuple):
    """One workload, as it is written down.

    Attributes:
        name: as announced; None where it was not.
        surface: its own.
        looks: of the indicators, at settings visited.
    """

    name: str | None
    surface: Surface
    looks: dict[Setting, Looks]


class Regimes:
    """The surface in use, and those of workloads that were there before.

    A workload has changed when two visits in a row look otherwise than this setting did before: the
    performance is eight standard errors away, and 5% or more; or the indicators, means over
    the nodes on scales from 0 to 1, are a tenth away (root mean square, beyond
    five errors each). Then the surface whose settings
    looked like this one does is taken up again; else a new one begins. Where workloads are announced by name,
    names decide.

    Args:
        knobs: of the surfaces.

    Attributes:
        surface: of the workload that runs.
        changes: found or announced so far.
    """

    def __init__(self, knobs: Sequence[Knob]) -> None:
        self._knobs = tuple(knobs)
        self.surface = Surface(self._knobs)
        self.changes = 0
        self._name = ""
        self._named: dict[str, Surface] = {}
        self._others: list[Surface] = []
        self._odd = 0
        self._looks: dict[int, dict[Setting, Looks]] = {}

    def all(self) -> list[Regime]:
        """What is known: first of the workload that runs, then of those before, the latest last."""
        known = [(self._name or None, self.surface), *[(None, one) for one in self._others]]
        known += list(self._named.items())
        return [Regime(name, surface, self._looks.get(id(surface), {})) for name, surface in known]

    def put_back(self, regimes: Sequence[Regime], changes: int) -> None:
        """Know what `all` gave; at least the workload that runs."""
        self.changes, self._odd = changes, 0
        first, *others = regimes
        self._name, self.surface = first.name or "", first.surface
        self._others = [one.surface for one in others if one.name is None]
        self._named = {one.name: one.surface for one in others if one.name is not None}
        self._looks = {id(one.surface): one.looks for one in regimes}

    def announce(self, workload: str) -> None:
        """A workload has begun; where its name is known, what was learnt of it is taken up again."""
        if workload == self._name:
            return
        self.changes += 1
        self._odd = 0
        if self._name:
            self._named[self._name] = self.surface
            while len(self._named) > _KEPT_MAX:
                self._named.pop(next(iter(self._named)))
        elif self.surface.visits:
            self._others.append(self.surface)
        self._name = workload
        self.surface = self._named.pop(workload, None) or Surface(self._knobs)

    def odd(self, setting: Setting, values: NDArray[np.float64], looks: Looks) -> bool:
        """Whether a visit is far from what was expected; the second one in a row changes the surface.

        Args:
            setting: that was visited.
            values: of its ticks.
            looks: of the indicators meanwhile.
        """
        if self._name:
            return False
        errors = _errors(self.surface, setting, values)
        apart = self._apart(self.surface, setting, looks)
        if (errors is None or errors < _ODD_ERRORS) and (apart is None or apart < _APART):
            self._odd = 0
            self._looks.setdefault(id(self.surface), {})[setting] = looks
            return False
        self._odd += 1
        if self._odd >= _ODD_MAX:
            self._odd = 0
            self._change(setting, values, looks)
            return False
        return True

    def _change(self, setting: Setting, values: NDArray[np.float64], looks: Looks) -> None:
        self.changes += 1
        fits: list[tuple[float, int]] = []
        for at, one in enumerate(self._others):
            errors = _errors(one, setting, values)
            apart = self._apart(one, setting, looks)
            if apart is not None and apart < _APART and (errors is None or errors < _ODD_ERRORS):
                fits.append((apart, at))
        self._others.append(self.surface)
        self.surface = self._others.pop(min(fits)[1]) if fits else Surface(self._knobs)
        self._looks.setdefault(id(self.surface), {})[setting] = looks
        for forgotten in self._others[:-_KEPT_MAX]:
            self._looks.pop(id(forgotten), None)
        del self._others[:-_KEPT_MAX]

    def _apart(self, surface: Surface, setting: Setting, looks: Looks) -> float | None:
        """How far indicators are from those of the nearest setting; None where none is near."""
        known = self._looks.get(id(surface))
        if not known or not len(looks.mean):
            return None
        here = units(self._knobs, setting)
        nearest = min(known, key=lambda one: float(((units(self._knobs, one) - here) ** 2).sum()))
        if float(((units(self._knobs, nearest) - here) ** 2).sum()) > _NEAR**2:
            return None
        before = known[nearest]
        noise = _LOOKS_ERRORS**2 * (before.variance + looks.variance)
        return float(np.sqrt(np.maximum((before.mean - looks.mean) ** 2 - noise, 0).mean()))


def _errors(surface: Surface, setting: Setting, values: NDArray[np.float64]) -> float | None:
    """By how many standard errors a visit differs from those before; None where there were less than two.

    Differences of less than 5% count as none. A model's prediction is not asked: between settings that it
    knows it may be surer than it should.
    """
    place = surface.places.get(setting)
    if place is None or place.visits < _VISITS_MIN:
        return None
    difference = abs(float(values.mean()) - place.mean)
    if difference <= _ODD_SHARE * abs(place.mean):
        return 0.0
    tick = surface.tick_sd() * abs(place.mean)
    variance = tick**2 * (1 / len(values) + 1 / place.ticks) + surface.fitted().visit_sd ** 2
    return difference / float(np.sqrt(variance + 1e-12 * place.mean**2))
