"""Block requests as the kernel's own tracing prints them: perf script, trace-cmd, trace_pipe, bpftrace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.features.block_trace import SECTOR_BYTES, block_operation, block_trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.features.trace import Trace

BPFTRACE = (
    "tracepoint:block:block_rq_issue { "
    'printf("%d.%09d: block_rq_issue: %d,%d %s %d () %lld + %d [%s]\\n", '
    "nsecs / 1000000000, nsecs % 1000000000, args.dev >> 20, args.dev & 1048575, "
    "args.rwbs, args.bytes, args.sector, args.nr_sector, args.comm); }"
)
"""A program for `bpftrace -e` that prints requests in the same form."""

# seconds: event: major,minor type [bytes (command)] sector + sectors; perf writes "block:block_rq_issue:".
_REQUEST = re.compile(
    r"(\d{1,12}\.\d{1,9}):\s+(?:block:)?block_(bio_queue|rq_insert|rq_issue|rq_complete):\s+"
    r"(\d{1,9}),(\d{1,9})\s+([A-Z]+)\s+(?:\d+\s+)?(?:\([^)]*\)\s+)?(\d{1,20}) \+ (\d{1,20})(?:\s|$)",
    re.ASCII,
)
_EVENTS = ("bio_queue", "rq_insert", "rq_issue", "rq_complete")


def parse_kernel_trace(lines: Iterable[str]) -> Trace:
    """A trace from the block events of a kernel trace.

    Of a request's events the first kind counts that occurs in the trace: queued, inserted, issued, completed.

    Raises:
        InputError: no line tells of a request.
    """
    rows: dict[str, list[tuple[float, int, int, int, int]]] = {name: [] for name in _EVENTS}
    for line in lines:
        found = _REQUEST.search(line)
        if found is None:
            continue
        operation = block_operation(found[5])
        device = int(found[3]) << 20 | int(found[4])
        place, size = int(found[6]) * SECTOR_BYTES, int(found[7]) * SECTOR_BYTES
        if operation is not None and place + size < 2**62:
            rows[found[2]].append((float(found[1]), operation, device, place, size))
    chosen = next((name for name in _EVENTS if rows[name]), None)
    if chosen is None:
        raise InputError(
            "the trace holds no block event such as block_rq_issue; trace with `-e block:block_rq_issue`"
        )
    return block_trace(rows[chosen], f"kernel trace ({chosen})")
