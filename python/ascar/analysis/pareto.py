"""The Pareto set of a run: what cannot be improved in one objective without losing in another."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.errors import ExpressionError, InputError
from ascar.pilot import analyze
from ascar.results.pareto import ParetoPoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ascar.objective import Objective
    from ascar.results.trial import Trial
    from ascar.space import Configuration


def points_of(
    trials: Iterable[Trial], objectives: Sequence[Objective], default: Configuration | None = None
) -> list[ParetoPoint]:
    """Every configuration that was measured and met the constraints, in the order first tried.

    Args:
        trials: the trials of a run.
        objectives: the objectives of the points.
        default: the default configuration, whose point is marked; None marks none.

    Raises:
        InputError: an objective names a metric that was not measured, or is not a number somewhere.
    """
    known: dict[Configuration, list[Trial]] = {}
    for trial in trials:
        if trial.usable:
            known.setdefault(trial.configuration, []).append(trial)
    return [_point(one, made, objectives, is_default=one == default) for one, made in known.items()]


def _point(
    configuration: Configuration, made: Sequence[Trial], objectives: Sequence[Objective], *, is_default: bool
) -> ParetoPoint:
    scores = [np.array([_score(objective, trial) for trial in made]) for objective in objectives]
    return ParetoPoint(
        configuration,
        tuple(float(values.mean()) for values in scores),
        tuple(trial.number for trial in made),
        tuple(
            _interval(values, objective, made) for values, objective in zip(scores, objectives, strict=True)
        ),
        is_default,
    )


def _interval(
    values: NDArray[np.float64], objective: Objective, made: Sequence[Trial]
) -> tuple[float, float] | None:
    """Student's, of several trials; of one trial what its readings say, which is less than runs differ."""
    if len(values) > 1:
        quantile = _core.student_t_quantile(0.975, len(values) - 1)
        half = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
        return float(values.mean()) - half, float(values.mean()) + half
    series = objective.series(made[0].series, made[0].metrics)
    measured = None if series is None or len(series) == 0 else analyze(series.values)
    if measured is None or measured.ci_low is None or measured.ci_high is None:
        return None
    return measured.ci_low, measured.ci_high


def pareto_set(points: Sequence[ParetoPoint], objectives: Sequence[Objective]) -> list[ParetoPoint]:
    """The points that no other beats in one objective without losing in another; the best in the first first.

    Args:
        points: the result of `points_of`.
        objectives: the objectives, which give the directions.
    """
    signs = np.array([objective.sign for objective in objectives], np.float64)
    values = np.array([point.scores for point in points], np.float64).reshape(len(points), len(signs)) * signs
    kept = [
        index
        for index, row in enumerate(values)
        if not ((values >= row).all(1) & (values > row).any(1)).any()
    ]
    return [points[index] for index in sorted(kept, key=lambda index: tuple(-values[index]))]


def _score(objective: Objective, trial: Trial) -> float:
    try:
        score = objective.score(trial.metrics)
    except ExpressionError as error:
        raise InputError(f"--objective: {error.message}") from error
    if not np.isfinite(score):
        raise InputError(
            f"--objective {objective.unit!r}: is {score} in trial {trial.number}; it must be a number"
        )
    return score
