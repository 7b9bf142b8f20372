"""What a search for rules came to, as one value for the history, people and programs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from ascar.history import BegunRun, RunKind
from ascar.pilot.turns import estimates_of
from ascar.results.encode import extended
from ascar.results.rule_search import BestRules, CoursePoint, RuleVerification, SharpSearchResult
from ascar.sharp.rule_results import rule_set_result
from ascar.sharp.task import RealTestbed
from ascar.simulation import Scenario
from ascar.simulation.controlled import followers_in_words
from ascar.simulation.spread import estimate
from ascar.space import Space
from ascar.systems.machine import describe_machine

if TYPE_CHECKING:
    from ascar.results.rule_search import TestbedProof
    from ascar.sharp.rule_search import Found
    from ascar.sharp.task import Task
    from ascar.sharp.trials.judge import Judge, Judged
    from ascar.sharp.verification import RuleVerdict

TOO_FEW = "too few runs to judge one rule set"


def begun_search(task: Task) -> tuple[BegunRun, dict[str, Any]]:
    """What the history notes when a search begins: the run, and what its result is valid for."""
    system, simulated = task.system, isinstance(task.system, Scenario)
    begun = BegunRun(
        kind=RunKind.SEARCH,
        name=task.out.name,
        digest=hashlib.sha256(str(task.out.absolute()).encode()).hexdigest(),
        objective=task.objective.text,
        seed=system.seed if isinstance(system, Scenario) else 0,
        text="",
        space=Space(name=system.name),
    )
    if isinstance(system, RealTestbed):
        found = {"target": "testbed", "testbed": system.name, "scenario": system.scenario.name}
        return begun, {**found, **describe_machine()}
    target = "simulated cluster" if simulated else "controllers"
    valid_for: dict[str, Any] = {"target": target, "scenario" if simulated else "workload": system.name}
    return begun, valid_for if simulated else {**valid_for, **describe_machine()}


def search_result(
    task: Task,
    judge: Judge,
    found: Found,
    verdict: RuleVerdict | None,
    first_evaluations: int,
    *,
    proof: TestbedProof | None = None,
) -> SharpSearchResult:
    """The result of a search.

    Args:
        task: the task of the search.
        judge: the judge of the search, which holds its course.
        found: the best rule set, and why the search ended.
        verdict: the last comparison; None: nothing was found to compare.
        first_evaluations: runs in the simulation in which the search began.
        proof: what candidates did on a testbed; None: there was none.
    """
    first_in = task.system.scenario if isinstance(task.system, RealTestbed) else task.first_in
    return SharpSearchResult(
        scenario=task.system.name,
        also=len(task.also),
        first_in=None if first_in is None else first_in.name,
        first_evaluations=first_evaluations,
        objective=judge.objective.text,
        schedule=task.plan.schedule,
        stopped=found.stopped,
        evaluations=judge.evaluations,
        epochs=judge.epoch,
        rounds=judge.round,
        elapsed_s=judge.elapsed_s,
        best=None if found.best is None else _best(judge, found.best),
        course=tuple(CoursePoint(evaluations=at, score=score) for at, score in judge.course),
        verification=_verification(verdict),
        out=str(task.out),
        followers=followers_in_words(task.followers),
        testbed=proof,
    )


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


def _verification(verdict: RuleVerdict | None) -> RuleVerification:
    gain = None if verdict is None else verdict.gain
    comparison = None if verdict is None or gain is None else verdict.comparison
    means = None if comparison is None else comparison.means
    return RuleVerification(
        kind="not-verified" if verdict is None else verdict.kind,
        best_mean=None if means is None else means[1],
        default_mean=None if means is None else means[0],
        **estimates_of(comparison),
        p_value=None if gain is None else gain.p_value,
        pairs=0 if gain is None else gain.pairs,
        note=TOO_FEW if verdict is None else verdict.note,
        figures=() if verdict is None else verdict.figures,
        groups=() if verdict is None else verdict.groups,
        bounds=() if verdict is None else verdict.bounds,
    )
