"""What db_bench prints of its benchmarks, round by round.

    readrandom   :       9.825 micros/op 101296 ops/sec 1.010 seconds 102313 operations;   11.2 MB/s
    Microseconds per read:
    Count: 1000 Average: 9.8240  StdDev: 146.89
    ...
    (       2,       3 ]        8   0.800%   0.800%

RocksDB counts latencies in buckets that are 1.5 times as wide as the one before; a percentile is found
between the ends of its bucket as RocksDB does (HistogramStat::Percentile), and is never above the longest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.workloads.latencies import SHARES

if TYPE_CHECKING:
    from collections.abc import Iterable

_MS = 1e-3
_WHOLE = "([0-9]{1,18})"
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"
_HEAD = re.compile(
    rf"^[a-z0-9]+ +: +{_NUMBER} micros/op {_WHOLE} ops/sec"
    rf"(?: {_NUMBER} seconds {_WHOLE} operations)?;?(?: [^\n]*)?\n",
    re.MULTILINE,
)
_COUNT = re.compile(rf"^Count: {_WHOLE} +Average: {_NUMBER} ", re.MULTILINE)
_MOST = re.compile(rf"^Min: [0-9.]+ +Median: [0-9.]+ +Max: {_NUMBER}$", re.MULTILINE)
_BUCKET = re.compile(rf"^[(\[] *{_NUMBER}, +{_NUMBER} [\])] +{_WHOLE} ", re.MULTILINE)
_SECTION = re.compile(r"^Microseconds per ", re.MULTILINE)


@dataclass(slots=True)
class RoundTally:
    """Latencies of operations, in microseconds.

    Attributes:
        buckets: the number of operations by the ends of their bucket.
        weighted_us: the sum of all latencies.
        most_us: the longest one.
    """

    buckets: dict[tuple[float, float], int] = field(default_factory=dict[tuple[float, float], int])
    weighted_us: float = 0.0
    most_us: float = 0.0

    def add(self, text: str) -> None:
        """Add the histograms of a round, of reads and of writes; one that is cut off is left out."""
        for section in _SECTION.split(text)[1:]:
            head, most = _COUNT.search(section), _MOST.search(section)
            found = [((float(low), float(high)), int(count)) for low, high, count in _BUCKET.findall(section)]
            if head is None or most is None or sum(count for _, count in found) != int(head[1]):
                continue
            for ends, count in found:
                self.buckets[ends] = self.buckets.get(ends, 0) + count
            self.weighted_us += int(head[1]) * float(head[2])
            self.most_us = max(self.most_us, float(most[1]))

    def metrics(self) -> dict[str, float]:
        """Mean, percentiles and the longest latency, in ms; nothing where there were no histograms."""
        count = sum(self.buckets.values())
        if not count:
            return {}
        found = {f"latency_ms_{name}": self._quantile(share * count) * _MS for name, share in SHARES}
        mean = {"latency_ms_mean": self.weighted_us / count * _MS}
        return {**mean, **found, "latency_ms_max": self.most_us * _MS}

    def _quantile(self, wanted: float) -> float:
        seen = 0
        for (low, high), count in sorted(self.buckets.items()):
            if seen + count >= wanted:
                return min(low + (high - low) * (wanted - seen) / count, self.most_us)
            seen += count
        return self.most_us


@dataclass(frozen=True, slots=True)
class BenchRound:
    """One benchmark of one process.

    Attributes:
        mean_ms: the mean latency.
        rate: the operations a second.
        seconds: its run time.
        operations: the operations.
        text: what was printed of it.
    """

    mean_ms: float
    rate: float
    seconds: float
    operations: float
    text: str


def rounds_of(text: str, asked_s: float) -> list[BenchRound]:
    """The rounds of an output; those without an operation are left out, for they tell no rate.

    Args:
        text: what db_bench printed until now.
        asked_s: the length that was asked for, which versions that print none are taken to have kept.
    """
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = (_round(head, text[head.end() : end], asked_s) for head, end in zip(heads, ends, strict=False))
    return [one for one in found if one is not None]


def _round(head: re.Match[str], text: str, asked_s: float) -> BenchRound | None:
    mean_us, rate = float(head[1]), float(head[2])
    seconds = asked_s if head[3] is None else float(head[3])
    operations = rate * seconds if head[4] is None else float(head[4])
    if seconds <= 0 or operations <= 0:
        return None
    return BenchRound(mean_us * _MS, operations / seconds, seconds, operations, text)


def tally_of(rounds: Iterable[BenchRound]) -> RoundTally:
    """The latencies of rounds."""
    tally = RoundTally()
    for one in rounds:
        tally.add(one.text)
    return tally
