"""A first phase in simulation: what it found is where the search on the real system begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.sharp.plan import SearchPlan
from ascar.sharp.rule_search import search
from ascar.sharp.task import Rehearsal
from ascar.sharp.trials.bench import SimulatedBench
from ascar.sharp.trials.judge import Judge
from ascar.sharp.trials.run_journal import About, Journal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.sharp.task import Task
    from ascar.sharp.trials.judge import SearchProgress


def rehearse(task: Task, listener: Callable[[SearchProgress], None]) -> Rehearsal:
    """Make the first phase of a search that begins in a simulation; else its plan as it is."""
    if task.first_in is None:
        return Rehearsal(task.plan)
    bench = SimulatedBench(
        task.first_in, task.objective, task.threads, bounds=task.bounds, followers=task.followers
    )
    plan = replace(task.plan, patience=task.plan.patience or SearchPlan().patience)
    about = About.of(bench, task.objective, plan, task.bounds)
    with Journal(task.journal_path(".first"), about, task.begin) as journal:
        limits = task.first_limits()
        judge = Judge(bench, task.objective, journal, limits, listener=listener, bounds=task.bounds)
        found = rehearsed(judge, plan)
        return Rehearsal(replace(found, patience=task.plan.patience), judge.evaluations, judge.elapsed_s)


def rehearsed(judge: Judge, plan: SearchPlan) -> SearchPlan:
    """Search on a bench that costs little; the plan for the one that counts.

    That begins with every rule set that was the best for a while, the latest first: where the simulation
    errs in what it found last, something simpler still serves. The sweep is made again only when less than
    half of the gain that was found in simulation comes true: a model of another load misleads.

    Args:
        judge: the judge of the simulation.
        plan: the plan, of the schedule "sharp".

    Raises:
        InputError: the plan is of another schedule.
    """
    if plan.schedule != "sharp":
        raise InputError(f"schedule = {plan.schedule!r}: only 'sharp' has two phases")
    search(judge, plan)
    found = dict.fromkeys(one.rules for one in reversed(judge.best_in_order))
    others = tuple(rules for rules in found if rules != plan.start)
    hoped = judge.best_in_order[-1].gain(judge.best_in_order[0]) if others else None
    return replace(plan, others=others, hoped=hoped)
