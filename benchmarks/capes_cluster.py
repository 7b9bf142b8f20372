"""The modern learner on the simulated cluster: gain, share of the best static setting, cost of learning.

    python -m benchmarks.capes_cluster --budget 20min

The seven workloads of Li et al., section 4.3, an hour each, three seeds: the default, the best static setting
(of a grid, chosen on other seeds), the learner from the default on, all on the same seeds. Then four
workloads by turns, ten minutes each, for two hours: announced by name or not. Results are kept; the same
command goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.capes.blind import StaticPolicy
from ascar.capes.cluster import CLUSTER_KNOBS, ClusterSystem
from ascar.capes.modern import Modern
from ascar.simulation import Grid, preset, sweep, with_settings

from .harness import Benchmark, Piece, mean, percent, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ascar.capes.knobs import Setting
    from ascar.capes.policy import Policy

WORKLOADS = (
    "capes-9-1",
    "capes-4-1",
    "capes-1-1",
    "capes-1-4",
    "capes-1-9",
    "capes-fileserver",
    "capes-sequential-write",
)
PUBLISHED = {"capes-1-9": "+45%", "capes-fileserver": "+17%"}
TURNS = ("capes-1-9", "capes-9-1", "capes-fileserver", "capes-sequential-write")
TICKS, TURN_TICKS, TURNS_TICKS, SEEDS = 3_600, 600, 7_200, 3
WINDOWS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 128.0, 256.0)
TAUS_US = (0.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 40_000.0, 80_000.0)
AFTER = (600, 1_200, 3_600)
LAST = 300


def main() -> None:
    """Run what has no result yet, and print tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "20min")
    found = benchmark.run(list(_pieces(benchmark)))
    _single(found)
    _turning(found)


def _pieces(benchmark: Benchmark) -> Iterator[Piece]:
    for name in WORKLOADS:
        yield Piece(f"grid/{name}", lambda name=name: _grid(name))
    for seed in range(SEEDS):
        for name in WORKLOADS:
            yield Piece(f"run/{name}/{seed}", lambda name=name, seed=seed: _runs(benchmark, name, seed))
    for seed in range(SEEDS):
        yield Piece(f"turns/{seed}", lambda seed=seed: _turns(benchmark, seed))


def _grid(name: str) -> dict[str, Any]:
    """Every static setting's throughput, two runs of two minutes each."""
    scenario = with_settings(preset(name), ["duration_s=120", "seed=1000"])
    swept = sweep(scenario, Grid(WINDOWS, TAUS_US, 2))
    return {
        "points": [[one.window, one.tau_us, one.figures["throughput_mb_per_s"].mean] for one in swept.points]
    }


def _best(benchmark: Benchmark, names: Sequence[str]) -> Setting:
    """The static setting whose sum over workloads is largest."""
    grids = {one["key"]: one for one in _lines(benchmark)}
    total: dict[Setting, float] = {}
    for name in names:
        if f"grid/{name}" not in grids:
            raise RuntimeError(f"the grid of {name} comes first")
        for window, tau_us, throughput in grids[f"grid/{name}"]["points"]:
            total[window, tau_us] = total.get((window, tau_us), 0.0) + throughput
    return max(total, key=lambda one: total[one])


def _lines(benchmark: Benchmark) -> list[dict[str, Any]]:
    import json

    lines = [json.loads(one) for one in benchmark.path.read_text().splitlines()]
    return [one for one in lines if one["build"] == benchmark.build]


def _runs(benchmark: Benchmark, name: str, seed: int) -> dict[str, Any]:
    best = _best(benchmark, [name])
    learner = Modern(CLUSTER_KNOBS, np.random.default_rng([seed, 7]))
    ends = [_ticks([name], seed, StaticPolicy(one), TICKS) for one in ((8.0, 0.0), best)]
    learnt = _ticks([name], seed, learner, TICKS)
    minutes = [one.reshape(-1, 60).mean(1) for one in (ends[0], learnt)]
    floor = 0.9 * float(ends[0].mean())
    return {
        "best": best,
        "default": float(ends[0].mean()),
        "static": float(ends[1].mean()),
        "after": [float(learnt[end - LAST : end].mean()) for end in AFTER],
        "default_after": [float(ends[0][end - LAST : end].mean()) for end in AFTER],
        "static_after": [float(ends[1][end - LAST : end].mean()) for end in AFTER],
        "from_300": float(learnt[300:].mean()),
        "default_from_300": float(ends[0][300:].mean()),
        "low_minutes": int((minutes[1] < floor).sum()),
        "default_low_minutes": int((minutes[0] < floor).sum()),
        "minutes": len(minutes[0]),
    }


def _turns(benchmark: Benchmark, seed: int) -> dict[str, Any]:
    best = _best(benchmark, TURNS)
    found: dict[str, Any] = {"best": best}
    for label, setting in (("default", (8.0, 0.0)), ("static", best)):
        found[label] = _by_turn(_ticks(TURNS, seed, StaticPolicy(setting), TURNS_TICKS))
    for label, announced in (("unannounced", False), ("announced", True)):
        learner = Modern(CLUSTER_KNOBS, np.random.default_rng([seed, 7]))
        found[label] = _by_turn(_ticks(TURNS, seed, learner, TURNS_TICKS, announced=announced))
        found[f"{label}_changes"] = learner.regimes.changes
    return found


def _by_turn(ticks: NDArray[np.float64]) -> list[float]:
    return ticks.reshape(-1, TURN_TICKS).mean(1).tolist()


def _ticks(
    names: Sequence[str], seed: int, policy: Policy, ticks: int, *, announced: bool = False
) -> NDArray[np.float64]:
    """Throughput by tick, MB/s."""
    each = TURN_TICKS if len(names) > 1 else None
    system = ClusterSystem([preset(one) for one in names], seed, each)
    setting, workload = system.start(), ""
    found = np.empty(ticks)
    for tick in range(ticks):
        if announced and system.workload != workload:
            workload = system.workload
            policy.announce(workload)
        seen = system.step(setting)
        found[tick] = seen.performance
        setting = policy.decide(seen)
    return found


def _single(found: dict[str, dict[str, Any]]) -> None:
    print(f"\nOne workload: gains over the default, paired seeds; after N ticks: the last {LAST} of them\n")
    rows: list[list[str]] = []
    for name in WORKLOADS:
        runs = [found[key] for seed in range(SEEDS) if (key := f"run/{name}/{seed}") in found]
        if not runs:
            continue
        after = [
            mean([one["after"][at] / one["default_after"][at] - 1 for one in runs])
            for at in range(len(AFTER))
        ]
        static = mean([one["static"] / one["default"] - 1 for one in runs])
        share = [
            sum(one["after"][at] - one["default_after"][at] for one in runs)
            / sum(one["static_after"][at] - one["default_after"][at] for one in runs)
            for at in range(len(AFTER))
        ]
        rows.append(
            [
                name.removeprefix("capes-"),
                PUBLISHED.get(name, "-"),
                f"{runs[0]['best'][0]:g}, {runs[0]['best'][1]:g}",
                percent(static),
                *(percent(one) for one in after),
                "; ".join(f"{one:.0%}" for one in share) if static[0] >= 0.05 else "-",
                percent(mean([one["from_300"] / one["default_from_300"] - 1 for one in runs])),
                ", ".join(
                    str(sum(one[key] for one in runs)) for key in ("low_minutes", "default_low_minutes")
                )
                + f" of {sum(one['minutes'] for one in runs)}",
            ]
        )
    table(
        (
            "workload",
            "published, 24 h",
            "best static: window, gap us",
            "its gain",
            *(f"after {one:,}" for one in AFTER),
            "of its gain, after each",
            "all from tick 300 on",
            "minutes below 90%: learner, default",
        ),
        rows,
    )


def _turning(found: dict[str, dict[str, Any]]) -> None:
    runs = [found[key] for seed in range(SEEDS) if (key := f"turns/{seed}") in found]
    if not runs:
        return
    print(f"\n{', '.join(TURNS)} by turns of {TURN_TICKS} ticks: gain over the default\n")
    rows: list[list[str]] = []
    for label in ("static", "unannounced", "announced"):
        cells: list[str] = []
        for part in (slice(None), slice(len(TURNS), None)):
            gains = [np.mean(one[label][part]) / np.mean(one["default"][part]) - 1 for one in runs]
            cells.append(percent(mean([float(one) for one in gains])))
        changes = "-" if label == "static" else ", ".join(str(one[f"{label}_changes"]) for one in runs)
        rows.append([label, *cells, changes])
    table(("setting", "all 7,200 ticks", "from the second round on", "changes seen"), rows)


if __name__ == "__main__":
    main()
