from __future__ import annotations

import polars as pl
import pytest
from msgspec.structs import replace

from ascar.analysis import trials_frame
from ascar.objective import Objective
from ascar.results.trial import Purpose, TrialState


def test_what_follows_from_the_order(space, objective, make):
    default = space.default()
    scores = [(10, Purpose.DEFAULT), (8, Purpose.SEARCH), (12, Purpose.SEARCH), (99, Purpose.VERIFY)]
    trials = [make.trial(n, default, float(score), why) for n, (score, why) in enumerate(scores, start=1)]
    trials.insert(2, make.failed(9, default))
    trials.append(replace(make.trial(10, default, 50.0), unmet=("latency_ms_p99 <= 1",)))
    frame = trials_frame(trials, objective)
    assert frame["trial.best_so_far"].to_list() == [10, 10, 10, 12, 12, 12]
    assert frame["trial.usable"].to_list() == [True, True, False, True, True, False]
    step = 0.6 + 0.5 + 0.1 + 10 + 0.01
    expected = [step, 2 * step, 2 * step + 0.2, 3 * step + 0.2, 4 * step + 0.2, 5 * step + 0.2]
    assert frame["trial.elapsed_s"].to_list() == pytest.approx(expected)
    assert frame["trial.unmet"].to_list()[-1] == "latency_ms_p99 <= 1"


def test_minimizing(space, make):
    trials = [make.trial(n, space.default(), score) for n, score in enumerate([5.0, 7.0, 3.0], start=1)]
    frame = trials_frame(trials, Objective.parse("minimize latency_ms"))
    assert frame["trial.best_so_far"].to_list() == [5, 5, 3]


def test_no_trials(objective):
    frame = trials_frame([], objective)
    assert frame.height == 0
    assert frame.schema["trial.elapsed_s"] == pl.Float64


def test_nothing_usable(space, objective, make):
    trials = [make.failed(1, space.default()), make.failed(2, space.default())]
    frame = trials_frame(trials, objective)
    assert frame["trial.best_so_far"].to_list() == [None, None]
    assert frame["trial.state"].to_list() == [TrialState.FAILED.value] * 2
