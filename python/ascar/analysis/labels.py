"""A metric's name as people read it: its unit is the end of the name."""

from __future__ import annotations

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
