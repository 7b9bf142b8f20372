"""Names and numbers as people read them: a metric's unit is the end of its name."""

from __future__ import annotations

import math
import re

# Longest first: "_ops_per_s" is no "_s". A percentile may follow the unit: latency_ms_p99.
_UNITS = {
    "ops_per_s": "ops/s",
    "mib_per_s": "MiB/s",
    "mb_per_s": "MB/s",
    "kib_per_s": "KiB/s",
    "bytes_per_s": "bytes/s",
    "joules_per_op": "J/op",
    "bytes": "bytes",
    "joules": "J",
    "watts": "W",
    "percent": "%",
    "iops": "I/Os per second",
    "ns": "ns",
    "us": "\N{MICRO SIGN}s",
    "ms": "ms",
    "s": "s",
    "mib": "MiB",
    "kib": "KiB",
}
_METRIC = re.compile(
    rf"(?P<what>[A-Za-z0-9_]*?)_?(?P<unit>{'|'.join(_UNITS)})(?:_(?P<statistic>p\d+(?:_\d+)?|mean|min|max|sd))?"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STEPS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))


def metric_label(name: str) -> str:
    """A metric's name with its unit in brackets: "latency p99 (ms)"; a formula stays as it is."""
    if not _NAME.fullmatch(name):
        return name
    found = _METRIC.fullmatch(name)
    if found is None or (found["what"] and not name[: len(found["what"]) + 1].endswith("_")):
        return name.replace("_", " ")
    words = " ".join(part for part in (found["what"], found["statistic"]) if part).replace("_", " ").strip()
    unit = _UNITS[found["unit"]]
    return f"{words} ({unit})" if words else unit


def number(value: float | None) -> str:
    """A number for people: "17,430", "3.142"; whole from a thousand on; a dash for none."""
    if value is None:
        return "\N{EN DASH}"
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.3e}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def short(value: float, largest: float | None = None) -> str:
    """A number for an axis: "12k", "1.5M".

    Args:
        value: the number.
        largest: the axis's largest, which settles the unit of all its numbers; None: `value` itself.
    """
    size = abs(value) if largest is None else largest
    for above, factor, letter in _STEPS:
        if size >= above and value:
            return f"{value / factor:.4g}{letter}"
    return f"{value:.4g}"


def percent(share: float | None, *, signed: bool = False) -> str:
    """A share as percent: "31%", "+4.2%"; one decimal below ten."""
    if share is None or not math.isfinite(share):
        return "\N{EN DASH}"
    digits = 0 if abs(share) >= 0.0995 else 1
    text = f"{100 * share:+,.{digits}f}" if signed else f"{100 * share:,.{digits}f}"
    return f"{text.replace('-', chr(0x2212))}%"


def seconds(value: float) -> tuple[float, str]:
    """A factor and a unit that suit durations up to `value` seconds: (60.0, "min")."""
    if value >= 3 * 3600:
        return 3600.0, "h"
    return (60.0, "min") if value >= 180 else (1.0, "s")
