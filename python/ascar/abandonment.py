"""Ending the load of a configuration that is worse than the best so far (Cao 9.6).

A candidate that is as good as the best trial so far, or better, is abandoned with a probability of at most
`[measurement] abandon`, however often one looks. It has to be worse by more than two kinds of noise:

- between readings: the always-valid limits of the mean of correlated readings (`_core.sequential_mean`), for
  which half of the probability is kept;
- between runs, the other half. Readings of one run agree better than runs do, and the best trial so far is
  also the luckiest. Its margin is the quantile of (largest of so many runs) - (one run), in standard
  deviations between runs, which are learned from configurations that were measured more than once, the
  default first, beginning with 3%.

The two are independent, so their squares add.

A candidate that warms up is not worse for that. Readings younger than the longest warm-up that any complete
trial of the study had are left aside, and so is what the change-point analysis calls unstable. The readings
are taken to go on rising, as steeply as they may be (97.5%), until a load usually ends. And the candidate
must be worse than the best trial's steady readings, and than those it had at the same age. What nothing can
tell from a bad configuration is one that stays on a low level for longer than any before it, and then steps
up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from ascar import _core
from ascar.pilot import analyze
from ascar.results.trial import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ascar.objective import Objective
    from ascar.results.measurement import Measurement, Series
    from ascar.results.trial import Trial
    from ascar.space import Configuration

READINGS_MIN = 8
"""Steady readings before the first look."""
_LOOK_GROWTH = 1.2
_SAME_AGE_MIN = 4

# Between fresh runs real storage systems differ by a few percent. What repeated runs of the study say is
# averaged with this, which counts as so many of them.
_RUN_SD = 0.03
_RUN_SD_WEIGHT = 8
# How steep a rise is reckoned with: the upper end of the slope's one-sided interval.
_RISE_CONFIDENCE = 0.975
# Nodes of the two integrals behind the margin.
_NODES, _SHARES = 40, 200


@dataclass(frozen=True, slots=True)
class AbandonmentFinding:
    """How much worse a candidate is known to be.

    Attributes:
        seconds: age of the load.
        worse_relative: share of the best trial's level by which the mean of its readings so far is worse.
        worse_least: the same, less both kinds of noise and what a rise may still bring: it is worse by at
            least this much.
        measurement: the measurement of the candidate's readings so far.
    """

    seconds: float
    worse_relative: float
    worse_least: float
    measurement: Measurement


@dataclass(frozen=True, slots=True, eq=False)
class BestTrial:
    """The best trial so far, as candidates are held against it.

    Attributes:
        number: the trial's.
        scores: the trial's unit readings of the objective.
        measurement: the measurement of these readings.
        sign: 1: more is better; -1: less is.
        margin: share of its level by which a candidate must be worse: what runs may differ.
        warm_up_s: the longest warm-up of the study's complete trials.
        usual_s: the age at which their loads ended, the median.
        load_s: the median length of the trials' loads, start and end included.
        level: probability, over all looks, of abandoning a candidate that is as good.
    """

    number: int
    scores: Series
    measurement: Measurement
    sign: int
    margin: float
    warm_up_s: float
    usual_s: float
    load_s: float
    level: float

    @classmethod
    def of(cls, trials: Iterable[Trial], objective: Objective, level: float) -> BestTrial | None:
        """The best usable trial of a search that has an interval; None where there is none to compare with.

        Args:
            trials: the trials of the study.
            objective: the objective, which gives the direction.
            level: see `level`; 0: there is never one.
        """
        tried = [
            trial
            for trial in trials
            if trial.usable
            and (trial.purpose is Purpose.DEFAULT or trial.purpose.of_search)
            and trial.score is not None
        ]
        known = [
            trial for trial in tried if trial.measurement is not None and trial.measurement.standard_error
        ]
        if level <= 0 or not known:
            return None
        best = max(known, key=lambda trial: objective.sign * (trial.score or 0.0))
        scores, measured = objective.series(best.series, best.metrics), best.measurement
        error = measured.standard_error if measured is not None else None
        if (
            scores is None
            or measured is None
            or error is None
            or measured.n < READINGS_MIN
            or not measured.mean
        ):
            return None
        ages = [_ages_s(trial, objective) for trial in tried]
        runs: dict[Configuration, list[float]] = {}
        for trial in tried:
            runs.setdefault(trial.configuration, []).append(trial.score or 0.0)
        margin = run_margin(list(runs.values()), len(tried), level / 2, error / abs(measured.mean))
        return cls(
            number=best.number,
            scores=scores,
            measurement=measured,
            sign=objective.sign,
            margin=margin,
            warm_up_s=max(warm_up_s for warm_up_s, _ in ages),
            usual_s=median(end_s for _, end_s in ages),
            load_s=median(trial.stage_s.get("load", 0.0) for trial in tried),
            level=level,
        )

    def judge(self, scores: Series) -> AbandonmentFinding | None:
        """Whether a candidate with these readings so far is worse; None where that is not certain."""
        young = _count(scores.seconds, self.warm_up_s)
        measured = analyze(scores.values[young:], self.measurement.confidence)
        start, end = young + measured.stable_start, young + measured.stable_end
        moving = any(measured.stable_start < point < measured.stable_end for point in measured.change_points)
        if moving or end < len(scores) or end - start < READINGS_MIN:
            return None
        noise, rise = self._noise(scores, slice(start, end), measured)
        mean, reference = float(scores.values[start:end].mean()), self._reference(scores.seconds[start:end])
        if not reference:
            return None
        short = self.sign * (reference - mean) / abs(reference)
        known = short - math.hypot(self.margin, noise / abs(reference)) - rise / abs(reference)
        if known <= 0:
            return None
        whole = replace(
            measured,
            stable_start=start,
            stable_end=end,
            change_points=tuple(young + point for point in measured.change_points),
        )
        return AbandonmentFinding(float(scores.seconds[-1]), short, known, whole)

    def _reference(self, seconds: NDArray[np.float64]) -> float:
        """The best trial's steady level, or the one it had at the same age if that was worse."""
        steady = self.scores.values[self.measurement.stable_start : self.measurement.stable_end]
        first = max(0, _count(self.scores.seconds, float(seconds[0])) - 1)
        same_age = self.scores.values[first : _count(self.scores.seconds, float(seconds[-1]))]
        levels = [float(part.mean()) for part in (steady, same_age) if len(part) >= _SAME_AGE_MIN]
        return self.sign * min(self.sign * level for level in levels)

    def _noise(self, scores: Series, steady: slice, measured: Measurement) -> tuple[float, float]:
        """How far the candidate's mean may be off, and what it may gain until a usual load ends."""
        values = np.ascontiguousarray(scores.values[steady])
        limits = _core.sequential_mean(values, alpha=self.level, large_effects=True)
        seconds, values = scores.seconds[steady], self.sign * values
        age = seconds - seconds.mean()
        spread = float(age @ age)
        if limits is None or spread <= 0:
            return math.inf, 0.0
        slope = float(age @ values) / spread
        left = values - values.mean() - slope * age
        # Readings that are alike say less about the slope than so many independent ones.
        worth = max(1.0, len(values) / max(1, measured.independent_samples))
        error = math.sqrt(float(left @ left) / (len(values) - 2) / spread * worth)
        ahead = max(self.usual_s, float(seconds[-1])) - float(seconds.mean())
        quantile = _core.student_t_quantile(_RISE_CONFIDENCE, len(values) - 2)
        rise = max(0.0, slope + quantile * error) * ahead
        return 0.5 * (limits[1] - limits[0]), rise


@dataclass(slots=True)
class AbandonmentRule:
    """Looks at a candidate now and then: after 8 readings, and whenever there are a fifth more."""

    rival: BestTrial
    _next: int = READINGS_MIN

    def look(self, scores: Series) -> AbandonmentFinding | None:
        """How much worse the candidate is known to be; None while it may be as good, or between looks."""
        readings = len(scores) - _count(scores.seconds, self.rival.warm_up_s)
        if readings < self._next:
            return None
        self._next = math.ceil(readings * _LOOK_GROWTH)
        return self.rival.judge(scores)


def run_margin(
    runs: Sequence[Sequence[float]], trials: int, level: float, error_relative: float = 0.0
) -> float:
    """The share of its level by which the luckiest of so many runs may exceed one more run that is as good.

    The quantile allows for the standard deviation's being an estimate (see `run_scatter`): it is that of
    (max of `trials` normal deviates - one more) / sqrt(chi-squared / dof).

    Args:
        runs: scores by configuration.
        trials: among how many the best was chosen.
        level: probability of exceeding the margin.
        error_relative: standard error of one run's mean, over the mean: its readings' noise.
    """
    sd, free = run_scatter(runs)
    return math.hypot(sd, error_relative) * _lucky_quantile(trials, free, level)


def run_scatter(runs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """The standard deviation between runs of one configuration, as a share of their mean.

    It comes with its degrees of freedom. It is that of the repeated runs, averaged with 3% that counts as 8
    degrees of freedom.

    Args:
        runs: scores by configuration.
    """
    squares, free = _RUN_SD_WEIGHT * _RUN_SD**2, float(_RUN_SD_WEIGHT)
    for scores in runs:
        mean = float(np.mean(scores))
        if len(scores) > 1 and mean != 0:
            squares += float(np.sum((np.asarray(scores) / mean - 1) ** 2))
            free += len(scores) - 1
    return math.sqrt(squares / free), free


@lru_cache(maxsize=256)
def _lucky_quantile(trials: int, free: float, level: float) -> float:
    """The quantile of the margin, by bisection."""
    shares = (np.arange(_SHARES) + 0.5) / _SHARES
    scale = np.sqrt(_core.chi_squared_quantile_above(shares, free) / free)[:, None]
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    low, high = 0.0, 1e3
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        below = (_core.normal_below(nodes + middle * scale) ** trials * weights).sum(axis=1).mean()
        low, high = (middle, high) if 1 - below > level else (low, middle)
    return high


def _ages_s(trial: Trial, objective: Objective) -> tuple[float, float]:
    """The ages of a load at which its stable phase began, and at its last reading; 0 where unknown."""
    scores, measured = objective.series(trial.series, trial.metrics), trial.measurement
    if scores is None or not len(scores):
        return 0.0, 0.0
    end_s = float(scores.seconds[-1])
    if measured is None or not 0 < measured.stable_start <= len(scores):
        return 0.0, end_s
    return float(scores.seconds[measured.stable_start - 1]), end_s


def _count(seconds: NDArray[np.float64], at_s: float) -> int:
    """How many readings were taken at this age of the load or before."""
    return int(np.searchsorted(seconds, at_s + 1e-9, side="right"))
