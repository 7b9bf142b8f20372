"""What redis-benchmark prints of a round, and many rounds taken together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ascar.errors import StageFailed
from ascar.workloads.latencies import SHARES

_POINT = re.compile(r"^[0-9.]+% <= ([0-9.]+) milliseconds \(cumulative count ([0-9]+)\)")
_RATE = re.compile(r"throughput summary: ([0-9.]+|inf) requests per second")
_UNDER_S = 0.0005  # the benchmark counts whole milliseconds, and calls a rate in none of them "inf"
_MEAN = re.compile(r"^ +avg +min +p50")


@dataclass(frozen=True, slots=True)
class BenchmarkRound:
    """What one run of the benchmark told.

    Attributes:
        requests: the requests that were answered.
        busy_s: the time that they took.
        mean_ms: their mean latency.
        points: latencies in ms, ascending, with the number of requests that took at most so long.
    """

    requests: int
    busy_s: float
    mean_ms: float
    points: tuple[tuple[float, int], ...]

    @classmethod
    def read(cls, text: str, requests: int) -> BenchmarkRound:
        """What the benchmark printed.

        Raises:
            StageFailed: it is not what it prints.
        """
        lines = text.replace("\r", "\n").splitlines()
        rate = next((float(found[1]) for line in lines if (found := _RATE.search(line))), 0.0)
        head = next((at for at, line in enumerate(lines) if _MEAN.match(line)), len(lines))
        means = lines[head + 1].split() if head + 1 < len(lines) else []
        points = {float(found[1]): int(found[2]) for line in lines if (found := _POINT.match(line))}
        if rate <= 0 or not means or not points:
            raise StageFailed("load", "redis-benchmark: tells no rate and no latencies", text[-2000:])
        return cls(requests, max(_UNDER_S, requests / rate), float(means[0]), tuple(sorted(points.items())))


@dataclass(slots=True)
class LatencyTally:
    """Latencies of all rounds, as counts: a percentile is never lower than the true one.

    The benchmark tells how many requests took at most so long, at a hundred latencies or so; what lies
    between two of them counts as the greater. They are a tenth of a millisecond apart, and closer at the
    percentiles.
    """

    requests: int = 0
    busy_s: float = 0.0
    weighted_ms: float = 0.0
    counts: dict[float, int] = field(default_factory=dict[float, int])

    def add(self, found: BenchmarkRound) -> None:
        """Add a round."""
        self.requests += found.requests
        self.busy_s += found.busy_s
        self.weighted_ms += found.requests * found.mean_ms
        before = 0
        for latency_ms, upto in found.points:
            if upto > before:
                self.counts[latency_ms] = self.counts.get(latency_ms, 0) + upto - before
                before = upto

    def mean_ms(self) -> float:
        """The mean latency."""
        return self.weighted_ms / self.requests

    def metrics(self) -> dict[str, float]:
        """Rate and percentiles of all requests."""
        ordered = sorted(self.counts.items())
        total = sum(count for _, count in ordered)
        found = {"operations": float(self.requests), "throughput_ops_per_s": self.requests / self.busy_s}
        for name, share in SHARES:
            seen = 0
            for latency_ms, count in ordered:
                seen += count
                if seen >= share * total:
                    found[f"latency_ms_{name}"] = latency_ms
                    break
        return {**found, "latency_ms_max": ordered[-1][0]}
