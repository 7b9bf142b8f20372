"""Bayesian optimization with extremely randomised trees and expected improvement.

Hutter, Hoos and Leyton-Brown, "Sequential Model-Based Optimization for General Algorithm Configuration"
(LION 5, 2011), section 4.1: an ensemble of regression trees as the model, whose variance between trees says
how unsure it is. The trees are Geurts', see `crates/forest`. They need no distances and follow jumps, but
take noise for structure where each leaf is one configuration; so leaves hold several.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar._core import Forest
from ascar.optimizers.guided.evidence import gather
from ascar.optimizers.guided.model_search import Guide, ModelSearch
from ascar.optimizers.initialization import Method  # noqa: TC001  (msgspec reads it at run time)
from ascar.optimizers.options import OptimizerTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.space import Configuration, Space

_SEED_MAX = 2**63


class TreesOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "trees".

    Attributes:
        trees: the number of trees in the ensemble.
        leaf: the fewest configurations in a leaf.
        design: configurations measured before the model guides.
        initialization: the way in which they are drawn (Cao 9.5).
    """

    trees: int = 50
    leaf: int = 2
    design: int = 10
    initialization: Method = "latin-hypercube"

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See the base."""
        return {
            "trees": (1, 10_000),
            "leaf": (1, 1_000),
            "design": (1, 10_000),
        }


@dataclass(frozen=True, slots=True)
class _Ensemble:
    forest: Forest

    def predict(self, columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        mean, between, _ = self.forest.predict(np.ascontiguousarray(columns))
        return mean, np.sqrt(between)


class TreesSearch(ModelSearch):
    """See the module; the arguments are those of every optimizer.

    Raises:
        StudyError: an option is unknown or out of range.
        SpaceError: a start configuration is not valid.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.options = TreesOptions.read(options)
        super().__init__(space, seed, start, self.options.design, self.options.initialization)

    def guide(self) -> Guide | None:
        """The trees of what is known."""
        evidence = gather(self.ledger, self.columns)
        rows = np.flatnonzero(evidence.measured)
        if len(rows) < 2 or not self.columns.width:
            return None
        seen = evidence.observations
        forest = Forest.grow(
            seen.columns,
            seen.loss,
            seen.repeats,
            int(self.ledger.rng(len(self.ledger.history)).integers(_SEED_MAX)),
            trees=self.options.trees,
            leaf_min=self.options.leaf,
            tries=self.columns.width,
            bootstrap=False,
        )
        model = _Ensemble(forest)
        mean, sd = model.predict(seen.columns[rows])
        weights = np.full(len(self.columns.codes.genes), 1.0)
        return Guide(model, evidence, mean, sd, weights)
