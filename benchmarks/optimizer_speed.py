"""What an optimizer's ask and tell cost as the trials add up, in a space of 13 mixed parameters.

    python -m benchmarks.optimizer_speed --optimizers auto --runs 3 --budget 5min

Each run searches a made-up system with 10% noise. What is timed is the ask and the tell of each trial, in
seconds of processor time on one thread: what they take on a machine that does nothing else, and hardly more
on a busy one. The figure at trial 100 is the median over runs of the mean over trials 91 to 110.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import time
from functools import partial
from typing import TYPE_CHECKING, Any

# One thread: the matrices are small, and in a search the other core runs the load.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from ascar.lab import Budget, Contender, NoiseModel, SimulatedSearch, SyntheticSpecification
from ascar.lab.simulation import search

from .harness import Benchmark, Piece, sources, table

if TYPE_CHECKING:
    from ascar.lab.problem import SearchProblem

TRIALS = 110
WINDOWS = ((11, 30), (41, 60), (91, 110))


def main() -> None:
    """Measure, and print a table."""
    parser = Benchmark.parser(__doc__ or "", "5min")
    parser.add_argument("--optimizers", default="random,annealing,genetic,gp,trees,auto")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parameters", type=int, default=13)
    parser.add_argument("--profile", action="store_true", help="say where one run's time goes")
    given = parser.parse_args()
    specification = SyntheticSpecification(
        "s", given.parameters, min(6, given.parameters), 13, NoiseModel(False, 0.1)
    )
    problem = specification.build()
    kinds = given.optimizers.split(",")
    if given.profile:
        for kind in kinds:
            with cProfile.Profile() as profile:
                search(problem, Contender(kind), Budget(given.runs, TRIALS), 1)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    how = f"{given.runs} runs, {given.parameters} parameters"
    code = sources("ascar.optimizers", "ascar.lab.simulation", within=("ascar",))
    found = Benchmark.of(given, code).run(
        Piece(f"{kind}, {how}", partial(measured, problem, kind, given.runs)) for kind in kinds
    )
    heads = [f"ask + tell at trials {low} to {high} (ms)" for low, high in WINDOWS]
    table(["optimizer", *heads, f"seconds a run of {TRIALS}"], [one["cells"] for one in found.values()])


def measured(problem: SearchProblem, kind: str, runs_max: int) -> dict[str, Any]:
    """An optimizer's line."""
    contender, budget = Contender(kind), Budget(runs_max, TRIALS)
    search(problem, contender, Budget(1, 15), 99)  # what is loaded or compiled once is not counted
    runs = [search(problem, contender, budget, seed, time.process_time) for seed in range(1, runs_max + 1)]
    return {
        "cells": [kind, *(f"{_window_ms(runs, *window):.2f}" for window in WINDOWS), f"{_run_s(runs):.2f}"]
    }


def _window_ms(runs: list[SimulatedSearch], low: int, high: int) -> float:
    """Median over runs of the mean time of one ask and tell among these trials."""
    return 1e3 * float(np.median([run.ask_tell_s[low - 1 : high].mean() for run in runs]))


def _run_s(runs: list[SimulatedSearch]) -> float:
    return float(np.mean([run.ask_tell_s.sum() for run in runs]))


if __name__ == "__main__":
    main()
