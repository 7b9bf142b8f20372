"""Block traces: text of blkparse, CSV of the MSR Cambridge traces, and MQSim's format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError
from ascar.features.trace import Trace, TraceOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SECTOR_BYTES = 512
_POSITION_MAX = 2**62
_TRACE_S_MAX = 7 * 86400
"""Times of a blkparse trace further from its median come from a processor whose clock was off."""

# device, processor, sequence, seconds, process, action, type; then sector + sectors where there is a request
_BLKPARSE = re.compile(
    r"\s*(\d+),(\d+)\s+\d+\s+\d+\s+(\d+\.\d+)\s+\d+\s+([A-Z]+)\s+([A-Z]+)\s+(\d+) \+ (\d+)(?:\s|$)", re.ASCII
)
_ACTIONS = ("Q", "I", "D", "C")
_Row = tuple[float, int, int, int, int]


def parse_blkparse(lines: Iterable[str], action: str | None = None) -> Trace:
    """A trace from what blkparse prints.

    Args:
        lines: the lines that blkparse printed. Lines that tell of no request (plugging, remapping, the
            summary) are passed over.
        action: the event of a request that counts: "Q" queued, "I" inserted, "D" issued, "C" completed; None:
            the first of these that occurs.

    Raises:
        InputError: no line tells of a request.
    """
    rows: dict[str, list[_Row]] = {name: [] for name in _ACTIONS}
    for line in lines:
        found = _BLKPARSE.match(line)
        if found is None or found[4] not in rows:
            continue
        operation = block_operation(found[5])
        sector, sectors = int(found[6][:20]), int(found[7][:20])
        device = int(found[1][:9]) << 20 | int(found[2][:9])
        if operation is not None and (sector + sectors) * SECTOR_BYTES < _POSITION_MAX:
            row = (float(found[3]), operation, device, sector * SECTOR_BYTES, sectors * SECTOR_BYTES)
            rows[found[4]].append(row)
    if action is not None and action not in rows:
        raise InputError(f"action = {action!r}: must be one of {', '.join(_ACTIONS)}")
    chosen = action or next((name for name in _ACTIONS if rows[name]), "Q")
    middle_s = float(np.median([row[0] for row in rows[chosen]])) if rows[chosen] else 0.0
    kept = [row for row in rows[chosen] if abs(row[0] - middle_s) <= _TRACE_S_MAX]
    return block_trace(kept, f"blkparse text (action {chosen})")


def block_operation(rwbs: str) -> TraceOperation | None:
    """The type of a request; "R", "W", "D" (discard) and "F" (flush) lead, other letters qualify."""
    if "D" in rwbs:
        return TraceOperation.DELETE
    if "W" in rwbs:
        return TraceOperation.WRITE
    if "R" in rwbs:
        return TraceOperation.READ
    return TraceOperation.SYNC if "F" in rwbs else None


def parse_msr(lines: Iterable[str]) -> Trace:
    """A trace from CSV as of MSR Cambridge.

    Columns: timestamp (100 ns), host, disk, Read or Write, offset, size, response time (100 ns).

    Raises:
        InputError: a line is not of this form, or there is none.
    """

    def row(fields: list[str]) -> tuple[_Row, float]:
        timestamp, _, disk, kind, offset, size, response = fields
        operation = {"read": TraceOperation.READ, "write": TraceOperation.WRITE}[kind.strip().lower()]
        return (int(timestamp) * 1e-7, operation, int(disk), int(offset), int(size)), int(response) * 1e-7

    return _columns(lines, ",", row, "MSR Cambridge CSV")


def parse_mqsim(lines: Iterable[str]) -> Trace:
    """A trace in MQSim's format: time in ns, device, first sector, sectors, 0 for a write or 1 for a read.

    Raises:
        InputError: a line is not of this form, or there is none.
    """

    def row(fields: list[str]) -> tuple[_Row, float]:
        time_ns, device, sector, sectors, flag = fields
        operation = {"0": TraceOperation.WRITE, "1": TraceOperation.READ}[flag]
        position, size = int(sector) * SECTOR_BYTES, int(sectors) * SECTOR_BYTES
        return (int(time_ns) * 1e-9, operation, int(device), position, size), float("nan")

    return _columns(lines, None, row, "MQSim trace")


def _columns(
    lines: Iterable[str],
    separator: str | None,
    row: Callable[[list[str]], tuple[_Row, float]],
    what: str,
) -> Trace:
    rows: list[_Row] = []
    latencies: list[float] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            parsed, latency = row(line.strip().split(separator))
        except (KeyError, ValueError, OverflowError):
            raise InputError(f"line {number}: {line.strip()[:80]!r} is not a request of an {what}") from None
        if not (0 <= parsed[3] < _POSITION_MAX and 0 <= parsed[4] < _POSITION_MAX and abs(parsed[2]) < 2**62):
            raise InputError(f"line {number}: {line.strip()[:80]!r} has a position or size out of range")
        rows.append(parsed)
        latencies.append(latency)
    return block_trace(rows, what, latencies)


def block_trace(rows: list[_Row], what: str, latencies: list[float] | None = None) -> Trace:
    """A trace of requests: seconds, type, device, first byte, bytes.

    Raises:
        InputError: there is none.
    """
    if not rows:
        raise InputError(f"the trace holds no request that can be read as {what}; check its format")
    seconds, operation, file, offset, size = zip(*rows, strict=True)
    columns = {
        "seconds": seconds,
        "operation": operation,
        "file": file,
        "offset_bytes": offset,
        "size_bytes": size,
    }
    return Trace.of({**columns, "latency_s": latencies})
