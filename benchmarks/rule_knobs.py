"""CAPES inside rules: how much better rules become whose numbers a learner turns while they run.

    python -m benchmarks.rule_knobs --budget 15min

From the rule that a search begins with (m = 1, b = 0, tau = 20 ms), on the simulated cluster with 5 clients
and 4 servers: 20 virtual minutes of `ascar sharp learn` with its three numbers as knobs, then its comparison
in turns with the beginning. "fresh" is what the rules at the end bring over those of the beginning on 20
seeds that nobody has seen, each run anew.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import numpy as np

from ascar.rule_learning.learning import learn_numbers
from ascar.rule_learning.system import RuleSystem
from ascar.sharp import RuleSet, objective_of
from ascar.sharp.plan import FIRST
from ascar.sharp.running import SimulatedRunning
from ascar.simulation import preset

from . import sharp_rows as rows
from .harness import Benchmark, Piece, gain, mean, present, signed, table

SCENARIOS = ("random-write", "sequential-write", "random-shared", "sequential-read", "fileserver")
SEEDS = 8
LEARN_S = 1_200
FRESH_SEEDS = 20
OBJECTIVE = objective_of("throughput")


def main() -> None:
    """Learn, measure, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "15min")
    found = benchmark.run(
        Piece(f"{name} learn {seed}", partial(learned, name, seed))
        for seed in range(1, SEEDS + 1)
        for name in SCENARIOS
    )
    lines: list[list[str]] = []
    for name in SCENARIOS:
        own = present(found, (f"{name} learn {seed}" for seed in range(1, SEEDS + 1)))
        if len(own) < 2:
            continue
        lines.append(
            [
                name,
                f"{sum(one['improved'] for one in own)} of {len(own)}",
                signed(mean([one["fresh"] for one in own])),
                f"{min(one['fresh'] for one in own):+.1%} to {max(one['fresh'] for one in own):+.1%}",
                f"{np.mean([one['hours'] for one in own]):.1f}",
            ]
        )
    table(["scenario", "kept", "gain, fresh runs (95%)", "least and most", "system hours"], lines)


def learned(name: str, seed: int) -> dict[str, Any]:
    """By CAPES's modern learner."""
    system = _system(name, seed)
    begun_s = system.time_s
    found = learn_numbers(
        system, RuleSystem(system, FIRST, OBJECTIVE).turn(), OBJECTIVE, learn_s=LEARN_S, seed=seed
    )
    return _result(name, found.after, system.time_s - begun_s)


def _system(name: str, seed: int) -> SimulatedRunning:
    return SimulatedRunning(msgspec.structs.replace(preset(name), seed=seed), FIRST)


def _result(name: str, rules: RuleSet, system_s: float) -> dict[str, Any]:
    before, after = (
        rows.pairs(rows.measured(rows.under(preset(name), one.bare().text()), FRESH_SEEDS), rows.TOTAL)
        for one in (FIRST, rules)
    )
    return {
        "rules": rules.bare().text(),
        "improved": rules.bare() != FIRST.bare(),
        "fresh": gain(after, before)[0],
        "hours": system_s / 3_600,
    }


if __name__ == "__main__":
    main()
