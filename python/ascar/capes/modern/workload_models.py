"""A model for each workload; shifts between them are announced by name, or detected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ascar.capes.modern.surface import Surface
from ascar.library import Drift, IndicatorSummary, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting

_OUTLIER_ERRORS, _OUTLIER_SHARE = 8.0, 0.05
_APART, _STILL_APART, _ALIKE = 4.5, 3.5, 4.0
_VISITS_MIN = 2
_OUTLIERS_MAX = 2
_KEPT_MAX = 32
_HINTS_MAX = 4
_INDICATORS_MAX = 320  # twice what a surface keeps
_NEWEST = 0.5


class WorkloadRecord(NamedTuple):
    """A workload as it is stored.

    Attributes:
        name: the announced name; None without an announcement.
        surface: the performance model of the workload.
        indicators: the indicators at visited settings.
    """

    name: str | None
    surface: Surface
    indicators: dict[Setting, IndicatorSummary]


ShiftVerdict = Literal["expected", "outlier", "shift"]


class WorkloadModels:
    """The surface of the workload that runs, and those of earlier workloads.

    A workload has changed when two visits in a row are outliers at their settings: the
    performance is eight standard errors away, and 5% or more; or that eighth of the indicators (means
    over the nodes, on scales from 0 to 1) that differs most is 4.5 standard deviations away. An
    indicator's deviation is its drift from one visit to the next of the same setting while the
    workload stays, learnt over all workloads, with the noise of its ticks. Which workload it is now is
    judged where all workloads were seen: at the initial setting. The most similar one there is taken up
    again, if it is within four deviations; else a new one begins, with the best settings of the
    others as the first ones to try. Where workloads are announced by name, names decide.

    Args:
        knobs: the knobs of the surfaces.

    Attributes:
        surface: the surface of the present workload.
        changes: found or announced so far.
        drift: what indicators move by while the workload stays.
    """

    def __init__(self, knobs: Sequence[Axis]) -> None:
        self._knobs = tuple(knobs)
        self.surface = self._empty()
        self.changes = 0
        self._name = ""
        self._named: dict[str, Surface] = {}
        self._others: list[Surface] = []
        self._outliers = 0
        self._outlier: tuple[Setting, NDArray[np.float64], IndicatorSummary] | None = None
        self._indicators: dict[int, dict[Setting, IndicatorSummary]] = {}
        self.drift = Drift()

    def all(self) -> list[WorkloadRecord]:
        """All workloads: first the one that runs, then those before, the latest last."""
        known = [(self._name or None, self.surface), *[(None, one) for one in self._others]]
        known += list(self._named.items())
        return [
            WorkloadRecord(name, surface, self._indicators.get(id(surface), {})) for name, surface in known
        ]

    def put_back(self, records: Sequence[WorkloadRecord], changes: int) -> None:
        """Restore what `all` returned; at least the workload that runs."""
        self.changes, self._outliers = changes, 0
        first, *others = records
        self._name, self.surface = first.name or "", first.surface
        self._others = [one.surface for one in others if one.name is None]
        self._named = {one.name: one.surface for one in others if one.name is not None}
        self._indicators = {id(one.surface): one.indicators for one in records}

    def announce(self, workload: str) -> None:
        """A workload has begun; where its name is known, what was learnt of it is taken up again."""
        if workload == self._name:
            return
        self.changes += 1
        self._outliers = 0
        if self._name:
            self._named[self._name] = self.surface
            while len(self._named) > _KEPT_MAX:
                self._named.pop(next(iter(self._named)))
        elif self.surface.visits:
            self._others.append(self.surface)
        self._name = workload
        self.surface = self._named.pop(workload, None) or self._new()

    def judge(
        self, setting: Setting, values: NDArray[np.float64], indicators: IndicatorSummary
    ) -> ShiftVerdict:
        """Whether a visit is as expected, an outlier, or the second outlier in a row: a shift.

        After a change `identify` says which.

        Args:
            setting: the setting that was visited.
            values: the values of the visit's ticks.
            indicators: meanwhile.
        """
        if self._name:
            return "expected"
        errors = _errors(self.surface, setting, values)
        apart = self._apart(self.surface, setting, indicators)
        wanted = _STILL_APART if self._outliers else _APART
        if (errors is None or errors < _OUTLIER_ERRORS) and (apart is None or apart < wanted):
            self._outliers = 0
            self._remember(setting, indicators)
            return "expected"
        self._outliers += 1
        if self._outliers < _OUTLIERS_MAX:
            return "outlier"
        self._outliers, self._outlier = 0, (setting, values, indicators)
        return "shift"

    def outlier(self, setting: Setting, values: NDArray[np.float64], indicators: IndicatorSummary) -> bool:
        """Judge a visit and follow a shift at once; whether the visit is an outlier and does not count."""
        verdict = self.judge(setting, values, indicators)
        if verdict == "shift":
            self.identify(setting, values, indicators)
        return verdict == "outlier"

    def deviates(self, setting: Setting, indicators: IndicatorSummary) -> bool:
        """Whether the last ticks' indicators are outliers here, so that the visit should be judged now."""
        known = self._indicators.get(id(self.surface), {})
        if self._name or setting not in known:
            return False
        if known[setting].mean.shape != indicators.mean.shape:
            return False
        return self.drift.distance(known[setting], indicators) > _APART

    def identify(self, setting: Setting, values: NDArray[np.float64], indicators: IndicatorSummary) -> None:
        """Another workload runs, or the same again: take up the most similar one's surface.

        Args:
            setting: visited since; best where all workloads were.
            values: the values of the visit's ticks.
            indicators: meanwhile.
        """
        known = [*self._others, self.surface]
        comparable = {
            at: seen
            for at, one in enumerate(known)
            if (seen := self._seen(one, setting, indicators)) is not None
            and ((errors := _errors(one, setting, values)) is None or errors < _OUTLIER_ERRORS)
        }
        alike = nearest(indicators, comparable, self.drift.distance, within=_ALIKE)
        if alike and known[alike[0].name] is self.surface:
            self._remember(setting, indicators)
            self._confirm()
            return  # a false alarm
        self._outlier = None
        self.changes += 1
        found = known[alike[0].name] if alike else self._new()
        self._others = [one for one in known if one is not found]
        self.surface = found
        self._remember(setting, indicators)
        for forgotten in self._others[:-_KEPT_MAX]:
            self._indicators.pop(id(forgotten), None)
        del self._others[:-_KEPT_MAX]

    def _confirm(self) -> None:
        """The workload is the same: the outlier counts, and what was known of its setting does not.

        Otherwise the model would send the learner there again and again, and each visit be an outlier.
        """
        if self._outlier is not None:
            setting, values, indicators = self._outlier
            self.surface.forget(setting)
            self.surface.add(setting, values)
            self._indicators.setdefault(id(self.surface), {})[setting] = indicators
        self._outlier = None

    def _empty(self) -> Surface:
        return Surface(self._knobs)

    def _new(self) -> Surface:
        """A surface of which nothing is known but what was best elsewhere."""
        surface = self._empty()
        for one in reversed([*self._named.values(), *self._others, self.surface]):
            best = one.best()
            if best is not None and best not in surface.hints:
                surface.hints.append(best)
        del surface.hints[_HINTS_MAX:]
        return surface

    def _remember(self, setting: Setting, indicators: IndicatorSummary) -> None:
        known = self._indicators.setdefault(id(self.surface), {})
        before = known.get(setting)
        if before is None or before.mean.shape != indicators.mean.shape:
            known[setting] = indicators
            if len(known) > _INDICATORS_MAX:
                del known[next(iter(one for one in known if one not in self.surface.places))]
            return
        if self.drift.learn(before, indicators):
            variance = (1 - _NEWEST) ** 2 * before.variance + _NEWEST**2 * indicators.variance
            known[setting] = IndicatorSummary(
                before.mean + _NEWEST * (indicators.mean - before.mean), variance
            )

    def _apart(self, surface: Surface, setting: Setting, indicators: IndicatorSummary) -> float | None:
        """How far indicators are from those of the setting before; None where it was not seen."""
        seen = self._seen(surface, setting, indicators)
        return None if seen is None else self.drift.distance(seen, indicators)

    def _seen(
        self, surface: Surface, setting: Setting, indicators: IndicatorSummary
    ) -> IndicatorSummary | None:
        """The indicators of the setting before; None where it was not seen.

        Of a neighbour they would differ: a knob may be an indicator, and such a one does not drift.
        """
        known = self._indicators.get(id(surface))
        if not known or not len(indicators.mean):
            return None
        if next(iter(known.values())).mean.shape != indicators.mean.shape:
            return None  # another set of indicators is sampled now
        return known.get(setting)


def _errors(surface: Surface, setting: Setting, values: NDArray[np.float64]) -> float | None:
    """By how many standard errors a visit differs from those before; None where there were less than two.

    Differences of less than 5% count as none. A model's prediction is not asked: between settings that it
    knows it may be surer than it should.
    """
    place = surface.places.get(setting)
    if place is None or place.visits < _VISITS_MIN:
        return None
    difference = abs(float(values.mean()) - place.mean)
    if difference <= _OUTLIER_SHARE * abs(place.mean):
        return 0.0
    tick = surface.tick_sd() * abs(place.mean)
    variance = tick**2 * (1 / len(values) + 1 / place.ticks) + surface.fitted().visit_sd ** 2
    return difference / float(np.sqrt(variance + 1e-12 * place.mean**2))
