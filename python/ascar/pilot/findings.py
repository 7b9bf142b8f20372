"""Rounds to findings: unit readings where there are any, else one reading a round."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc

from ascar import _core
from ascar.errors import InputError
from ascar.measurement import Measurement
from ascar.pilot.analysis import analyze
from ascar.pilot.indicator import Indicator, Kind
from ascar.pilot.phases import phases_of
from ascar.pilot.stopping import LOOK_GROWTH, cautious, enough_independent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.pilot.phases import Phase
    from ascar.pilot.round import Round

__all__ = ["Finding", "Ledger"]

# Rounds whose means differ more than their own intervals explain, at this level, are the samples themselves.
_ROUNDS_DIFFER_P = 0.05


@dataclass(frozen=True, slots=True)
class Finding:
    """What the rounds say about one indicator.

    Attributes:
        indicator: which.
        measurement: its mean with an interval; None before the first reading.
        basis: "unit readings"; "rounds", where unit readings agree inside rounds but not between them; or
            "readings", one a round.
        readings: how many were taken.
        removed: of them left out as warm-up and cool-down.
        rounds_unstable: rounds without a stable phase, left out whole.
    """

    indicator: Indicator
    measurement: Measurement | None = None
    basis: str = "readings"
    readings: int = 0
    removed: int = 0
    rounds_unstable: int = 0

    @property
    def reached(self) -> bool:
        """Whether the indicator's goal is reached, and may be stopped at; without a goal, always."""
        goal = self.indicator.goal
        if goal is None:
            return True
        found = self.measurement
        return found is not None and goal.met_by(found) and enough_independent(found)


@dataclass(slots=True)
class Ledger:
    """All readings of one indicator, round by round.

    Attributes:
        indicator: which.
    """

    indicator: Indicator
    _stable: list[NDArray[np.float64]] = field(default_factory=list["NDArray[np.float64]"], repr=False)
    _rounds: list[Measurement] = field(default_factory=list[Measurement], repr=False)
    _first: NDArray[np.float64] | None = field(default=None, repr=False)
    _readings: list[float] = field(default_factory=list[float], repr=False)
    _units: int = field(default=0, repr=False)
    _unstable: int = field(default=0, repr=False)
    _looked_at: int = field(default=0, repr=False)
    _finding: Finding | None = field(default=None, repr=False)

    @property
    def has_units(self) -> bool:
        """Whether rounds gave unit readings."""
        return self._units > 0

    def series(self) -> NDArray[np.float64]:
        """The readings that the finding is about: of the only round all, of several their stable phases."""
        if not self._units:
            return np.array(self._readings, np.float64)
        if len(self._rounds) + self._unstable == 1 and self._first is not None:
            return self._first
        return np.concatenate(self._stable) if self._stable else np.empty(0)

    def analyzed(self, done: Round) -> tuple[tuple[int, ...], tuple[Phase, ...]]:
        """A round's unit readings on their own: change points; what was kept, what removed, and why."""
        values = np.asarray(done.unit_readings[self.indicator.name], np.float64)
        found = analyze(self._averaged(values), self._confidence)
        return found.change_points, phases_of(values, found)

    def add(self, done: Round) -> None:
        """Take in a round; each warms up and cools down on its own (section 4.2.1).

        Raises:
            InputError: a reading is not of the indicator's kind.
        """
        name = self.indicator.name
        values = np.asarray(done.unit_readings.get(name, ()), np.float64)
        if len(values):
            self._check(values)
            self._first = values if not self._units else self._first
            self._units += len(values)
            found = analyze(self._averaged(values), self._confidence)
            if "no stable phase" in found.reason:
                self._unstable += 1
            else:
                self._rounds.append(found)
                self._stable.append(values[found.stable_start : found.stable_end])
        elif name in done.readings:
            self._check(np.array([done.readings[name]], np.float64))
            self._readings.append(float(done.readings[name]))

    def finding(self, *, last: bool = False) -> Finding:
        """What is known now.

        Args:
            last: look even though little was added since the last look.
        """
        count = self._units or len(self._readings)
        if self._finding is None or last or count >= LOOK_GROWTH * self._looked_at:
            self._looked_at = count
            self._finding = self._look()
        return self._finding

    @property
    def _confidence(self) -> float:
        return self.indicator.goal.confidence if self.indicator.goal else 0.95

    def _look(self) -> Finding:
        if not self._units:
            values = np.array(self._readings, np.float64)
            measurement = self._measure(values, whole=False) if len(values) else None
            removed = 0 if measurement is None else len(values) - measurement.n
            return Finding(self.indicator, measurement, "readings", len(values), removed)
        if not self._stable:
            measurement = self._measure(self._first, whole=False) if self._first is not None else None
            return Finding(self.indicator, measurement, "unit readings", self._units, 0, self._unstable)
        whole = len(self._stable) > 1 or self._unstable > 0
        values = np.concatenate(self._stable) if whole else self.series()
        measurement, basis = self._measure(values, whole=whole), "unit readings"
        if whole and self._rounds_differ():
            measurement, basis = self._between_rounds(measurement), "rounds"
        if self._unstable >= len(self._rounds):
            reason = f"{self._unstable} of {self._unstable + len(self._rounds)} rounds have no stable phase"
            measurement = replace(measurement, ci_low=None, ci_high=None, reason=reason)
        removed = self._units - measurement.n
        return Finding(self.indicator, measurement, basis, self._units, removed, self._unstable)

    def _measure(self, values: NDArray[np.float64], *, whole: bool) -> Measurement:
        """The mean of this kind of readings with its interval."""
        if self.indicator.kind is Kind.BINARY:
            mean, low, high = _core.proportion_interval(int(values.sum()), len(values), self._confidence)
            n = len(values)
            return Measurement(mean, low, high, self._confidence, n, n, 0.0, 1, 0, n, method="Wilson")
        averaged = self._averaged(values)
        found = analyze(averaged, self._confidence, whole=whole)
        found = cautious(found, averaged[found.stable_start : found.stable_end])
        return _inverted(found) if self.indicator.kind is Kind.RATIO else found

    def _averaged(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is averaged: of ratios such as speeds the reciprocals, for their mean is harmonic."""
        return 1.0 / values if self.indicator.kind is Kind.RATIO else values

    def _rounds_differ(self) -> bool:
        """Cochran's Q test (1954, "The combination of estimates from different experiments")."""
        if self.indicator.kind is Kind.BINARY:
            return False
        pairs = [(found.mean, found.standard_error) for found in self._rounds]
        known = [(mean, error) for mean, error in pairs if error is not None and error > 0]
        if len(known) < 2:
            return False
        means, errors = np.array(known, np.float64).T
        weights = 1.0 / errors**2
        center = float(means @ weights) / float(weights.sum())
        return float(chdtrc(len(known) - 1, float(weights @ (means - center) ** 2))) < _ROUNDS_DIFFER_P

    def _between_rounds(self, inside: Measurement) -> Measurement:
        """The mean of the rounds' means, which are then the independent samples."""
        means = np.array([found.mean for found in self._rounds], np.float64)
        mean, low, high = _core.mean_interval(means, self._confidence)
        found = replace(
            inside,
            mean=mean,
            ci_low=low,
            ci_high=high,
            independent_samples=len(means),
            method="means of rounds",
            reason="",
        )
        return _inverted(found) if self.indicator.kind is Kind.RATIO else found

    def _check(self, values: NDArray[np.float64]) -> None:
        name, kind = self.indicator.name, self.indicator.kind
        wrong = ~np.isfinite(values)
        allowed = "a finite number"
        if kind is Kind.RATIO:
            wrong, allowed = wrong | (values <= 0), "a number above 0, as its kind is ratio"
        elif kind is Kind.BINARY:
            wrong, allowed = wrong | ((values != 0) & (values != 1)), "0 or 1, as its kind is binary"
        if wrong.any():
            raise InputError(f"a reading of {name} = {values[wrong][0]}: must be {allowed}")


def _inverted(times: Measurement) -> Measurement:
    """The mean speed from the mean time: the interval's ends change places, where both are above zero."""
    bounded = times.ci_low is not None and times.ci_high is not None and times.ci_low > 0
    reason = times.reason
    if not bounded and times.ci_low is not None:
        reason = "the interval of the mean reciprocal reaches 0; measure longer"
    return replace(
        times,
        mean=1.0 / times.mean,
        ci_low=1.0 / times.ci_high if bounded and times.ci_high else None,
        ci_high=1.0 / times.ci_low if bounded and times.ci_low else None,
        method=f"harmonic, {times.method}",
        reason=reason,
    )
