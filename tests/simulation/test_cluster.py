"""Clusters: runs, steps, several at once, always the same."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest

from ascar.errors import InputError, ScenarioError
from ascar.simulation import (
    INDICATORS,
    BatchProgress,
    Cluster,
    Fleet,
    preset,
    run_many,
    seeded,
    with_control,
    with_rules,
    with_settings,
)

WINDOW, TAU = INDICATORS.index("window"), INDICATORS.index("tau_us")
HOLD = "1,2\n0,2147483647,0,2147483647,100,2147483647,0,300,0\n"
WRITTEN = INDICATORS.index("write_mb_per_s")


@pytest.fixture
def scenario():
    return with_settings(
        preset("random-write"), ["duration_s=6", "warmup_s=1", "noise.service_sd_percent=10"]
    )


def test_steps_give_what_a_run_gives(scenario):
    stepped = Cluster(scenario)
    seen = [stepped.step() for _ in range(6)]
    assert stepped.finished
    assert stepped.time_s == pytest.approx(7)
    outcome = Cluster(scenario).run()
    assert stepped.outcome() == outcome
    assert outcome.virtual_seconds == pytest.approx(6)
    totals = [one[:, WRITTEN].sum() for one in seen]
    assert np.mean(totals) == pytest.approx(outcome.write_mb_per_s, rel=0.05)


def test_a_run_may_be_shorter_and_longer_than_its_scenario(scenario):
    short = Cluster(scenario).run(3)
    assert short.virtual_seconds == pytest.approx(3)
    assert len(short.total_mb_per_s) == 3
    assert Cluster(scenario).run(9).virtual_seconds == pytest.approx(9)
    for seconds in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="seconds"):
            Cluster(scenario).run(seconds)


def test_a_run_may_go_on(scenario):
    cluster = Cluster(scenario)
    cluster.run(3)
    assert cluster.run(6) == Cluster(scenario).run()


def test_the_same_seed_gives_the_same_bits_and_another_does_not(scenario):
    assert Cluster(scenario).run() == Cluster(scenario).run()
    other = msgspec.structs.replace(scenario, seed=scenario.seed + 1)
    assert Cluster(other).run().total_mb_per_s != Cluster(scenario).run().total_mb_per_s


def test_the_number_of_threads_changes_no_bit(scenario):
    wanted = [*seeded(scenario, 5), *seeded(preset("fileserver"), 2)]
    alone = run_many(wanted, threads=1)
    assert run_many(wanted, threads=4) == alone
    assert run_many(wanted) == alone
    assert [one.seed for one in alone] == [one.seed for one in wanted]


def test_an_interrupt_while_runs_begin_ends_those_that_have_begun(monkeypatch):
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments, **keys):
            super().submit(*arguments, **keys)
            raise KeyboardInterrupt

    monkeypatch.setattr("ascar.simulation.batch.ThreadPoolExecutor", Interrupted)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_many([with_settings(preset("random-write"), ["duration_s=1000000"])])
    assert threading.active_count() == before


def test_a_batch_tells_how_far_it_is(scenario):
    told: list[BatchProgress] = []
    run_many(seeded(scenario, 4), threads=2, listener=told.append)
    assert told[-1] == BatchProgress(4, 4, 1.0)
    shares = [one.share for one in told]
    assert shares == sorted(shares)


def test_a_batch_with_a_mistake_ends_with_it(scenario):
    broken = msgspec.structs.replace(scenario, duration_s=-1)
    with pytest.raises(ScenarioError, match="duration_s"):
        run_many([scenario, broken, scenario])
    with pytest.raises(InputError, match="threads"):
        run_many([scenario], threads=0)
    assert run_many([]) == []


def test_an_interrupt_ends_a_batch(scenario):
    def interrupt(standing):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_many(seeded(scenario, 3), listener=interrupt)


def test_windows_and_gaps_are_set_by_stream(scenario):
    cluster = Cluster(scenario)
    cluster.step()
    assert (cluster.observe()[:, WINDOW] == 8).all()
    windows = np.arange(1, cluster.streams + 1)
    assert cluster.set(window=windows, tau_us=5_000) == cluster.streams
    seen = cluster.step()
    assert seen.shape == (20, len(INDICATORS))
    assert (seen[:, WINDOW] == windows).all()
    assert (seen[:, TAU] == 5_000).all()
    cluster.set(tau_us=0)
    seen = cluster.step()
    assert (seen[:, WINDOW] == windows).all()
    assert (seen[:, TAU] == 0).all()
    assert (seen[:, INDICATORS.index("in_flight")] <= windows).all()


def test_a_gap_limits_the_rate(scenario):
    cluster = Cluster(scenario)
    cluster.set(tau_us=100_000)
    cluster.step()
    written = cluster.step()[:, WRITTEN]
    assert written.max() <= 11 * 1.048576  # ten requests of 1 MiB a second, and one that was begun before
    assert written.sum() > 100


@pytest.mark.parametrize("values", [[1, 2], [[1] * 20], -1, float("nan"), float("inf")])
def test_settings_that_make_no_sense_are_refused(scenario, values):
    with pytest.raises(InputError, match="window"):
        Cluster(scenario).set(window=values)


def test_controllers_that_decide_ignore_settings(scenario):
    cluster = Cluster(with_settings(scenario, ["control.controller=aimd"]))
    assert cluster.set(window=3) == 0


def test_a_fleet_is_its_clusters_stepped_together(scenario):
    scenarios = seeded(scenario, 3)
    seen = {}
    for threads in (1, 3):
        with Fleet(scenarios, threads=threads) as fleet:
            fleet.set(window=[[4], [8], [16]])
            fleet.step(2)
            seen[threads] = fleet.step(4)
            outcomes = fleet.outcomes()
    assert seen[1].shape == (3, 20, len(INDICATORS))
    assert (seen[1] == seen[3]).all()
    assert (seen[1][:, 0, WINDOW] == [4, 8, 16]).all()
    alone = Cluster(scenarios[2])
    alone.set(window=16)
    assert alone.run() == outcomes[2]


def test_a_fleet_needs_clusters_of_one_shape(scenario):
    larger = with_settings(scenario, ["clients.count=6"])
    with pytest.raises(InputError, match=r"\[20, 24\] streams"):
        Fleet([scenario, larger])
    with pytest.raises(InputError):
        Fleet([])
    with Fleet([scenario]) as fleet, pytest.raises(InputError, match="tau_us: has shape"):
        fleet.set(tau_us=[1, 2, 3])


def test_streams_are_recorded_on_request(scenario):
    assert Cluster(scenario).run().streams == ()
    outcome = Cluster(msgspec.structs.replace(scenario, record_streams=True)).run()
    assert [(one.client, one.server) for one in outcome.streams] == [
        (c, s) for c in range(5) for s in range(4)
    ]
    assert all(len(one.ticks) == 6 for one in outcome.streams)
    written = sum(tick.write_mb_per_s for one in outcome.streams for tick in one.ticks) / 6
    assert written == pytest.approx(outcome.served_mb_per_s, rel=0.02)


def test_control_reaches_every_group(scenario, tmp_path):
    own = with_settings(scenario, ["clients[0].control.window=2"])
    assert [one.window for one in with_control(own, window=5, tau_us=7).controls] == [5, 5]
    assert with_control(own) is own
    with pytest.raises(ScenarioError, match="control.window"):
        with_control(own, window=0)
    rules = tmp_path / "best.rules"
    rules.write_text("1,2\n0,2147483647,0,2147483647,0,2147483647,100,0,50000\n")
    ruled = with_rules(own, rules)
    assert {one.controller for one in ruled.controls} == {"rules"}
    cluster = Cluster(ruled)
    assert (cluster.step(3)[:, TAU] == 50_000).all()
    with pytest.raises(ScenarioError, match="No such file"):
        with_rules(own, tmp_path / "none.rules")
    rules.write_text("this is not a rule set\n")
    with pytest.raises(ScenarioError, match="rules"):
        Cluster(with_rules(own, rules))


def test_a_cluster_is_used_by_several_threads_without_harm(scenario):
    from concurrent.futures import ThreadPoolExecutor

    cluster = Cluster(scenario)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: cluster.step(), range(6)))
    assert cluster.outcome() == Cluster(scenario).run()


def test_rules_are_deployed_on_a_running_cluster_and_taken_back(scenario):
    cluster = Cluster(scenario)
    cluster.warm_up()
    assert cluster.deploy(HOLD) == cluster.streams
    assert (cluster.step(10)[:, WINDOW] == 3).all()
    assert cluster.outcome().rules[0] is not None
    assert cluster.deploy(None) == cluster.streams
    assert (cluster.step()[:, WINDOW] == 8).all()
    with pytest.raises(InputError, match="rules"):
        cluster.deploy("rubbish")
    with pytest.raises(InputError, match="group = 1"):
        cluster.deploy(HOLD, 1)


def test_operations_are_recorded_and_change_nothing(scenario):
    cluster = Cluster(scenario)
    cluster.warm_up()
    cluster.record()
    outcome = cluster.run()
    assert outcome == Cluster(scenario).run()
    kept = cluster.recorded()
    assert set(kept.kind) == {"write"}
    assert (kept.size_bytes == 1 << 20).all() and (kept.offset_bytes % (1 << 20) == 0).all()
    ended = ~np.isnan(kept.latency_s)
    rate = np.sum(kept.size_bytes[ended]) / 1e6 / outcome.virtual_seconds
    assert rate == pytest.approx(outcome.write_mb_per_s, rel=0.3)
    assert (np.diff(kept.seconds) >= 0).all()
    with pytest.raises(InputError, match="operations_max"):
        cluster.record(-1)
