"""How the runs of a signature's loop come to their files: by opening them, with another run, or held open.

A run that begins in another file need not open it. A mail server reads a mail and appends to it before it
closes it; a database goes between files that it opened long ago. How often a trace opens files, beside how
often it begins in another one, tells how many runs do without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.features.trace import TraceOperation

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Opening:
    """Of the runs of a loop that begin in another file, how many come to it how; all others open it.

    Attributes:
        created: runs of writes that fill a file just made.
        shared: runs of reads whose file a run of writes goes on with, before it is closed.
        held: the runs whose file is open all the time, by operation.
        lone: files that are made, and closed without a byte.
        opened: times that a file is opened, those just made included.
    """

    created: int
    shared: int
    held: Mapping[TraceOperation, int]
    lone: int
    opened: int


def opening_of(switches: Mapping[TraceOperation, int], creates: int, opens: int) -> Opening:
    """How the runs of a loop come to their files.

    Args:
        switches: the runs of the loop that begin in another file, by operation (read or write).
        creates: files that the loop makes.
        opens: files that the loop of the trace opens, those it makes included.
    """
    reads, writes = switches.get(TraceOperation.READ, 0), switches.get(TraceOperation.WRITE, 0)
    created = min(writes, creates)
    lone = creates - created
    wanted = max(created, opens - lone)
    beyond = max(0, reads + writes - wanted)
    shared = min(beyond, reads, writes - created, wanted - created)
    held = _held(
        {TraceOperation.READ: reads - shared, TraceOperation.WRITE: writes - created - shared},
        beyond - shared,
    )
    for operation, number in switches.items():
        if number < 2:  # the next loop would go on in the same file
            held[operation] = 0
    return Opening(created, shared, held, lone, reads + writes - shared - sum(held.values()))


def _held(most: Mapping[TraceOperation, int], wanted: int) -> dict[TraceOperation, int]:
    """So many, shared out in the proportion of what there is at most."""
    total = sum(most.values())
    reads = round(wanted * most[TraceOperation.READ] / total) if total else 0
    return {TraceOperation.READ: reads, TraceOperation.WRITE: min(wanted - reads, most[TraceOperation.WRITE])}
