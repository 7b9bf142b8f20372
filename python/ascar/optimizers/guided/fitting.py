"""When a Gaussian process is fitted anew, and on which scale of the loss.

Hyperparameters are fitted from scratch whenever the history has grown by some 15%, on that much of it, and in
between refined by a few steps from there. So they follow from the history alone: a search rebuilt from it has
the same model as one that was never interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.guided.evidence import ModelEvidence, Scale, gather
from ascar.optimizers.ledger import Ledger
from ascar.surrogate.fitting import fit
from ascar.surrogate.hyperparameters import KernelHyperparameters

if TYPE_CHECKING:
    from ascar.optimizers.guided.columns import SpaceColumns
    from ascar.surrogate.process import GaussianProcess

_GROWTH = 1.15
_FIRST = 4
_REFINE_ITERATIONS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model and what it was fitted to."""

    evidence: ModelEvidence
    process: GaussianProcess


@dataclass(slots=True)
class Fitter:
    """Keeps the model of a ledger up to date.

    Attributes:
        ledger: the evaluations so far.
        columns: the encoding.
        rough: whether the model has a rough part, see `GaussianProcess`.
        logarithmic: whether the loss may be modelled on a logarithmic scale, where that explains it better.
    """

    ledger: Ledger
    columns: SpaceColumns
    rough: bool = True
    logarithmic: bool = True
    _checkpoint: int = 0
    _start: tuple[int, KernelHyperparameters] | None = None
    _present: tuple[int, Fitted] | None = None

    def present(self) -> Fitted | None:
        """The model of all that is known; None while fewer than two configurations are measured."""
        told = len(self.ledger.history)
        if self._present is not None and self._present[0] == told:
            return self._present[1]
        if sum(1 for _ in self.ledger.usable()) < 2 or not self.columns.width:
            return None
        checkpoint = _checkpoint(told)
        if self._start is None or checkpoint != self._checkpoint:
            self._checkpoint, self._start = checkpoint, self._fit(checkpoint)
        sign, start = self._start
        evidence = gather(self.ledger, self.columns, sign)
        process = fit(evidence.observations, (start,), rough=self.rough, iterations_max=_REFINE_ITERATIONS)
        self._present = told, Fitted(evidence, process)
        return self._present[1]

    def _fit(self, evaluations: int) -> tuple[int, KernelHyperparameters]:
        """Scale and hyperparameters from the first so many evaluations."""
        past = Ledger(self.ledger.space, self.ledger.seed)
        for evaluation in self.ledger.history[:evaluations]:
            past.tell(evaluation)
        plain = gather(past, self.columns)
        if len(plain.configurations) < 2:
            return 0, KernelHyperparameters.prior(plain.observations.parameters)
        losses = np.array([record.loss for record in past.records.values() if record.losses], np.float64)
        signs = Scale.signs(losses) if self.logarithmic else (0,)
        found: list[tuple[float, int, KernelHyperparameters]] = []
        for sign in signs:
            evidence = gather(past, self.columns, sign)
            process = fit(evidence.observations, rough=self.rough)
            found.append((process.penalty - evidence.jacobian_log, sign, process.hyper))
        _, sign, hyper = min(found, key=lambda one: one[0])
        return sign, hyper


def _checkpoint(told: int) -> int:
    """The largest of the numbers 4, 5, 6, ... 100, 115, ... that is not above `told`."""
    at = _FIRST
    while (following := max(at + 1, int(at * _GROWTH))) <= told:
        at = following
    return min(at, told)
