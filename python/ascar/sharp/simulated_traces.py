"""Traces of what the simulated cluster recorded, as any system's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.features import Operation, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.simulation import Recorded

_OPERATIONS: Mapping[str, Operation] = {
    "read": Operation.READ,
    "readwholefile": Operation.READ,
    "write": Operation.WRITE,
    "writewholefile": Operation.WRITE,
    "appendfile": Operation.WRITE,
    "appendfilerand": Operation.WRITE,
    "createfile": Operation.CREATE,
    "deletefile": Operation.DELETE,
    "statfile": Operation.STAT,
    "sync": Operation.SYNC,
    "openfile": Operation.OPEN,
    "closefile": Operation.CLOSE,
}


def trace_of(recorded: Recorded) -> Trace:
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
