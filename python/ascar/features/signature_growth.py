"""Which writes of a trace go on at their file's end, and so take room.

Taking room costs more than writing over what is there, and a file that grows takes longer to remove. Where a
file ends is known where the trace made it, or where its size was told when the trace began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.features.trace import DATA, TraceOperation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.features.gaps import PositionalGaps
    from ascar.features.trace import Trace

NEARLY_ALL = 0.75


def growing_share(trace: Trace, gaps: PositionalGaps) -> float:
    """Share of the runs of writes that begin at their file's end; 0 where none is known to.

    Of those that begin in another file, but for those that fill one just made. Runs that begin by a jump
    inside their file do not count: they are to jump as far as in the original, wherever it ends.
    """
    wanted = trace.operation == TraceOperation.WRITE
    order = np.lexsort((np.arange(int(np.sum(wanted))), trace.thread[wanted]))
    begins = np.cumsum(gaps.run_operations) - gaps.run_operations
    ends = at_end(trace)[wanted][order][begins]
    fills = trace.offset_bytes[wanted][order][begins] == 0
    return _share(ends[~gaps.jumps & ~fills])


def _share(ends: NDArray[np.int8]) -> float:
    """Share of those that are known; nearly all means all: appends of two threads begin in any order."""
    known = ends[ends >= 0]
    share = float(np.mean(known)) if len(known) else 0.0
    return 1.0 if share > NEARLY_ALL else share


def at_end(trace: Trace) -> NDArray[np.int8]:
    """By operation: 1 where it begins at its file's end, 0 where it does not, -1 where that is not known."""
    if len(trace) == 0:
        return np.empty(0, np.int8)
    order = np.lexsort((np.arange(len(trace)), trace.file))
    file, made = trace.file[order], trace.operation[order] == TraceOperation.CREATE
    begins = made.copy()
    begins[0] = True
    begins[1:] |= file[1:] != file[:-1]
    start = np.where(made, 0, trace.start_bytes[order])
    moves = np.isin(trace.operation[order], DATA)
    reached = np.where(moves, trace.offset_bytes[order] + trace.size_bytes[order], 0)
    before = np.concatenate((np.zeros(1, np.int64), reached[:-1]))
    before = _highest(np.where(begins, np.maximum(start, 0), before), begins)
    known = start[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))] >= 0
    found = np.empty(len(trace), np.int8)
    found[order] = np.where(known, trace.offset_bytes[order] == before, -1)
    return found


def _highest(values: NDArray[np.int64], begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The highest value so far in each stretch that begins where told. Ranks keep far from overflowing."""
    levels, rank = np.unique(values, return_inverse=True)
    stretch = np.cumsum(begins) * len(levels)
    return levels[np.maximum.accumulate(rank + stretch) - stretch]
