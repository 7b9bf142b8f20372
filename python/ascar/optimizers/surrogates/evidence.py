"""What a ledger says, as a model can be fitted to it: encoded, standardised, errors included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.surrogates.gaussian import Observations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers.ledger import Ledger, Record
    from ascar.optimizers.surrogates.columns import Columns
    from ascar.space import Configuration

__all__ = ["Evidence", "Scale", "gather"]

_SPREAD_MIN = 1e-12
# Beyond it losses are all the same: their squares could not be summed.
_LOSS_MAX = 1e150


@dataclass(frozen=True, slots=True)
class Scale:
    """How losses are standardised, and back.

    Attributes:
        centre: the loss that becomes 0.
        spread: how much of the loss becomes 1.
    """

    centre: float
    spread: float

    @classmethod
    def of(cls, losses: NDArray[np.float64]) -> Scale:
        """Mean and standard deviation; spread 1 where all losses are equal."""
        spread = float(losses.std())
        centre = float(losses.mean())
        return cls(centre, spread if spread > _SPREAD_MIN * max(1.0, abs(centre)) else 1.0)

    def standard(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised losses."""
        return (losses - self.centre) / self.spread

    def original(self, standardised: float) -> float:
        """A standardised loss in its own unit again."""
        return self.centre + self.spread * standardised


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is known, ready for a model.

    Attributes:
        observations: one row a configuration that was measured, failed or pruned.
        configurations: of the rows.
        measured: bool (n,), which rows are usable: measured and never failed.
        scale: of the losses.
    """

    observations: Observations
    configurations: tuple[Configuration, ...]
    measured: NDArray[np.bool_]
    scale: Scale


def gather(ledger: Ledger, columns: Columns) -> Evidence:
    """Evidence from all that was told.

    A failed or quarantined configuration counts as the worst loss measured: it teaches to keep away, without
    a number so large that it would hide all differences among the others. A pruned one counts as the loss it
    was pruned at. Nothing measured at all gives no rows.
    """
    worst = max((record.loss or 0.0 for _, record in ledger.usable()), default=None)
    known = {} if worst is None else {one: record for one, record in ledger.records.items() if record.seen}
    summaries = np.array([_summary(record, worst or 0.0) for record in known.values()], np.float64).reshape(
        -1, 3
    )
    losses = np.clip(summaries[:, 0], -_LOSS_MAX, _LOSS_MAX)
    scale = Scale.of(losses) if known else Scale(0.0, 1.0)
    observations = Observations(
        columns=columns.rows(known),
        groups=columns.groups,
        loss=scale.standard(losses),
        variance=summaries[:, 1] / scale.spread**2,
        repeats=summaries[:, 2],
    )
    usable = np.array([record.usable for record in known.values()], np.bool_)
    return Evidence(observations, tuple(known), usable, scale)


def _summary(record: Record, worst: float) -> tuple[float, float, float]:
    """Loss, known variance of it, and how many evaluations it is the mean of."""
    loss = record.loss
    if not record.usable or loss is None:
        bound = min(record.bounds, default=worst) if not record.failures and not record.quarantined else worst
        return max(bound, loss or bound), 0.0, 1.0
    n = len(record.losses)
    known = sum(error**2 for error in record.standard_errors if error is not None and np.isfinite(error))
    return loss, known / n**2, float(n)
