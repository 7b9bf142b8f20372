"""Controllers behind a message server as a system that the daemon can watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.errors import WorkError
from ascar.sharp.deployment.managed_system import ManagedSystem
from ascar.sharp.library.features import WorkloadObservation, workload_features

if TYPE_CHECKING:
    from ascar.sharp.deployment.recording import ControllerTrace


class WatchedSystem(ManagedSystem):
    """The controllers of one workload; features are of what all their clients do together."""

    def observe(self, seconds: float) -> dict[str, float]:
        """The features of what the clients do from now on.

        Raises:
            MessagingError: a controller does not record, or is lost.
            WorkError: they did nothing.
        """
        return features_of_clients(self.record(seconds), len(self.controllers))


def features_of_clients(recorded: ControllerTrace, clients: int) -> dict[str, float]:
    """The features of what so many clients did, as those of the simulated cluster are taken.

    Raises:
        WorkError: they did nothing.
    """
    if len(recorded.operations) + len(recorded.requests) == 0:
        raise WorkError("the clients: did nothing; observe them for longer")
    limit = recorded.dirty_limit_bytes
    seen = WorkloadObservation(
        requests=recorded.requests,
        clients=clients,
        waiting_mean=recorded.waiting_mean,
        dirty_share=recorded.dirty_bytes / limit if limit > 0 else 0.0,
    )
    return workload_features(recorded.operations, seen)
