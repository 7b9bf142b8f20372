"""Optuna's samplers behind our ask/tell, as a user of Optuna would use them on the same space.

Runs where both ascar and optuna can be imported; optuna is no dependency of the project. Lists of
ordered values are integers (their index), unordered ones categories, ranges numbers on their scale;
special values of a range are left out. What it recommends is its best trial, as `study.best_trial`
reports it.
"""

from __future__ import annotations

import warnings

import optuna

from ascar.optimizers import Evaluation
from ascar.optimizers.recommendation import Recommendation
from ascar.space import Choices, Configuration, Space

SAMPLERS = {
    "optuna-tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "optuna-tpe-multivariate": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True),
    "optuna-tpe-group": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
    "optuna-gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "optuna-random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


class OptunaPeer:
    """An Optuna study as an optimizer."""

    def __init__(self, name: str, space: Space, seed: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        self.space = space
        self.study = optuna.create_study(sampler=SAMPLERS[name](seed))
        self.out: dict[Configuration, list[optuna.Trial]] = {}

    def ask(self) -> Configuration:
        trial = self.study.ask()
        values = {}
        for name in self.space.names:
            domain = self.space.domain(name)
            if isinstance(domain, Choices):
                if domain.ordered:
                    values[name] = domain.values[trial.suggest_int(name, 0, len(domain.values) - 1)]
                else:
                    values[name] = domain.values[
                        trial.suggest_categorical(name, list(range(len(domain.values))))
                    ]
            elif domain.integer:
                step = int(domain.step or 1)
                low, high = int(domain.low), int(domain.high)
                values[name] = trial.suggest_int(
                    name, low, high, step=1 if domain.log else step, log=domain.log
                )
            else:
                values[name] = trial.suggest_float(name, domain.low, domain.high, log=domain.log)
        configuration = self.space.validate(values)
        self.out.setdefault(configuration, []).append(trial)
        return configuration

    def tell(self, evaluation: Evaluation) -> None:
        trial = self.out[evaluation.configuration].pop()
        trial.set_user_attr("configuration", dict(evaluation.configuration))
        if evaluation.loss is None:
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, evaluation.loss)

    def recommend(self) -> Recommendation | None:
        try:
            best = self.study.best_trial
        except ValueError:
            return None
        assert best.value is not None
        return Recommendation(Configuration(best.user_attrs["configuration"]), best.value)
