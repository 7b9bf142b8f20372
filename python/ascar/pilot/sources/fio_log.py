"""Readings from fio's bandwidth, IOPS and latency logs.

A line is `time_ms, value, direction (0 read, 1 write, 2 trim), block size, offset[, priority]`. Written with
`--log_avg_msec` it averages an interval, and the block size is 0; otherwise it is one request.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError
from ascar.pilot.sources.recorded import RecordedSeries, readings
from ascar.pilot.sources.table import numbers_of, text_frame

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_DIRECTIONS = {"read": 0, "write": 1, "trim": 2}
_KIND = re.compile(r"_(bw|iops|lat|clat|slat)(?:\.\d+)?\.log$")
_NAMES = {"bw": "bw_kib_per_s", "iops": "iops", "lat": "lat_ns", "clat": "clat_ns", "slat": "slat_ns"}
_CELLS_MIN = 4
_TIME_MS_MAX = 1e13


def read_fio_log(path: Path, column: str | None, time: str | None) -> list[RecordedSeries]:  # noqa: ARG001
    """The readings of one log.

    Averaged bandwidth and IOPS of several directions and jobs are added up, interval by interval. Latencies
    and single requests are taken as they come, of one direction.

    Raises:
        InputError: it is no such log, or `column`, a direction, is needed.
    """
    frame = text_frame(path, has_header=False, truncate_ragged_lines=True)
    if frame.is_empty():
        raise InputError(f"{str(path)!r}: is empty")
    if frame.width < _CELLS_MIN:
        raise InputError(
            f"{str(path)!r}: is not a log of fio's: its lines are 'time_ms, value, direction, size'"
        )
    at_ms, values, direction, size = (
        numbers_of(path, cells.alias(title), first_line=1)
        for cells, title in zip(frame, ("time_ms", "value", "direction", "size"), strict=False)
    )
    for title, cells, most in (
        ("time_ms", at_ms, _TIME_MS_MAX),
        ("value", values, np.inf),
        ("direction", direction, 2.0),
    ):
        wrong = np.flatnonzero((cells < 0) | (cells > most))
        if wrong.size:
            line, cell = int(wrong[0]) + 1, float(cells[wrong[0]])
            raise InputError(
                f"{str(path)!r} line {line}: {title} = {cell:g}: is none of fio's: 0 to {most:g} is one"
            )
    matched = _KIND.search(path.name)
    kind = matched[1] if matched else ""
    name = _NAMES.get(kind, "value")
    present = [word for word, code in _DIRECTIONS.items() if (direction == code).any()]
    if column is not None:
        if column not in present:
            raise InputError(f"{str(path)!r} --column = {column!r}: must be one of {', '.join(present)}")
        chosen = direction == _DIRECTIONS[column]
        at_ms, values, direction, size = at_ms[chosen], values[chosen], direction[chosen], size[chosen]
        name = f"{column}.{name}"
    averaged = bool((size == 0).all())
    if averaged and kind in ("bw", "iops"):
        seconds, totals = _added_up(at_ms, values, direction)
        return [readings(path, name, totals, seconds)]
    if len(present) > 1 and column is None:
        raise InputError(f"{str(path)!r}: name the direction with --column: {', '.join(present)}")
    order = np.argsort(at_ms, kind="stable")
    return [readings(path, name, values[order], at_ms[order] / 1000)]


def _added_up(
    at_ms: NDArray[np.float64], values: NDArray[np.float64], direction: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums over directions and jobs by interval.

    A log that several jobs share has one job after another, each from the beginning of time.

    Returns:
        Seconds and sums, (intervals,) each.
    """
    job = np.concatenate([[0], np.cumsum(np.diff(at_ms) < 0)]).astype(np.int64)
    track = job * 3 + direction.astype(np.int64)
    steps = np.concatenate([np.diff(at_ms[track == one]) for one in np.unique(track)])
    period_ms = float(np.median(steps)) if steps.size else 1.0
    interval = np.maximum(np.rint(at_ms / max(period_ms, 1.0)).astype(np.int64), 1)
    # Where one track has two lines in an interval, the clock was late: their mean is that interval's.
    keys, inverse, counts = np.unique(
        np.stack([interval, track]), axis=1, return_inverse=True, return_counts=True
    )
    means = np.bincount(inverse.ravel(), weights=values) / counts
    intervals, place = np.unique(keys[0], return_inverse=True)
    return intervals * (period_ms / 1000), np.bincount(place.ravel(), weights=means).astype(np.float64)
