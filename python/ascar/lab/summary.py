"""What many simulated searches say of an optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.results.lab import CheckpointSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.lab.problem import SearchProblem
    from ascar.lab.simulation import SimulatedSearch

NEAR_OPTIMAL = 0.99


def regrets(runs: Sequence[SimulatedSearch], problem: SearchProblem, checkpoint: int) -> NDArray[np.float64]:
    """(runs,): normalised regret at a checkpoint (its index); without a recommendation, the middling's 1."""
    truth = np.array([run.recommended[checkpoint, 0] for run in runs])
    spread = problem.median - problem.best
    regret = (truth - problem.best) / spread if spread > 0 else np.zeros(len(runs))
    return np.where(np.isfinite(regret), regret, 1.0)


def best_so_far(run: SimulatedSearch) -> NDArray[np.float64]:
    """(n,): the lowest true loss among the configurations evaluated up to each evaluation (Cao Fig. 5.2)."""
    return np.fmin.accumulate(run.truth)


def summarize(
    runs: Sequence[SimulatedSearch], problem: SearchProblem, evaluations: Sequence[int]
) -> list[CheckpointSummary]:
    """One summary a checkpoint.

    Args:
        runs: the runs of one optimizer on one problem.
        problem: the problem that the runs searched.
        evaluations: the checkpoints, in the order of `SimulatedSearch.recommended`.
    """
    return [_summary(runs, problem, index, at) for index, at in enumerate(evaluations)]


def _summary(
    runs: Sequence[SimulatedSearch], problem: SearchProblem, checkpoint: int, evaluations: int
) -> CheckpointSummary:
    regret = regrets(runs, problem, checkpoint)
    mean, half = float(regret.mean()), float("nan")
    if len(runs) > 1:
        half = _core.student_t_quantile(0.975, len(runs) - 1) * float(regret.std(ddof=1)) / len(runs) ** 0.5
    truth = np.array([run.recommended[checkpoint, 0] for run in runs])
    reported = np.array([run.recommended[checkpoint, 1] for run in runs])
    ratio = truth / problem.best if problem.sign < 0 else problem.best / truth
    spent_s = [float(run.ask_tell_s[:evaluations].sum()) for run in runs]
    each_ms = [1e3 * float(run.ask_tell_s[:evaluations].mean()) for run in runs if len(run.ask_tell_s)]
    return CheckpointSummary(
        contender=runs[0].contender,
        problem=problem.name,
        runs=len(runs),
        evaluations=evaluations,
        regret_mean=mean,
        regret_ci=(mean - half, mean + half),
        near_optimal_share=float((ratio >= NEAR_OPTIMAL).mean()),
        recommended_true_over_best=float(np.nanmean(ratio)),
        reported_over_true=float(np.nanmean(reported / truth)),
        ask_tell_ms=float(np.median(each_ms)) if each_ms else 0.0,
        seconds_per_run=float(np.mean(spent_s)),
    )
