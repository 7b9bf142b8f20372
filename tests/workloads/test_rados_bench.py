"""What rados bench prints: read as it is, in pieces, and when it is nonsense."""

from __future__ import annotations

import pytest

from ascar.errors import StudyError
from ascar.workloads import open_workload
from ascar.workloads.rados_bench_report import BenchMoment, intervals_of, made_of, moments_of
from own_servers import ceph_installed

TEXT = """hints = 1
Maintaining 16 concurrent writes of 4096 bytes to objects of size 4096 for up to 3 seconds or 0 objects
Object prefix: benchmark_data_vm_9213
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0      16        16         0         0         0           -           0
    1      16      1016      1000   12.3613   12.3672  0.00351119       0.004
2026-11-26T20:50:58.206420+0000 min lat: 0.000791352 max lat: 0.355716 avg lat: 0.00352516
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    2      13      3013      3000   12.3251    12.293   8.1e-05       0.005
"""
END = """Total time run:         3.0033
Total writes made:      4000
Write size:             4096
Average IOPS:           3157
Average Latency(s):     0.0045
Max latency(s):         0.02
"""


def test_rows_are_moments_and_the_end_is_the_last() -> None:
    moments = moments_of(TEXT + END)
    assert [one.seconds for one in moments] == [0, 1, 2, 3.0033]
    assert [one.finished for one in moments] == [0, 1000, 3000, 4000]
    assert made_of(TEXT) is None
    assert made_of(TEXT + END) == 4000


def test_an_interval_has_what_its_ends_differ_by() -> None:
    steps = intervals_of(moments_of(TEXT))
    assert [one.rate for one in steps] == [1000, 2000]
    assert [one.mean_ms for one in steps] == pytest.approx([4.0, 5.5])


def test_an_end_right_after_a_row_is_one_with_it() -> None:
    moments = moments_of(TEXT + END.replace("3.0033", "2.0033").replace("4000", "3013"))
    assert [one.seconds for one in moments] == [0, 1, 2.0033]
    assert moments[-1].finished == 3013


def test_an_interval_in_which_nothing_ended_has_no_latency() -> None:
    (one,) = intervals_of([BenchMoment(1, 5, 0.1), BenchMoment(2, 5, 0.1)])
    assert (one.rate, one.mean_ms) == (0, None)


def test_means_that_were_rounded_give_no_latency_below_zero() -> None:
    (one,) = intervals_of([BenchMoment(1, 1000, 0.00501), BenchMoment(2, 1001, 0.005)])
    assert one.mean_ms == 0


def test_however_it_is_cut_off_whole_rows_alone_count() -> None:
    whole = TEXT + END
    for end in range(len(whole)):
        moments = moments_of(whole[:end])
        assert [one.finished for one in moments] == [0, 1000, 3000, 4000][: len(moments)]
        assert [one.seconds for one in moments] == sorted(one.seconds for one in moments)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0\ufffd" * 1000,
        "    1      16      1016      many   12.3613   12.3672  0.00351119       0.004\n",
        "    1      16      1016      1000   12.3613   12.3672  0.00351119       nan\n",
        f"    1      16      1016      {'9' * 400}   12.3613   12.3672  0.00351119       0.004\n",
        "    1      16      1016      1000   12.3613   12.3672  0.00351119       1e999\n",
        "    1      16      1016      1000   12.3613   12.3672  0.00351119       0.004",
        END,
        "Total time run: -1\nTotal writes made: x\nAverage Latency(s): 1\n",
    ],
)
def test_nonsense_is_no_row(text: str) -> None:
    assert moments_of(text) == []


def test_rows_that_go_backwards_are_left_out() -> None:
    back = TEXT + "    1      16      1016      1000   12.3613   12.3672  0.00351119       0.004\n"
    fewer = TEXT + "    3      16      1016      1000   12.3613   12.3672  0.00351119       0.004\n"
    assert moments_of(back) == moments_of(fewer) == moments_of(TEXT)
    assert moments_of(TEXT + END.replace("4000", "2000")) == moments_of(TEXT)


@pytest.mark.skipif(not ceph_installed(), reason="Ceph is not installed")
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("objects", 0, "must be from 1"),
        ("object_bytes", 1 << 40, "must be from 1"),
        ("operations", 0, "must be from 1 to 4096"),
        ("benchmark", "seq", "workload.benchmark"),
        ("fill_limit", "soon", "workload.fill_limit"),
        ("overrun_limit", 5, "workload.overrun_limit"),
    ],
)
def test_wrong_options_are_refused_in_one_line(key: str, value: object, said: str) -> None:
    with pytest.raises(StudyError, match=said) as refused:
        open_workload({"kind": "rados-bench", key: value})
    assert "\n" not in refused.value.message
