"""What single clients of a simulated cluster do, written down while it runs tick by tick."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.sharp.deployment.recording import ControllerTrace
from ascar.sharp.simulated_traces import trace_of
from ascar.simulation import INDICATORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.features import Trace
    from ascar.simulation import Cluster

_KEPT_MAX = 1_000_000  # operations of the whole cluster, then it is over
_WAITING, _DIRTY, _DIRTY_LIMIT = (
    INDICATORS.index(name) for name in ("waiting", "dirty_bytes", "dirty_limit_bytes")
)


@dataclass(slots=True)
class _Wish:
    """A recording that is under way.

    Attributes:
        ticks: the number of ticks still to come.
        begun_s: virtual.
        seen: observations of the client's streams, one a tick.
        over: set at the end.
    """

    ticks: int
    begun_s: float
    seen: list[NDArray[np.float64]] = field(default_factory=list["NDArray[np.float64]"])
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Recorder:
    """The cluster's recording, shared by all clients that want one.

    Args:
        cluster: the cluster, whose client groups must have one client each.
        turn: held while a tick passes.
    """

    def __init__(self, cluster: Cluster, turn: asyncio.Lock) -> None:
        self._cluster = cluster
        self._turn = turn
        self._wishes: dict[int, list[_Wish]] = {}
        self._first_thread = _first_threads(cluster)

    async def record(self, client: int, seconds: float) -> ControllerTrace:
        """What a client does in the next virtual seconds, in whole ticks."""
        scenario = self._cluster.scenario
        async with self._turn:
            if not any(self._wishes.values()):
                self._cluster.record(_KEPT_MAX)
            wish = _Wish(max(1, math.ceil(seconds / scenario.tick_s)), self._cluster.time_s)
            self._wishes.setdefault(client, []).append(wish)
        try:
            await wish.over.wait()
            async with self._turn:
                return self._recorded(client, wish)
        finally:
            async with self._turn:
                self._wishes[client].remove(wish)
                if not any(self._wishes.values()):
                    self._cluster.record(0)

    def tick(self, seen: NDArray[np.float64]) -> None:
        """A tick has passed.

        Args:
            seen: (streams, indicators), at its end.
        """
        servers = self._cluster.scenario.server_count
        for client, wishes in self._wishes.items():
            for wish in wishes:
                if wish.ticks:
                    wish.ticks -= 1
                    wish.seen.append(seen[client * servers : (client + 1) * servers])
                    if not wish.ticks:
                        wish.over.set()

    def _recorded(self, client: int, wish: _Wish) -> ControllerTrace:
        scenario = self._cluster.scenario
        servers = scenario.server_count
        streams = np.array(wish.seen)
        operations, requests = self._cluster.recorded(), self._cluster.recorded_requests()
        end_s = min(
            (float(one.seconds[-1]) for one in (operations, requests) if len(one.seconds) >= _KEPT_MAX),
            default=wish.begun_s + len(wish.seen) * scenario.tick_s,
        )
        return ControllerTrace(
            _between(
                trace_of(operations),
                (self._first_thread[client], self._first_thread[client + 1]),
                (wish.begun_s, end_s),
            ),
            _between(
                trace_of(requests),
                (client * servers, (client + 1) * servers),
                (wish.begun_s, end_s),
            ),
            wish.begun_s,
            end_s,
            float(streams[:, :, _WAITING].mean()),
            float(streams[:, :, _DIRTY].mean()),
            float(streams[:, :, _DIRTY_LIMIT].mean()),
        )


def _between(trace: Trace, threads: tuple[int, int], span_s: tuple[float, float]) -> Trace:
    """Operations of threads from the first one to before the other, that began in the span."""
    own = (trace.thread >= threads[0]) & (trace.thread < threads[1])
    return trace.where(own).between(*span_s)


def _first_threads(cluster: Cluster) -> list[int]:
    """The number of each client's first thread, and one more for the end."""
    scenario = cluster.scenario
    threads = {one.name: sum(part.instances for part in one.threads) for one in scenario.workloads}
    counts = [threads[group.workload] for group in scenario.clients]
    return [0, *np.cumsum(counts).tolist()]
