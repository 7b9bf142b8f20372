"""What refining a rule while it runs brings on the simulated cluster (docs/algorithms/refinement.md).

python -m benchmarks.refinement --budget 30min [--seeds 3] [SCENARIO ...]
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from benchmarks.harness import Benchmark, Piece, table

from ascar.sharp import Action, RuleSet, objective_of
from ascar.sharp.refinement import Course, Refiner
from ascar.sharp.running import SimulatedRunning
from ascar.simulation import preset

SCENARIOS = ("random-write", "sequential-write", "random-shared", "capes-fileserver", "btio-b")
START = RuleSet.uniform(Action(100, 0, 20_000))


def main() -> None:
    """Print a table, a line a search."""
    parser = Benchmark.parser(__doc__ or "", "30min")
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    found = Benchmark.of(given).run(
        Piece(f"{name}, seed {seed}", partial(refined, name, seed))
        for name in given.scenarios
        for seed in range(1, given.seeds + 1)
    )
    heads = ("scenario", "seed", "rule at the end (m, b, tau ms)", "gain", "steps", "system hours", "seconds")
    table(heads, [one["cells"] for one in found.values()])


def refined(name: str, seed: int) -> dict[str, Any]:
    """One search: its line."""
    begun_s = time.perf_counter()
    running = SimulatedRunning(preset(name), START)
    found = Refiner(running, objective_of("throughput"), course=Course(seed=seed, steps_max=200)).refine(
        START, 0
    )
    wall_s = time.perf_counter() - begun_s
    action, verified = found.rules.rules[0].action, found.verification
    rule = f"{action.m100 / 100:g}, {action.b100 / 100:g}, {action.tau_us / 1_000:g}"
    if verified is None:
        gain = "nothing was better"
    else:
        limits = (
            ""
            if verified.gain_low is None or verified.gain_high is None
            else f" ({verified.gain_low:+.1%} to {verified.gain_high:+.1%})"
        )
        shown = "" if verified.kind == "verified" else ", not shown: put back"
        gain = f"{verified.gain_relative:+.1%}{limits}{shown}"
    cost = [f"{len(found.steps)}", f"{running.time_s / 3600:.1f}", f"{wall_s:.0f}"]
    return {"cells": [name, f"{seed}", rule, gain, *cost]}


if __name__ == "__main__":
    main()
