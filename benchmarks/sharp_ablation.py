"""What each part of our search brings: the search without it, on the same workloads and seeds.

    python -m benchmarks.sharp_ablation --budget 30min

Without racing every candidate gets three runs; without common numbers each rule set has random numbers of its
own; without the surrogate a round tries all 539 candidates of Table 3.2; without one-axis splits the hottest
rule is split in 8 and the hottest part improved; without the sweep a search begins with Table 3.2's first
rule alone. Two searches each, of at most 2,000 runs; gains on 20 fresh seeds, against the scenario as it is.
"Runs to 95%" is until the search held rules worth 95% of what the whole search ends with.
"""

from __future__ import annotations

import os
from typing import Any, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np

from ascar.sharp import PARTS, Plan

from .harness import Benchmark, Piece, mean, table
from .sharp_rows import signed
from .sharp_search_cost import CASES, SHARE, course_of, reached

SEARCHES = 2
RUNS_MAX = 2_000
WHOLE = "the whole"
PLANS = {WHOLE: Plan()} | {f"without {part}": Plan(without=frozenset([cast("Any", part)])) for part in PARTS}


def main() -> None:
    """Search, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "30min")
    pieces = [
        Piece(f"{case.name} {name} {number}", lambda c=case, p=plan, n=number: course_of(c, p, n, RUNS_MAX))
        for number in range(SEARCHES)
        for case in CASES
        for name, plan in PLANS.items()
    ]
    found = benchmark.run(pieces)
    for title, show in (("Gain in the end", _gain), ("Runs in all", _all), ("Runs to 95%", _runs)):
        print(f"\n{title}\n")
        table(
            ["workload, objective", *PLANS],
            [[case.name, *(show(found, case.name, name) for name in PLANS)] for case in CASES],
        )


def _of(found: dict[str, Any], case: str, name: str) -> list[dict[str, Any]]:
    keys = [f"{case} {name} {number}" for number in range(SEARCHES)]
    return [found[key] for key in keys if key in found]


def _gain(found: dict[str, Any], case: str, name: str) -> str:
    ends = [one["held"][-1][1] for one in _of(found, case, name)]
    return signed(mean(ends)) if len(ends) > 1 else f"{100 * ends[0]:+.1f}%" if ends else "-"


def _all(found: dict[str, Any], case: str, name: str) -> str:
    return ", ".join(f"{one['evaluations']:,}" for one in _of(found, case, name)) or "-"


def _runs(found: dict[str, Any], case: str, name: str) -> str:
    whole = [one["held"][-1][1] for one in _of(found, case, WHOLE)]
    if not whole:
        return "-"
    target = SHARE * float(np.mean(whole))
    counts = [reached(one, target) for one in _of(found, case, name)]
    return ", ".join(f"{one:,}" if one <= RUNS_MAX else "never" for one in counts) or "-"


if __name__ == "__main__":
    main()
