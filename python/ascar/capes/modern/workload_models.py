"""Which workload runs: a surface for each, told apart by name where announced, else by what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ascar.capes.modern.surface import REACH, Surface

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.knobs import Knob, Setting

_ODD_ERRORS, _ODD_SHARE = 8.0, 0.05
_APART, _STILL_APART, _ALIKE = 4.5, 3.5, 4.0
_VISITS_MIN = 2
_ODD_MAX = 2
_KEPT_MAX = 32
_HINTS_MAX = 4
_LOOKS_MAX = 320  # twice what a surface keeps
# An indicator wanders by so much from visit to visit, before anything is known, and at least.
_WANDER_FIRST, _WANDER_WEIGHT, _WANDER_MIN = 0.02, 2.0, 0.005
_NEWEST = 0.5


class IndicatorSums(NamedTuple):
    """Indicators during a visit.

    Attributes:
        mean: (indicators,), over ticks and nodes.
        variance: (indicators,), of that mean.
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @classmethod
    def of(cls, ticks: NDArray[np.float64]) -> IndicatorSums:
        """Of the ticks' means over nodes, (ticks, indicators)."""
        count = len(ticks)
        if count < 2:
            return cls(ticks.mean(0), np.full(ticks.shape[1], np.inf))
        return cls(ticks.mean(0), ticks.var(0, ddof=1) / count)


class WorkloadRecord(NamedTuple):
    """One workload, as it is written down.

    Attributes:
        name: as announced; None where it was not.
        surface: its own.
        looks: of the indicators, at settings visited.
    """

    name: str | None
    surface: Surface
    looks: dict[Setting, IndicatorSums]


Verdict = Literal["usual", "odd", "changed"]


class WorkloadModels:
    """The surface in use, and those of workloads that were there before.

    A workload has changed when two visits in a row look otherwise than this setting did before: the
    performance is eight standard errors away, and 5% or more; or that eighth of the indicators (means
    over the nodes, on scales from 0 to 1) that differs most is 4.5 standard deviations away. An
    indicator's deviation is what it wanders from one visit to the next of the same setting while the
    workload stays, learnt over all workloads, with the noise of its ticks. Which workload it is now is
    judged where all workloads were seen: at the initial setting. The one that looks most alike there is
    taken up again, if it is within four deviations; else a new one begins, with the best settings of the
    others as the first ones to try. Where workloads are announced by name, names decide.

    Args:
        knobs: of the surfaces.
        reach: of the surfaces.
        looking: whether workloads that nobody announces are looked for.
        sharp: of the surfaces.

    Attributes:
        surface: of the workload that runs.
        changes: found or announced so far.
        wandered: (indicators,), what they wandered from visit to visit, summed; None before the first.
        wanders: how often.
    """

    def __init__(
        self, knobs: Sequence[Knob], reach: float = REACH, *, looking: bool = True, sharp: bool = True
    ) -> None:
        self._knobs, self._reach, self._looking, self._sharp = tuple(knobs), reach, looking, sharp
        self.surface = Surface(self._knobs, reach=reach, sharp=sharp)
        self.changes = 0
        self._name = ""
        self._named: dict[str, Surface] = {}
        self._others: list[Surface] = []
        self._odd = 0
        self._doubted: tuple[Setting, NDArray[np.float64], IndicatorSums] | None = None
        self._looks: dict[int, dict[Setting, IndicatorSums]] = {}
        self.wandered: NDArray[np.float64] | None = None
        self.wanders = 0.0

    def all(self) -> list[WorkloadRecord]:
        """What is known: first of the workload that runs, then of those before, the latest last."""
        known = [(self._name or None, self.surface), *[(None, one) for one in self._others]]
        known += list(self._named.items())
        return [WorkloadRecord(name, surface, self._looks.get(id(surface), {})) for name, surface in known]

    def put_back(self, regimes: Sequence[WorkloadRecord], changes: int) -> None:
        """Know what `all` gave; at least the workload that runs."""
        self.changes, self._odd = changes, 0
        first, *others = regimes
        self._name, self.surface = first.name or "", first.surface
        self._others = [one.surface for one in others if one.name is None]
        self._named = {one.name: one.surface for one in others if one.name is not None}
        self._looks = {id(one.surface): one.looks for one in regimes}
        for one in regimes:
            one.surface.reach, one.surface.sharp = self._reach, self._sharp

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
        self.surface = self._named.pop(workload, None) or self._new()

    def judge(self, setting: Setting, values: NDArray[np.float64], looks: IndicatorSums) -> Verdict:
        """Whether a visit is as expected, odd, or the second odd one in a row: then another workload runs.

        After a change `recognise` says which.

        Args:
            setting: that was visited.
            values: of its ticks.
            looks: of the indicators meanwhile.
        """
        if self._name or not self._looking:
            return "usual"
        errors = _errors(self.surface, setting, values)
        apart = self._apart(self.surface, setting, looks)
        wanted = _STILL_APART if self._odd else _APART
        if (errors is None or errors < _ODD_ERRORS) and (apart is None or apart < wanted):
            self._odd = 0
            self._remember(setting, looks)
            return "usual"
        self._odd += 1
        if self._odd < _ODD_MAX:
            return "odd"
        self._odd, self._doubted = 0, (setting, values, looks)
        return "changed"

    def odd(self, setting: Setting, values: NDArray[np.float64], looks: IndicatorSums) -> bool:
        """As `judge`, but a change is followed at once; whether the visit is to count for nothing."""
        verdict = self.judge(setting, values, looks)
        if verdict == "changed":
            self.recognise(setting, values, looks)
        return verdict == "odd"

    def startled(self, setting: Setting, looks: IndicatorSums) -> bool:
        """Whether the last ticks look so unlike this setting before that the visit should be judged now."""
        known = self._looks.get(id(self.surface), {})
        if self._name or not self._looking or setting not in known:
            return False
        if known[setting].mean.shape != looks.mean.shape:
            return False
        return self._distance(known[setting], looks) > _APART

    def recognise(self, setting: Setting, values: NDArray[np.float64], looks: IndicatorSums) -> None:
        """Another workload runs, or the same again: take up the surface of the one that looks most alike.

        Args:
            setting: visited since; best where all workloads were.
            values: of its ticks.
            looks: of the indicators meanwhile.
        """
        fits: list[tuple[float, int]] = []
        known = [*self._others, self.surface]
        for at, one in enumerate(known):
            errors = _errors(one, setting, values)
            apart = self._apart(one, setting, looks)
            if apart is not None and apart < _ALIKE and (errors is None or errors < _ODD_ERRORS):
                fits.append((apart, at))
        if fits and known[min(fits)[1]] is self.surface:
            self._remember(setting, looks)
            self._believe()
            return  # a false alarm
        self._doubted = None
        self.changes += 1
        found = known[min(fits)[1]] if fits else self._new()
        self._others = [one for one in known if one is not found]
        self.surface = found
        self._remember(setting, looks)
        for forgotten in self._others[:-_KEPT_MAX]:
            self._looks.pop(id(forgotten), None)
        del self._others[:-_KEPT_MAX]

    def _believe(self) -> None:
        """The workload is the same: the visit that was doubted counts, what was known of its place does not.

        Else the model would send the learner there, and the visit be doubted, again and again.
        """
        if self._doubted is not None:
            setting, values, looks = self._doubted
            self.surface.forget(setting)
            self.surface.add(setting, values)
            self._looks.setdefault(id(self.surface), {})[setting] = looks
        self._doubted = None

    def _new(self) -> Surface:
        """A surface of which nothing is known but what was best elsewhere."""
        surface = Surface(self._knobs, reach=self._reach, sharp=self._sharp)
        for one in reversed([*self._named.values(), *self._others, self.surface]):
            best = one.best()
            if best is not None and best not in surface.hints:
                surface.hints.append(best)
        del surface.hints[_HINTS_MAX:]
        return surface

    def _remember(self, setting: Setting, looks: IndicatorSums) -> None:
        known = self._looks.setdefault(id(self.surface), {})
        before = known.get(setting)
        if before is None or before.mean.shape != looks.mean.shape:
            known[setting] = looks
            if len(known) > _LOOKS_MAX:
                del known[next(iter(one for one in known if one not in self.surface.places))]
            return
        finite = np.isfinite(looks.variance) & np.isfinite(before.variance)
        moved = (looks.mean - before.mean) ** 2 - looks.variance - before.variance
        if finite.all():
            if self.wandered is None:
                self.wandered = np.zeros(len(looks.mean))
            self.wandered += np.maximum(moved, 0) / 2
            self.wanders += 1
            variance = (1 - _NEWEST) ** 2 * before.variance + _NEWEST**2 * looks.variance
            known[setting] = IndicatorSums(before.mean + _NEWEST * (looks.mean - before.mean), variance)

    def _apart(self, surface: Surface, setting: Setting, looks: IndicatorSums) -> float | None:
        """How far indicators are from those of the setting before; None where it was not seen.

        Of a neighbour they would differ: a knob may be an indicator, and such a one does not wander.
        """
        known = self._looks.get(id(surface))
        if not known or not len(looks.mean):
            return None
        if next(iter(known.values())).mean.shape != looks.mean.shape:
            return None  # another set of indicators is sampled now
        return self._distance(known[setting], looks) if setting in known else None

    def _distance(self, before: IndicatorSums, now: IndicatorSums) -> float:
        """In standard deviations, over the eighth of the indicators that differs most."""
        wandered = 0.0 if self.wandered is None else self.wandered
        wander = (_WANDER_WEIGHT * _WANDER_FIRST**2 + wandered) / (_WANDER_WEIGHT + self.wanders)
        variance = np.maximum(wander, _WANDER_MIN**2) * 2 + before.variance + now.variance
        squares = np.sort((before.mean - now.mean) ** 2 / variance)
        return float(np.sqrt(squares[-max(1, len(squares) // 8) :].mean()))


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
