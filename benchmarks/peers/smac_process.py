"""SMAC3's facade for hyperparameters: random forest, expected improvement."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import ConfigSpace
from asking import Values, serve
from config_space import config_space, values_of
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario
from smac.runhistory import StatusType, TrialInfo, TrialValue

_DESIGN_SHARE = 0.25
_TRIALS_MAX = 10_000  # configurations that are not valid are no trials


class SmacProcess:
    """A facade; what fails, or is not valid, is a crashed trial with the worst cost so far."""

    def __init__(self, parameters: list[dict[str, Any]], trials: int, seed: int) -> None:
        logging.getLogger("smac").setLevel(logging.ERROR)
        self._directory = tempfile.TemporaryDirectory(prefix="smac-process-")
        self.space = config_space(parameters, seed)
        scenario = Scenario(
            self.space,
            deterministic=True,
            n_trials=_TRIALS_MAX,
            seed=seed,
            output_directory=self._directory.name,
        )
        design = Facade.get_initial_design(scenario, n_configs=max(1, round(_DESIGN_SHARE * trials)))
        self.smac = Facade(
            scenario, _never, initial_design=design, logging_level=logging.ERROR, overwrite=True
        )
        self.asked: TrialInfo | None = None
        self.costs: dict[ConfigSpace.Configuration, float] = {}

    def known(self, values: Values, cost: float) -> None:
        configuration = ConfigSpace.Configuration(self.space, values=values)
        self.costs[configuration] = cost
        self.smac.tell(TrialInfo(configuration, seed=0), TrialValue(cost=cost))

    def ask(self) -> Values:
        self.asked = self.smac.ask()
        return values_of(self.asked.config)

    def tell(self, how: str, cost: float) -> None:
        assert self.asked is not None, "it was asked before"
        status = StatusType.SUCCESS if how == "measured" else StatusType.CRASHED
        if how == "measured":
            self.costs[self.asked.config] = cost
        self.smac.tell(self.asked, TrialValue(cost=cost, status=status))

    def best(self) -> Values:
        """The incumbent; one that was never measured is none."""
        incumbents = [one for one in self.smac.intensifier.get_incumbents() if one in self.costs]
        known = incumbents or list(self.costs)
        return values_of(min(known, key=lambda one: self.costs[one]))


def _never(config: ConfigSpace.Configuration, seed: int = 0) -> float:  # noqa: ARG001
    raise RuntimeError("SMAC is asked and told")


if __name__ == "__main__":
    serve(SmacProcess)
