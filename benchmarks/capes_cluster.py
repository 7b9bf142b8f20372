"""The modern learner on the simulated cluster: gain, share of the best static setting, cost of learning.

    python -m benchmarks.capes_cluster --budget 20min

The seven workloads of Li et al., section 4.3, an hour each, 24 seeds: the default, the best static setting
(of a grid, chosen on other seeds), the learner from the default on, all on the same seeds. Then four
workloads by turns, ten minutes each, for two hours: announced by name or not. Then 24 hours. Results are
kept; the same command goes on (`--only run/`, `turns/`, `day/` for a part).
"""

from __future__ import annotations

import os
from statistics import median
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

from ascar.capes.environments.cluster import ClusterSystem
from ascar.capes.modern.learner import Modern

from . import capes_cluster_runs as runs
from .harness import Benchmark, Piece, mean, percent, present, share_of, signed, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

TURNS = ("1-9", "9-1", "fileserver", "sequential-write")
TICKS, TURN_TICKS, TURNS_TICKS, SEEDS = 3_600, 600, 7_200, 24
DAY_TICKS, DAY_SEEDS = 86_400, 3
AFTER = (600, 1_200, 3_600)
DAY_AFTER = ((600, 300), (3_600, 300), (43_200, 3_600), (86_400, 3_600))
"""After how many ticks, and over how many the mean is taken."""
MINUTE, LOW = 60, 0.9


def main() -> None:
    """Run what has no result yet, and print tables."""
    benchmark = runs.benchmark_of(__doc__ or "", "20min")
    found = benchmark.run(list(_pieces(benchmark)))
    _single(found)
    _turning(found)
    _day(found)


def _pieces(benchmark: Benchmark) -> Iterator[Piece]:
    for name in runs.WORKLOADS:
        yield Piece(f"grid/{name}", lambda name=name: runs.grid(name))
    for seed in range(SEEDS):
        for name in runs.WORKLOADS:
            yield Piece(f"run/{name}/{seed}", lambda name=name, seed=seed: _runs(benchmark, name, seed))
    for seed in range(SEEDS):
        yield Piece(f"turns/{seed}", lambda seed=seed: _turns(benchmark, seed))
    for seed in range(DAY_SEEDS):
        for name in (*runs.PUBLISHED, *(one for one in runs.WORKLOADS if one not in runs.PUBLISHED)):
            yield Piece(f"day/{name}/{seed}", lambda name=name, seed=seed: _days(benchmark, name, seed))


def _three(
    benchmark: Benchmark, name: str, seed: int, ticks: int
) -> tuple[tuple[float, ...], list[runs.Course]]:
    """Under the default, the best static setting, and the learner."""
    best = runs.best_static(benchmark, [name])
    systems = [runs.system_of(name, runs.FRESH + seed) for _ in range(3)]
    policies = (runs.DEFAULT, best, runs.learner(systems[2], runs.FRESH + seed))
    return best, [
        runs.followed(system, policy, ticks) for system, policy in zip(systems, policies, strict=True)
    ]


def _runs(benchmark: Benchmark, name: str, seed: int) -> dict[str, Any]:
    best, (default, static, learnt) = _three(benchmark, name, seed, TICKS)
    minutes = [_minutes(one.mb_per_s) for one in (default, learnt)]
    floor = LOW * float(default.mb_per_s.mean())
    return {
        "best": best,
        "default": float(default.mb_per_s.mean()),
        "static": float(static.mb_per_s.mean()),
        "after": [[one.last(end) for end in AFTER] for one in (default, static, learnt)],
        "from_300": [float(one.mb_per_s[300:].mean()) for one in (default, learnt)],
        "first_300": [float(one.mb_per_s[:300].mean()) for one in (default, learnt)],
        "low_minutes": [int((one < floor).sum()) for one in minutes],
        "lowest_minute": [float(one.min() / default.mb_per_s.mean()) for one in minutes],
        "minutes": len(minutes[0]),
    }


def _minutes(ticks: NDArray[np.float64]) -> NDArray[np.float64]:
    return ticks.reshape(-1, MINUTE).mean(1)


def _days(benchmark: Benchmark, name: str, seed: int) -> dict[str, Any]:
    best, courses = _three(benchmark, name, seed, DAY_TICKS)
    return {"best": best, "after": [[one.last(*at) for at in DAY_AFTER] for one in courses]}


def _turns(benchmark: Benchmark, seed: int) -> dict[str, Any]:
    best = runs.best_static(benchmark, TURNS)
    found: dict[str, Any] = {"best": best}

    def system() -> ClusterSystem:
        return ClusterSystem([runs.scenario_of(one) for one in TURNS], runs.FRESH + seed, TURN_TICKS)

    for label, setting in (("default", runs.DEFAULT), ("static", best)):
        found[label] = _by_turn(runs.followed(system(), setting, TURNS_TICKS))
    for label, announced in (("unannounced", False), ("announced", True)):
        own = system()
        learner = runs.learner(own, runs.FRESH + seed)
        found[label] = _by_turn(runs.followed(own, learner, TURNS_TICKS, announced=announced))
        assert isinstance(learner, Modern)
        found[f"{label}_changes"] = learner.workloads.changes
        found[f"{label}_known"] = len(learner.workloads.all())
    return found


def _by_turn(course: runs.Course) -> list[float]:
    return course.mb_per_s.reshape(-1, TURN_TICKS).mean(1).tolist()


def _single(found: dict[str, dict[str, Any]]) -> None:
    print("\nOne workload: gains over the default, paired seeds; after N ticks: the last 300 of them\n")
    rows: list[list[str]] = []
    for name in runs.WORKLOADS:
        own = present(found, (f"run/{name}/{seed}" for seed in range(SEEDS)))
        if not own:
            continue
        static = mean([one["static"] / one["default"] - 1 for one in own])
        rows.append(
            [
                name,
                str(len(own)),
                f"{own[0]['best'][0]:g}, {own[0]['best'][1]:g}",
                signed(static),
                *(_gain(own, at) for at in range(len(AFTER))),
                *(_share(own, at) if static[0] >= 0.05 else "-" for at in range(len(AFTER))),
            ]
        )
    heads = ("workload", "seeds", "best static: window, gap us", "its gain")
    table(
        (*heads, *(f"after {one:,}" for one in AFTER), *(f"share of it after {one:,}" for one in AFTER)), rows
    )
    print(f"Cost of learning; low minutes: below {LOW:.0%} of the default's mean\n")
    rows = []
    for name in runs.WORKLOADS:
        own = present(found, (f"run/{name}/{seed}" for seed in range(SEEDS)))
        if not own:
            continue
        lows = [sum(one["low_minutes"][who] for one in own) for who in (1, 0)]
        rows.append(
            [
                name,
                *(
                    signed(mean([one[key][1] / one[key][0] - 1 for one in own]))
                    for key in ("first_300", "from_300")
                ),
                f"{lows[0]}, {lows[1]} of {sum(one['minutes'] for one in own)}",
                ", ".join(f"{min(one['lowest_minute'][who] for one in own):.0%}" for who in (1, 0)),
            ]
        )
    heads = ("workload", "first 300 ticks", "from tick 300 on")
    table((*heads, "low minutes: learner, default", "worst minute: learner, default"), rows)


def _gain(own: list[dict[str, Any]], at: int) -> str:
    return signed(mean([one["after"][2][at] / one["after"][0][at] - 1 for one in own]))


def _share(own: list[dict[str, Any]], at: int) -> str:
    gained = [one["after"][2][at] - one["after"][0][at] for one in own]
    possible = [one["after"][1][at] - one["after"][0][at] for one in own]
    return percent(share_of(gained, possible), 0)


def _turning(found: dict[str, dict[str, Any]]) -> None:
    own = present(found, (f"turns/{seed}" for seed in range(SEEDS)))
    if not own:
        return
    print(f"\n{', '.join(TURNS)} by turns of {TURN_TICKS} ticks, {len(own)} seeds: gain over the default\n")
    rows: list[list[str]] = []
    for label in ("static", "unannounced", "announced"):
        cells: list[str] = []
        for part in (slice(None), slice(len(TURNS), None)):
            pairs: list[tuple[list[float], list[float]]] = [
                (one[label][part], one["default"][part]) for one in own
            ]
            cells.append(signed(mean([sum(learnt) / sum(default) - 1 for learnt, default in pairs])))
        counts = [
            "-" if label == "static" else _range([one[f"{label}_{what}"] for one in own])
            for what in ("changes", "known")
        ]
        rows.append([label, *cells, *counts])
    table(("setting", "all 7,200 ticks", "from the second round on", "changes seen", "workloads known"), rows)


def _range(counts: list[int]) -> str:
    return f"{median(counts):g} ({min(counts)} to {max(counts)})"


def _day(found: dict[str, dict[str, Any]]) -> None:
    print("\n24 hours: gains over the default, and share of the best static setting's gain\n")
    rows: list[list[str]] = []
    for name in runs.WORKLOADS:
        own = present(found, (f"day/{name}/{seed}" for seed in range(DAY_SEEDS)))
        if not own:
            continue
        static = mean([one["after"][1][-1] / one["after"][0][-1] - 1 for one in own])
        cells = [
            _gain(own, at) + (f"; {_share(own, at)}" if static[0] >= 0.05 else "")
            for at in range(len(DAY_AFTER))
        ]
        rows.append([name, str(len(own)), runs.PUBLISHED.get(name, "-"), signed(static), *cells])
    heads = ("workload", "seeds", "published, 24 h", "best static, after 24 h")
    table((*heads, *(f"after {end:,}" for end, _ in DAY_AFTER)), rows)


if __name__ == "__main__":
    main()
