"""What a ledger says, as a model can be fitted to it: encoded, standardised, errors included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.surrogate.observations import ModelObservations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers.guided.columns import SpaceColumns
    from ascar.optimizers.ledger import ConfigurationRecord, Ledger
    from ascar.space import Configuration

_SPREAD_MIN = 1e-12
# Beyond it losses are all the same: their squares could not be summed.
_LOSS_MAX = 1e150
# Standard deviations above the mean beyond which a bad loss is as bad as any: it is no place to look into.
_BAD_MAX = 4.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How losses are standardised, and back.

    Attributes:
        centre: the loss (or its logarithm) that becomes 0.
        spread: the spread of the losses that becomes 1.
        sign: 0: the loss itself is standardised; 1 or -1: sign * log(sign * loss) is. Effects on throughputs
            and latencies multiply, and so does their noise: on a logarithmic scale both add.
    """

    centre: float
    spread: float
    sign: int = 0

    @classmethod
    def of(cls, losses: NDArray[np.float64], sign: int = 0) -> Scale:
        """Mean and standard deviation; spread 1 where all losses are equal."""
        values = losses if sign == 0 else sign * np.log(sign * losses)
        if not len(values):
            return cls(0.0, 1.0, sign)
        spread, centre = float(values.std()), float(values.mean())
        return cls(centre, spread if spread > _SPREAD_MIN * max(1.0, abs(centre)) else 1.0, sign)

    @staticmethod
    def signs(losses: NDArray[np.float64]) -> tuple[int, ...]:
        """The scales that losses admit: a logarithm where they have one sign."""
        if len(losses) and (losses > 0).all():
            return (0, 1)
        if len(losses) and (losses < 0).all():
            return (0, -1)
        return (0,)

    def standard(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised losses."""
        values = losses if self.sign == 0 else self.sign * np.log(self.sign * losses)
        return np.minimum((values - self.centre) / self.spread, _BAD_MAX)

    def slope(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """How fast the standardised loss grows with the loss."""
        slope = np.ones_like(losses) if self.sign == 0 else 1 / np.abs(losses)
        return slope / self.spread

    def original(self, standardised: float, noise_variance: float = 0.0) -> float:
        """A standardised loss in its own unit again.

        Args:
            standardised: the loss.
            noise_variance: the variance of one evaluation, standardised. The truth is the mean of
                evaluations, and the mean of logarithms lies half the noise's variance below the logarithm of
                the mean.
        """
        value = self.centre + self.spread * standardised
        if self.sign == 0:
            return value
        return self.sign * float(np.exp(self.sign * value + 0.5 * noise_variance * self.spread**2))


@dataclass(frozen=True, slots=True, eq=False)
class ModelEvidence:
    """What is known, ready for a model.

    Attributes:
        observations: one row for each configuration that was measured, failed or pruned.
        configurations: the configurations of the rows.
        measured: bool (n,), which rows are usable: measured and never failed.
        scale: the scale of the losses.
        jacobian_log: log of the scale's slope, summed over the rows: what makes evidence on two scales
            comparable.
    """

    observations: ModelObservations
    configurations: tuple[Configuration, ...]
    measured: NDArray[np.bool_]
    scale: Scale
    jacobian_log: float


def gather(ledger: Ledger, columns: SpaceColumns, sign: int = 0) -> ModelEvidence:
    """Evidence from all that was told.

    A failed or quarantined configuration counts as the worst loss measured: it teaches to keep away, without
    a number so large that it would hide all differences among the others. A pruned one counts as the loss it
    was pruned at, if that is worse than what was measured of it. Nothing measured at all gives no rows.

    Args:
        ledger: the evaluations so far.
        columns: the encoding.
        sign: the sign of the scale, see `Scale`; losses that do not admit it are taken as they are.
    """
    worst = ledger.worst()
    known = {} if worst is None else {one: record for one, record in ledger.records.items() if record.seen}
    losses = [_losses(record, worst or 0.0) for record in known.values()]
    every = np.clip(np.array([loss for one in losses for loss in one], np.float64), -_LOSS_MAX, _LOSS_MAX)
    scale = Scale.of(every, sign if sign in Scale.signs(every) else 0)
    standard = scale.standard(every)
    repeats = np.array([len(one) for one in losses], np.float64)
    owner = np.repeat(np.arange(len(losses)), [len(one) for one in losses])
    mean = _sums(owner, standard, len(losses)) / repeats
    slope = scale.slope(_sums(owner, every, len(losses)) / repeats)
    errors = np.array([_variance(record) for record in known.values()], np.float64)
    observations = ModelObservations(
        columns=columns.rows(known),
        groups=columns.groups,
        loss=mean,
        variance=errors * slope**2,
        repeats=repeats,
        scatter=_sums(owner, (standard - mean[owner]) ** 2, len(losses)),
    )
    usable = np.array([record.usable for record in known.values()], np.bool_)
    return ModelEvidence(observations, tuple(known), usable, scale, float((repeats * np.log(slope)).sum()))


def _sums(owner: NDArray[np.intp], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """(count,): sums of the values that belong together."""
    return np.bincount(owner, values, count).astype(np.float64)


def _losses(record: ConfigurationRecord, worst: float) -> list[float]:
    """Losses that a record stands for; one where it was not measured, or failed too."""
    if record.usable:
        return record.losses
    failed = bool(record.failures or record.quarantined)
    bound = worst if failed else min(record.bounds, default=worst)
    return [max(bound, record.loss if record.loss is not None else bound)]


def _variance(record: ConfigurationRecord) -> float:
    """Known variance of a record's mean loss; 0 where unknown."""
    errors = [error for error in record.standard_errors if error is not None and np.isfinite(error)]
    if not record.usable or not errors:
        return 0.0
    return sum(min(error, _LOSS_MAX) ** 2 for error in errors) / len(record.losses) ** 2
