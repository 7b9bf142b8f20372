"""Ten and fourteen knobs at once on the simulated cluster, indicators of the servers included.

    python -m benchmarks.capes_cluster_knobs --budget 10min

The modern learner, an hour from the default on, with two knobs (one window, one gap for all), with ten (a
window and a gap for each of the five clients), and with fourteen (these, and slots, depth, starvation of
writes and batch of the servers' queues; what the servers measure is seen, too). Beside it the default and the
best static setting of two knobs, on the same seeds. Besides the workloads of Li et al. a mixed one: three
clients of 1-9, two that write in sequence.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import msgspec

from ascar.capes.environments.cluster import ClusterSystem
from ascar.capes.environments.cluster_parameters import ClusterParameters

from . import capes_cluster_runs as runs
from .harness import Benchmark, Piece, mean, signed, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.simulation import Scenario

WORKLOADS = ("1-9", "1-4", "fileserver", "sequential-write", "mixed")
TICKS, SEEDS = 3_600, 5
AFTER = (600, 1_200, 3_600)
KNOBS = ("2", "10", "14")
_BEST = {"mixed": "1-9"}
"""Whose best static setting of two knobs is used where there is no grid."""


def main() -> None:
    """Run what has no result yet, and print a table."""
    benchmark = runs.benchmark_of(__doc__ or "", "10min")
    found = benchmark.run(list(_pieces(benchmark)))
    print("\nGain over the default, paired seeds; after N ticks: the last 300 of them\n")
    rows: list[list[str]] = []
    for name in WORKLOADS:
        for who in ("static", *KNOBS):
            keys = [(f"{name}/default/{seed}", f"{name}/{who}/{seed}") for seed in range(SEEDS)]
            pairs = [(found[one], found[two]) for one, two in keys if one in found and two in found]
            if not pairs:
                continue
            gains = [
                mean([own["after"][at] / default["after"][at] - 1 for default, own in pairs])
                for at in range(len(AFTER))
            ]
            whole = mean([own["from_300"] / default["from_300"] - 1 for default, own in pairs])
            label = "best static of 2" if who == "static" else f"learner, {who} knobs"
            lows = sum(own["low_minutes"] for _, own in pairs)
            cells = [signed(one) for one in (*gains, whole)]
            rows.append([name, label, str(len(pairs)), *cells, str(lows)])
    heads = ("workload", "setting", "seeds", *(f"after {one:,}" for one in AFTER), "from tick 300 on")
    table((*heads, "minutes below 90%"), rows)


def _pieces(benchmark: Benchmark) -> Iterator[Piece]:
    for name in dict.fromkeys(_BEST.get(one, one) for one in WORKLOADS):
        yield Piece(f"grid/{name}", lambda name=name: runs.grid(name))
    for seed in range(SEEDS):
        for name in WORKLOADS:
            for who in ("default", "static", *KNOBS):
                yield Piece(
                    f"{name}/{who}/{seed}",
                    lambda name=name, who=who, seed=seed: _run(benchmark, name, who, seed),
                )


def _run(benchmark: Benchmark, name: str, who: str, seed: int) -> dict[str, Any]:
    scenario = _mixed() if name == "mixed" else runs.scenario_of(name)
    handles = ClusterParameters.shared(scenario)
    if who in ("10", "14"):
        handles = ClusterParameters.per_client(scenario)
    if who == "14":
        handles = handles.with_queue()
    system = ClusterSystem([scenario], runs.FRESH + seed, handles=handles)
    if who == "default":
        policy = runs.DEFAULT
    elif who == "static":
        policy = runs.best_static(benchmark, [_BEST.get(name, name)])
    else:
        policy = runs.learner(system, runs.FRESH + seed)
    course = runs.followed(system, policy, TICKS)
    ticks = course.mb_per_s
    return {
        "after": [course.last(end) for end in AFTER],
        "from_300": float(ticks[300:].mean()),
        # Against the mean of its own first ticks, before anything is tried.
        "low_minutes": int((ticks.reshape(-1, 60).mean(1) < 0.9 * ticks[:16].mean()).sum()),
    }


def _mixed() -> Scenario:
    """Three clients of 1-9, two of sequential-write."""
    random, sequential = (runs.scenario_of(one) for one in ("1-9", "sequential-write"))
    clients = (
        msgspec.structs.replace(random.clients[0], count=3),
        msgspec.structs.replace(sequential.clients[0], count=2),
    )
    workloads = (*random.workloads, *sequential.workloads)
    return msgspec.structs.replace(random, name="mixed", clients=clients, workloads=workloads)


if __name__ == "__main__":
    main()
