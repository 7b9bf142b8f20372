"""What clients did, written down by their controllers: in memory, and in parts that fit a message."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from ascar.errors import MessagingError
from ascar.features import Trace, TraceOperation
from ascar.sharp.deployment.messages import RecordingPart

if TYPE_CHECKING:
    from collections.abc import Sequence

OPERATIONS_MAX: Final = 100_000
"""Operations, and requests, of a client that are kept at most; a longer recording ends after them."""
PART_ROWS: Final = 4_000
"""Operations in a message, which stays far below the largest one."""

_COLUMNS = ("seconds", "operation", "thread", "file", "offset_bytes", "size_bytes", "latency_s")
_LARGEST = max(TraceOperation)
_INTEGER_MAX = 2**62
What = Literal["operations", "requests"]


@dataclass(frozen=True, slots=True, eq=False)
class ControllerTrace:
    """What clients did in a while.

    Attributes:
        operations: the operations of threads.
        requests: the requests to servers; a thread is a stream.
        begin_s: nothing is known of what began earlier.
        end_s: nothing is known of what began then or later.
        waiting_mean: requests of a stream that waited for its window, over time.
        dirty_bytes: the dirty bytes in write-back caches, over time.
        dirty_limit_bytes: the most dirty bytes that these caches may hold.
    """

    operations: Trace
    requests: Trace
    begin_s: float
    end_s: float
    waiting_mean: float = 0.0
    dirty_bytes: float = 0.0
    dirty_limit_bytes: float = 0.0


def parts_of(recorded: ControllerTrace, controller: str) -> list[RecordingPart]:
    """The messages that hold it, one at least."""
    traces: list[tuple[What, Trace]] = [
        ("operations", recorded.operations),
        ("requests", recorded.requests),
    ]
    end_s = min(
        (float(one.seconds[OPERATIONS_MAX]) for _, one in traces if len(one) > OPERATIONS_MAX),
        default=recorded.end_s,
    )
    pieces: list[tuple[What, Trace]] = []
    for what, trace in traces:
        known = trace.where(trace.seconds < end_s)
        rows = np.arange(len(known)) // PART_ROWS
        for piece in range(int(rows[-1]) + 1 if len(rows) else 0):
            pieces.append((what, known.where(rows == piece)))  # noqa: PERF401
    if not pieces:
        pieces.append(("operations", recorded.operations))
    return [
        RecordingPart(
            controller=controller,
            parts=len(pieces),
            what=what,
            seconds=tuple(trace.seconds.tolist()),
            operation=tuple(trace.operation.tolist()),
            thread=tuple(trace.thread.tolist()),
            file=tuple(trace.file.tolist()),
            offset_bytes=tuple(trace.offset_bytes.tolist()),
            size_bytes=tuple(trace.size_bytes.tolist()),
            latency_s=tuple(None if math.isnan(one) else one for one in trace.latency_s.tolist()),
            begin_s=recorded.begin_s,
            end_s=end_s,
            waiting_mean=recorded.waiting_mean,
            dirty_bytes=recorded.dirty_bytes,
            dirty_limit_bytes=recorded.dirty_limit_bytes,
        )
        for what, trace in pieces
    ]


def recorded_of(parts: Sequence[RecordingPart]) -> ControllerTrace:
    """What a controller's messages hold.

    Args:
        parts: the parts of the recording, at least one.

    Raises:
        MessagingError: columns of one differ in length, or numbers are impossible.
    """
    for part in parts:
        _check(part)
    return ControllerTrace(
        _trace([one for one in parts if one.what == "operations"]),
        _trace([one for one in parts if one.what == "requests"]),
        parts[0].begin_s,
        parts[0].end_s,
        parts[0].waiting_mean,
        parts[0].dirty_bytes,
        parts[0].dirty_limit_bytes,
    )


def together(several: Sequence[ControllerTrace]) -> ControllerTrace:
    """What all clients did while all were recorded; threads of different clients are different ones.

    Raises:
        MessagingError: at no time were all of them.
    """
    span_s = max(one.begin_s for one in several), min(one.end_s for one in several)
    if span_s[1] <= span_s[0]:
        raise MessagingError(
            f"recordings of {len(several)} controllers have no time in common: the last begins "
            f"{span_s[0] - span_s[1]:.6g} s after the first ends; set the clocks of their nodes"
        )
    return ControllerTrace(
        _merged([one.operations for one in several], span_s),
        _merged([one.requests for one in several], span_s),
        *span_s,
        float(np.mean([one.waiting_mean for one in several])),
        sum(one.dirty_bytes for one in several),
        sum(one.dirty_limit_bytes for one in several),
    )


def _check(part: RecordingPart) -> None:
    if len({len(getattr(part, name)) for name in _COLUMNS}) > 1:
        raise MessagingError(f"{part.controller}: a recording with columns of different lengths")
    numbers = [part.operation, part.thread, part.file, part.offset_bytes, part.size_bytes]
    least = min((min(one, default=0) for one in numbers), default=0)
    most = max((max(one, default=0) for one in numbers), default=0)
    times = [part.begin_s, part.end_s, part.waiting_mean, *part.seconds]
    times += [one for one in part.latency_s if one is not None]
    is_impossible = not all(map(math.isfinite, times)) or min(times) < 0 or part.end_s < part.begin_s
    if is_impossible or least < 0 or most > _INTEGER_MAX or max(part.operation, default=0) > _LARGEST:
        raise MessagingError(f"{part.controller}: a recording with numbers that are out of range")


def _trace(parts: Sequence[RecordingPart]) -> Trace:
    columns = {name: [value for part in parts for value in getattr(part, name)] for name in _COLUMNS}
    return Trace.of(
        columns | {"latency_s": [math.nan if one is None else one for one in columns["latency_s"]]}
    )


def _merged(traces: Sequence[Trace], span_s: tuple[float, float]) -> Trace:
    known = [one.between(*span_s) for one in traces]
    columns = {name: np.concatenate([getattr(one, name) for one in known]) for name in _COLUMNS}
    # As if it had been looked at when the recording ended, whenever that was.
    columns["latency_s"] = np.where(
        columns["seconds"] + columns["latency_s"] > span_s[1], np.nan, columns["latency_s"]
    )
    owners = np.repeat(np.arange(len(known)), [len(one) for one in known])
    pairs = np.stack([owners, columns["thread"]], axis=1)
    columns["thread"] = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return Trace.of(columns)
