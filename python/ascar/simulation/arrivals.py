"""Work that arrives at a share of what a cluster can do, whether or not the work before has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ascar.errors import ScenarioError
from ascar.simulation.batch import run_many, seeded
from ascar.simulation.reading import check

if TYPE_CHECKING:
    from ascar.simulation.scenario import Scenario

SHARE_MAX = 10.0
"""More than this multiple of the capacity tells nothing more."""


def with_arrivals(scenario: Scenario, share: float, *, runs: int = 1) -> Scenario:
    """The scenario with passes of all threads arriving at a share of its capacity.

    The capacity is what the threads do in a closed loop, under the scenario's own control.

    Args:
        scenario: a closed loop.
        share: of the capacity; above 1 more arrives than can be done.
        runs: how many runs with seeds of their own the capacity is the mean of.

    Raises:
        ScenarioError: the share is out of its bounds, the scenario has arrivals already, or nothing was done.
    """
    if not 0 < share <= SHARE_MAX:
        raise ScenarioError(f"arrivals = {share!r}: must be above 0 and at most {SHARE_MAX:g}")
    if scenario.is_open:
        raise ScenarioError(
            "workloads.threads.rate_per_s: is set already; leave it out to measure the capacity"
        )
    outcomes = run_many(seeded(scenario, runs))
    clients = {load.name: 0 for load in scenario.workloads}
    for group in scenario.clients:
        clients[group.workload] += group.count
    loads = []
    for number, load in enumerate(scenario.workloads):
        threads = []
        for place, group in enumerate(load.threads):
            passes = sum(
                one.passes
                for outcome in outcomes
                for one in outcome.groups
                if one.threads == place and scenario.clients[one.clients].workload == load.name
            )
            virtual_s = sum(one.virtual_seconds for one in outcomes)
            rate_per_s = share * passes / virtual_s / max(clients[load.name], 1)
            if clients[load.name] and not passes:
                raise ScenarioError(
                    f"workloads[{number}].threads[{place}]: ends no pass within {virtual_s:g} s; run longer"
                )
            threads.append(msgspec.structs.replace(group, rate_per_s=rate_per_s or None))
        loads.append(msgspec.structs.replace(load, threads=tuple(threads)))
    opened = msgspec.structs.replace(scenario, workloads=tuple(loads))
    check(opened)
    return opened
