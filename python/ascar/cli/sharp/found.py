"""What a search for rules came to, as tables for people and as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.cli.sharp.files import estimates_of
from ascar.render import duration, number, p_value
from ascar.results.encode import extended
from ascar.results.sharp import BestRules, CoursePoint, RuleVerification, SharpSearchResult
from ascar.sharp.rule_results import rule_set_result
from ascar.simulation.spread import estimate

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ascar.loops.rules import Made
    from ascar.pilot.turns import InTurns
    from ascar.sharp import Judge, Judged, RuleSet
    from ascar.sharp.task import Task

_STOPPED = {
    "evaluations": "all evaluations were used",
    "time": "the time was spent",
    "no-gain": "epochs brought nothing more",
    "rules": "no more rules are allowed",
}
_TOO_FEW = "too few runs to judge one rule set"
_INFINITE = 2_147_483_647
_RULES_SHOWN = 64


def result_of(task: Task, made: Made, out: Path) -> SharpSearchResult:
    """The result of a search.

    Args:
        task: the task of the search.
        made: the rules that it made.
        out: the file of the best rule set.
    """
    judge, found = made.judge, made.found
    return SharpSearchResult(
        scenario=task.system.name,
        also=len(task.also),
        first_in=None if task.first_in is None else task.first_in.name,
        first_evaluations=made.first_evaluations,
        objective=judge.objective.text,
        schedule=task.plan.schedule,
        stopped=found.stopped,
        evaluations=judge.evaluations,
        epochs=judge.epoch,
        rounds=judge.round,
        elapsed_s=judge.elapsed_s,
        best=None if found.best is None else _best(judge, found.best),
        course=tuple(CoursePoint(evaluations=at, score=score) for at, score in judge.course),
        verification=_verification(made.verdict),
        out=str(out),
    )


def print_found(console: Console, task: Task, made: Made) -> None:
    """The rules, how they were found, and what they are worth."""
    from ascar.sharp.task import Live

    judge, found = made.judge, made.found
    if found.best is not None:
        console.print(rules_table(found.best.observed))
    before = f"{made.first_evaluations} runs in simulation first; " if made.first_evaluations else ""
    console.print(
        f"{before}{judge.evaluations} runs, {judge.epoch} epochs, {judge.round} rounds in "
        f"{duration(judge.elapsed_s)}; {_STOPPED[found.stopped]}",
        soft_wrap=True,
        markup=False,
    )
    pairs = "pairs of fresh intervals" if isinstance(task.system, Live) else "pairs on fresh seeds"
    console.print(_words(judge, made.verdict, pairs), soft_wrap=True, markup=False)


def _best(judge: Judge, best: Judged) -> BestRules:
    finite = [judge.objective.sign * one for one in best.scores if abs(one) != float("inf")]
    score = estimate(finite) if finite else None
    return extended(
        BestRules,
        rule_set_result(best.observed),
        score=None if score is None else score.mean,
        score_low=None if score is None else score.ci_low,
        score_high=None if score is None else score.ci_high,
        runs=len(best.scores),
    )


def _verification(verdict: InTurns | None) -> RuleVerification:
    means = None if verdict is None or verdict.kind == "not-verified" else verdict.means
    gain = None if verdict is None or means is None else verdict.gain
    return RuleVerification(
        kind="not-verified" if verdict is None else verdict.kind,
        best_mean=None if means is None else means[1],
        default_mean=None if means is None else means[0],
        **estimates_of(None if gain is None else verdict),
        p_value=None if gain is None else gain.p_value,
        pairs=0 if gain is None else gain.pairs,
        note=_TOO_FEW if verdict is None else verdict.note,
    )


def _words(judge: Judge, verdict: InTurns | None, pairs: str) -> str:
    """The verdict in one line."""
    if verdict is None:
        return f"not verified: {_TOO_FEW}"
    if verdict.kind == "not-verified" or verdict.gain is None or verdict.means is None:
        return f"not verified: {verdict.note}"
    head, gain = "improved" if verdict.improved else "the default is fine", verdict.gain
    default, best = verdict.means
    return (
        f"{head}: {gain.words} in {judge.objective.unit}, above zero is better; "
        f"{number(best)} against {number(default)}; {p_value(gain.p_value)}, {gain.pairs} {pairs}; "
        f"{verdict.note}"
    )


def rules_table(rules: RuleSet) -> Any:
    """Rules, a line each, with the share of the times that one of them was used."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("rule", "ack ms", "send ms", "pt ratio", "m", "b", "tau ms", "used"):
        table.add_column(heading, justify="right")
    used = sum(0 if rule.observed is None else rule.observed.used_times for rule in rules.rules) or 1
    for at, rule in enumerate(rules.rules[:_RULES_SHOWN], start=1):
        scales = (1_000, 1_000, 100)
        bounds = [
            f"{one.lo / scale:g}-{'' if one.hi == _INFINITE else f'{one.hi / scale:g}'}"
            for one, scale in zip(rule.region[:3], scales, strict=True)
        ]
        action = rule.action
        table.add_row(
            str(at),
            *bounds,
            "1" if action.m100 < 0 else f"{action.m100 / 100:g}",
            f"{action.b100 / 100:g}",
            f"{action.tau_us / 1_000:g}",
            f"{0 if rule.observed is None else rule.observed.used_times / used:.0%}",
        )
    return table
