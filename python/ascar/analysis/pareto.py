"""The Pareto set of a run: what cannot be improved in one objective without losing in another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import ExpressionError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ascar.objective import Objective
    from ascar.outcome import Trial
    from ascar.space import Configuration

__all__ = ["Point", "pareto_set", "points_of"]


@dataclass(frozen=True, slots=True)
class Point:
    """A configuration in the space of the objectives.

    Attributes:
        configuration: what was measured.
        scores: means over its trials, one an objective.
        trials: their numbers.
    """

    configuration: Configuration
    scores: tuple[float, ...]
    trials: tuple[int, ...]


def points_of(trials: Iterable[Trial], objectives: Sequence[Objective]) -> list[Point]:
    """Every configuration that was measured and met the constraints, in the order first tried.

    Raises:
        InputError: an objective names a metric that was not measured, or is no number somewhere.
    """
    scores: dict[Configuration, list[tuple[float, ...]]] = {}
    numbers: dict[Configuration, list[int]] = {}
    for trial in trials:
        if not trial.usable:
            continue
        row = tuple(_score(objective, trial) for objective in objectives)
        scores.setdefault(trial.configuration, []).append(row)
        numbers.setdefault(trial.configuration, []).append(trial.number)
    return [
        Point(one, tuple(float(mean) for mean in np.mean(rows, axis=0)), tuple(numbers[one]))
        for one, rows in scores.items()
    ]


def pareto_set(points: Sequence[Point], objectives: Sequence[Objective]) -> list[Point]:
    """The points that no other beats in one objective without losing in another; the best in the first first.

    Args:
        points: of `points_of`.
        objectives: their directions.
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
