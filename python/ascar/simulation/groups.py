"""Threads that are alike, on all clients of a group: their names, what they get, and shares of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.cluster import ClusterOutcome
    from ascar.simulation.scenario import Scenario


def group_names(scenario: Scenario) -> tuple[str, ...]:
    """Names for people, in the order of an outcome's `groups`, e.g. "readers", or "web, threads 2".

    A workload that several client groups run has the number of the group, too: "web, clients 3".
    """
    loads = {one.name: one for one in scenario.workloads}
    users = Counter(group.workload for group in scenario.clients)
    names: list[str] = []
    for number, group in enumerate(scenario.clients, start=1):
        threads = loads[group.workload].threads
        name = group.workload if users[group.workload] == 1 else f"{group.workload}, clients {number}"
        names += [name if len(threads) == 1 else f"{name}, threads {at + 1}" for at in range(len(threads))]
    return tuple(names)


def group_rates(outcome: ClusterOutcome) -> tuple[float, ...]:
    """What each group gets: MB/s of file data, or operations a second where its steps move none."""
    return tuple(
        one.read_mb_per_s + one.write_mb_per_s if one.moves_data else one.operations / outcome.virtual_seconds
        for one in outcome.groups
    )


def client_rates(outcome: ClusterOutcome) -> tuple[float, ...]:
    """The mean throughput of each client, in MB/s."""
    return tuple(sum(series) / max(len(series), 1) for series in outcome.clients_mb_per_s)


class Rates(NamedTuple):
    """What a run brings to those that share the cluster.

    Attributes:
        groups: to each group of threads.
        clients: to each client, in MB/s.
        metadata: to each client, in operations on metadata a second.
    """

    groups: tuple[float, ...]
    clients: tuple[float, ...]
    metadata: tuple[float, ...]


def rates_of(outcome: ClusterOutcome) -> Rates:
    """The rates of a run."""
    return Rates(group_rates(outcome), client_rates(outcome), outcome.clients_metadata_per_s)


def shares_of(rates: Rates, reference: Rates) -> dict[str, float]:
    """A run as a share of another of the same scenario: the worst group, the worst client, the whole.

    Of a client that moves no file data in the reference its operations on metadata count, and of the whole
    where no client does.
    """
    clients = (
        (rates.clients[at], data) if data > 0 else (rates.metadata[at], reference.metadata[at])
        for at, data in enumerate(reference.clients)
    )
    own, other = zip(*clients, strict=True)
    moves_data = any(reference.clients)
    total = sum(reference.clients if moves_data else reference.metadata)
    share = sum(rates.clients if moves_data else rates.metadata) / total if total > 0 else 1.0
    return {
        "group_share_min": least_share(rates.groups, reference.groups),
        "client_share_min": least_share(own, other),
        "throughput_share": share,
        "throughput_loss": max(0.0, 1.0 - share),
    }


def least_share(rates: Sequence[float], reference: Sequence[float]) -> float:
    """The least of the shares that `rates` are of what others got; 1 where they got nothing."""
    return min((own / other for own, other in zip(rates, reference, strict=True) if other > 0), default=1.0)
