from __future__ import annotations

import pytest

from ascar.analysis.labels import metric_label, number, percent, seconds, short


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\N{EN DASH}"),
        (0.0, "0"),
        (3.14159, "3.142"),
        (999.96, "1000"),
        (17432.6, "17,433"),
        (-17432.6, "-17,433"),
        (1e18, "1.000e+18"),
        (1e-6, "1.000e-06"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "largest", "text"),
    [
        (0, 20_000, "0"),
        (8000, 20_000, "8k"),
        (8000, 9000, "8000"),
        (1.5e6, None, "1.5M"),
        (-2e9, None, "-2G"),
        (3e12, None, "3T"),
        (0.25, None, "0.25"),
    ],
)
def test_numbers_on_axes(value, largest, text):
    assert short(value, largest) == text


@pytest.mark.parametrize(
    ("share", "signed", "text"),
    [
        (0.312, False, "31%"),
        (0.0423, False, "4.2%"),
        (0.0999, False, "10%"),
        (12.5, True, "+1,250%"),
        (-0.05, True, "\N{MINUS SIGN}5.0%"),
        (None, True, "\N{EN DASH}"),
        (float("nan"), False, "\N{EN DASH}"),
    ],
)
def test_shares(share, signed, text):
    assert percent(share, signed=signed) == text


def test_durations():
    assert seconds(100) == (1.0, "s")
    assert seconds(600) == (60.0, "min")
    assert seconds(20_000) == (3600.0, "h")
