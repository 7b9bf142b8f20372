"""Open and closed loops: whether work arrives at a rate, or each client waits for its own before it goes on.

In a closed loop a slow moment holds back the clients that would have seen it, so that few operations tell of
it (coordinated omission); percentiles of latencies are then not what users wait.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Loop = Literal["open", "closed"]
_PERCENTILE = re.compile(r"(?:\w+_)?latency_ms_(?:p\d+|max)")


def loop_of(rate_per_s: float | None) -> Loop:
    """The loop of a load whose work arrives at a rate; None: it has none."""
    return "closed" if rate_per_s is None else "open"


def closed_loop_note(valid_for: Mapping[str, Any], metrics: Iterable[str]) -> str:
    """What is to be known of percentiles among metrics; empty for an open loop, and where there are none.

    Args:
        valid_for: what a run's results hold for; "workload" is the description of its load.
        metrics: the names that its objectives have.
    """
    found = sorted(name for name in set(metrics) if _PERCENTILE.fullmatch(name))
    workload = valid_for.get("workload")
    if not isinstance(workload, dict) or workload.get("loop") != "closed" or not found:
        return ""
    advice = "; [workload] rate_per_s lets work arrive at a rate" if "rate_per_s" in workload else ""
    are = "is that of a closed loop" if len(found) == 1 else "are those of a closed loop"
    return f"{', '.join(found)} {are}: each client waits for its own operation before the next one{advice}"
