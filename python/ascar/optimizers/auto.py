"""The default: Latin hypercube, a Gaussian process that knows each loss's error, near and far candidates.

What it recommends is what its posterior expects to be best, with the posterior's own error, and not the
luckiest observation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import StudyError
from ascar.optimizers.surrogates.gaussian import GaussianProcess
from ascar.optimizers.surrogates.search import Model, ModelSearch
from ascar.study import convert

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from ascar.optimizers.surrogates.evidence import Evidence
    from ascar.space import Configuration, Space

__all__ = ["Auto", "AutoOptions"]


class AutoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "auto".

    Attributes:
        design: configurations measured before the model guides.
    """

    design: int = 10


class Auto(ModelSearch):
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
        chosen = convert(options or {}, AutoOptions, "optimizer")
        if not 1 <= chosen.design <= 1000:
            raise StudyError(f"optimizer.design = {chosen.design}: must be from 1 to 1000")
        super().__init__(space, seed, start, chosen.design, "latin-hypercube")

    def fit(self, evidence: Evidence, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """A Gaussian process at its most probable hyperparameters."""
        return GaussianProcess.fit(evidence.observations)
