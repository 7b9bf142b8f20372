"""Cao's findings about optimizers, looked for again in simulated searches.

    ascar lab optimizers --benchmark benchmarks/findings.toml --tables DIR --out results \
        --optimizers random,annealing,genetic,gp,dqn --problems A,B
    ascar lab optimizers ... --optimizers genetic --sweep genetic.mutation=0.01,0.04,0.16,0.64 \
        --sweep genetic.initialization=latin-hypercube,random \
        --sweep genetic.mutation_towards=any,unvisited
    python -m benchmarks.optimizer_findings --tables DIR --results results

Prints what the laboratory kept: of every contender the best true value evaluated so far, as regret (0 the
best, 1 the table's median), since Cao's comparisons are of the best found; its mean over tables with the 95%
interval; Wilcoxon's test against the first contender named; and of genetic searches the success of stopping.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ascar.lab import Archive, Benchmark, Budget, Contender, Experiment, Sweep
from ascar.lab.curves import stops_by_mutations, stops_by_window
from ascar.lab.simulation import built
from ascar.lab.summary import best_so_far
from ascar.significance import signed_rank_p_value

from .harness import mean, number, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.lab import SimulatedSearch, Specification
    from ascar.lab.problem import SearchProblem

METHODS = ("random", "annealing", "genetic", "gp", "dqn")
SWEEPS = (
    "genetic.mutation=0.01,0.02,0.04,0.08,0.16,0.32,0.64",
    "genetic.initialization=latin-hypercube,random",
    "genetic.mutation_towards=any,unvisited",
)
WITHIN = 0.05


def main() -> None:
    """Read results, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmark", type=Path, default=Path(__file__).parent / "findings.toml")
    parser.add_argument("--tables", type=Path, required=True, help="directory of the benchmark's tables")
    parser.add_argument("--results", type=Path, required=True, help="what `ascar lab optimizers --out` wrote")
    given = parser.parse_args()
    benchmark = Benchmark.read(given.benchmark, given.tables)
    budget = Budget(benchmark.runs, max(benchmark.checkpoints), benchmark.checkpoints, benchmark.seed)
    archive = Archive(given.results)

    def load(
        wanted: Sequence[Contender],
    ) -> tuple[list[Contender], dict[Specification, list[list[SimulatedSearch]]]]:
        """Those of the contenders that were run, and the tables that all of them were run on."""
        known = {
            (one, contender.label): archive.load(Experiment(one, contender, budget))
            for one in benchmark.problems
            for contender in wanted
        }
        run = [one for one in wanted if any(known[problem, one.label] for problem in benchmark.problems)]
        found = {one: [known[one, contender.label] for contender in run] for one in benchmark.problems}
        return run, {one: runs for one, runs in found.items() if runs and all(runs)}

    groups = [[Contender(kind) for kind in METHODS], *(Sweep.parse(text).contenders for text in SWEEPS)]
    for contenders in groups:
        run, found = load(contenders)
        if found:
            compare(run, found, benchmark.checkpoints)
    stopping(load([Contender("genetic")])[1])


def compare(
    contenders: Sequence[Contender],
    found: dict[Specification, list[list[SimulatedSearch]]],
    checkpoints: Sequence[int],
) -> None:
    """One row a contender: mean regret over the tables at each checkpoint, and after the last by table."""
    print(f"Tables: {', '.join(one.name for one in found)}. Runs of each: {_runs(found)}\n")
    first = [_regrets(built(one), runs[0])[:, checkpoints[-1] - 1] for one, runs in found.items()]
    rows: list[list[str]] = []
    for index, contender in enumerate(contenders):
        curves = [_regrets(built(one), runs[index]) for one, runs in found.items()]
        together = [_over_tables([curve[:, at - 1] for curve in curves]) for at in checkpoints]
        own = [curve[:, checkpoints[-1] - 1] for curve in curves]
        each = [f"{one.mean():.3f}" for one in own]
        rows.append([contender.label, *map(number, together), *each, _test(own, first) if index else ""])
    heads = [f"after {at}" for at in checkpoints]
    table(["contender", *heads, *(one.name for one in found), "p"], rows)


def stopping(found: dict[Specification, list[list[SimulatedSearch]]]) -> None:
    """Success of stopping genetic searches, over all tables."""
    for title, rule, settings in (
        ("window without a gain", stops_by_window, (5, 10, 20, 30, 40, 50)),
        ("mutations after convergence (M = N = 80)", stops_by_mutations, (1, 3, 5, 9, 15, 25)),
    ):
        rows: list[list[str]] = []
        for setting in settings:
            stops = [rule(runs[0], built(one), [setting], WITHIN)[0] for one, runs in found.items()]
            stopped = float(np.mean([one.stopped for one in stops]))
            good = float(np.mean([one.successful for one in stops]))
            among = f"{100 * good / stopped:.1f}%" if stopped else "-"
            made = float(np.mean([one.evaluations for one in stops]))
            each = [f"{100 * one.successful:.0f}%" for one in stops]
            rows.append([str(setting), f"{100 * stopped:.1f}%", among, f"{made:.0f}", *each])
        heads = ["stopped early", f"of these within {100 * WITHIN:.0f}%", "evaluations"]
        table([title, *heads, *(one.name for one in found)], rows)


def _runs(found: dict[Specification, list[list[SimulatedSearch]]]) -> str:
    counts = [len(one) for runs in found.values() for one in runs]
    return f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"


def _regrets(problem: SearchProblem, runs: Sequence[SimulatedSearch]) -> NDArray[np.float64]:
    """(runs, evaluations): regret of the best true value so far; a run that ended stays where it was."""
    length = 100 if not runs else max(100, *(len(run.truth) for run in runs))
    values = np.empty((len(runs), length))
    for row, run in enumerate(runs):
        best = best_so_far(run)
        values[row, : len(best)] = best
        values[row, len(best) :] = best[-1]
    return (values - problem.best) / (problem.median - problem.best)


def _over_tables(values: Sequence[NDArray[np.float64]]) -> tuple[float, float, float]:
    """Mean of means with its interval: the tables are given, the runs are drawn."""
    each = [mean(one.tolist()) for one in values]
    centre = float(np.mean([one[0] for one in each]))
    half = float(np.sqrt(sum(((one[2] - one[1]) / 2) ** 2 for one in each))) / len(each)
    return centre, centre - half, centre + half


def _test(own: Sequence[NDArray[np.float64]], other: Sequence[NDArray[np.float64]]) -> str:
    """Wilcoxon's signed-rank test over the same seeds of all tables."""
    pairs = [(one[: len(two)], two[: len(one)]) for one, two in zip(own, other, strict=True)]
    differences = np.concatenate([one - two for one, two in pairs])
    return f"{signed_rank_p_value(differences):.2g}"


if __name__ == "__main__":
    main()
