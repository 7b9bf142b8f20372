"""What a rule set will gain on a workload: trees grown from all gains of a library.

ASCAR's slides predict "the performance of using a specific rule set with a new workload" by one regression
tree. Here it is a forest of such trees (crates/forest), whose differences say how sure it is; `tree` grows a
single one that can be read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.errors import InputError
from ascar.library.signature import row_of
from ascar.library.tree import grow
from ascar.sharp.matching.traits import EFFECTS, TRAITS, effects_of, traits_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.library.entries import GainEntry
    from ascar.library.store import Library
    from ascar.library.tree import Node, Shape

GAINS_MIN = 10
"""Gains of other pairs below which nothing is predicted."""

_TREES = 40
_LEAF_MIN = 2


@dataclass(frozen=True, slots=True)
class Predicted:
    """A gain that is expected.

    Attributes:
        rules: id of the rule set.
        gain: relative, above zero is better.
        sd: standard deviation of what may come: between the trees, and inside their leaves.
    """

    rules: str
    gain: float
    sd: float

    def low(self, caution: float) -> float:
        """A lower confidence bound: so many standard deviations below the expectation."""
        return self.gain - caution * self.sd


class Predictor:
    """Predicts gains for one objective.

    Args:
        library: the library whose gains it learns from.
        objective: gains of others tell nothing.
        without: workloads that are treated as if they were not in the library.
        seed: the seed of the trees.

    Attributes:
        names: the names of the features.
        gains: the gains that it has learned from.
        workloads: the names of the workloads of these gains.

    Raises:
        InputError: the library holds too few gains for this objective.
    """

    def __init__(
        self, library: Library, objective: str, without: Collection[str] = (), seed: int = 1
    ) -> None:
        hidden = set(without)
        # Rules that were made for a hidden workload alone would not be there either.
        homes: dict[str, set[str]] = {}
        sets = library.rules
        for (workload, aim), ids in library.made_for.items():
            if aim == objective:
                for key in ids:
                    homes.setdefault(key, set()).add(workload)
        self.rules = [key for key in sets if homes.get(key, set()) - hidden]
        usable = set(self.rules)
        self.gains: list[GainEntry] = [
            one
            for (key, workload, aim), one in library.gains.items()
            if aim == objective and workload not in hidden and key in usable
        ]
        if len(self.gains) < GAINS_MIN:
            raise InputError(
                f"library {str(library.path)!r}: holds {len(self.gains)} gains of rules for {objective!r}; "
                f"{GAINS_MIN} are needed to predict others: see `ascar library bootstrap`"
            )
        known = list(dict.fromkeys(one.workload for one in self.gains))
        self.names = sorted({key for name in known for key in library.workloads[name].features})
        self.workloads = known
        self._traits = {key: traits_of(sets[key].rule_set) for key in self.rules}
        values = {name: library.workloads[name].values for name in known}
        rows = {name: row_of(one, self.names) for name, one in values.items()}
        self._x = np.array(
            [self._row(rows[one.workload], one.solution, values[one.workload]) for one in self.gains]
        )
        self._y = np.array([one.gain for one in self.gains])
        self._forest = _core.Forest.grow(
            self._x,
            self._y,
            np.ones(len(self._y)),
            seed,
            trees=_TREES,
            leaf_min=_LEAF_MIN,
            tries=self._x.shape[1],
            bootstrap=False,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all that a prediction rests on: features, traits of rules, their effects."""
        return (*self.names, *TRAITS, *EFFECTS)

    def predict(self, features: Mapping[str, float], rules: Sequence[str] | None = None) -> list[Predicted]:
        """What rule sets would gain on a workload with these features, in their order; None: all of them."""
        ids = self.rules if rules is None else list(rules)
        if not ids:
            return []
        base = row_of(features, self.names)
        rows = np.array([self._row(base, key, features) for key in ids])
        mean, between, within = self._forest.predict(rows)
        return [
            Predicted(key, float(gain), math.sqrt(float(var)))
            for key, gain, var in zip(ids, mean, between + within, strict=True)
        ]

    def tree(self, shape: Shape | None = None) -> Node:
        """A single tree grown from the same gains, to be read; its columns are `columns`."""
        return grow(self._x, self._y, shape)

    def _row(
        self, base: NDArray[np.float64], rules: str, features: Mapping[str, float]
    ) -> NDArray[np.float64]:
        traits = self._traits[rules]
        return np.concatenate([base, traits, effects_of(traits, features)])
