"""Percentiles of closed loops are called so."""

from __future__ import annotations

import pytest

from ascar.workloads.filebench import Filebench
from ascar.workloads.fio import Fio
from ascar.workloads.open_loop import closed_loop_note, loop_of
from ascar.workloads.sqlite_transactions import SqliteTransactions


def test_a_rate_makes_a_loop_open():
    assert (loop_of(None), loop_of(3.0)) == ("closed", "open")


@pytest.mark.parametrize(
    ("workload", "metrics", "words"),
    [
        ({"loop": "closed"}, ["throughput_ops_per_s", "latency_ms_mean"], ""),
        ({"loop": "open", "rate_per_s": 5}, ["latency_ms_p99"], ""),
        ({}, ["latency_ms_p99"], ""),  # a command of one's own: nobody knows
        ({"loop": "closed"}, ["latency_ms_p99", "tp"], "latency_ms_p99 is that of a closed loop"),
        (
            {"loop": "closed", "rate_per_s": None},
            ["latency_ms_p999", "read_latency_ms_p50", "latency_ms_p999"],
            "latency_ms_p999, read_latency_ms_p50 are those of a closed loop",
        ),
    ],
)
def test_a_note_names_the_percentiles_of_a_closed_loop(workload, metrics, words):
    note = closed_loop_note({"workload": workload}, metrics)
    assert note.startswith(words) and bool(note) == bool(words)
    assert ("rate_per_s" in note) == ("rate_per_s" in workload and bool(words))


def test_loads_say_which_they_are():
    assert SqliteTransactions({}).describe()["loop"] == "closed"
    assert Filebench({"personality": "varmail"}).describe()["loop"] == "closed"
    opened = Filebench({"personality": "varmail", "rate_per_s": 40}).describe()
    assert (opened["loop"], opened["rate_per_s"]) == ("open", 40)
    assert Fio({}).describe()["loop"] == "closed"
    assert Fio({"options": {"rw": "read", "size": "1m", "rate_iops": "50"}}).describe()["loop"] is None
