"""How long the laboratory takes for thousands of runs of the methods that Cao compares.

    python -m benchmarks.optimizer_runs --tables DIR --budget 100s

1,000 simulated searches of 100 evaluations of each of random, annealing, genetic, gp and dqn over one
recorded table with 10% noise, on all cores, judged after 25, 50 and 100 evaluations: everything that
`ascar lab optimizers` does but for writing files. Pieces of 500 runs, each with processes of its own; a later
run goes on where this one ends.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, Benchmark, Piece, seconds, table

from ascar.lab import Benchmark as Problems
from ascar.lab import Budget, Contender, simulate

METHODS = ("random", "annealing", "genetic", "gp", "dqn")
RUNS, PIECE, EVALUATIONS, CHECKPOINTS = 1_000, 500, 100, (25, 50)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--problem", default="hsqldb")
    parser.add_argument("--budget", type=seconds, default=seconds("10min"))
    parser.add_argument("--again", action="store_true", help="begin anew: forget earlier results")
    given = parser.parse_args()
    file = Path(__file__).parent / "optimizers.toml"
    (problem,) = (one for one in Problems.read(file, given.tables).problems if one.name == given.problem)
    results = RESULTS / "optimizer_runs.jsonl"
    if given.again:
        results.unlink(missing_ok=True)

    def piece(method: str, first: int) -> Piece:
        def run() -> dict[str, Any]:
            start_s = time.perf_counter()
            found = simulate(problem, Contender(method), Budget(PIECE, EVALUATIONS, CHECKPOINTS, first))
            assert len(found) == PIECE
            return {
                "seconds": time.perf_counter() - start_s,
                "optimizer_s": sum(float(one.ask_tell_s.sum()) for one in found),
                "cores": os.cpu_count(),
            }

        return Piece(f"{given.problem}, {method}, from {first}", run)

    pieces = [piece(method, first) for method in METHODS for first in range(1, RUNS, PIECE)]
    found = Benchmark(given.budget, results, re.compile("")).run(pieces)
    rows: list[list[str]] = []
    total_s, runs = 0.0, 0
    for method in METHODS:
        mine = [one for key, one in found.items() if f", {method}, " in key]
        spent_s, made = sum(one["seconds"] for one in mine), PIECE * len(mine)
        total_s, runs = total_s + spent_s, runs + made
        each = f"{sum(one['optimizer_s'] for one in mine) / made:.3f}" if made else "-"
        rows.append([method, f"{made:,}", f"{spent_s:.1f}", each])
    rows.append(["all", f"{runs:,}", f"{total_s:.1f} ({total_s / 60:.1f} min)", ""])
    table(["method", f"runs of {EVALUATIONS} evaluations", "seconds", "seconds a run in the optimizer"], rows)


if __name__ == "__main__":
    main()
