"""Positional and temporal gaps (Li, section 3.1.7).

The positional gap is the distance from the end of one operation to the begin of the next one of the same
type by the same thread: zero for sequential work. Where the next one works on another file there is no
distance. The temporal gap is the time between the begins of consecutive operations of one type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.features.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class PositionalGaps:
    """What lies between each operation of one type and the one before it by the same thread.

    Attributes:
        bytes: int64 (n - threads,), begin minus the end before, where the file is the same.
        same_file: bool (n - threads,), whether it is.
        run_bytes: float64 (runs,), bytes of each run of operations without a gap.
        run_operations: int64 (runs,), operations of each run.
        jumps: bool (runs,), whether a run begins in the file that the run before it ended in.
    """

    bytes: NDArray[np.int64]
    same_file: NDArray[np.bool_]
    run_bytes: NDArray[np.float64]
    run_operations: NDArray[np.int64]
    jumps: NDArray[np.bool_]

    @property
    def sequential_share(self) -> float:
        """Share of gaps that are zero; nan without a gap."""
        zero: NDArray[np.bool_] = self.same_file & (self.bytes == 0)
        return float(np.mean(zero)) if len(zero) else np.nan

    @property
    def switch_share(self) -> float:
        """Share of gaps that lead to another file; nan without a gap."""
        return 1.0 - float(np.mean(self.same_file)) if len(self.bytes) else np.nan

    @property
    def jump_bytes(self) -> NDArray[np.int64]:
        """Sizes of the gaps within a file that are not zero."""
        inside = self.bytes[self.same_file]
        return np.abs(inside[inside != 0])


def positional_gaps(trace: Trace) -> PositionalGaps:
    """Gaps of a trace that holds one type of operation."""
    order = np.lexsort((np.arange(len(trace)), trace.thread))
    thread, file = trace.thread[order], trace.file[order]
    begin, size = trace.offset_bytes[order], trace.size_bytes[order]
    follows = thread[1:] == thread[:-1]
    same_file = file[1:] == file[:-1]
    gap = begin[1:] - (begin[:-1] + size[:-1])
    starts = np.ones(len(trace), bool)
    starts[1:] = ~(follows & same_file & (gap == 0))
    places = np.flatnonzero(starts)
    jumps = np.zeros(len(trace), bool)
    jumps[1:] = follows & same_file & (gap != 0)
    return PositionalGaps(
        bytes=gap[follows],
        same_file=same_file[follows],
        run_bytes=np.add.reduceat(size.astype(np.float64), places) if len(places) else np.empty(0),
        run_operations=np.diff(np.append(places, len(trace))),
        jumps=jumps[places],
    )


def temporal_gaps(trace: Trace) -> NDArray[np.float64]:
    """Seconds between the begins of consecutive operations."""
    return np.diff(trace.seconds)
