"""More sequential readers than a disk reads ahead for: a cliff, and what windows win back there."""

from __future__ import annotations

import pytest

from ascar.errors import InputError, ScenarioError
from ascar.rules import Action, RuleSet
from ascar.simulation import INDICATORS, Cluster, preset, run_many, with_rule_text, with_settings


def outcome(files: int, **control: float):
    """What 3 clients do with so many files each."""
    settings = [
        f"workloads[0].threads[0].instances={files}",
        f"workloads[0].filesets[0].entries={files}",
        "warmup_s=5",
        "duration_s=20",
        *(f"control.{name}={value}" for name, value in control.items()),
    ]
    (found,) = run_many([with_settings(preset("read-ahead-cliff"), settings)])
    return found


def speed(files: int, **control: float) -> float:
    return outcome(files, **control).throughput_mb_per_s


def test_throughput_falls_by_half_where_the_segments_end():
    # Kernel NFS over such a disk: 19.1 MB/s with 3 files, 19.9 with 6, 10.0 with 12, 9.6 with 24 and with 48.
    three, six, twelve, many = (speed(files) for files in (1, 2, 4, 16))
    assert 0.8 < six / three < 1.25
    assert twelve / six < 0.65
    assert 0.75 < many / twelve < 1.2
    assert 8 < many < 13


def test_a_window_on_requests_wins_nothing_back():
    free = speed(16)
    assert max(speed(16, window=window) for window in (1, 2, 4, 16, 64)) < 1.15 * free


def test_a_window_on_files_wins_it_back_and_costs_latency():
    # Turns of 2 of 16 streams a client on the kernel's block device: 13.5 for 7.1 MB/s, p99 0.54 to 3.8 s.
    free, turned = outcome(16), outcome(16, active_files=2)
    assert turned.throughput_mb_per_s > 1.5 * free.throughput_mb_per_s
    assert turned.operation_latency.latency_ms_p99 > 3 * free.operation_latency.latency_ms_p99
    assert turned.jain_index > 0.95
    # As many active files as the disk has no segments for win nothing.
    assert speed(16, active_files=4) < 1.2 * free.throughput_mb_per_s


def test_a_file_whose_requests_wait_for_the_window_keeps_its_turn():
    free = speed(16)
    assert speed(16, active_files=2, window=2) > 1.5 * free
    assert speed(16, active_files=1, window=1) > 1.5 * free


def test_every_file_has_its_turn():
    turned = outcome(16, active_files=1)
    assert turned.jain_index > 0.95
    assert turned.operation_latency.latency_ms_max < 16 * 1000


@pytest.mark.parametrize(
    ("name", "value"), [("active_files", -1), ("turn_ms", 0), ("turn_idle_ms", 900), ("turn_ms", "nan")]
)
def test_a_turn_out_of_range_is_refused_by_its_name(name, value):
    with pytest.raises(ScenarioError, match=name):
        with_settings(preset("read-ahead-cliff"), [f"control.{name}={value}"])


def test_rules_carry_the_limit_and_their_file_says_so():
    rules = RuleSet(RuleSet.uniform(Action(0, 800, 0)).rules, active_files=2)
    assert rules.text().splitlines()[0] == "1,2,active_files=2"
    assert RuleSet.parse(rules.text()) == rules != RuleSet.uniform(Action(0, 800, 0))
    with pytest.raises(InputError, match=r"active_files.*from 1 to 1000000"):
        RuleSet.parse(rules.text().replace("=2", "=0"))
    with pytest.raises(InputError, match="end of line"):
        RuleSet.parse(rules.text().replace("=2", "=2,slow_ack_ewma"))
    settings = ["workloads[0].threads[0].instances=16", "workloads[0].filesets[0].entries=16"]
    scenario = with_settings(preset("read-ahead-cliff"), [*settings, "warmup_s=5", "duration_s=20"])
    (found,) = run_many([with_rule_text(scenario, rules.text())])
    assert found.throughput_mb_per_s == pytest.approx(speed(16, active_files=2), rel=0.1)


def test_rules_limit_files_from_when_they_are_put_in_force_until_they_are_taken_off():
    settings = ["workloads[0].threads[0].instances=16", "workloads[0].filesets[0].entries=16"]
    cluster = Cluster(with_settings(preset("read-ahead-cliff"), settings))
    rules = RuleSet(RuleSet.uniform(Action(0, 800, 0)).rules, active_files=2).text()

    def speed_now() -> float:
        cluster.advance(3)
        return sum(_rate(cluster) for _ in range(10)) / 10

    cluster.warm_up()
    free = speed_now()
    cluster.deploy(rules)
    turned = speed_now()
    cluster.deploy(None)
    assert turned > 1.5 * free
    assert speed_now() < 1.2 * free


def _rate(cluster: Cluster) -> float:
    columns = [INDICATORS.index(name) for name in ("read_mb_per_s", "write_mb_per_s")]
    return float(cluster.step()[:, columns].sum())
