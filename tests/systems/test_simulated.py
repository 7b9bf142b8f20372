"""The simulated system: its formulas, its noise, its time, its failures."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import ExpressionError, StageFailed, StudyError
from ascar.space import ChangeCost, Configuration, Space, integer, ordinal
from ascar.systems import Target
from ascar.systems.simulated import SimulatedSystem
from ascar.testing import TargetContract, WorkloadContract
from ascar.workloads import LoadTiming, Workload

FORMULA = {"metrics": {"throughput_ops_per_s": "100 + 10 * depth"}}


def never(series):
    return False


def pace(load_max_s=10.0, reading_s=0.1, may_end=never, load_min_s=1.0):
    return LoadTiming(load_min_s, load_max_s, reading_s, may_end)


def run(options, configuration=None, runs=1, **kwargs):
    with SimulatedSystem(FORMULA | options) as system:
        system.apply(Configuration(configuration or {"depth": 5}))
        return system, [system.run(system.workspace, pace(**kwargs)) for _ in range(runs)]


class TestSimulatedTarget(TargetContract):
    def make(self):
        system = SimulatedSystem(FORMULA)
        system.space = Space(
            (
                integer("depth", (1, 9), default=5, cost=ChangeCost.DYN_APP),
                ordinal("block", (1, 2), default=1, cost=ChangeCost.REFORMAT_RESTORE),
            )
        )
        system.adopt(system.space)
        return system


class TestSimulatedWorkload(WorkloadContract):
    def make(self):
        system = SimulatedSystem(FORMULA)
        system.apply(Configuration({"depth": 5}))
        return system


def test_it_is_target_and_workload_at_once():
    assert isinstance(SimulatedSystem(FORMULA), Target)
    assert isinstance(SimulatedSystem(FORMULA), Workload)


def test_without_noise_readings_are_the_formula():
    _, (readings,) = run({"noise_relative_sd": 0.0})
    assert readings.series["throughput_ops_per_s"].values == pytest.approx(150.0)
    assert readings.metrics["throughput_ops_per_s"] == pytest.approx(150.0)
    assert len(readings.series["throughput_ops_per_s"]) == 100


def test_noise_has_the_size_and_autocorrelation_asked_for():
    _, (readings,) = run({"noise_relative_sd": 0.2, "autocorrelation": 0.7}, load_max_s=2000.0)
    noise = readings.series["throughput_ops_per_s"].values / 150 - 1
    assert noise.std() == pytest.approx(0.2, rel=0.05)
    assert np.corrcoef(noise[1:], noise[:-1])[0, 1] == pytest.approx(0.7, abs=0.03)
    assert noise.mean() == pytest.approx(0.0, abs=0.01)


def test_runs_differ_by_their_own_share():
    _, runs = run({"noise_relative_sd": 0.0, "run_relative_sd": 0.05}, runs=400)
    means = np.array([one.metrics["throughput_ops_per_s"] for one in runs]) / 150 - 1
    assert means.std() == pytest.approx(0.05, rel=0.15)
    assert all(one.series["throughput_ops_per_s"].values.std() < 1e-9 for one in runs)


def test_it_warms_up():
    _, (readings,) = run({"noise_relative_sd": 0.0, "warm_up": "4 s", "warm_up_from": 0.2})
    values = readings.series["throughput_ops_per_s"].values / 150
    assert values[0] == pytest.approx(0.2 + 0.8 * 0.1 / 4)
    assert values[19] == pytest.approx(0.6)
    assert values[39:] == pytest.approx(1.0)


def test_the_same_run_gives_the_same_noise_and_the_next_one_another():
    (_, one), (_, two) = run({}, runs=2), run({}, runs=2)
    name = "throughput_ops_per_s"
    assert (one[0].series[name].values == two[0].series[name].values).all()
    assert (one[1].series[name].values == two[1].series[name].values).all()
    assert (one[0].series[name].values != one[1].series[name].values).all()
    _, (other,) = run({"seed": 1})
    assert (other.series[name].values != one[0].series[name].values).all()


def test_metrics_have_noise_of_their_own():
    with SimulatedSystem({"metrics": {"a": "100", "b": "100"}, "noise_relative_sd": 0.1}) as system:
        system.apply(Configuration({}))
        series = system.run(system.workspace, pace(load_max_s=500.0)).series
    assert abs(np.corrcoef(series["a"].values, series["b"].values)[0, 1]) < 0.1


def test_time_is_virtual_and_the_load_ends_when_it_is_enough():
    system, (readings,) = run({}, may_end=lambda series: len(series["throughput_ops_per_s"]) >= 30)
    assert readings.ended == "enough"
    assert readings.load_s == pytest.approx(3.0)
    assert system.clock() == pytest.approx(3.0)
    system, (readings,) = run({}, may_end=lambda series: True)
    assert readings.load_s == pytest.approx(1.0)  # not before load_min_s


def test_a_change_takes_its_category_s_seconds():
    space = Space(
        (
            integer("depth", (1, 9), default=5, cost=ChangeCost.DYN_APP),
            ordinal("block", (1, 2), default=1, cost=ChangeCost.REFORMAT_RESTORE),
        )
    )
    with SimulatedSystem(FORMULA | {"change_s": [0.5, 2, 60, 30]}) as system:
        system.adopt(space)
        system.apply(space.default())
        start_s = system.clock()
        change = system.apply(Configuration({"depth": 6, "block": 1}))
        assert (change.parameters, change.category, change.total_s) == (("depth",), 0, 0.5)
        change = system.apply(Configuration({"depth": 7, "block": 2}))
        assert (change.parameters, change.category, change.total_s) == (("depth", "block"), 3, 30)
        assert system.apply(Configuration({"depth": 7, "block": 2})).category == -1
        assert system.clock() - start_s == pytest.approx(30.5)


def test_it_fails_where_it_shall():
    with pytest.raises(StageFailed, match="depth > 4"):
        run({"fails_when": "depth > 4"})
    run({"fails_when": "depth > 5"})
    run({"fails_when": "absent > 5"})  # a parameter that does not apply breaks nothing


def test_an_inactive_parameter_is_named_where_a_formula_needs_it():
    with pytest.raises(ExpressionError, match="cache"):
        run({"metrics": {"m": "cache * 2"}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "target.metrics: missing"),
        ({"metrics": {}}, "target.metrics: empty"),
        ({"metrics": {"no name": "1"}}, "'no name' is not a name"),
        ({"metrics": {"m": "1 +"}}, "target.metrics.m"),
        (FORMULA | {"fails_when": "("}, "target.fails_when"),
        (FORMULA | {"warm_up": "soon"}, "target.warm_up"),
        (FORMULA | {"noise_relative_sd": -1.0}, "target.noise_relative_sd"),
        (FORMULA | {"autocorrelation": 1.0}, "target.autocorrelation"),
        (FORMULA | {"change_s": [1, 2]}, "target.change_s"),
        (FORMULA | {"change_s": [1, 2, 3, -4]}, "target.change_s"),
        (FORMULA | {"seed": -1}, "target.seed"),
        (FORMULA | {"nosie": 1}, "nosie"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(StudyError, match=message):
        SimulatedSystem(options)
