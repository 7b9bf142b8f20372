"""What a server's own clients get, between two moments of its cumulative statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

THROUGHPUT, LATENCY = "throughput_ops_per_s", "latency_ms_mean"

S_co = TypeVar("S_co", covariant=True)


class LiveSession(Protocol):
    """A connection to a server, which may be lost."""

    @property
    def is_open(self) -> bool:
        """Whether the connection has not been lost."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True, slots=True)
class ActivityTotals:
    """Cumulative statistics at a moment.

    Attributes:
        read_s: the moment, monotonic.
        counted_s: the moment up to which operations are counted, monotonic.
        operations: what clients have had done, our own left out.
        statements: by class, the number of statements and the milliseconds that they took; "" is no class.
        probes: by metric, the number of our own requests and the milliseconds that they took.
        amounts: by metric, totals whose growth a second it is.
    """

    read_s: float
    counted_s: float
    operations: float
    statements: Mapping[str, tuple[float, float]]
    probes: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    amounts: Mapping[str, float] = field(default_factory=dict[str, float])

    def since(self, before: ActivityTotals) -> dict[str, float]:
        """The metrics between two moments; of what did not happen, none.

        Totals that are less than before were reset meanwhile, so that they tell nothing.
        """
        seconds = self.counted_s - before.counted_s
        found: dict[str, float] = {}
        if seconds > 0 and self.operations >= before.operations:
            found[THROUGHPUT] = (self.operations - before.operations) / seconds
            for metric, amount in self.amounts.items():
                found[metric] = max(0.0, amount - before.amounts.get(metric, 0.0)) / seconds
        all_calls = all_ms = 0.0
        for kind, now in self.statements.items():
            calls, spent_ms = _grown(now, before.statements.get(kind))
            if calls > 0 and spent_ms >= 0:  # less than before: entries were evicted
                if kind:
                    found[class_metric(kind)] = spent_ms / calls
                all_calls, all_ms = all_calls + calls, all_ms + spent_ms
        if all_calls > 0:
            found[LATENCY] = all_ms / all_calls
        for metric, now in self.probes.items():
            count, spent_ms = _grown(now, before.probes.get(metric))
            if count > 0:
                found[metric] = spent_ms / count
        return found

    def began(self, before: ActivityTotals, begun: ActivityTotals) -> ActivityTotals:
        """A beginning to which these totals compare, although somebody reset the statistics meanwhile.

        What was between `begun` and `before` is between it and these; what happened between `before` and
        these, in which the reset was, is left out.

        Args:
            before: the last totals before the reset.
            begun: the beginning up to then.
        """
        return replace(
            self,
            counted_s=self.counted_s - (before.counted_s - begun.counted_s),
            operations=self.operations - (before.operations - begun.operations),
            statements=_moved(self.statements, before.statements, begun.statements),
            probes=_moved(self.probes, before.probes, begun.probes),
            amounts={
                metric: amount - (before.amounts.get(metric, 0.0) - begun.amounts.get(metric, 0.0))
                for metric, amount in self.amounts.items()
            },
        )


class ActivityReader(Protocol):
    """Reads the statistics."""

    @property
    def tells_s(self) -> float:
        """Seconds after which a client that works is in the statistics: readings are no shorter."""
        ...

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """The statistics now.

        Raises:
            StageFailed: the server does not answer.
        """
        ...


class LiveActivity(ActivityReader, Protocol[S_co]):
    """Reads the statistics of a server."""

    @property
    def session(self) -> S_co:
        """The session that it reads by."""
        ...


def class_metric(kind: str) -> str:
    """The metric of a class's mean latency."""
    return f"{LATENCY}_{kind}"


def _moved(
    now: Mapping[str, tuple[float, float]],
    before: Mapping[str, tuple[float, float]],
    begun: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    found = dict[str, tuple[float, float]]()
    for name in {*now, *before}:
        count, spent = _grown(before.get(name, (0.0, 0.0)), begun.get(name))
        found[name] = _grown(now.get(name, (0.0, 0.0)), (count, spent))
    return found


def _grown(now: tuple[float, float], before: tuple[float, float] | None) -> tuple[float, float]:
    old = before or (0.0, 0.0)
    return now[0] - old[0], now[1] - old[1]
