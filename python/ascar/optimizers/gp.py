"""Bayesian optimization with a Gaussian process and expected improvement (Cao 2.2, 4.4, 5.2).

The thesis' BO: prior points, a Gaussian prior over the loss, and the configuration with the greatest expected
improvement next. The kernel is one for mixed spaces, see `ascar.surrogate.process`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ascar.optimizers.guided.fitting import Fitter
from ascar.optimizers.guided.model_search import Guide, ModelSearch
from ascar.optimizers.initialization import Method  # noqa: TC001  (msgspec reads it at run time)
from ascar.optimizers.options import OptimizerTable
from ascar.surrogate.acquisition import ACQUISITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Configuration, Space


class GaussianSearchOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "gp".

    Attributes:
        design: configurations measured before the model guides (the thesis' prior points).
        initialization: the way in which they are drawn (Cao 9.5).
        acquisition: the criterion that chooses the next evaluation (Cao 5.5).
    """

    design: int = 10
    initialization: Method = "latin-hypercube"
    acquisition: Literal["expected-improvement", "probability-of-improvement", "confidence-bound"] = (
        "expected-improvement"
    )

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See the base."""
        return {"design": (1, 10_000)}


class GaussianSearch(ModelSearch):
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
        chosen = GaussianSearchOptions.read(options)
        super().__init__(space, seed, start, chosen.design, chosen.initialization)
        self._acquisition = ACQUISITIONS[chosen.acquisition]
        self._fitter = Fitter(self.ledger, self.columns, rough=False, logarithmic=False)

    def guide(self) -> Guide | None:
        """The Gaussian process of what is known."""
        fitted = self._fitter.present()
        if fitted is None:
            return None
        rows = np.flatnonzero(fitted.evidence.measured)
        mean, sd = fitted.process.predict(fitted.evidence.observations.columns[rows])
        return Guide(
            fitted.process,
            fitted.evidence,
            mean,
            sd,
            gene_weights(fitted.process.hyper.weight_log),
            fitted.process.noise_variance,
        )


def gene_weights(weight_log: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How likely each gene is to be varied: by what the model says of it, and never hopelessly seldom."""
    length = np.exp(0.5 * weight_log)
    return 0.7 * length / length.sum() + 0.3 / len(length)
