"""SMAC3's facade for hyperparameters (random forest, logarithmic expected improvement) behind our ask/tell.

Lists of ordered values are integers (their index), unordered ones categories, ranges numbers on their scale;
special values of a range are left out. What it recommends is its incumbent.
"""

from __future__ import annotations

import logging
import tempfile
from typing import TYPE_CHECKING

import ConfigSpace
from optuna_peer import check
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario
from smac.main.exceptions import ConfigurationSpaceExhaustedException
from smac.runhistory import StatusType, TrialInfo, TrialValue

from ascar.errors import Exhausted
from ascar.optimizers.recommendation import Recommendation
from ascar.space import Choices, Configuration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.optimizers import Evaluation
    from ascar.space import Space

_TRIALS_MAX = 10_000


class SmacPeer:
    """A SMAC3 facade as an optimizer; start configurations are left out.

    Raises:
        StudyError: an option is given, or the space has conditions or constraints.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),  # noqa: ARG002
        options: Mapping[str, object] | None = None,
    ) -> None:
        check(space, options)
        logging.getLogger("smac").setLevel(logging.ERROR)
        self.space = space
        self._directory = tempfile.TemporaryDirectory(prefix="smac-peer-")
        wanted = ConfigSpace.ConfigurationSpace(seed=seed)
        wanted.add([_hyperparameter(space, name) for name in space.names])
        scenario = Scenario(
            wanted,
            deterministic=True,
            n_trials=_TRIALS_MAX,
            seed=seed,
            output_directory=self._directory.name,
        )
        self.smac = Facade(
            scenario,
            lambda config, seed=0: 0.0,  # noqa: ARG005
            initial_design=Facade.get_initial_design(scenario, n_configs=_design(space)),
            logging_level=False,
            overwrite=True,
        )
        self.out: dict[Configuration, list[TrialInfo]] = {}
        self.losses: dict[Configuration, float] = {}

    def ask(self) -> Configuration:
        """What SMAC asks for.

        Raises:
            Exhausted: it has nothing left to ask for.
        """
        try:
            info = self.smac.ask()
        except (StopIteration, ConfigurationSpaceExhaustedException) as error:
            raise Exhausted("SMAC has nothing left to ask for") from error
        configuration = self._configuration(info)
        self.out.setdefault(configuration, []).append(info)
        return configuration

    def tell(self, evaluation: Evaluation) -> None:
        """What became of it."""
        info = self.out[evaluation.configuration].pop()
        if evaluation.loss is None:
            self.smac.tell(info, TrialValue(cost=float("inf"), status=StatusType.CRASHED))
            return
        self.losses[evaluation.configuration] = evaluation.loss
        self.smac.tell(info, TrialValue(cost=evaluation.loss))

    def recommend(self) -> Recommendation | None:
        """Its incumbent."""
        incumbents = self.smac.intensifier.get_incumbents()
        if not incumbents:
            return None
        configuration = self._configuration(TrialInfo(incumbents[0]))
        loss = self.losses.get(configuration)
        return None if loss is None else Recommendation(configuration, loss)

    def _configuration(self, info: TrialInfo) -> Configuration:
        values = {}
        for name in self.space.names:
            domain, value = self.space.domain(name), info.config[name]
            values[name] = domain.values[int(value)] if isinstance(domain, Choices) else value
            if not isinstance(domain, Choices):
                values[name] = domain.canonical(int(value) if domain.integer else float(value))
        return self.space.validate(values)


def _design(space: Space) -> int:
    """SMAC's default for a budget of 100 evaluations: ten a parameter, at most a quarter of the budget."""
    return min(10 * len(space.names), 25)


def _hyperparameter(space: Space, name: str) -> ConfigSpace.hyperparameters.Hyperparameter:
    domain = space.domain(name)
    if isinstance(domain, Choices):
        last = len(domain.values) - 1
        if last == 0:
            return ConfigSpace.Constant(name, 0)
        if domain.ordered:
            return ConfigSpace.UniformIntegerHyperparameter(name, 0, last)
        return ConfigSpace.CategoricalHyperparameter(name, list(range(last + 1)))
    if domain.integer:
        return ConfigSpace.UniformIntegerHyperparameter(
            name, int(domain.low), int(domain.high), log=domain.log
        )
    return ConfigSpace.UniformFloatHyperparameter(name, domain.low, domain.high, log=domain.log)
