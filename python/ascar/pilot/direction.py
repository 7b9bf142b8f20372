"""Which way a metric is better, told from its name."""

from __future__ import annotations

import re

_TIMES = {
    *("duration", "elapsed", "lat", "clat", "slat", "latency", "seconds", "time"),
    *("s", "ms", "us", "ns", "min"),
}


def lower_is_better(metric: str) -> bool:
    """Whether less of it is better: so for durations and latencies; not for anything "per" a time."""
    words = re.split(r"[^a-z0-9]+", metric.lower())
    return "per" not in words and not _TIMES.isdisjoint(words)
