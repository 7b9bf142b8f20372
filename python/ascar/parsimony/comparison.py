"""The best configuration in turns with a smaller one, until it is known whether that does as well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import expm1, inf, isfinite, log1p, sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar import _core
from ascar.pairs import Pairs, Scatter, changes
from ascar.pilot.pairs_needed import pairs_until
from ascar.results.parsimony import ReductionStep
from ascar.results.trial import Purpose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.campaign import Campaign
    from ascar.results.parsimony import ReductionEnd
    from ascar.space import Configuration

# Where the scatter is known from as many other pairs, three decide; else as many as `[verify] runs_min` says.
_DOF_KNOWN, _PAIRS_KNOWN = 4, 3
# A loss shown to be above this share of the margin is kept: to tell it from the margin takes too long.
_SHOWN = 0.5
# A loss that so many pairs will probably show is shown, as what a parameter brings is worth knowing.
_SHOWING_MAX = 20
# A comparison goes on as long as it may be so many standard errors better than it looks.
_HOPE = 2.0
# The effect that is looked for is the margin: a mean of so many pairs scatters as much.
_PRIOR_MIN, _PRIOR_MAX = 0.01, 1e4
_SD_MIN = 1e-9


@dataclass(frozen=True, slots=True)
class LossTest:
    """What pairs say of a loss, at all looks together.

    Attributes:
        level: of a two-sided test; a wrong acceptance takes half of it.
        margin: the loss that is accepted; the effect that is looked for.
        earlier: the scatter of the pairs that were made before the first of these.
    """

    level: float
    margin: float
    earlier: Scatter

    @property
    def prior(self) -> float | None:
        """The number of pairs whose mean scatters by the margin, by what is known before the first pair."""
        if self.earlier.dof == 0:
            return None
        return min(_PRIOR_MAX, max(_PRIOR_MIN, (self.earlier.sd / self.margin) ** 2))

    def pairs_min(self, runs_min: int) -> int:
        """The number of pairs before the first decision, where `[verify]` wants so many."""
        return min(runs_min, _PAIRS_KNOWN) if self.earlier.dof >= _DOF_KNOWN else runs_min

    def scatter(self, seen: Sequence[float]) -> Scatter:
        """Of these pairs and of the earlier ones."""
        return Scatter.of(seen).with_earlier(self.earlier)

    def limits(self, seen: Sequence[float]) -> tuple[float, float, float]:
        """The mean of one change or more, with its limits, maybe infinite."""
        mean, scatter = fmean(seen), self.scatter(seen)
        if scatter.dof == 0:
            return mean, -inf, inf
        width = _core.pairs_half_width(len(seen), float(scatter.dof), alpha=self.level, prior=self.prior)
        half = width * scatter.sd if scatter.sd > 0 else 0.0
        return mean, mean - half, mean + half

    def pairs_until(self, half_width: float, seen: Sequence[float], pairs_min: int) -> int | None:
        """The number of pairs whose mean has an interval of this half width."""
        if half_width <= 0:
            return None
        scatter = self.scatter(seen)
        dof = max(0, scatter.dof - max(0, len(seen) - 1))
        wanted = half_width / max(scatter.sd, _SD_MIN)
        return pairs_until(wanted, self.level, pairs_min, dof=dof, prior=self.prior)


@dataclass(slots=False)
class LossComparison:
    """The best configuration against one that changes less.

    Attributes:
        campaign: the campaign that carries out the runs.
        best: the best configuration.
        smaller: the other one.
        margin: the loss that is accepted, as a share of the best's score.
        level: of a two-sided test; a wrong acceptance takes half of it.
        likely: the share of the margin that the loss itself may probably be.
    """

    campaign: Campaign
    best: Configuration
    smaller: Configuration
    margin: float
    level: float
    likely: float = 1.0

    @cached_property
    def pairs(self) -> Pairs:
        """The pairs of both, those that the run has included."""
        return Pairs(self.best, self.smaller, Purpose.REDUCE).recall(self.campaign)

    @cached_property
    def test(self) -> LossTest:
        """The test, with the scatter of the pairs that were made before the first of these."""
        before = list(self.campaign.trials)
        if self.pairs.made:
            first = min(one.number for one in self.pairs.made[0])
            before = [one for one in before if one.number < first]
        return LossTest(self.level, self.margin, Scatter.pooled(before))

    @property
    def _sign(self) -> int:
        return self.campaign.prepared.study.objective.sign

    @property
    def _pairs_min(self) -> int:
        return self.test.pairs_min(self.campaign.prepared.study.verify.runs_min)

    @property
    def _scores(self) -> list[tuple[float, float]]:
        return [(one.score or 0.0, other.score or 0.0) for one, other in self.pairs.runs]

    @property
    def _is_ratio(self) -> bool:
        return all(one > 0 and other > 0 for one, other in self._scores)

    @property
    def _changes(self) -> list[float]:
        """From the best to the smaller one, by the measure of `ascar.pairs.changes`; above zero is better."""
        return [self._sign * one for one in changes(self._scores)]

    @property
    def _least(self) -> float:
        """The change that is just accepted."""
        return self._sign * log1p(-self._sign * self.margin) if self._is_ratio else -self.margin

    @property
    def change(self) -> tuple[float, float, float] | None:
        """From the best to the smaller one: estimate and limits; None before the first pair."""
        return self.test.limits(self._changes) if self._scores else None

    @property
    def ended(self) -> ReductionEnd | None:
        """What the pairs decide; None if nothing yet."""
        made, change = len(self.pairs.made), self.change
        if self.pairs.best_fails or (made >= self._pairs_min and change is None):
            return "failures"
        if made >= self._pairs_min and change is not None:
            if change[1] > self._least:
                return "within-margin" if change[0] > self.likely * self._least else "unlikely"
            if change[2] < _SHOWN * self._least:
                return "worse"
        return "runs-max" if made >= self.campaign.prepared.study.verify.runs_max else None

    @property
    def more_pairs(self) -> int | None:
        """How many further pairs will probably decide it; None: too many.

        It is taken for as good as the pairs leave likely, but for a loss where few pairs show that.
        """
        seen, change = self._changes, self.change
        if change is None or len(seen) < self._pairs_min:
            return max(1, self._pairs_min - len(seen))
        showing = self.test.pairs_until(_SHOWN * self._least - change[0], seen, self._pairs_min)
        if showing is not None and showing <= _SHOWING_MAX:
            return max(1, showing - len(seen))
        hoped = change[0] + _HOPE * self.test.scatter(seen).sd / sqrt(len(seen))
        needed = self.test.pairs_until(hoped - self._least, seen, self._pairs_min)
        return None if needed is None else max(1, needed - len(seen))

    def step(self, left_out: tuple[str, ...], ended: ReductionEnd) -> ReductionStep:
        """What it came to.

        Args:
            left_out: the parameters that are at the default beside those of the steps accepted before.
            ended: why no more pairs are made.
        """
        found = ReductionStep(
            left_out=left_out,
            configuration=dict(self.smaller),
            accepted=ended == "within-margin",
            confidence=1 - self.level,
            pairs=len(self.pairs.made),
            ended=ended,
        )
        if self.change is None:
            return found
        difference = self._sign * fmean(other - one for one, other in self._scores)
        if self._is_ratio:
            gain, low, high = (self._gain(one) for one in self.change)
            return replace(found, gain_relative=gain, gain_low=low, gain_high=high, difference=difference)
        size = abs(fmean(one for one, _ in self._scores)) or 1.0
        low, high = (size * one if isfinite(one) else None for one in self.change[1:])
        return replace(found, difference=difference, difference_low=low, difference_high=high)

    def _gain(self, change: float) -> float | None:
        """A change of the logarithm as a share of the best's score; above zero is better."""
        return self._sign * expm1(self._sign * change) if isfinite(change) else None
