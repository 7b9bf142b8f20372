"""Work that arrives at a share of the capacity, and what latencies count then."""

from __future__ import annotations

import json

import pytest

from ascar.cli import main
from ascar.errors import ScenarioError
from ascar.simulation import Cluster, preset, run_many, seeded, with_arrivals, with_control, with_settings


@pytest.fixture(scope="module")
def closed():
    return with_settings(preset("random-write"), ["duration_s=60", "workloads.threads.instances=256"])


def mean_of(outcomes, name):
    return sum(one.figure(name) for one in outcomes) / len(outcomes)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_what_arrives_below_the_capacity_is_served(closed, share):
    capacity = mean_of(run_many(seeded(closed, 3)), "throughput_mb_per_s")
    opened = with_arrivals(closed, share, runs=3)
    assert opened.is_open
    assert not closed.is_open
    served = mean_of(run_many(seeded(opened, 3)), "throughput_mb_per_s")
    assert served == pytest.approx(share * capacity, rel=0.03)


def test_a_smaller_window_shortens_the_service_time_and_not_what_the_application_waits(closed):
    """Before, "minimise p99" was won by sending less: the wait at the client did not count."""
    opened = with_arrivals(closed, 0.9)
    wide, narrow = (run_many(seeded(with_control(opened, window=window), 3)) for window in (8, 1))
    assert mean_of(narrow, "service_time_ms_p99") < mean_of(wide, "service_time_ms_p99")
    closed_narrow = run_many(seeded(with_control(closed, window=1), 3))
    assert mean_of(closed_narrow, "latency_ms_p99") > 3 * mean_of(closed_narrow, "service_time_ms_p99")


def test_more_than_the_capacity_is_late_and_later(closed):
    operations = [
        Cluster(with_settings(with_arrivals(closed, 1.3), [f"duration_s={seconds}"])).run().operation_latency
        for seconds in (20, 80)
    ]
    assert operations[1].latency_ms_p50 > 2 * operations[0].latency_ms_p50


def test_what_cannot_be_is_refused_by_name(closed):
    for share in (0.0, -1.0, 11.0, float("nan")):
        with pytest.raises(ScenarioError, match=r"^arrivals = .*: must be above 0 and at most 10"):
            with_arrivals(closed, share)
    with pytest.raises(ScenarioError, match="rate_per_s: is set already"):
        with_arrivals(with_arrivals(closed, 0.5), 0.5)
    with pytest.raises(ScenarioError, match=r"threads\[0\].*ends no pass within"):
        with_arrivals(with_settings(closed, ["duration_s=0.001", "warmup_s=0", "tick_s=0.001"]), 0.5)
    with pytest.raises(ScenarioError, match="rate_per_s"):
        with_settings(closed, ["workloads.threads.rate_per_s=-3"])


def test_the_command_says_which_loop_it_was(capfd):
    words = ["sim", "run", "random-write", "--duration", "20 s"]
    assert main([*words, "--json"]) == 0
    closed = json.loads(capfd.readouterr().out)
    assert closed["operation_latency_ms_p99"] >= closed["service_time_ms_p99"]
    assert main(words) == 0
    assert "in a closed loop" in capfd.readouterr().out
    assert main([*words, "--arrivals", "0.7"]) == 0
    assert "from their arrival" in capfd.readouterr().out
    assert main([*words, "--arrivals", "0"]) == 2
    assert "--arrivals = 0.0: must be above 0" in capfd.readouterr().err
