"""The whole of a scenario."""

from __future__ import annotations

import msgspec

from ascar.simulation.scenario.clients import ClientGroup  # noqa: TC001  # msgspec reads the annotations
from ascar.simulation.scenario.control import Control
from ascar.simulation.scenario.failures import Failure, Noise
from ascar.simulation.scenario.network import Network
from ascar.simulation.scenario.servers import Locks, Metadata, ServerGroup, Striping
from ascar.simulation.scenario.workloads import Workload  # noqa: TC001


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A cluster, what it is asked to do, and for how long.

    Attributes:
        name: for reports.
        clients: in groups of alike ones.
        workloads: what clients do; a client group names one.
        description: one line for readers.
        seed: of every random draw.
        warmup_s: virtual seconds that run before anything is counted.
        duration_s: virtual seconds that are counted.
        tick_s: length of a tick, the grain of all series.
        record_streams: keep a series of each stream (a client and a server); otherwise one a client and one
            in total.
        servers: the storage servers, in groups of alike ones.
        metadata: the metadata server.
        network: links and switch.
        striping: how files are divided among servers.
        locks: on files that several clients share.
        control: of the streams of every client group that has none of its own.
        failures: what goes wrong, and when.
        noise: background.
    """

    name: str
    clients: tuple[ClientGroup, ...]
    workloads: tuple[Workload, ...]
    description: str = ""
    seed: int = 1
    warmup_s: float = 2.0
    duration_s: float = 30.0
    tick_s: float = 1.0
    record_streams: bool = False
    servers: tuple[ServerGroup, ...] = (ServerGroup(count=4),)
    metadata: Metadata = Metadata()
    network: Network = Network()
    striping: Striping = Striping()
    locks: Locks = Locks()
    control: Control = Control()
    failures: tuple[Failure, ...] = ()
    noise: Noise = Noise()

    @property
    def client_count(self) -> int:
        """Clients of all groups."""
        return sum(group.count for group in self.clients)

    @property
    def server_count(self) -> int:
        """Storage servers of all groups."""
        return sum(group.count for group in self.servers)

    @property
    def controls(self) -> tuple[Control, ...]:
        """The scenario's control, and those that client groups have of their own."""
        own = (group.control for group in self.clients)
        return (self.control, *(control for control in own if control is not None))

    def to_json(self) -> str:
        """The form that the simulator reads; it has the same defaults."""
        return msgspec.json.encode(self).decode("utf-8")
