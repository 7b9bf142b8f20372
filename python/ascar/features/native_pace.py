"""A trace as it would have been without the tracing that it was made by.

Tracing system calls one by one holds each of them up, for some 20 us with strace: a part of that lies inside
the latency that is told, the rest between the calls. A program that waits for nothing goes five to twenty
times slower, one that pauses for milliseconds hardly so. How much slower is counted, not guessed: the kernel
counts a process's reads and writes whether it is traced or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.features.trace import Trace

_CHEAP = 0.1
"""Quantile of latencies and of pauses that is taken to be tracing, and nothing else."""
_SEEN = 0.2
"""Pauses of less than this share of what tracing costs cannot be told from it."""


def at_native_pace(trace: Trace, slowdown: float) -> Trace:
    """The trace with times divided by the slowdown, and latencies without what tracing added to them.

    What is lost between the calls is told from what is lost inside them by the ratio of the shortest pauses
    to the shortest latencies. What remains of pauses is time to think; where that is less than a fifth of
    what tracing cost, it is taken to be none. Mean gaps in time are exact as far as the slowdown is; their
    distribution is not, for all gaps are divided alike.

    Args:
        trace: a trace of system calls.
        slowdown: pace without tracing over pace with it; 1 or less leaves the trace as it is.
    """
    if not slowdown > 1 or len(trace) == 0:
        return trace
    start_s = trace.seconds[0]
    seconds = start_s + (trace.seconds - start_s) / slowdown
    return replace(trace, seconds=seconds, latency_s=_latencies(trace, slowdown))


def _latencies(trace: Trace, slowdown: float) -> NDArray[np.float64]:
    pauses = _pauses(trace)
    latency = trace.latency_s
    if len(pauses) == 0 or bool(np.any(np.isnan(latency))):
        return latency
    busy_s = float(np.sum(latency))
    idle_s = max(0.0, float(np.sum(pauses)))
    lost_s = (busy_s + idle_s) * (1 - 1 / slowdown)
    inside_s = max(1e-9, float(np.quantile(latency, _CHEAP)))
    between_s = max(0.0, float(np.quantile(pauses, _CHEAP)))
    think_s = idle_s - lost_s * between_s / (inside_s + between_s)
    if think_s < _SEEN * lost_s:
        think_s = 0.0
    wanted_s = max(0.0, (busy_s + idle_s) / slowdown - think_s)
    beyond = np.maximum(0.0, latency - inside_s)
    total_s = float(np.sum(beyond))
    return beyond * (wanted_s / total_s) if total_s > 0 else np.full_like(latency, wanted_s / len(latency))


def _pauses(trace: Trace) -> NDArray[np.float64]:
    """Seconds from the end of each operation to the begin of the next one of its thread."""
    order = np.lexsort((np.arange(len(trace)), trace.thread))
    thread, begin = trace.thread[order], trace.seconds[order]
    end = begin + trace.latency_s[order]
    return (begin[1:] - end[:-1])[thread[1:] == thread[:-1]]
