"""All that a comparison of optimizers says: each on each problem, all problems together, tests and ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.lab.ranking import compare, ranks
from ascar.lab.simulation import built
from ascar.lab.summary import regrets, summarize
from ascar.results.lab import CheckpointSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.lab.simulation import SimulatedSearch
    from ascar.lab.work import Experiment
    from ascar.results.lab import OptimizerComparison, OptimizerRank


@dataclass(frozen=True, slots=True)
class Results:
    """See the module.

    Attributes:
        problems: one summary for each checkpoint, by problem and optimizer; the last evaluation's summary
            comes last.
        overall: one summary for each checkpoint, by optimizer: means over the problems that it has runs on.
        comparisons: pairs of optimizers on each problem, after the last evaluation.
        ranks: optimizers by their mean rank, the best first.
    """

    problems: Mapping[str, Mapping[str, Sequence[CheckpointSummary]]]
    overall: Mapping[str, Sequence[CheckpointSummary]]
    comparisons: Sequence[OptimizerComparison]
    ranks: Sequence[OptimizerRank]

    @classmethod
    def of(cls, runs: Mapping[Experiment, Sequence[SimulatedSearch]]) -> Results:
        """What finished runs say; experiments without any are left out."""
        problems: dict[str, dict[str, list[CheckpointSummary]]] = {}
        by_seed: dict[str, dict[str, dict[int, float]]] = {}
        for experiment, done in runs.items():
            if not done:
                continue
            problem, name = built(experiment.specification), experiment.contender.label
            summaries = summarize(done, problem, experiment.budget.judged)
            problems.setdefault(experiment.specification.name, {})[name] = summaries
            last = regrets(done, problem, len(summaries) - 1)
            by_seed.setdefault(experiment.specification.name, {})[name] = {
                run.seed: float(regret) for run, regret in zip(done, last, strict=True)
            }
        names = list(dict.fromkeys(name for by_name in problems.values() for name in by_name))
        overall = {name: _together([one[name] for one in problems.values() if name in one]) for name in names}
        means = {
            problem: {name: summaries[-1].regret_mean for name, summaries in by_name.items()}
            for problem, by_name in problems.items()
        }
        return cls(problems, overall, compare(by_seed), ranks(means))


def _together(summaries: Sequence[Sequence[CheckpointSummary]]) -> list[CheckpointSummary]:
    """One summary a checkpoint over problems, each with the same weight."""
    return [_mean([one[index] for one in summaries]) for index in range(len(summaries[0]))]


def _mean(summaries: Sequence[CheckpointSummary]) -> CheckpointSummary:
    if len(summaries) == 1:
        return summaries[0]

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(values))

    regret = mean([one.regret_mean for one in summaries])
    # The problems' means are independent: their variances add up.
    halves = np.array([(one.regret_ci[1] - one.regret_ci[0]) / 2 for one in summaries])
    half = float(np.sqrt((halves**2).sum())) / len(summaries)
    return CheckpointSummary(
        contender=summaries[0].contender,
        problem="",
        runs=sum(one.runs for one in summaries),
        evaluations=max(one.evaluations for one in summaries),
        regret_mean=regret,
        regret_ci=(regret - half, regret + half),
        near_optimal_share=mean([one.near_optimal_share for one in summaries]),
        recommended_true_over_best=mean([one.recommended_true_over_best for one in summaries]),
        reported_over_true=mean([one.reported_over_true for one in summaries]),
        ask_tell_ms=mean([one.ask_tell_ms for one in summaries]),
        seconds_per_run=mean([one.seconds_per_run for one in summaries]),
    )
