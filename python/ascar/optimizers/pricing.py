"""What evaluating a configuration takes: its load, and the change to it from what is in force (Cao 9.4).

A gain divided by it is a gain per second: Snoek, Larochelle and Adams, "Practical Bayesian Optimization of
Machine Learning Algorithms", NeurIPS 2012, section 3.2. There the seconds are a configuration's own; here
they depend on the one before, too: what is in force already costs no change, what needs a new format does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from ascar.results.trial import TrialState
from ascar.space import ChangeCost
from ascar.surrogate.process import GaussianProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.optimizers import Evaluation
    from ascar.optimizers.guided.columns import SpaceColumns
    from ascar.optimizers.guided.fitting import Fitted
    from ascar.optimizers.ledger import Ledger
    from ascar.space import Configuration

# Relative spread of loads' seconds below which all are taken to last the usual time.
_VARIES = 0.1
# Variance, standardised, of the seconds of a load that was never carried through: nothing is known of them.
_UNKNOWN = 1e4
# Two columns of an encoding that differ by less are the same value.
_SAME = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What evaluations take from where the system stands; 1 is the usual load without a change.

    Attributes:
        ranks: int (D,), rank of the cost of changing the parameter that each column belongs to.
        in_force: float64 (D,), what is in force, encoded.
        changes: float64 (costs + 1,), of a change of each rank; the last one of no change.
        loads: a model of the logarithm of the loads' seconds over the usual ones; None: all loads take the
            usual time.
        spread: the amount of that logarithm that the model counts as 1.
    """

    ranks: NDArray[np.intp]
    in_force: NDArray[np.float64]
    changes: NDArray[np.float64]
    loads: GaussianProcess | None = None
    spread: float = 1.0

    def __call__(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m,), above zero, of encoded configurations (m, D)."""
        if self.loads is None and not self.changes.any():
            return np.ones(len(columns))  # asked for thousands of candidates, and mostly all are alike
        differs = np.abs(columns - self.in_force) > _SAME
        rank = np.where(differs, self.ranks, -1).max(1, initial=-1)
        load = np.ones(len(columns))
        if self.loads is not None:
            load = np.exp(self.spread * self.loads.predict(columns)[0])
        return load + self.changes[rank]

    @classmethod
    def even(cls, width: int) -> Prices:
        """Every evaluation takes the same."""
        return cls(np.zeros(width, np.intp), np.zeros(width), np.zeros(len(ChangeCost) + 1))


@dataclass(slots=True)
class Pricing:
    """Keeps what evaluations took, and says what the next ones will; it follows from the history alone.

    A change's seconds are the median of what earlier changes of its cost took in this search. Until one was
    made they are those of the dearest of the cheaper ones: no reason to avoid what was never tried. A study's
    `space.change_cost_s` is not looked at: it is what a move counts for once, where the result is used.

    Attributes:
        ledger: the state of the search.
        columns: the encoding.
    """

    ledger: Ledger
    columns: SpaceColumns
    _asked: Configuration | None = None
    _told: Configuration | None = None
    _change_s: dict[ChangeCost | None, list[float]] = field(
        default_factory=dict["ChangeCost | None", list[float]]
    )
    _load_s: dict[Configuration, list[float]] = field(default_factory=dict["Configuration", list[float]])

    def ask(self, configuration: Configuration) -> None:
        """Note that a configuration will be put in force."""
        self._asked = configuration

    def tell(self, evaluation: Evaluation) -> None:
        """Take in what an evaluation took; seconds that are no finite numbers tell nothing."""
        before, self._told = self._told, evaluation.configuration
        change_s = evaluation.change_s
        known = change_s is not None and math.isfinite(change_s) and change_s >= 0
        if evaluation.state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        if change_s is not None and known and before is not None:
            cost = self.ledger.space.change(before, evaluation.configuration).cost
            self._change_s.setdefault(cost, []).append(change_s)
        load_s = evaluation.seconds - (change_s if change_s is not None and known else 0.0)
        if evaluation.state is TrialState.COMPLETE and math.isfinite(load_s) and load_s > 0:
            self._load_s.setdefault(evaluation.configuration, []).append(load_s)

    @property
    def in_force(self) -> Configuration:
        """What the next change starts from.

        The last one asked for while it is out, since it will be evaluated first; else the last one told of;
        at first the default.
        """
        if self._asked is not None and self._asked in self.ledger.pending:
            return self._asked
        return self.ledger.space.default() if self._told is None else self._told

    def change_s(self, cost: ChangeCost | None) -> float:
        """Seconds of a change of this cost; None: of measuring once more what is in force."""
        known = self._change_s.get(cost)
        if known:
            return median(known)
        if cost is None:
            return 0.0
        cheaper = [one for one in ChangeCost if one.rank < cost.rank]
        made = [self._change_s[one] for one in (None, *cheaper) if one in self._change_s]
        return max(map(median, made), default=0.0)

    def cheapest(self, configurations: Sequence[Configuration]) -> Configuration | None:
        """The one that is reached soonest from what is in force, the first among equals; None of none."""
        space, held = self.ledger.space, self.in_force
        return min(configurations, key=lambda one: self.change_s(space.change(held, one).cost), default=None)

    def prices(self, fitted: Fitted) -> Prices:
        """What evaluations take now; all the same as long as no load's seconds are known.

        Where the seconds of loads vary, their logarithm is modelled as the loss is, with its lengths: what
        makes a fixed amount of work slow makes it long.
        """
        if not self._load_s:
            return Prices.even(self.columns.width)
        space = self.ledger.space
        loads_s = {one: float(np.mean(seconds)) for one, seconds in self._load_s.items()}
        usual_s = median(loads_s.values())
        changes_s = [self.change_s(cost) for cost in (*ChangeCost, None)]
        ranks = np.array([space[name].cost.rank for name in self.columns.names], np.intp)
        model, spread = _model(fitted, {one: math.log(s / usual_s) for one, s in loads_s.items()})
        return Prices(
            ranks[self.columns.groups],
            self.columns.rows([self.in_force])[0],
            np.array(changes_s) / usual_s,
            model,
            spread,
        )


def _model(fitted: Fitted, logs: Mapping[Configuration, float]) -> tuple[GaussianProcess | None, float]:
    """The loss's process, told logarithms of seconds in place of losses; None where they hardly vary."""
    spread = float(np.std(list(logs.values())))
    if spread < _VARIES:
        return None, 1.0
    configurations = fitted.evidence.configurations
    seconds = np.array([logs.get(one, 0.0) for one in configurations]) / spread
    unknown = np.array([one not in logs for one in configurations], np.bool_)
    seen = replace(fitted.evidence.observations, loss=seconds, variance=np.where(unknown, _UNKNOWN, 0.0))
    return GaussianProcess.condition(seen, fitted.process.hyper), spread
