"""Sweeps over static windows, and what is said of several seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ascar.errors import InputError, ScenarioError
from ascar.simulation import (
    FIGURES,
    Grid,
    preset,
    run_many,
    seeded,
    spread_of,
    sweep,
    with_control,
    with_settings,
)


@pytest.fixture
def scenario():
    return with_settings(
        preset("random-write"), ["duration_s=5", "warmup_s=1", "noise.service_sd_percent=20"]
    )


def test_figures_of_several_seeds_have_students_interval(scenario):
    outcomes = run_many(seeded(scenario, 6))
    values = [one.throughput_mb_per_s for one in outcomes]
    found = spread_of(outcomes)
    assert set(found) == set(FIGURES)
    low, high = stats.t.interval(0.95, 5, np.mean(values), stats.sem(values))
    one = found["throughput_mb_per_s"]
    assert (one.mean, one.ci_low, one.ci_high) == pytest.approx((np.mean(values), low, high))
    single = spread_of(outcomes[:1])["latency_ms_p99"]
    assert (single.mean, single.ci_low) == (outcomes[0].latency.latency_ms_p99, None)


def test_a_sweep_measures_every_point_and_the_best_once_more(scenario):
    told = []
    grid = Grid((1, 8), (0, 50_000), seeds=3)
    swept = sweep(scenario, grid, listener=told.append)
    places = [(point.tau_us, point.window) for point in swept.points]
    assert places == [(0, 1), (0, 8), (50_000, 1), (50_000, 8)]
    assert swept.baseline.figures == swept.points[1].figures
    assert swept.best is max(swept.points, key=lambda point: point.figures["throughput_mb_per_s"].mean)
    paced = with_control(scenario, window=1, tau_us=50_000)
    assert swept.points[2].figures == spread_of(run_many(seeded(paced, 3)))
    # The gain is of other seeds.
    best = with_control(scenario, window=swept.best.window, tau_us=swept.best.tau_us)
    a, b = ([one.throughput_mb_per_s for one in run_many(seeded(one, 6))[3:]] for one in (best, scenario))
    assert swept.gain.gain_relative == pytest.approx(np.mean(a) / np.mean(b) - 1)
    assert swept.gain.runs_per_side == 3
    assert told[-1].done == told[-1].wanted == 3 * (4 + 1 + 2)
    assert told[-1].share == 1


def test_a_clear_loss_is_told_with_its_interval(scenario):
    swept = sweep(scenario, Grid((1,), (400_000,), seeds=4))
    assert swept.gain.gain_relative < -0.5
    assert swept.gain.gain_low is not None
    assert swept.gain.gain_high is not None
    assert swept.gain.gain_low <= swept.gain.gain_relative <= swept.gain.gain_high < -0.5


def test_what_cannot_be_swept_is_refused(scenario):
    with pytest.raises(InputError, match="must be 'fixed'"):
        sweep(with_settings(scenario, ["control.controller=vegas"]), Grid((1,)))
    with pytest.raises(InputError, match="no point"):
        sweep(scenario, Grid(()))
    with pytest.raises(InputError, match="figure = 'speed'"):
        sweep(scenario, Grid((1,), figure="speed"))
    with pytest.raises(ScenarioError, match="control.window"):
        sweep(scenario, Grid((100_000,)))
    with pytest.raises(InputError, match="seeds = 0"):
        sweep(scenario, Grid((1,), seeds=0))
