"""Optuna's samplers behind our ask/tell, as a user of Optuna would use them on the same space.

Lists of ordered values are integers (their index), unordered ones categories, ranges numbers on their scale;
special values of a range are left out. What it recommends is its best trial, as `study.best_trial` reports
it. Start configurations are enqueued.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import optuna

from ascar.errors import StudyError
from ascar.optimizers.recommendation import Recommendation
from ascar.space import Choices, Configuration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.optimizers import Evaluation
    from ascar.space import Space

Sampler = optuna.samplers.BaseSampler


class OptunaPeer:
    """An Optuna study as an optimizer.

    Attributes:
        integers_max: a wider range of integers is one of real numbers, rounded.

    Raises:
        StudyError: an option is given, or the space has conditions or constraints, which Optuna does not
            know before an evaluation.
    """

    integers_max: float = float("inf")

    def __init__(
        self,
        sampler: Callable[[int], Sampler],
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, object] | None = None,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        check(space, options)
        self.space = space
        self.study = optuna.create_study(sampler=sampler(seed))
        self.out: dict[Configuration, list[optuna.Trial]] = {}
        for one in start:
            self.study.enqueue_trial({name: self._code(name, one[name]) for name in space.names})

    def ask(self) -> Configuration:
        """What the sampler suggests."""
        trial = self.study.ask()
        configuration = self.space.validate({name: self._suggest(trial, name) for name in self.space.names})
        self.out.setdefault(configuration, []).append(trial)
        return configuration

    def tell(self, evaluation: Evaluation) -> None:
        """What became of it."""
        trial = self.out[evaluation.configuration].pop()
        trial.set_user_attr("configuration", dict(evaluation.configuration))
        if evaluation.loss is None:
            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, evaluation.loss)

    def recommend(self) -> Recommendation | None:
        """Its best trial."""
        try:
            best = self.study.best_trial
        except ValueError:
            return None
        assert best.value is not None
        return Recommendation(Configuration(best.user_attrs["configuration"]), best.value)

    def _suggest(self, trial: optuna.Trial, name: str) -> bool | int | float | str:
        domain = self.space.domain(name)
        if isinstance(domain, Choices):
            count = len(domain.values)
            if domain.ordered:
                return domain.values[trial.suggest_int(name, 0, count - 1)]
            return domain.values[trial.suggest_categorical(name, list(range(count)))]
        if domain.integer and domain.high - domain.low > self.integers_max:
            value = trial.suggest_float(name, domain.low, domain.high, log=domain.log)
            return domain.canonical(round(value))
        if domain.integer:
            step = 1 if domain.log else int(domain.step or 1)
            return trial.suggest_int(name, int(domain.low), int(domain.high), step=step, log=domain.log)
        return trial.suggest_float(name, domain.low, domain.high, log=domain.log)

    def _code(self, name: str, value: bool | int | float | str) -> bool | int | float | str:
        domain = self.space.domain(name)
        return domain.values.index(value) if isinstance(domain, Choices) else value


class OptunaGaussian(OptunaPeer):
    """With its Gaussian process, which lists all values of a range of integers: 8 GiB of them for mysql."""

    integers_max = 10_000


def check(space: Space, options: Mapping[str, object] | None) -> None:
    """Refuse what a peer cannot take.

    Raises:
        StudyError: an option, or a space with conditions or constraints.
    """
    if options:
        raise StudyError(f"optimizer.{next(iter(options))}: unknown key; a peer takes none")
    if space.constraints or any(parameter.condition is not None for parameter in space.parameters):
        raise StudyError(
            "optimizer.kind: peers are compared on spaces without conditions and constraints only"
        )


def _tpe(seed: int, **options: bool) -> Sampler:
    return optuna.samplers.TPESampler(seed=seed, **options)


# By default Optuna 5 takes the parameters of a space without conditions together, Optuna 4 took each alone.
tpe = partial(OptunaPeer, _tpe)
tpe_univariate = partial(OptunaPeer, partial(_tpe, multivariate=False))
tpe_multivariate = partial(OptunaPeer, partial(_tpe, multivariate=True))
tpe_group = partial(OptunaPeer, partial(_tpe, multivariate=True, group=True))
gp = partial(OptunaGaussian, lambda seed: optuna.samplers.GPSampler(seed=seed))
random = partial(OptunaPeer, lambda seed: optuna.samplers.RandomSampler(seed=seed))
