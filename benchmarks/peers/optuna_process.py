"""Optuna's TPE, as `create_study()` uses it."""

from __future__ import annotations

from typing import Any

import optuna
from asking import Values, serve


class OptunaProcess:
    """A study; what fails, or is not valid, is a failed trial, as an exception of the objective makes it."""

    def __init__(self, parameters: list[dict[str, Any]], trials: int, seed: int) -> None:  # noqa: ARG002
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        self.distributions = {one["name"]: _distribution(one) for one in parameters}
        self.trial: optuna.Trial | None = None

    def known(self, values: Values, cost: float) -> None:
        self.study.add_trial(
            optuna.trial.create_trial(params=values, distributions=self.distributions, value=cost)
        )

    def ask(self) -> Values:
        self.trial = self.study.ask(self.distributions)
        return dict(self.trial.params)

    def tell(self, how: str, cost: float) -> None:
        assert self.trial is not None, "it was asked before"
        if how == "measured":
            self.study.tell(self.trial, cost)
        else:
            self.study.tell(self.trial, state=optuna.trial.TrialState.FAIL)

    def best(self) -> Values:
        return dict(self.study.best_trial.params)


def _distribution(one: dict[str, Any]) -> optuna.distributions.BaseDistribution:
    if one["kind"] == "category":
        return optuna.distributions.CategoricalDistribution(list(range(one["high"] + 1)))
    if one["kind"] == "integer":
        return optuna.distributions.IntDistribution(one["low"], one["high"], log=one["log"])
    return optuna.distributions.FloatDistribution(one["low"], one["high"], log=one["log"])


if __name__ == "__main__":
    serve(OptunaProcess)
