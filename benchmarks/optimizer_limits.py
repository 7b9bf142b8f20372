"""What is to be had of the benchmark's tables: how far structure reaches, and how far measuring alone does.

    python -m benchmarks.optimizer_limits --tables DIR --budget 10min

Two figures a table, in regret (0 the best, 1 the median), neither of which a search can have, since both
know more than one:

- structure: trees that were told the true values of nine tenths of the table predict the tenth that they were
  not told, blocks of neighbouring rows: the share of the variance that they explain, and the truth of the ten
  best predicted of the whole table.
- measuring alone: configurations drawn at random, measured once, and then measured again where the knowledge
  gradient of independent normal values says so, 100 evaluations in all. It is told the exact mean and
  variance of the table's true values and the noise's; how many are drawn is the best of several numbers.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from ascar._core import Forest
from ascar.lab import Benchmark
from ascar.lab.problem import TableProblem
from ascar.lab.simulation import built
from ascar.optimizers.guided.columns import SpaceColumns

from . import harness
from .harness import Piece, mean, number, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

EVALUATIONS = 100
DRAWN = (20, 30, 40, 50, 60, 72, 85, 100)
NOISE_DRAWS = 4_000
PARTS = 10


def main() -> None:
    """Print a table."""
    parser = harness.Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument("--benchmark", type=Path, default=Path(__file__).parent / "optimizers.toml")
    parser.add_argument("--tables", type=Path, required=True, help="directory of the benchmark's tables")
    parser.add_argument("--runs", type=int, default=200, help="simulated searches of each kind")
    given = parser.parse_args()
    problems = map(built, Benchmark.read(given.benchmark, given.tables).problems)
    found = harness.Benchmark.of(given).run(
        Piece(f"{one.name}, {given.runs} runs", partial(reach, one, given.runs))
        for one in problems
        if isinstance(one, TableProblem)
    )
    heads = ["configurations", "sd of truths", "sd of noise", "explained", "structure", "measuring alone"]
    table(["table", *heads], [one["cells"] for one in found.values()])


def reach(problem: TableProblem, runs: int) -> dict[str, Any]:
    """Both figures of a table: its line."""
    regret = _regrets(problem)
    explained, chosen = structure(problem, regret)
    noise = noise_sd(problem)
    found = {
        count: measuring(problem, regret, noise, (count, runs)) for count in DRAWN if count <= len(regret)
    }
    count = min(found, key=lambda one: float(found[one].mean()))
    spreads = [f"{regret.std():.2f}", f"{noise:.2f}", f"{explained:.2f}", f"{chosen:.3f}"]
    alone = f"{number(mean(found[count].tolist()))} with {count}"
    return {"cells": [problem.name, f"{len(regret)}", *spreads, alone]}


def _regrets(problem: TableProblem) -> NDArray[np.float64]:
    """(configurations,): of every one."""
    return (problem.losses() - problem.best) / (problem.median - problem.best)


def structure(problem: TableProblem, regret: NDArray[np.float64]) -> tuple[float, float]:
    """Share of variance explained in parts not told, and the mean regret of the ten best predicted."""
    columns = SpaceColumns.of(problem.space).rows(problem.recording.configurations)
    # Neighbouring rows of a table that a search left behind are nearly the same configuration.
    part = np.arange(len(regret)) * PARTS // len(regret)
    predicted = np.empty(len(regret))
    for held in range(PARTS):
        known = part != held
        forest = Forest.grow(
            np.ascontiguousarray(columns[known]),
            regret[known],
            np.ones(int(known.sum())),
            held,
            trees=200,
            leaf_min=2,
            tries=columns.shape[1],
            bootstrap=False,
        )
        predicted[~known] = forest.predict(np.ascontiguousarray(columns[~known]))[0]
    explained = 1 - float(((regret - predicted) ** 2).mean() / regret.var())
    return explained, float(regret[np.argsort(predicted)[:10]].mean())


def noise_sd(problem: TableProblem) -> float:
    """Standard deviation of one evaluation from the truth, in regret, over the better half of the table."""
    rng = np.random.default_rng(2)
    better = np.flatnonzero(problem.losses() <= problem.median)
    squares = [
        (_drawn(problem, int(at), rng) - float(problem.losses()[at])) ** 2
        for at in rng.choice(better, NOISE_DRAWS)
    ]
    return math.sqrt(float(np.mean(squares))) / (problem.median - problem.best)


def _drawn(problem: TableProblem, at: int, rng: np.random.Generator) -> float:
    return problem.draw(problem.recording.configurations[at], rng)[0]


def measuring(
    problem: TableProblem, regret: NDArray[np.float64], noise: float, size: tuple[int, int]
) -> NDArray[np.float64]:
    """(runs,): regrets of what is recommended without any model of the parameters.

    Args:
        problem: the table.
        regret: of every configuration.
        noise: its standard deviation, in regret.
        size: how many configurations are drawn, and how many runs are made.
    """
    count, runs = size
    rng = np.random.default_rng([3, count])
    centre, prior, error = float(regret.mean()), float(regret.var()), noise**2
    spread = problem.median - problem.best
    ends = np.empty(runs)
    for run in range(runs):
        chosen = rng.choice(len(regret), count, replace=False)
        sums, times = np.zeros(count), np.zeros(count)
        for step in range(EVALUATIONS):
            at = step if step < count else _worth(sums, times, (centre, prior, error))
            sums[at] += (_drawn(problem, int(chosen[at]), rng) - problem.best) / spread
            times[at] += 1
        expected = (centre / prior + sums / error) / (1 / prior + times / error)
        ends[run] = regret[chosen[int(np.argmin(expected))]]
    return ends


def _worth(sums: NDArray[np.float64], times: NDArray[np.float64], known: tuple[float, float, float]) -> int:
    """Which one to measure: the knowledge gradient of independent normal values (Frazier et al. 2008)."""
    centre, prior, error = known
    variance = 1 / (1 / prior + times / error)
    expected = variance * (centre / prior + sums / error)
    move = variance / np.sqrt(variance + error)
    first, second = (float(one) for one in np.sort(expected)[:2])
    gap: NDArray[np.float64] = np.where(expected == first, second - first, expected - first)
    z = -gap / move
    return int(np.argmax(move * (z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi))))


if __name__ == "__main__":
    main()
