"""Features of what runs on the simulated cluster: its operations are recorded, and make a trace as any."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import NothingDone
from ascar.sharp.matching.features import WorkloadObservation, workload_features
from ascar.sharp.simulated_traces import trace_of
from ascar.simulation import INDICATORS, Cluster

if TYPE_CHECKING:
    from ascar.simulation import Scenario

OBSERVED_S = 20.0
"""Seconds of a workload that its features are taken from: as long as a signature (section 3.1.6)."""

_WAITING, _DIRTY, _DIRTY_LIMIT = (
    INDICATORS.index(name) for name in ("waiting", "dirty_bytes", "dirty_limit_bytes")
)


def observed_on(cluster: Cluster, seconds: float = OBSERVED_S) -> dict[str, float]:
    """The features of what a cluster does from now on, under the control that is in force.

    Raises:
        NothingDone: it did nothing.
    """
    cluster.warm_up()
    cluster.record()
    try:
        ticks = max(1, round(seconds / cluster.scenario.tick_s))
        streams = np.array([cluster.step() for _ in range(ticks)])
        trace, requests = trace_of(cluster.recorded()), trace_of(cluster.recorded_requests())
    finally:
        cluster.record(0)
    if len(trace) + len(requests) == 0:
        raise NothingDone(
            f"workload {cluster.scenario.name!r}: did nothing in {seconds:g} s; observe it for longer"
        )
    dirty, limit = (float(np.mean(streams[:, :, column])) for column in (_DIRTY, _DIRTY_LIMIT))
    seen = WorkloadObservation(
        requests=requests,
        clients=cluster.scenario.client_count,
        waiting_mean=float(np.mean(streams[:, :, _WAITING])),
        dirty_share=dirty / limit if limit > 0 else 0.0,
    )
    return workload_features(trace, seen)


def observed(scenario: Scenario, seconds: float = OBSERVED_S) -> dict[str, float]:
    """The features of a scenario's workload on the system as it is: no rules, after the warm-up."""
    return observed_on(Cluster(scenario), seconds)
