"""What db_bench prints: read as it is, in pieces, and when it is nonsense."""

from __future__ import annotations

import pytest

from ascar.errors import StudyError
from ascar.workloads import open_workload
from ascar.workloads.db_bench_report import rounds_of, tally_of
from own_servers import rocksdb_installed

HISTOGRAM = """Microseconds per {what}:
Count: {count} Average: 5.0000  StdDev: 1.00
Min: 1  Median: 4.0000  Max: {most}
Percentiles: P50: 4.00 P75: 5.00 P99: 8.00 P99.9: 9.00 P99.99: 10.00
------------------------------------------------------
[       0,       1 ]        0   0.000%   0.000%
(       3,       4 ]       {half}  50.000%  50.000% ##########
(    4400,    6600 ]       {half}  50.000% 100.000% ##########

"""
HEAD = "readrandom   :       9.825 micros/op 101296 ops/sec 2.000 seconds 1000 operations;   11.2 MB/s\n"
ROUND = HEAD + HISTOGRAM.format(what="read", count=100, most=6000, half=50)


def test_rounds_are_told_apart() -> None:
    rounds = rounds_of(f"RocksDB: version 7.8.3\n{ROUND}{ROUND}", 1.0)
    assert [one.operations for one in rounds] == [1000, 1000]
    assert [one.rate for one in rounds] == [500, 500]
    assert [one.mean_ms for one in rounds] == pytest.approx([0.009825] * 2)
    metrics = tally_of(rounds).metrics()
    assert metrics["latency_ms_p50"] == pytest.approx(0.004)
    assert metrics["latency_ms_p99"] == pytest.approx(6.0), "never above the longest"
    assert metrics["latency_ms_max"] == pytest.approx(6.0)
    assert metrics["latency_ms_mean"] == pytest.approx(0.005)


def test_reads_and_writes_of_a_round_are_taken_together() -> None:
    both = ROUND + HISTOGRAM.format(what="write", count=20, most=9, half=10)
    tally = tally_of(rounds_of(both, 1.0))
    assert sum(tally.buckets.values()) == 120


def test_versions_that_print_no_seconds_are_read() -> None:
    (one,) = rounds_of("overwrite : 9.825 micros/op 1000 ops/sec;   11.2 MB/s\n", 3.0)
    assert (one.seconds, one.operations) == (3.0, 3000.0)


def test_however_it_is_cut_off_whole_histograms_alone_count() -> None:
    whole = ROUND + ROUND
    for end in range(len(whole)):
        tally = tally_of(rounds_of(whole[:end], 1.0))
        assert sum(tally.buckets.values()) in (0, 100, 200)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "readrandom : 0.000 micros/op 0 ops/sec 1.000 seconds 0 operations;\n",
        "readrandom : ..... micros/op 1 ops/sec 1.000 seconds 1 operations;\n",
        "readrandom : 1.0 micros/op 1 ops/sec 0.000 seconds 1 operations;\n",
        "readrandom : nan micros/op inf ops/sec\n",
        "\0\ufffd" * 1000,
        f"readrandom : 1 micros/op {'9' * 400} ops/sec;\n",
    ],
)
def test_nonsense_is_no_round(text: str) -> None:
    assert rounds_of(text, 1.0) == []


def test_numbers_that_are_none_are_left_out() -> None:
    odd = ROUND.replace("Average: 5.0000", "Average: 5.0.0 ").replace("Max: 6000", "Max: .")
    assert tally_of(rounds_of(odd, 1.0)).metrics() == {}


@pytest.mark.skipif(not rocksdb_installed(), reason="db_bench is not installed")
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("keys", 0, "must be from 1"),
        ("threads", 10**6, "must be from 1 to 1024"),
        ("compression_ratio", 0.0, "must be above 0"),
        ("compression_ratio", float("nan"), "must be above 0"),
        ("write_bytes_per_s", 0, "must be from 1"),
        ("benchmark", "format", "workload.benchmark"),
        ("fill", "none", "workload.fill"),
        ("fill_limit", "soon", "workload.fill_limit"),
        ("sync", 2, "workload.sync"),
    ],
)
def test_wrong_options_are_refused_in_one_line(key: str, value: object, said: str) -> None:
    with pytest.raises(StudyError, match=said) as refused:
        open_workload({"kind": "db_bench", key: value})
    assert "\n" not in refused.value.message
