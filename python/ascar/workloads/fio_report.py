"""What fio reports: JSON documents one after the other, each the totals so far."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DOCUMENT_BYTES_MAX = 32 * 2**20
DIRECTIONS = ("read", "write", "trim", "fsync")
_NOT_A_NUMBER = re.compile(rb":\s*-?(?:nan|inf)\b")
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


class Documents:
    """Splits fio's output into JSON documents.

    fio indents everything inside a document, so a line that begins with "{" always opens one and a line that
    begins with "}" closes it. Stray lines between documents, and documents that were cut off or interrupted
    by other text, are dropped: each later document holds the totals again.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._document: bytearray | None = None

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The documents that a piece of output completes."""
        self._line += chunk
        if b"\n" not in chunk:
            if len(self._line) > DOCUMENT_BYTES_MAX:
                self._line.clear()
                self._document = None
            return []
        *lines, rest = bytes(self._line).split(b"\n")
        self._line = bytearray(rest)
        return [document for line in lines if (document := self._take(line)) is not None]

    def end(self) -> list[dict[str, Any]]:
        """The document that the output's end completes: its last line may lack the newline."""
        return self.feed(b"\n")

    def _take(self, line: bytes) -> dict[str, Any] | None:
        if line.startswith(b"{"):
            self._document = bytearray(line)
        elif self._document is not None:
            self._document += line
        if self._document is None:
            return None
        if len(self._document) > DOCUMENT_BYTES_MAX:
            self._document = None
        elif line.startswith(b"}") or (line.startswith(b"{") and line.rstrip().endswith(b"}")):
            text, self._document = bytes(self._document), None
            return _decode(text)
        return None


def _decode(text: bytes) -> dict[str, Any] | None:
    """A JSON object; None where it is none. fio can write "nan" for a deviation of nothing: taken as 0."""
    for attempt in (text, _NOT_A_NUMBER.sub(rb": 0", text)):
        try:
            document = msgspec.json.decode(attempt)
        except (ValueError, RecursionError):  # also bytes that are no text
            continue
        return cast("dict[str, Any]", document) if isinstance(document, dict) else None
    return None


@dataclass(frozen=True, slots=True)
class Operations:
    """Totals of one kind of operation.

    Attributes:
        count: operations done.
        bytes: bytes moved.
        latency_sum_ns: the sum of all latencies.
        latency_max_ns: the latency of the slowest operation.
        bins: the number of operations by approximate latency in nanoseconds.
    """

    count: int = 0
    bytes: int = 0
    latency_sum_ns: float = 0.0
    latency_max_ns: float = 0.0
    bins: Mapping[float, int] | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What one document says, over all jobs.

    Attributes:
        runtime_s: the seconds that the jobs have been doing I/O.
        operations: the totals by direction: "read", "write", "trim", "fsync".
        cpu_user_percent: the share of one processor in user mode, mean over the jobs.
        cpu_system_percent: the share of one processor in the kernel, mean over the jobs.
        error: the first job's error number that is not 0.
        failed_job: the name of the job that failed.
    """

    runtime_s: float
    operations: Mapping[str, Operations]
    cpu_user_percent: float
    cpu_system_percent: float
    error: int = 0
    failed_job: str = ""

    def count(self, *directions: str) -> int:
        """Operations of these directions."""
        return sum(self.operations[direction].count for direction in directions)

    def bytes(self, *directions: str) -> int:
        """Bytes moved in these directions."""
        return sum(self.operations[direction].bytes for direction in directions)


def read_totals(document: Mapping[str, Any]) -> Totals | None:
    """The totals of a document; None where it is not one of fio's, or lacks what every one has."""
    try:
        jobs = list(document["jobs"])
        if not jobs:
            return None
        failed = next((job for job in jobs if int(job["error"]) != 0), None)
        runtime_ms = max(float(job[name]["runtime"]) for job in jobs for name in ("read", "write", "trim"))
        return Totals(
            runtime_s=runtime_ms / 1000,
            operations={direction: _operations(jobs, direction) for direction in DIRECTIONS},
            cpu_user_percent=sum(float(job["usr_cpu"]) for job in jobs) / len(jobs),
            cpu_system_percent=sum(float(job["sys_cpu"]) for job in jobs) / len(jobs),
            error=int(failed["error"]) if failed else 0,
            failed_job=str(failed["jobname"]) if failed else "",
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _operations(jobs: Sequence[Mapping[str, Any]], direction: str) -> Operations:
    count = bytes_ = 0
    sum_ns = max_ns = 0.0
    bins: dict[float, int] = {}
    for job in jobs:
        part = job["sync"] if direction == "fsync" else job[direction]
        latency = part["lat_ns"]
        count += int(part["total_ios"])
        bytes_ += int(part.get("io_bytes", 0))
        sum_ns += float(latency["mean"]) * int(latency["N"])
        max_ns = max(max_ns, float(latency["max"]))
        # Completion latencies are the only ones that fio keeps in bins by default; of syncs the plain ones.
        for edge, number in (part.get("clat_ns") or latency).get("bins", {}).items():
            bins[float(edge)] = bins.get(float(edge), 0) + int(number)
    return Operations(count, bytes_, sum_ns, max_ns, bins)


def series_of(totals: Sequence[Totals]) -> dict[str, Series]:
    """Unit readings from successive totals: what happened between each and the one before.

    Latencies exist only for intervals in which an operation ended, so their series can be shorter.
    """
    series: dict[str, tuple[list[float], list[float]]] = {}

    def add(name: str, value: float) -> None:
        seconds, values = series.setdefault(name, ([], []))
        seconds.append(after.runtime_s)
        values.append(value)

    before = Totals(0.0, {direction: Operations() for direction in DIRECTIONS}, 0.0, 0.0)
    for after in totals:
        interval_s = after.runtime_s - before.runtime_s
        for name, directions in _THROUGHPUTS.items():
            add(
                f"{name}ops_per_s" if name else "throughput_ops_per_s",
                (after.count(*directions) - before.count(*directions)) / interval_s,
            )
            if name != "fsync_":
                add(f"{name}bytes_per_s", (after.bytes(*directions) - before.bytes(*directions)) / interval_s)
        for name, directions in _LATENCIES.items():
            count = after.count(*directions) - before.count(*directions)
            sums = [sum(at.operations[d].latency_sum_ns for d in directions) for at in (before, after)]
            if count > 0:
                add(f"{name}latency_ms_mean", max(0.0, sums[1] - sums[0]) / count / 1e6)
        before = after
    return {name: Series.of(*columns) for name, columns in series.items()}


def whole_run(totals: Totals) -> dict[str, float]:
    """One number a metric, over the whole run."""
    metrics = {
        "cpu_user_percent": totals.cpu_user_percent,
        "cpu_system_percent": totals.cpu_system_percent,
        "operations": float(totals.count(*DIRECTIONS[:3])),
    }
    for name, directions in _THROUGHPUTS.items():
        rate = totals.count(*directions) / totals.runtime_s
        metrics[f"{name}ops_per_s" if name else "throughput_ops_per_s"] = rate
        if name != "fsync_":
            metrics[f"{name}bytes_per_s"] = totals.bytes(*directions) / totals.runtime_s
    for name, directions in _LATENCIES.items():
        operations = [totals.operations[direction] for direction in directions]
        count = sum(one.count for one in operations)
        if count == 0:
            continue
        metrics[f"{name}latency_ms_mean"] = sum(one.latency_sum_ns for one in operations) / count / 1e6
        metrics[f"{name}latency_ms_max"] = max(one.latency_max_ns for one in operations) / 1e6
        for percentile, value in _percentiles(operations).items():
            metrics[f"{name}latency_ms_{percentile}"] = value / 1e6
    return metrics


def metric_names() -> frozenset[str]:
    """The names of `whole_run`, where every kind of operation occurs."""
    one = Operations(1, 1, 1.0, 1.0, {1.0: 1})
    return frozenset(whole_run(Totals(1.0, dict.fromkeys(DIRECTIONS, one), 0.0, 0.0)))


# An operation is what the load asks for: a read, a write, a trim. A sync belongs to the write before it, so
# throughput does not count it; but somebody waits for it, so latencies do.
_THROUGHPUTS = {"": ("read", "write", "trim"), "read_": ("read",), "write_": ("write",), "fsync_": ("fsync",)}
_LATENCIES = {"": DIRECTIONS, "read_": ("read",), "write_": ("write",), "fsync_": ("fsync",)}


def _percentiles(operations: Sequence[Operations]) -> dict[str, float]:
    """Percentiles of the merged bins, by nearest rank; nanoseconds."""
    merged: dict[float, int] = {}
    for one in operations:
        for edge, number in (one.bins or {}).items():
            merged[edge] = merged.get(edge, 0) + number
    if not merged:
        return {}
    edges = np.array(sorted(merged))
    cumulative = np.cumsum([merged[edge] for edge in edges.tolist()])
    ranks = {name: max(1, int(np.ceil(q * cumulative[-1]))) for name, q in _PERCENTILES.items()}
    # A bin's middle may lie above the largest time in it.
    largest = max(one.latency_max_ns for one in operations)
    return {
        name: min(float(edges[np.searchsorted(cumulative, rank)]), largest) for name, rank in ranks.items()
    }
