from __future__ import annotations

import pytest

from ascar.analysis.labels import metric_label


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("throughput_ops_per_s", "throughput (ops/s)"),
        ("latency_ms_p99", "latency p99 (ms)"),
        ("latency_us_p99_9", "latency p99 9 (\N{MICRO SIGN}s)"),
        ("latency_ms_mean", "latency mean (ms)"),
        ("change_s", "change (s)"),
        ("read_bytes", "read (bytes)"),
        ("iops", "I/Os per second"),
        ("package_joules", "package (J)"),
        ("files", "files"),
        ("tps", "tps"),  # no unit: the "s" is a letter of the word
        ("x", "x"),
        ("read_iops", "read (I/Os per second)"),
        ("throughput_ops_per_s - 2 * change_s", "throughput_ops_per_s - 2 * change_s"),
        ("<script>", "<script>"),
        ("", ""),
    ],
)
def test_metrics(name, label):
    assert metric_label(name) == label
