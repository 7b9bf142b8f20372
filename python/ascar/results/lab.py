"""The result of `ascar lab optimizers`."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ascar.results.measurement import Count, MaybeNan


class CheckpointSummary(msgspec.Struct, frozen=True):
    """An optimizer on one problem at one checkpoint: means over runs.

    Attributes:
        contender: the label of the optimizer.
        problem: the name of the problem.
        runs: the number of runs.
        evaluations: the number of evaluations at the checkpoint.
        regret_mean: the mean of (truth of the recommended - best) / (median - best): 0 is the best value and
            1 the table's median.
        regret_ci: the 95% interval of the mean regret over runs (Student's t); null with one run.
        near_optimal_share: the share of runs whose recommendation is truly within 1% of the best value.
        recommended_true_over_best: the true value of the recommended over the best value, or its inverse for
            a minimised objective, so that 1 is the best.
        reported_over_true: the reported value of the recommended over its true value.
        ask_tell_ms: the median over runs of the mean time of an ask and its tell.
        seconds_per_run: the mean time of a run inside the optimizer.
    """

    not_in_document: ClassVar[tuple[str, ...]] = ("contender", "problem", "runs")

    contender: str
    problem: str
    runs: Count
    evaluations: Count
    regret_mean: float
    regret_ci: tuple[MaybeNan, MaybeNan]
    near_optimal_share: float
    recommended_true_over_best: MaybeNan
    reported_over_true: MaybeNan
    ask_tell_ms: float
    seconds_per_run: float


class OptimizerScore(CheckpointSummary, frozen=True, kw_only=True):
    """An optimizer after the last evaluation.

    Attributes:
        name: the label of the optimizer.
        checkpoints: one summary for each checkpoint, the last evaluation's included.
    """

    not_in_document: ClassVar[tuple[str, ...]] = ("contender", "problem")

    name: str
    checkpoints: tuple[CheckpointSummary, ...]


class LabProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the laboratory, with its results.

    Attributes:
        name: the name of the problem.
        best: the best true value.
        median: the median true value.
        optimizers: the scores of the optimizers.
    """

    name: str
    best: float
    median: float
    optimizers: tuple[OptimizerScore, ...]


class OptimizerComparison(msgspec.Struct, frozen=True):
    """Two optimizers on one problem, by the regrets of the same seeds.

    Attributes:
        problem: the name of the problem.
        one: the label of an optimizer.
        other: the label of another optimizer.
        runs: the number of seeds that both optimizers ran with.
        regret_difference: the mean regret of the one minus that of the other; below zero, the one is better.
        p_value: the two-sided p-value of Wilcoxon's signed-rank test.
        p_value_holm: the p-value, corrected for all pairs of optimizers on all problems (Holm 1979).
    """

    problem: str
    one: str
    other: str
    runs: Count
    regret_difference: float
    p_value: float
    p_value_holm: float


class OptimizerRank(msgspec.Struct, frozen=True):
    """An optimizer across problems.

    Attributes:
        name: the label of the optimizer.
        rank_mean: the mean over problems of its rank by mean regret; 1 is the best, and equals share a rank.
        problems: the number of problems.
        first: the number of problems on which no other optimizer has a lower mean regret.
    """

    name: str
    rank_mean: float
    problems: Count
    first: Count


class SweptScore(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a sweep, with its results.

    Attributes:
        name: the value of the sweep, as KIND.OPTION=VALUE.
        optimizers: the scores of the optimizers.
    """

    name: str
    optimizers: tuple[OptimizerScore, ...]


class LabOptimizersResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/lab-optimizers/1",
):
    """How optimizers compare, by simulated searches whose truth is known.

    Attributes:
        optimizers: the means over the problems, each with the same weight.
        problems: the problems with their scores.
        comparisons: pairs of optimizers after the last evaluation.
        ranks: the optimizers by mean rank, the best first.
        sweeps: the values of sweeps with their scores.
        runs_missing: the number of runs that the budget did not allow.
        plots: the files of the plots.
    """

    optimizers: tuple[OptimizerScore, ...]
    problems: tuple[LabProblem, ...]
    comparisons: tuple[OptimizerComparison, ...]
    ranks: tuple[OptimizerRank, ...]
    sweeps: tuple[SweptScore, ...]
    runs_missing: Count
    plots: tuple[str, ...]
