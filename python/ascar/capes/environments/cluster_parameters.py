"""The knobs of a simulated cluster, and how a setting is put in force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ascar.capes.axes import Axis
from ascar.simulation.scenario import Queue

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.capes.axes import Setting
    from ascar.simulation import Cluster, Scenario

CLUSTER_KNOBS: Final = (
    Axis("window", 8, 1, 256, 1, logarithmic=True),
    Axis("tau_us", 0, 0, 200_000, 1_000, logarithmic=True),
)
"""max_rpcs_in_flight, and the least gap between requests; as a Lustre client has them at first."""

QUEUE_KNOBS: Final = (
    Axis("slots", 128, 8, 1_024, 1, logarithmic=True),
    Axis("device_depth", 31, 1, 64, 1, logarithmic=True),
    Axis("writes_starved", 2, 0, 16, 1, logarithmic=True),
    Axis("batch", 1, 1, 64, 1, logarithmic=True),
)
"""Of the request queues of all servers; they begin where a scenario has them by default."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterParameters:
    """Knobs of a cluster.

    Attributes:
        knobs: the knobs that a learner sets.
        windows: int (streams,), the knob that sets each stream's window.
        taus: int (streams,), the knob that sets each stream's gap.
        queue: whether the last four knobs are those of the servers' queues, and servers are seen, too.
    """

    knobs: tuple[Axis, ...]
    windows: NDArray[np.intp]
    taus: NDArray[np.intp]
    queue: bool = False

    @classmethod
    def shared(cls, scenario: Scenario) -> ClusterParameters:
        """One window and one gap for all streams."""
        streams = scenario.client_count * scenario.server_count
        return cls(CLUSTER_KNOBS, np.zeros(streams, np.intp), np.ones(streams, np.intp))

    @classmethod
    def per_client(cls, scenario: Scenario) -> ClusterParameters:
        """A window and a gap for each client."""
        clients = scenario.client_count
        knobs = [
            replace(knob, name=f"{knob.name}_{client}", group=knob.name)
            for knob in CLUSTER_KNOBS
            for client in range(clients)
        ]
        windows = np.repeat(np.arange(clients), scenario.server_count)
        return cls(tuple(knobs), windows, windows + clients)

    def with_queue(self) -> ClusterParameters:
        """The same, and four knobs of the servers' queues; servers are seen."""
        return replace(self, knobs=(*self.knobs, *QUEUE_KNOBS), queue=True)

    def apply(self, cluster: Cluster, setting: Setting) -> None:
        """Put a setting in force.

        Raises:
            InputError: a value is out of range.
        """
        values = np.asarray(setting, float)
        cluster.set(window=values[self.windows], tau_us=values[self.taus])
        if self.queue:
            slots, device_depth, writes_starved, batch = (round(one) for one in setting[-len(QUEUE_KNOBS) :])
            cluster.turn_queues(
                Queue(slots=slots, device_depth=device_depth, writes_starved=writes_starved, batch=batch)
            )
