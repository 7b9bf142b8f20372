"""How hard a workload presses: who works on the system, and how much is under way at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.features.trace import MIX

if TYPE_CHECKING:
    from ascar.features.trace import Trace


def pressure_of(trace: Trace) -> dict[str, float]:
    """The pressure of a trace (Li, section 3.1.7: "the workload's pressure on the storage system").

    - threads: that did anything; block traces have none to tell apart, which makes one;
    - files_per_thread: different files over threads;
    - TYPE_in_flight_mean for read, write, create, delete, stat, sync: operations under way at a time, by
      Little's law the sum of latencies over the duration; nan where latencies are not known, 0 of types that
      do not occur;
    - busy_share: of the threads' time that they wait for operations.
    """
    threads = len(np.unique(trace.thread))
    last = trace.seconds + np.nan_to_num(trace.latency_s)
    duration_s = float(np.max(last) - trace.seconds[0]) if len(trace) else np.nan
    found = {
        "threads": float(threads),
        "files_per_thread": len(np.unique(trace.file)) / threads if threads else np.nan,
    }
    known = trace.latency_s[~np.isnan(trace.latency_s)]
    # Where some operations are still under way, theirs is taken to be like that of the others.
    unknown = bool(len(trace)) and len(known) == 0
    total = 0.0
    for operation in MIX:
        latency_s = trace.latency_s[trace.operation == operation]
        seen = latency_s[~np.isnan(latency_s)]
        name = f"{operation.name.lower()}_in_flight_mean"
        if unknown or not duration_s > 0 or (len(latency_s) and not len(seen)):
            found[name] = np.nan
            continue
        busy_s = float(np.mean(seen)) * len(latency_s) if len(seen) else 0.0
        found[name] = busy_s / duration_s
        total += found[name]
    found["busy_share"] = np.nan if unknown or not threads else min(1.0, total / threads)
    return found
