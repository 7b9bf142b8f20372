"""Overfitting (Li et al., Fig. 4): a learner of one session in later ones, without further training.

    python -m benchmarks.capes_cluster_sessions --budget 10min

An hour of learning on the cluster as it is. Then the learner is frozen: it learns nothing more and tries
nothing. It runs ten minutes of the first session's kind with another seed, and three later sessions with
files at other places of the disks, fragmented, on fuller disks. Each against the default on the same seed,
and beside the static setting that is best in that session (of a grid, chosen on other seeds).
"""

from __future__ import annotations

import os
from operator import itemgetter
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

from ascar.capes.environments.cluster import ClusterSystem
from ascar.simulation import with_settings

from . import capes_cluster_runs as runs
from .harness import Piece, mean, percent, present, share_of, signed, table

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAINING_TICKS, TICKS, SEEDS = 3_600, 600, 8
SESSIONS: dict[str, tuple[str, ...]] = {
    "first": (),
    "further inside": ("servers.layout.start_percent=40", "servers.layout.used_percent=90"),
    "fragmented": (
        "servers.layout.fragmentation_percent=30",
        "servers.layout.extent_kib=16384",
        "servers.layout.spread_percent=30",
    ),
    "full and fragmented": (
        "servers.layout.start_percent=65",
        "servers.layout.fragmentation_percent=50",
        "servers.layout.extent_kib=8192",
        "servers.layout.used_percent=97",
    ),
}


def main() -> None:
    """Run what has no result yet, and print tables."""
    benchmark = runs.benchmark_of(__doc__ or "", "10min")
    found = benchmark.run(list(_pieces()))
    own = {name: present(found, (f"{name}/{seed}" for seed in range(SEEDS))) for name in runs.GAINFUL}
    print(f"\nGain over the default, {TICKS} ticks of each session, learner frozen\n")
    rows = [
        [name, str(len(seeds)), *(_gains(seeds, session) for session in SESSIONS)]
        for name, seeds in own.items()
        if seeds
    ]
    table(("workload", "seeds", *SESSIONS), rows)
    print("\nGain of the static setting that is best there; share of it that the frozen learner has\n")
    rows = [
        [name, *(_possible(seeds, session) for session in SESSIONS)] for name, seeds in own.items() if seeds
    ]
    table(("workload", *SESSIONS), rows)


def _gained(seeds: list[dict[str, Any]], session: str, column: int) -> list[float]:
    return [one[session][column] / one[session][0] - 1 for one in seeds]


def _gains(seeds: list[dict[str, Any]], session: str) -> str:
    gains = _gained(seeds, session, 1)
    return f"{signed(mean(gains))}, {min(gains):+.1%} to {max(gains):+.1%}"


def _possible(seeds: list[dict[str, Any]], session: str) -> str:
    learnt, static = (_gained(seeds, session, column) for column in (1, 2))
    return f"{signed(mean(static))}; {percent(share_of(learnt, static), 0)}"


def _pieces() -> Iterator[Piece]:
    for seed in range(SEEDS):
        for name in runs.GAINFUL:
            yield Piece(f"{name}/{seed}", lambda name=name, seed=seed: _sessions(name, seed))


def _sessions(name: str, seed: int) -> dict[str, Any]:
    training = runs.system_of(name, runs.FRESH + seed)
    learner = runs.learner(training, runs.FRESH + seed)
    runs.followed(training, learner, TRAINING_TICKS)
    learner.freeze()
    found: dict[str, Any] = {"setting": learner.surface.best()}
    for number, (session, settings) in enumerate(SESSIONS.items(), start=1):
        scenario = with_settings(runs.scenario_of(name), list(settings))
        window, tau_us, _ = max(runs.grid(name, settings=settings)["points"], key=itemgetter(2))
        own = runs.FRESH + 1_000 * number + seed
        found[session] = [
            float(runs.followed(ClusterSystem([scenario], own), policy, TICKS).mb_per_s.mean())
            for policy in (runs.DEFAULT, learner, (window, tau_us))
        ]
    return found


if __name__ == "__main__":
    main()
