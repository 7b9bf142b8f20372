"""The Pareto set against its definition, and of trials."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.analysis.pareto import pareto_set, points_of
from ascar.errors import InputError
from ascar.objective import Objective
from ascar.results.pareto import ParetoPoint
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.space import Configuration

UP, DOWN = Objective.parse("maximize ops"), Objective.parse("minimize ms")


def points(*scores):
    return [ParetoPoint(Configuration({"x": index}), score, (index,)) for index, score in enumerate(scores)]


def test_only_what_no_other_beats_is_left():
    given = points((10.0, 5.0), (12.0, 6.0), (9.0, 6.0), (12.0, 7.0), (8.0, 1.0), (10.0, 5.0))
    chosen = pareto_set(given, [UP, DOWN])
    assert [one.scores for one in chosen] == [(12.0, 6.0), (10.0, 5.0), (10.0, 5.0), (8.0, 1.0)]
    assert pareto_set([], [UP, DOWN]) == []


def test_the_definition_holds_for_random_points():
    rng = np.random.default_rng(3)
    given = points(*(tuple(map(float, rng.integers(0, 8, 3))) for _ in range(60)))
    objectives = [UP, DOWN, Objective.parse("maximize other")]
    chosen = pareto_set(given, objectives)
    signs = np.array([1, -1, 1])

    def beats(one, other):
        difference = (np.array(one.scores) - np.array(other.scores)) * signs
        return (difference >= 0).all() and (difference > 0).any()

    for point in given:
        assert (point in chosen) == (not any(beats(other, point) for other in given))


def trial(number, x, metrics, state=TrialState.COMPLETE, unmet=()):
    return Trial(
        number,
        Configuration({"x": x}),
        Purpose.SEARCH,
        state,
        metrics.get("ops"),
        metrics=metrics,
        unmet=unmet,
    )


def test_scores_are_means_over_usable_trials():
    trials = [
        trial(1, 0, {"ops": 10.0, "ms": 4.0}),
        trial(2, 1, {"ops": 20.0, "ms": 9.0}, unmet=("ms <= 5",)),
        trial(3, 2, {}, TrialState.FAILED),
        trial(4, 0, {"ops": 14.0, "ms": 2.0}),
    ]
    (only,) = points_of(trials, [UP, DOWN, Objective.parse("maximize ops / ms")])
    assert only.scores == (12.0, 3.0, pytest.approx((2.5 + 7.0) / 2))
    assert only.trials == (1, 4)


def test_what_was_not_measured_is_named():
    with pytest.raises(InputError, match="needs the metric 'watts'"):
        points_of([trial(1, 0, {"ops": 1.0})], [Objective.parse("minimize watts")])
