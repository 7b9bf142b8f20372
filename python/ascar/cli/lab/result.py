"""What a comparison of optimizers found, as tables for people and as a document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ascar.lab.simulation import built
from ascar.render import percentage
from ascar.results.encode import extended
from ascar.results.lab import LabOptimizersResult, LabProblem, OptimizerScore, SweptScore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from ascar.lab import CheckpointSummary, Results
    from ascar.lab.request import Request

_SIGNIFICANT = 0.05


def result_of(
    request: Request,
    results: Results,
    sweeps: Mapping[str, Results],
    missing: int,
    plots: Sequence[Path],
) -> LabOptimizersResult:
    """The result of a comparison of optimizers."""
    truth = {one.name: built(one) for one in (*request.problems, *request.restricted.values())}
    return LabOptimizersResult(
        optimizers=_scores(results.overall),
        problems=tuple(
            LabProblem(
                name=name,
                best=truth[name].sign * truth[name].best,
                median=truth[name].sign * truth[name].median,
                optimizers=_scores(by_name),
            )
            for name, by_name in results.problems.items()
        ),
        comparisons=tuple(results.comparisons),
        ranks=tuple(results.ranks),
        sweeps=tuple(SweptScore(name=name, optimizers=_scores(one.overall)) for name, one in sweeps.items()),
        runs_missing=missing,
        plots=tuple(str(path) for path in plots),
    )


def _scores(by_name: Mapping[str, Sequence[CheckpointSummary]]) -> tuple[OptimizerScore, ...]:
    return tuple(
        extended(OptimizerScore, summaries[-1], name=name, checkpoints=tuple(summaries))
        for name, summaries in by_name.items()
    )


def print_results(console: Console, results: Results, sweeps: Mapping[str, Results], missing: int) -> None:
    """Tables."""
    for name, by_name in results.problems.items():
        _table(console, name, by_name)
    if len(results.problems) > 1:
        _table(console, f"mean over {len(results.problems)} problems", results.overall)
        _ranks(console, results)
    _tests(console, results)
    for name, one in sweeps.items():
        for problem, by_name in one.problems.items():
            _table(console, f"{name} on {problem}", by_name)
    if missing:
        console.print(f"{missing} runs are missing: the budget was over before them")


def _table(console: Console, title: str, by_name: Mapping[str, Sequence[CheckpointSummary]]) -> None:
    from rich.table import Table

    marks = [one.evaluations for one in next(iter(by_name.values()))]
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("optimizer")
    for mark in marks:
        table.add_column(f"regret at {mark}", justify="right")
    for heading in ("near best", "true/best", "reported/true", "ask+tell", "a run", "runs"):
        table.add_column(heading, justify="right")
    for name, summaries in sorted(by_name.items(), key=lambda item: item[1][-1].regret_mean):
        last = summaries[-1]
        table.add_row(
            name,
            *(_regret(one) for one in summaries),
            percentage(last.near_optimal_share, 0),
            f"{last.recommended_true_over_best:.3f}",
            f"{last.reported_over_true:.3f}",
            f"{last.ask_tell_ms:.2f} ms",
            f"{last.seconds_per_run:.3g} s",
            str(last.runs),
        )
    console.print(table)
    console.print()


def _regret(one: CheckpointSummary) -> str:
    half = (one.regret_ci[1] - one.regret_ci[0]) / 2
    return f"{one.regret_mean:.3f}" if math.isnan(half) else f"{one.regret_mean:.3f} ±{half:.3f}"


def _ranks(console: Console, results: Results) -> None:
    for place, one in enumerate(results.ranks, 1):
        console.print(
            f"{place:3d}. {one.name}: mean rank {one.rank_mean:.2f}, first on {one.first} of {one.problems}"
        )
    console.print()


def _tests(console: Console, results: Results) -> None:
    """How the best of each problem compares with the others."""
    for problem, by_name in results.problems.items():
        best = min(by_name, key=lambda name: by_name[name][-1].regret_mean)
        surely = [
            other
            for one in results.comparisons
            if one.problem == problem and best in (one.one, one.other) and one.p_value_holm < _SIGNIFICANT
            for other in (one.other if one.one == best else one.one,)
        ]
        if len(by_name) > 1:
            rest = [name for name in by_name if name != best and name not in surely]
            parts = [f"better than {', '.join(surely)}"] if surely else []
            parts += [f"not told apart from {', '.join(rest)}"] if rest else []
            console.print(f"{problem}: {best} is first; {'; '.join(parts)}", soft_wrap=True)
    if any(len(by_name) > 1 for by_name in results.problems.values()):
        test = "Wilcoxon's signed-rank test on the regrets of the same seeds, Holm-corrected"
        console.print(f"({test}, p < {_SIGNIFICANT:g})")
    console.print()
