"""Controllers behind a message server as a system that the daemon can watch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ascar.errors import NothingDone
from ascar.sharp.deployment.managed_system import ManagedSystem, trial_length_s
from ascar.sharp.matching.features import WorkloadObservation, workload_features
from ascar.sharp.matching.simulated_system import SimulatedClusterSystem

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from ascar.sharp.deployment.recording import ControllerTrace
    from ascar.sharp.matching.rule_watcher import WatchOptions
    from ascar.sharp.matching.simulated_system import WatchableSystem
    from ascar.simulation import Scenario


@contextmanager
def watched(
    scenario: Scenario | None, workload: str | None, connection: Path | None, pace: WatchOptions
) -> Generator[WatchableSystem]:
    """The system that the daemon watches; at the end rules on trial are removed.

    Args:
        scenario: a simulated cluster of its own; None: the controllers behind a message server.
        workload: the workload of the controllers; None: all controllers.
        connection: the connection file; None: ASCAR_NATS_URL, or the message server of this machine.
        pace: the pace of the watch.

    Raises:
        MessagingError: there is no connection, or no controller.
    """
    if scenario is not None:
        yield SimulatedClusterSystem(scenario)
        return
    trial_s = trial_length_s(pace.settle_s, pace.measure_s)
    with WatchedSystem.connected(workload, connection, trial_s=trial_s) as system:
        yield system


class WatchedSystem(ManagedSystem):
    """The controllers of one workload; features are of what all their clients do together."""

    def observe(self, seconds: float) -> dict[str, float]:
        """The features of what the clients do from now on.

        Raises:
            MessagingError: a controller does not record, or is lost.
            NothingDone: they did nothing.
        """
        return features_of_clients(self.record(seconds), len(self.controllers))


def features_of_clients(recorded: ControllerTrace, clients: int) -> dict[str, float]:
    """The features of what so many clients did, as those of the simulated cluster are taken.

    Raises:
        NothingDone: they did nothing.
    """
    if len(recorded.operations) + len(recorded.requests) == 0:
        raise NothingDone("the clients did nothing; observe them for longer")
    limit = recorded.dirty_limit_bytes
    seen = WorkloadObservation(
        requests=recorded.requests,
        clients=clients,
        waiting_mean=recorded.waiting_mean,
        dirty_share=recorded.dirty_bytes / limit if limit > 0 else 0.0,
    )
    return workload_features(recorded.operations, seen)
