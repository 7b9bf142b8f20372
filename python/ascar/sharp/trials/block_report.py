"""What the clients of a testbed report: throughput by second, and latencies from when fio asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

import msgspec

from ascar import typed
from ascar.errors import WorkError
from ascar.sharp.deployment.managed_system import interval_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PERCENTILES: Final[Mapping[str, float]] = {
    "latency_ms_p50": 0.5,
    "latency_ms_p90": 0.9,
    "latency_ms_p99": 0.99,
    "latency_ms_p999": 0.999,
}
_KIB = 1024
METRICS = frozenset(
    (
        *("throughput_mb_per_s", "tp", "stdev", "cv", "jain_index"),
        *("latency_ms_mean", *_PERCENTILES, "latency_ms_max"),
    )
)
"""What a run on a testbed tells; latencies include the time that a request waited in a proxy."""


class _Latency(msgspec.Struct):
    bins: dict[str, int] = {}
    mean: float = 0.0
    max: float = 0.0


class _Both(msgspec.Struct):
    """Reads and writes together."""

    bw_bytes: float
    lat_ns: _Latency


class _Job(msgspec.Struct):
    mixed: _Both
    error: int = 0


class _Report(msgspec.Struct):
    jobs: list[_Job]


@dataclass(frozen=True, slots=True)
class ClientReport:
    """What one client reports.

    Attributes:
        mb_per_s: its throughput.
        by_second: the throughput of each second, MB/s.
        latencies: the number of requests by latency in ns, in the buckets of fio.
        latency_ms_max: the longest.
    """

    mb_per_s: float
    by_second: tuple[float, ...]
    latencies: Counter[int]
    latency_ms_max: float

    @classmethod
    def of(cls, name: str, said: str, log: str) -> ClientReport:
        """Read what fio wrote.

        Args:
            name: what messages call the client.
            said: its output, JSON.
            log: its log of throughput, a line a second and job.

        Raises:
            WorkError: it is no report, or tells of an error.
        """
        try:
            (job,) = typed.decode(said[said.index("{") :].encode(), _Report).jobs
        except (ValueError, msgspec.MsgspecError):
            raise WorkError(f"{name}: fio reports nothing that can be read") from None
        if job.error:
            raise WorkError(f"{name}: fio reports error {job.error}")
        both = job.mixed
        bins = Counter({int(ns): count for ns, count in both.lat_ns.bins.items()})
        return cls(both.bw_bytes / 1e6, _by_second(log), bins, both.lat_ns.max / 1e6)


def run_metrics(clients: Sequence[ClientReport]) -> tuple[dict[str, float], tuple[float, ...]]:
    """The metrics of a run, `METRICS`, and its total throughput by second.

    Raises:
        WorkError: a client moved nothing.
    """
    rates = [one.mb_per_s for one in clients]
    for at, rate in enumerate(rates, start=1):
        if not rate > 0:
            raise WorkError(f"client {at}: moved nothing in the whole run")
    seconds = min(len(one.by_second) for one in clients)
    series = {
        str(at): one.by_second[:seconds] if seconds else (one.mb_per_s,) for at, one in enumerate(clients)
    }
    totals = tuple(sum(one) for one in zip(*series.values(), strict=True))
    squares = sum(rate**2 for rate in rates)
    latencies = sum((one.latencies for one in clients), Counter[int]())
    metrics = interval_metrics(series) | {
        "throughput_mb_per_s": sum(rates),
        "tp": fmean(rates),
        "jain_index": sum(rates) ** 2 / (len(rates) * squares),
        "latency_ms_max": max(one.latency_ms_max for one in clients),
    }
    metrics["cv"] = metrics["stdev"] / metrics["tp"]
    if latencies:
        whole = latencies.total()
        metrics["latency_ms_mean"] = sum(ns * count for ns, count in latencies.items()) / whole / 1e6
        metrics |= {name: _percentile(latencies, share) for name, share in _PERCENTILES.items()}
    return metrics, totals


def _percentile(latencies: Counter[int], share: float) -> float:
    """The latency in ms that so large a share of the requests does not exceed."""
    wanted, seen = share * latencies.total(), 0
    for ns in sorted(latencies):
        seen += latencies[ns]
        if seen >= wanted:
            return ns / 1e6
    raise AssertionError("the last bucket has the last request")


def _by_second(log: str) -> tuple[float, ...]:
    """Throughput by second, of all jobs: lines of time in ms, KiB/s, direction, and more."""
    seconds: Counter[int] = Counter()
    for line in log.splitlines():
        fields = line.split(",")
        try:
            seconds[round(int(fields[0]) / 1000)] += int(fields[1])
        except (ValueError, IndexError):
            continue  # fio was cut off at it
    return tuple(seconds[at] * _KIB / 1e6 for at in range(1, max(seconds, default=0) + 1))
