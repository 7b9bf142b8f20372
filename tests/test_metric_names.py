"""Formulas over metrics that nobody reports are found before anything is touched, where that is known."""

from __future__ import annotations

import sys

import pytest

from ascar.errors import StudyError
from ascar.prepared_study import PreparedStudy
from ascar.study import Study
from ascar.systems import Sample
from ascar.systems.simulated import SimulatedSystem
from ascar.systems.sqlite import SqliteDatabase
from ascar.workloads import Declaring, open_workload

COMMAND = f"""
[workload]
kind = "command"
argv = ["{sys.executable}", "-c", "print(1)"]
metrics = {{ iops = "regex:([0-9]+)" }}
"""


def opened(objective: str, rest: str = "", more: str = "") -> PreparedStudy:
    text = f"""
[study]
name = "s"
objective = "{objective}"
budget = "1 min"
{more}
[target]
kind = "sqlite"
"""
    return PreparedStudy.open(Study.parse(text + rest))


@pytest.mark.parametrize(
    ("objective", "workload"),
    [
        ("maximize throughput_ops_per_s", ""),
        ("minimize latency_ms_p999 + change_s", ""),
        ("minimize device_write_bytes / operations", ""),
        ("minimize cpu_busy_s", ""),
        ("maximize iops", COMMAND),
        ("minimize duration_s", COMMAND),
    ],
)
def test_what_is_reported_may_be_named(objective, workload):
    assert opened(objective, workload)


@pytest.mark.parametrize(
    ("objective", "workload", "said"),
    [
        ("maximize trhoughput_ops_per_s", "", "did you mean 'throughput_ops_per_s'?"),
        ("maximize iosp", COMMAND, "did you mean 'iops'?"),
        ("minimize change_cost_s", "", "it reports change_s, "),
    ],
)
def test_what_is_not_reported_is_named_with_what_is(objective, workload, said):
    with pytest.raises(StudyError) as caught:
        opened(objective, workload)
    assert caught.value.message.startswith(f"study.objective = {objective!r}: needs the metric '")
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_what_a_change_counts_for_is_a_metric_where_the_study_says_it():
    assert opened("minimize change_cost_s + 1 / operations", "[space]\nchange_cost_s = { remount = 3 }\n")


def test_a_system_that_tells_more_than_it_declares_is_left_to_the_first_trial(monkeypatch):
    class Telling(SqliteDatabase):
        sampled = property(lambda self: super(SqliteDatabase, self).sampled)  # as if it had not said

        def sample(self) -> Sample:
            return Sample(gauges={"anything": 1.0})

    assert Telling({}).sampled is None
    monkeypatch.setattr("ascar.prepared_study.open_target", lambda options: Telling({}))
    assert opened("maximize anything")


def test_a_system_without_samples_declares_that():
    assert SimulatedSystem({"metrics": {"x": "1"}}).sampled == frozenset()


@pytest.mark.parametrize("kind", ["filebench", "fio", "sqlite-transactions"])
def test_loads_declare_what_they_report(kind):
    load = open_workload({"kind": kind})
    assert isinstance(load, Declaring)
    assert {"throughput_ops_per_s", "latency_ms_p99", "operations"} <= load.reported


def test_a_filebench_load_declares_its_flowops():
    load = open_workload({"kind": "filebench", "personality": "mailserver"})
    assert isinstance(load, Declaring)
    assert {"fsync2_ops_per_s", "readfile1_latency_ms_p95"} <= load.reported
    assert "nothing_ops_per_s" not in load.reported
