"""Traces of what the simulated cluster recorded, as any system's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.features import Trace, TraceOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.simulation import ClusterTrace

_OPERATIONS: Mapping[str, TraceOperation] = {
    "read": TraceOperation.READ,
    "readwholefile": TraceOperation.READ,
    "write": TraceOperation.WRITE,
    "writewholefile": TraceOperation.WRITE,
    "appendfile": TraceOperation.WRITE,
    "appendfilerand": TraceOperation.WRITE,
    "createfile": TraceOperation.CREATE,
    "deletefile": TraceOperation.DELETE,
    "statfile": TraceOperation.STAT,
    "sync": TraceOperation.SYNC,
    "openfile": TraceOperation.OPEN,
    "closefile": TraceOperation.CLOSE,
}


def trace_of(recorded: ClusterTrace) -> Trace:
    """A trace of operations on the simulated cluster, as `ascard load --record` would have written them."""
    return Trace.of(
        {
            "seconds": recorded.seconds,
            "operation": [_OPERATIONS[kind] for kind in recorded.kind],
            "thread": recorded.thread,
            "file": recorded.file,
            "offset_bytes": recorded.offset_bytes,
            "size_bytes": recorded.size_bytes,
            "latency_s": recorded.latency_s,
        }
    )
