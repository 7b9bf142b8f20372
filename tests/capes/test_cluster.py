"""The simulated cluster as a system to tune, and workloads that change."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from ascar.capes.environments.cluster import ClusterSystem
from ascar.capes.environments.cluster_parameters import CLUSTER_KNOBS, ClusterParameters
from ascar.capes.environments.open_loop import StaticPolicy
from ascar.capes.modern.learner import Modern
from ascar.capes.modern.workload_models import WorkloadModels
from ascar.errors import InputError
from ascar.library import IndicatorSummary
from ascar.objective import Objective
from ascar.simulation import preset, with_settings


def _throughput(system, policy, ticks):
    setting, found = system.start(), []
    for _ in range(ticks):
        seen = system.step(setting)
        found.append(seen.performance)
        setting = policy.decide(seen)
    return np.array(found)


def test_the_learner_gains_where_there_is_something_to_gain():
    default = _throughput(ClusterSystem([preset("capes-1-9")], 11), StaticPolicy((8.0, 0.0)), 700)
    learnt = _throughput(
        ClusterSystem([preset("capes-1-9")], 11), Modern(CLUSTER_KNOBS, np.random.default_rng(1)), 700
    )
    assert learnt[300:].mean() > 1.05 * default[300:].mean()


def test_within_1200_ticks_it_has_what_a_static_setting_can_have_and_no_minute_was_bad():
    default = _throughput(ClusterSystem([preset("capes-1-4")], 77), StaticPolicy((8.0, 0.0)), 1200)
    best = _throughput(ClusterSystem([preset("capes-1-4")], 77), StaticPolicy((3.0, 5_000.0)), 1200)
    learnt = _throughput(
        ClusterSystem([preset("capes-1-4")], 77), Modern(CLUSTER_KNOBS, np.random.default_rng(3)), 1200
    )
    assert (learnt - default)[900:].mean() > 0.9 * (best - default)[900:].mean()
    assert learnt.reshape(-1, 60).mean(1).min() > 0.9 * default.mean()


def test_an_objective_of_two_metrics_is_one_performance():
    system = ClusterSystem(
        [preset("capes-1-9")], 1, None, Objective.parse("maximize throughput_mb_per_s / ping_us")
    )
    plain = ClusterSystem([preset("capes-1-9")], 1)
    assert 0 < system.step((8.0, 0.0)).performance < plain.step((8.0, 0.0)).performance
    less = ClusterSystem([preset("capes-1-9")], 1, None, Objective.parse("minimize ping_us"))
    assert less.step((8.0, 0.0)).performance < 0


def test_indicators_are_a_row_a_stream_and_with_queues_a_row_a_server():
    seen = ClusterSystem([preset("capes-1-9")], 1).step((8.0, 0.0))
    assert seen.indicators.shape == (20, 12)
    assert seen.indicators.dtype == np.float32
    assert ((seen.indicators >= 0) & (seen.indicators <= 1)).all()
    scenario = preset("capes-1-9")
    system = ClusterSystem([scenario], 1, handles=ClusterParameters.per_client(scenario).with_queue())
    assert len(system.knobs) == 14
    seen = system.step(system.start())
    assert seen.indicators.shape == (24, 20)
    assert np.isfinite(seen.indicators[:20, :12]).all()
    assert np.isfinite(seen.indicators[20:, 12:]).all()
    assert np.isnan(seen.indicators[:20, 12:]).all()


def test_each_client_has_a_window_of_its_own():
    scenario = preset("capes-1-9")
    system = ClusterSystem([scenario], 1, handles=ClusterParameters.per_client(scenario))
    windows = (1.0, 2.0, 4.0, 8.0, 256.0)
    seen = system.step((*windows, 0.0, 0.0, 0.0, 0.0, 5_000.0))
    rows = seen.indicators.reshape(5, 4, 12)
    assert (np.diff(rows[:, 0, 0]) > 0).all()
    assert (rows[:, :, 0] == rows[:, :1, 0]).all()
    assert (rows[4, :, 1] > 0).all()
    assert (rows[:4, :, 1] == 0).all()


def test_workloads_take_turns():
    system = ClusterSystem([preset("capes-1-9"), preset("capes-9-1")], 1, 5)
    names = []
    for _ in range(12):
        system.step((8.0, 0.0))
        names.append(system.workload)
    assert names == ["capes-1-9"] * 5 + ["capes-9-1"] * 5 + ["capes-1-9"] * 2


def test_what_decides_by_itself_or_is_not_measured_is_refused():
    ruled = with_settings(preset("capes-1-9"), ["control.controller=aimd"])
    with pytest.raises(InputError, match="must be 'fixed'"):
        ClusterSystem([ruled], 1)
    with pytest.raises(InputError, match="metric 'iops'"):
        ClusterSystem([preset("capes-1-9")], 1, None, Objective.parse("maximize iops"))
    assert msgspec.structs.replace(preset("capes-1-9"), seed=3).seed == 3


def _visited(workloads, level, indicators, rng, visits=12):
    for visit in range(visits):
        setting = (float(1 + visit % 4), 0.0)
        values = level * (1 + 0.02 * rng.standard_normal(8))
        if not workloads.outlier(setting, values, indicators):
            workloads.surface.add(setting, values)


def test_a_change_that_nobody_announced_is_seen_and_a_known_workload_identified():
    rng = np.random.default_rng(1)
    workloads = WorkloadModels(CLUSTER_KNOBS)
    one, two = (IndicatorSummary(np.array(at), np.full(2, 1e-4)) for at in ([0.2, 0.8], [0.7, 0.1]))
    first = workloads.surface
    _visited(workloads, 100, one, rng)
    assert workloads.changes == 0
    _visited(workloads, 200, two, rng)
    assert workloads.changes == 1
    assert workloads.surface is not first
    assert workloads.surface.hints
    _visited(workloads, 100, one, rng)
    assert workloads.surface is first


def test_an_announced_workload_has_its_surface_again():
    rng = np.random.default_rng(1)
    workloads = WorkloadModels(CLUSTER_KNOBS)
    workloads.announce("mail")
    mail = workloads.surface
    _visited(workloads, 100, IndicatorSummary(np.zeros(2), np.zeros(2)), rng)
    workloads.announce("files")
    assert workloads.surface is not mail
    _visited(workloads, 300, IndicatorSummary(np.zeros(2), np.zeros(2)), rng)
    workloads.announce("mail")
    assert workloads.surface is mail
    workloads.announce("mail")
    assert workloads.changes == 3
