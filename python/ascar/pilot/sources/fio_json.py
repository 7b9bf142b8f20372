"""Readings from fio's JSON.

Written with `--status-interval=SECONDS`, the file holds one document after another, each with totals since
the start; their differences are unit readings. A single document holds one reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ascar.errors import InputError
from ascar.pilot.sources.recorded import RecordedSeries, pick, readings

if TYPE_CHECKING:
    from pathlib import Path

DIRECTIONS = ("read", "write", "trim")
MEASURES = ("iops", "bw_bytes_per_s", "lat_ns")
_NOTE = "this JSON of fio's holds one reading; --status-interval=1, or logs with --log_avg_msec, give more"
# fio's last document comes whenever the run ends: an interval much shorter than the others is noise.
_SHORTEST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class _Totals:
    """Totals of one direction over all jobs, since the start."""

    at_s: float
    runtime_s: float
    requests: float
    bytes: float
    latency_ns: float


def read_fio(path: Path, column: str | None, documents: list[dict[str, Any]]) -> RecordedSeries:
    """One direction's IOPS, bandwidth or mean latency over time.

    Args:
        path: the path, for errors.
        column: "DIRECTION.MEASURE", e.g. "read.iops"; None where only one direction was used: its IOPS.
        documents: the documents of one run, in order.

    Raises:
        InputError: no such column, or the documents are not fio's.
    """
    last = documents[-1]
    used = [name for name in DIRECTIONS if _totals(path, last, name).requests > 0]
    known = [f"{direction}.{measure}" for direction in used for measure in MEASURES]
    name = pick(path, column, known, [f"{used[0]}.iops"] if len(used) == 1 else known)
    direction, _, measure = name.partition(".")
    totals = [_totals(path, document, direction) for document in documents]
    start = _Totals(totals[0].at_s - totals[0].runtime_s, 0.0, 0.0, 0.0, 0.0)
    pairs = [(a, b) for a, b in zip([start, *totals], totals, strict=False) if b.at_s > a.at_s]
    if len(pairs) > 2:
        lengths = [b.at_s - a.at_s for a, b in pairs]
        if lengths[-1] < _SHORTEST_SHARE * float(np.median(lengths)):
            pairs.pop()
    values = [_reading(measure, a, b) for a, b in pairs]
    kept = [(b.at_s, value) for (_, b), value in zip(pairs, values, strict=True) if value is not None]
    return readings(
        path,
        name,
        [value for _, value in kept],
        [at_s - start.at_s for at_s, _ in kept],
        _NOTE if len(documents) == 1 else "",
    )


def _reading(measure: str, a: _Totals, b: _Totals) -> float | None:
    """What happened between two documents; None where a latency has no request to be the mean of."""
    seconds = b.at_s - a.at_s
    if measure == "iops":
        return (b.requests - a.requests) / seconds
    if measure == "bw_bytes_per_s":
        return (b.bytes - a.bytes) / seconds
    requests = b.requests - a.requests
    return (b.latency_ns - a.latency_ns) / requests if requests > 0 else None


def _totals(path: Path, document: dict[str, Any], direction: str) -> _Totals:
    """The sums over jobs.

    Raises:
        InputError: a field of fio's is missing or is not a number.
    """
    try:
        jobs = [cast("dict[str, Any]", job[direction]) for job in document["jobs"]]
        found = _Totals(
            at_s=_instant_s(document),
            runtime_s=max(float(job["runtime"]) for job in jobs) / 1000,
            requests=sum(float(job["total_ios"]) for job in jobs),
            bytes=sum(float(job["io_bytes"]) for job in jobs),
            latency_ns=sum(float(job["lat_ns"]["mean"]) * float(job["total_ios"]) for job in jobs),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{str(path)!r}: is not fio's JSON: {type(error).__name__}: {error}; fio 3 with "
            "--output-format=json writes it"
        ) from error
    if not np.isfinite([found.at_s, found.runtime_s, found.requests, found.bytes, found.latency_ns]).all():
        raise InputError(f"{str(path)!r}: fio's totals of {direction!r} are not finite numbers")
    return found


def _instant_s(document: dict[str, Any]) -> float:
    """When fio wrote a document."""
    if "timestamp_ms" in document:
        return float(document["timestamp_ms"]) / 1000
    return float(document["timestamp"])
