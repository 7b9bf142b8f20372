"""Watching for days: says when the mean of a stream has shifted (Li's thesis, section 6.3.1).

Every batch of readings is compared with the batches at the same time of the day on the days before, so that
a daily pattern of any shape is no shift. The differences are recursive residuals (Brown, Durbin and Evans
1975, "Techniques for testing the constancy of regression relationships over time", section 2.1): while
nothing changes they have mean 0 and one variance, and are uncorrelated however little is known of the
levels yet. What short correlation they have is predicted from the last batch and from the last few (a
heterogeneous autoregression, Corsi 2009, "A simple approximate long-memory model of realized volatility",
section 2) and taken off; the rest is evidence (`evidence`).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError
from ascar.pilot.evidence import EDetector
from ascar.pilot.memory import BatchMemory
from ascar.pilot.onset import onset_of
from ascar.results.watch import LevelSegment, Shift

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.pilot.batches import Batch
    from ascar.pilot.onset import Onset

_DAY_S = 86_400.0
_BINS_MAX = 2_000
# Means over so many of the last residuals predict the next one.
_SPANS = (1, 4, 16)
# The prediction's coefficients begin at 0, as if so many residuals had said so.
_PRIOR_RESIDUALS = 5.0
# So many residuals before the prediction is used, and as many more before evidence is counted.
_LEARN_MIN = 20
# The prediction learns from residuals so many batches old: it must not learn the shift before that is found.
_LEARN_DELAY = 48
# What is learned from a single residual is limited to so many standard deviations.
_LEARN_LIMIT = 4.0
# The evidence asked for, over what would do if the prediction of residuals were known and not estimated. By
# simulation of 10 days, alarms without it come up to 1.6 times as often as allowed, with it as often at most.
_CAUTION = 2.0
# Smaller differences are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """How to watch.

    Attributes:
        period_s: the period after which the pattern of the readings repeats; None: there is no pattern.
        batch_s: seconds of readings that are averaged into one; correlation should mostly be shorter.
        false_alarm_s: the mean time to a false alarm while nothing shifts, at least; within t seconds one
            comes with probability at most t / false_alarm_s.
    """

    period_s: float | None = _DAY_S
    batch_s: float = 900.0
    false_alarm_s: float = 365 * _DAY_S

    def __post_init__(self) -> None:
        """Refuse what cannot be watched.

        Raises:
            InputError: a duration is out of range, or batches do not divide the period.
        """
        for name, value in (("batch", self.batch_s), ("false-alarm", self.false_alarm_s)):
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value} s: must be a duration above 0")
        if self.false_alarm_s < 100 * self.batch_s:
            raise InputError(
                f"false-alarm = {self.false_alarm_s:g} s: must be at least 100 batches of {self.batch_s:g} s"
            )
        if self.period_s is None:
            return
        bins = self.period_s / self.batch_s if math.isfinite(self.period_s) else math.inf
        if not 1 <= bins <= _BINS_MAX or abs(bins - round(bins)) > 1e-9 * bins:
            raise InputError(
                f"period = {self.period_s:g} s in batches of {self.batch_s:g} s: must be a whole number of "
                f"batches, 1 to {_BINS_MAX}"
            )

    @property
    def bins(self) -> int:
        """Batches in a period."""
        return 1 if self.period_s is None else round(self.period_s / self.batch_s)


@dataclass(slots=True)
class ShiftDetector:
    """Takes batches in order and tells shifts. Memory is constant; after a shift it begins anew.

    The first period is learned, as is a little more; only then can a shift be found.

    Attributes:
        plan: the plan of the watch.
        start_s: the time at which batch 0 begins.
        shifts: all that were found.
        levels: the levels that have ended.
    """

    plan: WatchPlan
    start_s: float = 0.0
    shifts: list[Shift] = field(default_factory=list["Shift"])
    levels: list[LevelSegment] = field(default_factory=list["LevelSegment"])
    _run: _Run | None = field(default=None, repr=False)

    def add(self, batch: Batch) -> Shift | None:
        """Take in one batch; the shift, if it decides that there was one."""
        if self._run is None:
            self._run = _Run(self.plan.bins)
        run = self._run
        run.add(batch.index, batch.value)
        if run.evidence.log < math.log(_CAUTION * self.plan.false_alarm_s / self.plan.batch_s):
            return None
        shift = self._shift(run.onset(), batch.index)
        level = self.level
        assert level is not None, "the run has batches"
        self.shifts.append(shift)
        self.levels.append(level)
        self._run = None
        return shift

    @property
    def level(self) -> LevelSegment | None:
        """The level since the start or since the last shift was found; None before a batch of it."""
        run = self._run
        if run is None or run.last is None:
            return None
        return LevelSegment(self._at(run.first), self._at(run.last + 1), run.batches, run.mean)

    @property
    def learning(self) -> bool:
        """Whether too little is known yet to find any shift."""
        return self._run is None or not self._run.ready

    def _at(self, index: float) -> float:
        return self.start_s + index * self.plan.batch_s

    def _shift(self, onset: Onset, index: int) -> Shift:
        return Shift(
            found_s=self._at(index + 1),
            began_s=self._at(onset.began),
            began_low_s=None if onset.began_low is None else self._at(onset.began_low),
            began_high_s=self._at(onset.began_high),
            form=onset.form,
            direction="up" if onset.size > 0 else "down",
            before=onset.before,
            size=onset.size,
            size_low=onset.size_low,
            size_high=onset.size_high,
        )


@dataclass(slots=True)
class _Run:
    """What is known since the start or the last shift."""

    bins: int
    evidence: EDetector = field(default_factory=EDetector)
    memory: BatchMemory = field(init=False)
    first: int = 0
    last: int | None = None
    batches: int = 0
    mean: float = 0.0
    _means: NDArray[np.float64] = field(init=False, repr=False)
    _counts: NDArray[np.int64] = field(init=False, repr=False)
    _recent: deque[float] = field(init=False, repr=False)
    _predictor: _Predictor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.memory = BatchMemory(self.bins)
        self._means = np.zeros(self.bins)
        self._counts = np.zeros(self.bins, np.int64)
        self._recent = deque(maxlen=max(_SPANS))
        self._predictor = _Predictor()

    @property
    def ready(self) -> bool:
        return self._predictor.ready

    def add(self, index: int, value: float) -> None:
        if self.last is None:
            self.first = index
        elif index != self.last + 1:
            self._recent.clear()
        self.last = index
        self.batches += 1
        self.mean += (value - self.mean) / self.batches
        self.memory.add(index, value)
        residual = self._residual(index % self.bins, value)
        if residual is None:
            return
        lagged = _lagged(self._recent)
        step, learned = self._predictor.step(residual, lagged)
        if step:
            self.evidence.add(step)
        self._recent.append(learned)

    def _residual(self, place: int, value: float) -> float | None:
        """The recursive residual against the earlier batches at the same time of the period."""
        count, mean = int(self._counts[place]), float(self._means[place])
        self._counts[place] += 1
        self._means[place] += (value - mean) / (count + 1)
        if count == 0:
            return None
        difference = value - mean
        if abs(difference) <= _ROUNDING * max(abs(value), abs(mean)):
            difference = 0.0
        return difference * math.sqrt(count / (count + 1))

    def onset(self) -> Onset:
        at, values, bins, width = self.memory.series()
        found = onset_of(at, values, bins, upwards=self.evidence.upwards)
        return found if width == 1 else _scaled(found, width)


def _scaled(onset: Onset, width: int) -> Onset:
    from dataclasses import replace

    low = None if onset.began_low is None else onset.began_low * width
    return replace(
        onset, began=onset.began * width, began_low=low, began_high=(onset.began_high + 1) * width - 1
    )


def _lagged(recent: deque[float]) -> NDArray[np.float64]:
    """Means of the last residuals, each scaled to their standard deviation if they are independent."""
    known = list(recent)
    return np.array([sum(known[-span:]) / math.sqrt(span) for span in _SPANS])


@dataclass(slots=True)
class _Predictor:
    """Predicts a residual from those before it, and scales what it did not predict."""

    _products: NDArray[np.float64] = field(default_factory=lambda: np.zeros((len(_SPANS), len(_SPANS))))
    _cross: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(_SPANS)))
    _waiting: deque[tuple[float, NDArray[np.float64]]] = field(
        default_factory=deque[tuple[float, "NDArray[np.float64]"]]
    )
    _squares: float = 0.0
    _count: int = 0
    _unpredicted: float = 0.0
    _unpredicted_count: int = 0

    @property
    def ready(self) -> bool:
        return self._unpredicted_count >= _LEARN_MIN

    def step(self, residual: float, lagged: NDArray[np.float64]) -> tuple[float, float]:
        """What was not predicted, in standard deviations so far (at first 0), and what is learned."""
        step = 0.0
        learned = residual
        if self._count >= _LEARN_MIN:
            variance = self._squares / self._count
            error = residual
            if variance > 0:
                prior = _PRIOR_RESIDUALS * variance * np.eye(len(_SPANS))
                error -= float(np.linalg.solve(self._products + prior, self._cross) @ lagged)
                limit = _LEARN_LIMIT * math.sqrt(variance)
                learned = min(max(residual, -limit), limit)
            if self.ready:
                scale = math.sqrt(self._unpredicted / self._unpredicted_count)
                step = error / scale if scale > 0 else math.copysign(_BIG, error) if error else 0.0
                error = min(max(error, -_LEARN_LIMIT * scale), _LEARN_LIMIT * scale) if scale > 0 else error
            self._unpredicted += error * error
            self._unpredicted_count += 1
        self._waiting.append((learned, lagged))
        if len(self._waiting) > _LEARN_DELAY:
            self._learn(*self._waiting.popleft())
        return step, learned

    def _learn(self, learned: float, lagged: NDArray[np.float64]) -> None:
        self._products += np.outer(lagged, lagged)
        self._cross += lagged * learned
        self._squares += learned * learned
        self._count += 1


# A difference where there never was one.
_BIG = 1e3
