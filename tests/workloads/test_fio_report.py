"""fio's output: whole, cut off, mixed with other text, huge, or nonsense."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.workloads.fio_report import DOCUMENT_BYTES_MAX, Documents, read_totals, series_of, whole_run


def part(count=0, bytes_=0, mean_ns=0.0, max_ns=0, bins=None):
    return {
        "runtime": 0,
        "total_ios": count,
        "io_bytes": bytes_,
        "clat_ns": {"bins": bins or {}},
        "lat_ns": {"min": 0, "max": max_ns, "mean": mean_ns, "stddev": 0.0, "N": count},
    }


def job(runtime_ms, name="load", error=0, read=None, write=None, syncs=None):
    sync = part(**(syncs or {}))
    sync["lat_ns"]["bins"] = sync.pop("clat_ns")["bins"]
    return {
        "jobname": name,
        "error": error,
        "read": part(**(read or {})) | {"runtime": runtime_ms if read else 0},
        "write": part(**(write or {})) | {"runtime": runtime_ms if write else 0},
        "trim": part(),
        "sync": sync,
        "usr_cpu": 10.0,
        "sys_cpu": 20.0,
    }


def text(*jobs):
    return json.dumps({"fio version": "fio-3.33", "jobs": list(jobs)}, indent=2).encode() + b"\n"


def totals(*jobs):
    found = read_totals(json.loads(text(*jobs)))
    assert found is not None
    return found


def test_documents_come_out_whatever_the_pieces():
    stream = text(job(250, write={"count": 1})) + b"\n" + text(job(500, write={"count": 2}))
    for size in (1, 7, 100, len(stream)):
        documents = Documents()
        found = [one for at in range(0, len(stream), size) for one in documents.feed(stream[at : at + size])]
        assert [one["jobs"][0]["write"]["total_ios"] for one in [*found, *documents.end()]] == [1, 2]


def test_stray_text_between_documents_is_passed_over():
    stream = (
        b"note: both iodepth >= 1 and synchronous I/O engine are selected\nfio: {not JSON}\n"
        + text(job(250, write={"count": 1}))
        + b"\nfio: terminating on signal 2\n\n"
        + text(job(500, write={"count": 2}))
    )
    assert len(Documents().feed(stream)) == 2


def test_a_document_that_was_cut_off_is_dropped_and_the_next_one_found():
    whole = text(job(500, write={"count": 2}))
    for end in (10, len(whole) // 2, len(whole) - 3):
        documents = Documents()
        found = documents.feed(whole[:end] + b"\n" + whole)
        assert [one["jobs"][0]["write"]["total_ios"] for one in found] == [2]


def test_text_inside_a_document_spoils_only_that_one():
    whole = text(job(500, write={"count": 2}))
    lines = whole.splitlines(keepends=True)
    spoiled = b"".join([*lines[:5], b"fio: terminating on signal 2\n", *lines[5:]])
    assert len(Documents().feed(spoiled + whole)) == 1


def test_the_last_line_may_lack_its_newline():
    documents = Documents()
    assert documents.feed(text(job(1, write={"count": 1})).rstrip(b"\n")) == []
    assert len(documents.end()) == 1


def test_not_a_number_is_taken_as_nothing():
    spoiled = text(job(500, write={"count": 2})).replace(b'"stddev": 0.0', b'"stddev": -nan')
    (document,) = Documents().feed(spoiled)
    assert document["jobs"][0]["write"]["lat_ns"]["stddev"] == 0


def test_output_without_end_takes_bounded_memory():
    documents = Documents()
    chunk = b'{\n  "x": "' + b"x" * 2**20
    for _ in range(2 * DOCUMENT_BYTES_MAX // len(chunk)):
        documents.feed(chunk)
    assert len(documents._line) <= DOCUMENT_BYTES_MAX + len(chunk)
    documents = Documents()
    for _ in range(2 * DOCUMENT_BYTES_MAX // 2**20):
        documents.feed(b"  " + b"y" * (2**20 - 3) + b"\n")
    assert documents._document is None


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b"\n", b'"jobs"', b": [1]", b"nan", b"\xff", b"[" * 50, b" "]),
        max_size=60,
    )
)
def test_garbage_is_never_an_error(pieces):
    documents = Documents()
    for piece in pieces:
        for document in documents.feed(piece):
            read_totals(document)
    for document in documents.end():
        read_totals(document)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"jobs": []},
        {"jobs": [{}]},
        {"jobs": "x"},
        {"jobs": [{"error": "x"}]},
        {"jobs": [None]},
        {"jobs": None},
    ],
)
def test_documents_that_are_not_fios_have_no_totals(document):
    assert read_totals(document) is None


def test_jobs_are_added_up():
    found = totals(
        job(1000, write={"count": 10, "bytes_": 40960, "mean_ns": 100.0}),
        job(900, read={"count": 5, "bytes_": 20480, "mean_ns": 300.0}, write={"count": 30, "mean_ns": 200.0}),
    )
    assert found.runtime_s == 1.0
    assert found.count("read", "write") == 45
    assert found.bytes("read", "write") == 61440
    assert found.operations["write"].latency_sum_ns == 10 * 100 + 30 * 200
    assert found.cpu_user_percent == 10


def test_a_failed_job_is_named():
    found = totals(job(1000, "good", write={"count": 1}), job(1000, "bad", 28, write={"count": 1}))
    assert (found.error, found.failed_job) == (28, "bad")


def test_series_are_what_happened_between_totals():
    series = series_of(
        [
            totals(
                job(
                    500,
                    write={"count": 100, "bytes_": 1000, "mean_ns": 2e6},
                    syncs={"count": 100, "mean_ns": 4e6},
                )
            ),
            totals(
                job(
                    1000,
                    write={"count": 300, "bytes_": 3000, "mean_ns": 4e6},
                    syncs={"count": 300, "mean_ns": 4e6},
                )
            ),
        ]
    )
    assert series["throughput_ops_per_s"].values.tolist() == [200, 400]
    assert series["throughput_ops_per_s"].seconds.tolist() == [0.5, 1.0]
    assert series["bytes_per_s"].values.tolist() == [2000, 4000]
    assert series["read_ops_per_s"].values.tolist() == [0, 0]
    assert series["fsync_ops_per_s"].values.tolist() == [200, 400]
    # (300 * 4 ms - 100 * 2 ms) / 200 = 5 ms
    assert series["write_latency_ms_mean"].values.tolist() == pytest.approx([2, 5])
    assert series["latency_ms_mean"].values.tolist() == pytest.approx([3, 4.5])
    assert "read_latency_ms_mean" not in series


def test_intervals_without_operations_have_a_throughput_but_no_latency():
    stalled = {"count": 100, "mean_ns": 2e6}
    series = series_of([totals(job(ms, write=stalled)) for ms in (500, 1000)])
    assert series["throughput_ops_per_s"].values.tolist() == [200, 0]
    assert series["write_latency_ms_mean"].seconds.tolist() == [0.5]


def test_whole_run_percentiles_are_of_all_operations_merged():
    bins = {"1000": 98, "1000000": 2}
    run = whole_run(
        totals(
            job(
                2000,
                write={"count": 100, "bytes_": 409600, "mean_ns": 20980.0, "max_ns": 1_100_000, "bins": bins},
                syncs={"count": 100, "mean_ns": 5e6, "max_ns": 9_000_000, "bins": {"5000000": 100}},
            )
        )
    )
    assert run["throughput_ops_per_s"] == 50
    assert run["write_bytes_per_s"] == 204800
    assert run["write_latency_ms_p50"] == pytest.approx(0.001)
    assert run["write_latency_ms_p99"] == pytest.approx(1.0)
    assert run["fsync_latency_ms_p50"] == pytest.approx(5.0)
    assert run["latency_ms_p50"] == pytest.approx(1.0)  # half of the operations are syncs
    assert run["latency_ms_p95"] == pytest.approx(5.0)
    assert run["latency_ms_max"] == pytest.approx(9.0)
    assert run["latency_ms_mean"] == pytest.approx((20980 + 5e6) / 2 / 1e6)
    assert "read_latency_ms_p50" not in run


def test_no_percentile_is_above_the_largest():
    """A bin is called by its middle, and the largest latency may lie below that."""
    bins = {"1000": 99, "1048576": 1}
    write = {"count": 100, "mean_ns": 11_000.0, "max_ns": 1_040_000, "bins": bins}
    run = whole_run(totals(job(1000, write=write)))
    assert run["write_latency_ms_p99"] == pytest.approx(0.001)
    assert run["write_latency_ms_p999"] == run["write_latency_ms_max"] == pytest.approx(1.04)


def test_percentiles_agree_with_the_sorted_latencies():
    chance = random.Random(1)
    latencies = [chance.randrange(1, 2000) for _ in range(1000)]
    bins: dict[str, int] = {}
    for one in latencies:
        bins[str(one)] = bins.get(str(one), 0) + 1
    write = {"count": 1000, "mean_ns": 1.0, "max_ns": max(latencies), "bins": bins}
    run = whole_run(totals(job(1000, write=write)))
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)):
        assert run[f"write_latency_ms_{name}"] * 1e6 == pytest.approx(
            sorted(latencies)[int(share * 1000) - 1]
        )
