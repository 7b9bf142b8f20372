"""The result of `ascar lab optimizers`."""

from __future__ import annotations

import msgspec

from ascar.results.measurement import Count


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An optimizer after so many evaluations.

    Attributes:
        evaluations: after which the recommendation is judged.
        regret_mean: of the recommended: 0 the best, 1 the table's median.
        regret_ci: 95% interval over runs; null with one run.
        near_optimal_share: share of runs whose recommendation is within 1% of the best.
        reported_over_true: of the recommended; 1: what is reported is what one gets.
        ask_tell_ms: median over runs of the mean time of one ask and its tell.
        seconds_per_run: inside the optimizer.
    """

    evaluations: Count
    regret_mean: float
    regret_ci: tuple[float | None, ...]
    near_optimal_share: float
    recommended_true_over_best: float | None
    reported_over_true: float | None
    ask_tell_ms: float
    seconds_per_run: float


class OptimizerScore(msgspec.Struct, frozen=True, kw_only=True):
    """An optimizer after the last evaluation.

    Attributes:
        evaluations: after which the recommendation is judged.
        regret_mean: of the recommended: 0 the best, 1 the table's median.
        regret_ci: 95% interval over runs; null with one run.
        near_optimal_share: share of runs whose recommendation is within 1% of the best.
        reported_over_true: of the recommended; 1: what is reported is what one gets.
        ask_tell_ms: median over runs of the mean time of one ask and its tell.
        seconds_per_run: inside the optimizer.
        checkpoints: after fewer evaluations, the last one included.
    """

    name: str
    runs: Count
    evaluations: Count
    regret_mean: float
    regret_ci: tuple[float | None, ...]
    near_optimal_share: float
    recommended_true_over_best: float | None
    reported_over_true: float | None
    ask_tell_ms: float
    seconds_per_run: float
    checkpoints: tuple[Checkpoint, ...]


class LabProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the laboratory, with its results.

    Attributes:
        best: the best true value.
        median: the true value of the middling configuration.
    """

    name: str
    best: float
    median: float
    optimizers: tuple[OptimizerScore, ...]


class OptimizerComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two optimizers on one problem.

    Attributes:
        runs: seeds that both have.
        regret_difference: below zero: the one is better.
        p_value: Wilcoxon's signed-rank test.
        p_value_holm: corrected for all comparisons.
    """

    problem: str
    one: str
    other: str
    runs: Count
    regret_difference: float
    p_value: float
    p_value_holm: float


class OptimizerRank(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of an optimizer over all problems.

    Attributes:
        rank_mean: over problems, by mean regret; 1 is the best.
        first: problems on which no other is better.
    """

    name: str
    rank_mean: float
    problems: Count
    first: Count


class SweptScore(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a sweep, with its results.

    Attributes:
        name: KIND.OPTION.
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
        optimizers: means over the problems, each with the same weight.
        comparisons: pairs of optimizers after the last evaluation.
        ranks: the best first.
        runs_missing: the budget was over before them.
    """

    optimizers: tuple[OptimizerScore, ...]
    problems: tuple[LabProblem, ...]
    comparisons: tuple[OptimizerComparison, ...]
    ranks: tuple[OptimizerRank, ...]
    sweeps: tuple[SweptScore, ...]
    runs_missing: Count
    plots: tuple[str, ...]
