"""Controllers of a simulated cluster that runs in real or scaled time, one a client."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ascar.errors import InputError, MessagingError
from ascar.messaging import token
from ascar.rules import RuleSet
from ascar.sharp.deployment.controller import ControllerEndpoint
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.deployment.simulated_recorder import Recorder
from ascar.simulation import INDICATORS, Cluster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.messaging import Link
    from ascar.sharp.deployment.recording import ControllerTrace
    from ascar.simulation import Scenario

_SPEED_MAX = 10_000.0


def one_group_a_client(scenario: Scenario) -> Scenario:
    """The same cluster with every client in a group of its own: groups are what rules are put in force on."""
    clients = tuple(
        msgspec.structs.replace(group, count=1) for group in scenario.clients for _ in range(group.count)
    )
    return msgspec.structs.replace(scenario, clients=clients)


class _ClientPlane:
    """The streams of one simulated client."""

    def __init__(self, cluster: Cluster, client: int, turn: asyncio.Lock, recorder: Recorder) -> None:
        self._cluster = cluster
        self._client = client
        self._turn = turn  # between ticks, so that a tick is under the same rules from end to end
        self._recorder = recorder
        self.followed: str | None = None

    async def follow(self, rules: RuleSet | None) -> None:
        text = None if rules is None else rules.bare().text()
        async with self._turn:
            await asyncio.to_thread(self._cluster.deploy, None, self._client)  # streams begin anew
            if await asyncio.to_thread(self._cluster.deploy, text, self._client) == 0:
                raise InputError("this client is a rogue: it follows no rules")
            self.followed = None if rules is None else rules_id(rules)

    async def used(self) -> RuleSet | None:
        async with self._turn:
            text = (await asyncio.to_thread(self._cluster.rules))[self._client]
        return None if text is None else RuleSet.parse(text)

    async def record(self, seconds: float) -> ControllerTrace:
        return await self._recorder.record(self._client, seconds)


class SimulatedControllers:
    """A simulated cluster whose clients have controllers that answer a rule manager.

    Attributes:
        ticks: the number of ticks that have passed.
        late_s: the seconds by which the cluster is behind the speed asked for.
        endpoints: the controllers.

    Args:
        scenario: the scenario, which runs without end.
        link: the connection to the message server.
        speed: virtual seconds in a real one.
        prefix: controllers are called PREFIX-0, PREFIX-1, ...

    Raises:
        InputError: the speed or a name is not allowed.
        ScenarioError: a key of the scenario is out of range.
    """

    def __init__(self, scenario: Scenario, link: Link, speed: float = 1.0, prefix: str = "client") -> None:
        if not 0 < speed <= _SPEED_MAX:
            raise InputError(f"speed = {speed:g}: must be above 0, and at most {_SPEED_MAX:g}")
        token("prefix", prefix)
        self.ticks = 0
        self.late_s = 0.0
        self._tick_s = scenario.tick_s
        self._real_s = scenario.tick_s / speed
        self._servers = scenario.server_count
        self._cluster = Cluster(one_group_a_client(scenario))
        self._turn = asyncio.Lock()
        groups = self._cluster.scenario.clients
        self._recorder = Recorder(self._cluster, self._turn)
        self._planes = [
            _ClientPlane(self._cluster, client, self._turn, self._recorder) for client in range(len(groups))
        ]
        self.endpoints = tuple(
            ControllerEndpoint(link, f"{prefix}-{client}", group.workload, self._planes[client])
            for client, group in enumerate(groups)
        )
        self._link = link

    async def serve(self) -> None:
        """Let the warm-up pass, and listen.

        Raises:
            MessagingError: the link is closed.
        """
        await asyncio.to_thread(self._cluster.warm_up)
        for endpoint in self.endpoints:
            await endpoint.serve()
        await self._link.flush()

    async def run(self, ticks: int | None = None) -> None:
        """Run tick by tick, at the speed asked for or as fast as it goes; a lost server stops nothing.

        Args:
            ticks: the number of ticks; None: without end.
        """
        due_s = time.monotonic()
        try:
            while ticks is None or self.ticks < ticks:
                due_s += self._real_s
                await self._tick()
                late_s = time.monotonic() - due_s
                if late_s > self._real_s:  # too slow a machine: no hurry later for what was missed
                    self.late_s += late_s
                    due_s += late_s
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        finally:
            for endpoint in self.endpoints:
                await endpoint.close()

    async def _tick(self) -> None:
        async with self._turn:
            followed = [one.followed for one in self._planes]
            await asyncio.to_thread(self._cluster.advance)
            seen = self._cluster.observe()
            self._recorder.tick(seen)
            shares = self._shares(seen)
        self.ticks += 1
        for endpoint, share, rules in zip(self.endpoints, shares, followed, strict=True):
            with contextlib.suppress(MessagingError):
                await endpoint.beat(self.ticks, self._tick_s, share, rules)

    def _shares(self, seen: NDArray[np.float64]) -> list[float]:
        """MB/s of each client in the last tick."""
        columns = [INDICATORS.index(name) for name in ("read_mb_per_s", "write_mb_per_s")]
        rates = seen[:, columns].sum(axis=1).reshape(-1, self._servers).sum(axis=1)
        return [float(one) for one in np.round(np.asarray(rates, np.float64), 6).tolist()]
