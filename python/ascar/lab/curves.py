"""How searches went, over evaluations or over time: the numbers of the figures in Cao's chapters 5 and 9."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.lab.summary import best_so_far

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.lab.problem import SearchProblem
    from ascar.lab.simulation import SimulatedSearch

_TIMES = 200


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A quantity's distribution over runs.

    Attributes:
        at: float64 (n,), evaluations, or seconds.
        middle: float64 (n,), its median.
        low: float64 (n,), its lower quartile.
        high: float64 (n,), its upper quartile.
    """

    at: NDArray[np.float64]
    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Stops:
    """A stopping rule over many runs (Cao Fig. 9.5 and 9.6).

    Attributes:
        setting: the rule's setting: its window, or the number of mutations after convergence.
        stopped: share of runs that it ended before the last evaluation.
        successful: share of runs that it ended early within K% of what the whole run finds.
        evaluations: mean over runs of the evaluations made.
    """

    setting: int
    stopped: float
    successful: float
    evaluations: float


def best_values(runs: Sequence[SimulatedSearch], problem: SearchProblem) -> NDArray[np.float64]:
    """(runs, n): the best true value evaluated so far, in the objective's unit (Cao Fig. 5.2).

    A run that had nothing left to propose stays where it ended; before a success there is NaN.
    """
    length = max(len(run.truth) for run in runs)
    values = np.full((len(runs), length), np.nan)
    for row, run in enumerate(runs):
        best = best_so_far(run)
        values[row, : len(best)] = best
        values[row, len(best) :] = best[-1] if len(best) else np.nan
    return problem.sign * values


def near_optimal(values: NDArray[np.float64], problem: SearchProblem, level: float) -> NDArray[np.float64]:
    """(n,): share of runs whose best so far reaches `level` of the best value, such as 0.99 (Cao Fig. 5.3).

    Args:
        values: the result of `best_values`, or values at points in time.
        problem: tells the best.
        level: the share of the best value to reach. Where less is better, 0.99 asks for a value of at most
            the best over 0.99.
    """
    best = problem.sign * problem.best
    ratio = values / best if problem.sign < 0 else best / values
    return np.asarray((ratio >= level).mean(0), np.float64)


def over_time(
    runs: Sequence[SimulatedSearch], values: NDArray[np.float64], end_s: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Times (m,) and values (runs, m) at them, by what the evaluations took on the recorded system.

    Args:
        runs: the runs, which must have known evaluation times.
        values: (runs, n), one an evaluation.
        end_s: the last time; None: when half of the runs have ended.

    Returns:
        None where the table does not tell the time.
    """
    if not all(len(run.seconds) and np.isfinite(run.seconds).all() for run in runs):
        return None
    ends = [np.cumsum(run.seconds) for run in runs]
    times = np.linspace(0, float(np.median([end[-1] for end in ends])) if end_s is None else end_s, _TIMES)
    found = np.full((len(runs), len(times)), np.nan)
    for row, end in enumerate(ends):
        done = np.searchsorted(end, times, "right")
        found[row] = np.concatenate([[np.nan], values[row, : len(end)]])[done]
    return times, found


def band(at: NDArray[np.float64], values: NDArray[np.float64]) -> Distribution:
    """Quartiles over runs of values (runs, n) where half of the runs have one."""
    enough = np.isfinite(values).mean(0) >= 0.5
    low, middle, high = np.nanquantile(values[:, enough], (0.25, 0.5, 0.75), axis=0)
    return Distribution(at[enough], middle, low, high)


def stops_by_window(
    runs: Sequence[SimulatedSearch], problem: SearchProblem, windows: Sequence[int], within: float
) -> list[Stops]:
    """Ending a search when nothing better was measured within so many evaluations (Cao Fig. 9.5).

    Args:
        runs: the runs of one optimizer.
        problem: tells the unit.
        windows: evaluations.
        within: K, e.g. 0.05: success is a best value at most 5% worse than the whole run's.
    """
    return [_stops(runs, problem, window, _window_ends(runs, window), within) for window in windows]


def stops_by_mutations(
    runs: Sequence[SimulatedSearch], problem: SearchProblem, mutations: Sequence[int], within: float
) -> list[Stops]:
    """Ending a genetic search so many mutations after its population converged (Cao Fig. 9.6)."""
    found: list[Stops] = []
    for count in mutations:
        ends = [_first(run.mutations >= count) for run in runs]
        found.append(_stops(runs, problem, count, ends, within))
    return found


def _window_ends(runs: Sequence[SimulatedSearch], window: int) -> list[int | None]:
    """Of each run, after how many evaluations the window is over; None: it never is."""
    ends: list[int | None] = []
    for run in runs:
        best = np.fmin.accumulate(run.observed)
        gains = np.concatenate([[True], best[1:] < best[:-1]]) & np.isfinite(best)
        last = np.maximum.accumulate(np.where(gains, np.arange(len(best)), -1))
        ends.append(_first((last >= 0) & (np.arange(len(best)) - last >= window)))
    return ends


def _first(met: NDArray[np.bool_]) -> int | None:
    at = np.flatnonzero(met)
    return int(at[0]) + 1 if len(at) else None


def _stops(
    runs: Sequence[SimulatedSearch],
    problem: SearchProblem,
    setting: int,
    ends: Sequence[int | None],
    within: float,
) -> Stops:
    early: list[bool] = []
    good: list[bool] = []
    made: list[int] = []
    for run, end in zip(runs, ends, strict=True):
        n = len(run.truth)
        early.append(end is not None and end < n)
        made.append(n if end is None else end)
        best = problem.sign * best_so_far(run)
        stopped, whole = float(best[made[-1] - 1]), float(best[-1])
        ratio = stopped / whole if problem.sign < 0 else whole / stopped
        good.append(early[-1] and ratio >= 1 - within)
    return Stops(setting, float(np.mean(early)), float(np.mean(good)), float(np.mean(made)))
