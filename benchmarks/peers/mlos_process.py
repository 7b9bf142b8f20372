"""MLOS, as its `mlos_core` offers it: the default optimizer of its factory for autotuning, SMAC."""

from __future__ import annotations

import logging
from typing import Any

import ConfigSpace
import mlos_core.optimizers
import pandas as pd
from asking import Values, serve
from config_space import config_space, values_of
from mlos_core.data_classes import Suggestion

_TARGET = "cost"
_TRIALS_MAX = 10_000  # configurations that are not valid are no trials
_DESIGN_SHARE = 0.25


class MlosProcess:
    """An optimizer of MLOS; what fails, or is not valid, has the worst cost so far, as in `mlos_bench`."""

    def __init__(self, parameters: list[dict[str, Any]], trials: int, seed: int) -> None:
        logging.disable(logging.WARNING)
        self.space = config_space([one for one in parameters if one["kind"] != "category"], seed)
        # Words, as `mlos_bench` has them: a number comes back from ConfigSpace as one of NumPy's, with which
        # a configuration has another hash, and is not found again.
        self.categories = [one["name"] for one in parameters if one["kind"] == "category"]
        self.space.add(
            ConfigSpace.CategoricalHyperparameter(one["name"], [str(at) for at in range(one["high"] + 1)])
            for one in parameters
            if one["kind"] == "category"
        )
        self.optimizer = mlos_core.optimizers.OptimizerFactory.create(
            parameter_space=self.space,
            optimization_targets=[_TARGET],
            optimizer_type=mlos_core.optimizers.OptimizerType.SMAC,
            optimizer_kwargs={
                "seed": seed,
                "max_trials": _TRIALS_MAX,
                "n_random_init": max(1, round(_DESIGN_SHARE * trials)),
            },
        )
        self.asked: Suggestion | None = None
        self.costs: list[tuple[float, Values]] = []

    def known(self, values: Values, cost: float) -> None:
        words = {name: str(value) if name in self.categories else value for name, value in values.items()}
        whole = dict(ConfigSpace.Configuration(self.space, values=words))
        self._register(Suggestion(config=pd.Series(whole, dtype=object)), cost)
        self.costs.append((cost, values))

    def ask(self) -> Values:
        self.asked = self.optimizer.suggest()
        return self._values(self.asked)

    def tell(self, how: str, cost: float) -> None:
        assert self.asked is not None, "it was asked before"
        if how == "measured":
            self.costs.append((cost, self._values(self.asked)))
        self._register(self.asked, cost)

    def best(self) -> Values:
        return min(self.costs, key=lambda one: one[0])[1]

    def _values(self, one: Suggestion) -> Values:
        found = values_of(one.config)
        return {name: int(value) if name in self.categories else value for name, value in found.items()}

    def _register(self, one: Suggestion, cost: float) -> None:
        self.optimizer.register(one.complete(pd.Series({_TARGET: cost})))


if __name__ == "__main__":
    serve(MlosProcess)
