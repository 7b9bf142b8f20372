"""Observation, bootstrap and the daemon on real simulated clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.library import GainEntry, Library
from ascar.pilot.turns import PairTest
from ascar.sharp import Action, RuleSet, objective_of
from ascar.sharp.matching import (
    Chooser,
    Effort,
    Mix,
    RuleWatcher,
    SimulatedClusterSystem,
    WatchOptions,
    Workloads,
    alterations,
    common_set,
    fill,
    observed,
)
from ascar.sharp.matching.doubts import Checks, Looks
from ascar.sharp.plan import SearchPlan
from ascar.simulation import Cluster, parse_scenario, preset, with_settings

OBJECTIVE = objective_of("throughput")
GOOD = RuleSet.uniform(Action(50, 150, 0))  # a window of 3
BAD = RuleSet.uniform(Action(50, 100, 400_000))  # hardly anything leaves


def test_features_of_a_simulated_workload_are_those_of_its_operations():
    scenario = Mix(0.5, 4.0, write_mib=2.0, threads=4, clients=3, direct=True).scenario("mix")
    found = observed(scenario)
    assert found["read_to_write_ratio"] == pytest.approx(0.5, rel=0.15)
    assert found["read_size_bytes_mean"] == 4 << 20 and found["write_size_bytes_mean"] == 2 << 20
    assert found["read_sequential_share"] < 0.05
    assert (found["threads"], found["clients"]) == (12, 3)
    assert found["request_read_size_bytes_mean"] == 1 << 20  # operations are cut at stripes
    assert found["read_in_flight_mean"] + found["write_in_flight_mean"] == pytest.approx(12, rel=0.1)
    outcome = Cluster(scenario).run(20)
    read = found["read_size_bytes_mean"] / found["read_gap_s_mean"] / 1e6
    assert read == pytest.approx(outcome.read_mb_per_s, rel=0.2)
    sequential = observed(Mix(1.0, read_random=False, write_random=False, threads=4).scenario("mix"))
    assert sequential["read_sequential_share"] > 0.9 and sequential["write_sequential_share"] > 0.9


def test_alterations_are_the_same_for_the_same_seed_and_all_can_run():
    found = alterations(60, seed=3)
    assert found == alterations(60, seed=3) != alterations(60, seed=4)
    assert len(set(found.values())) == 60
    for name, mix in found.items():
        mix.scenario(name)
    assert len(common_set()) == 50
    with pytest.raises(InputError, match="read_mib = 0"):
        Mix(1.0, 0)


def test_a_bootstrap_that_was_cut_off_goes_on(tmp_path):
    short = ["duration_s=3", "warmup_s=1", "clients.count=2"]
    common = {name: with_settings(preset(name), short) for name in ("random-write", "random-read")}
    workloads = Workloads(
        common, {"more": with_settings(preset("random-write"), [*short, "control.window=4"])}
    )
    path, now_s = tmp_path / "library.jsonl", iter(range(10_000))
    effort = Effort(SearchPlan(without=frozenset(("surrogate",))), evaluations=12, pairs=2, threads=1)
    calls = 0
    while True:
        calls += 1
        cut = replace(effort, budget_s=6.0)
        with Library.writing(path, clock=lambda: "") as kept:
            if fill(kept, workloads, OBJECTIVE, cut, clock=lambda: float(next(now_s))).complete:
                break
    assert calls > 2
    with Library.writing(tmp_path / "whole.jsonl", clock=lambda: "") as whole:
        assert fill(whole, workloads, OBJECTIVE, effort).complete
    assert set(kept.gains) == set(whole.gains) and len(kept.workloads) == 3
    assert kept.made_for == whole.made_for
    assert {key: one.gain for key, one in kept.gains.items()} == {
        key: one.gain for key, one in whole.gains.items()
    }
    assert list((tmp_path / "library.jsonl.d").rglob("*.journal")) == []


@pytest.fixture
def library(tmp_path):
    """Gains that say: window 3 for random writing, nothing for reading."""
    writes, reads = (observed(preset(name)) for name in ("random-write", "random-read"))
    draw = np.random.default_rng(1)
    with Library.writing(tmp_path / "library.jsonl") as kept:
        for at in range(6):
            for kind, features in (("write", writes), ("read", reads)):
                near = {key: value * float(draw.uniform(0.99, 1.01)) for key, value in features.items()}
                kept.add_workload(f"{kind}{at}", near)
        good = kept.add_rules(GOOD, "write0", OBJECTIVE.text).id
        for name in kept.workloads:
            gain = 0.2 if name.startswith("write") else -0.05
            kept.add_gain(GainEntry(good, name, OBJECTIVE.text, gain + float(draw.normal(0, 0.005))))
        yield kept


def watched(library, scenario, until_s):
    system = SimulatedClusterSystem(scenario)
    events = []
    pace = WatchOptions(observe_s=5.0, settle_s=2.0, measure_s=4.0)
    test = PairTest(level=0.05, pairs_max=8, pairs_min=4)
    RuleWatcher(system, Chooser(library, OBJECTIVE.text), OBJECTIVE, pace, test, listener=events.append).run(
        until_s
    )
    return system, events


def test_rules_are_found_verified_and_kept(library):
    system, events = watched(library, preset("random-write"), 120)
    kinds = [one.kind for one in events]
    assert kinds[:2] == ["observed", "deployed"] and "verified" in kinds and "rolled-back" not in kinds
    assert kinds[-1] == "same"
    shown = next(one.shown for one in events if one.kind == "verified")
    gain = shown.gain
    assert shown.improved and 0 < gain.gain_low <= gain.gain_relative <= gain.gain_high
    assert system.in_force().bare() == GOOD
    assert system.measure(system.in_force(), 2, 10)["throughput_mb_per_s"] > 250


def test_no_rules_where_no_gain_is_to_be_expected(library):
    system, events = watched(library, preset("random-read"), 20)
    assert [one.kind for one in events][:2] == ["observed", "none"]
    assert system.in_force() is None


def test_rules_that_disappoint_are_taken_back(library):
    bad = library.add_rules(BAD, "write1", OBJECTIVE.text).id
    for name in library.workloads:
        library.add_gain(GainEntry(bad, name, OBJECTIVE.text, 0.5 if name.startswith("write") else -0.5))
    system, events = watched(library, preset("random-write"), 200)
    rolled = next(one for one in events if one.kind == "rolled-back")
    assert rolled.choice.rules == bad and rolled.shown.gain.gain_high < 0
    assert system.in_force().bare() == GOOD  # the next best was tried, and helps


def test_a_load_that_changes_gets_other_rules_or_none(library):
    text = """
name = "phases"
[[clients]]
count = 5
workload = "write"
stop_s = 100
[[clients]]
count = 5
workload = "read"
start_s = 101
"""
    for kind in ("write", "read"):
        text += f"""
[[workloads]]
name = "{kind}"
filesets = [{{ name = "file", size_mib = 2560 }}]
[[workloads.threads]]
instances = 64
flowops = [{{ op = "{kind}", iosize_kib = 1024, random = true, directio = true }}]
"""
    system, events = watched(library, parse_scenario(text), 150)
    kinds = [one.kind for one in events]
    assert kinds.index("verified") < kinds.index("doubted") < kinds.index("rolled-back") < kinds.index("none")
    assert system.in_force() is None


def test_rules_that_lose_after_half_of_the_writers_left_are_taken_back_within_a_minute(library):
    text = """
name = "leaving"
[[clients]]
count = 4
workload = "write"
stop_s = 200
[[clients]]
count = 1
workload = "write"
[[workloads]]
name = "write"
filesets = [{ name = "file", size_mib = 5120 }]
[[workloads.threads]]
instances = 64
flowops = [{ op = "write", iosize_kib = 1024, random = true, directio = true }]
"""
    system, events = watched(library, parse_scenario(text), 300)
    kept = [one.at_s for one in events if one.kind == "verified" and one.at_s < 200]
    doubted = next(one for one in events if one.kind == "doubted")
    assert kept and 200 < doubted.at_s < 260
    assert doubted.reason.startswith("the throughput is ") and "was" in doubted.reason
    rolled = next(one for one in events if one.kind == "rolled-back")
    assert rolled.reason == doubted.reason and rolled.shown.gain.gain_relative < 0
    assert system.in_force() is None


def test_looks_doubt_what_jumps_and_not_what_drifts():
    looks = Looks()
    for at in range(60):
        assert not looks.doubt(100.0 + (at % 3) + at * 0.3)  # a drift of a fifth in five minutes
    assert looks.doubt(60.0) == "the throughput is 60.00 MB/s, and was 115.1 under these rules"
    assert not looks.doubt(0.0)  # the clients pause
    short = Looks()
    assert not any(short.doubt(value) for value in (100.0, 1.0, 100.0, 1.0, 100.0))  # too few to know


def test_checks_doubt_rules_that_pairs_speak_against():
    for direction, better, worse in (("maximize", 110.0, 90.0), ("minimize", 90.0, 110.0)):
        helping, harming = Checks(direction), Checks(direction)
        assert not any(helping.doubt(100.0 + at % 2, better + at % 3) for at in range(20))
        said = [harming.doubt(100.0 + at % 2, worse + at % 3) for at in range(20)]
        assert not said[0] and said[-1].startswith("the gain is -")


def test_checks_cost_what_is_stated(library):
    system = SimulatedClusterSystem(preset("random-write"))
    events = []
    pace = WatchOptions(observe_s=5.0, settle_s=2.0, measure_s=4.0, check_share=0.1)
    test = PairTest(level=0.05, pairs_max=8, pairs_min=4)
    watcher = RuleWatcher(
        system, Chooser(library, OBJECTIVE.text), OBJECTIVE, pace, test, listener=events.append
    )
    watcher.run(900)
    first = next(one.at_s for one in events if one.kind == "verified")
    checks = [one.at_s for one in events if one.kind == "checked"]
    assert "doubted" not in [one.kind for one in events]
    without_s = len(checks) * (pace.settle_s + pace.measure_s)
    assert 0.05 < without_s / (system.time_s - first) <= 0.1
    with pytest.raises(InputError, match="--check-share = 0.6: must be from 0% to 50%"):
        WatchOptions(check_share=0.6)


def test_an_interrupt_of_a_check_leaves_the_rules_that_are_kept(library):
    """Whoever ends the daemon while the system does without rules finds them in force again."""
    system = SimulatedClusterSystem(preset("random-write"))
    pace = WatchOptions(observe_s=5.0, settle_s=2.0, measure_s=4.0, check_share=0.5)
    test = PairTest(level=0.05, pairs_max=8, pairs_min=4)
    events = []
    watcher = RuleWatcher(
        system, Chooser(library, OBJECTIVE.text), OBJECTIVE, pace, test, listener=events.append
    )
    watcher.cycle()
    assert events[-1].kind == "verified"
    plain = system.collect

    def interrupted(rules, settle_s, measure_s):
        if rules is None:
            raise KeyboardInterrupt
        return plain(rules, settle_s, measure_s)

    system.collect = interrupted
    with pytest.raises(KeyboardInterrupt):
        watcher.cycle()
    assert system.in_force().bare() == GOOD
