"""Many runs at once: scenarios, or one scenario with many seeds, on all cores."""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ascar.errors import InputError
from ascar.simulation.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.results.cluster import ClusterOutcome
    from ascar.simulation.scenario import Scenario

_LISTEN_S = 0.1
_SEEDS_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far a batch has come.

    Attributes:
        done: runs that have ended.
        wanted: runs in all.
        share: the share of the virtual time that is over, from 0 to 1.
    """

    done: int
    wanted: int
    share: float


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def seeded(scenario: Scenario, seeds: int) -> list[Scenario]:
    """The scenario with so many seeds, beginning with its own.

    Raises:
        InputError: `seeds` is below 1 or far too large.
    """
    if not 1 <= seeds <= _SEEDS_MAX:
        raise InputError(f"seeds = {seeds}: must be from 1 to {_SEEDS_MAX}")
    return [msgspec.structs.replace(scenario, seed=scenario.seed + index) for index in range(seeds)]


def run_many(
    scenarios: Sequence[Scenario],
    *,
    threads: int | None = None,
    listener: Callable[[BatchProgress], None] | None = None,
) -> list[ClusterOutcome]:
    """Run every scenario to its end, several at a time; what one brings does not depend on the others.

    An interrupt ends all of them within a tick.

    Args:
        scenarios: the scenarios to run.
        threads: the number of scenarios to run at a time; None: one a core.
        listener: told now and then how far it has come.

    Returns:
        An outcome a scenario, in the same order.

    Raises:
        ScenarioError: a key of one of them is out of range.
        InputError: `threads` is below 1.
    """
    workers = cores() if threads is None else threads
    if workers < 1:
        raise InputError(f"threads = {workers}: must be 1 or more")
    shares = [0.0] * len(scenarios)
    ended = threading.Event()

    def run(index: int) -> ClusterOutcome | None:
        cluster = Cluster(scenarios[index])
        whole_s = scenarios[index].warmup_s + scenarios[index].duration_s
        while not (cluster.finished or ended.is_set()):
            cluster.advance()
            shares[index] = min(1.0, cluster.time_s / whole_s)
        return None if ended.is_set() else cluster.outcome()

    with ThreadPoolExecutor(min(workers, max(1, len(scenarios)))) as pool:
        try:  # also while they begin: an interrupt there must not leave one that runs to its end
            futures = [pool.submit(run, index) for index in range(len(scenarios))]
            left = set(futures)
            while left:
                done, left = wait(left, timeout=_LISTEN_S, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()  # the first error ends the rest
                if listener is not None:
                    wanted = len(scenarios)
                    listener(BatchProgress(wanted - len(left), wanted, sum(shares) / wanted))
        except BaseException:
            ended.set()
            pool.shutdown(cancel_futures=True)
            raise
        outcomes = [future.result() for future in futures]
    return [outcome for outcome in outcomes if outcome is not None]
