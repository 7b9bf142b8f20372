"""The rule loop: rule set -> candidates -> controllers -> signature workload -> pilot, objective -> split.

The bench is controllers under their signature workload, simulated or live. The judge runs rule sets on it,
each as often as its scores vary, and scores them by the objective. The search proposes candidates and
splits rules. The last comparison says what the best rule set is worth. On a testbed the search is made in its
scenario, and what it found is chosen from and compared there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.sharp.rehearsal import rehearse
from ascar.sharp.rule_search import Found, search
from ascar.sharp.search_result import begun_search, search_result
from ascar.sharp.task import Rehearsal
from ascar.sharp.testbed_search import prove, simulated_first
from ascar.sharp.trials.judge import Judge
from ascar.sharp.verification import verify_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.history import History
    from ascar.results.rule_search import SharpSearchResult
    from ascar.sharp.task import RealTestbed, Task
    from ascar.sharp.testbed_search import RealProgress
    from ascar.sharp.trials.judge import SearchProgress
    from ascar.sharp.verification import RuleVerdict


@dataclass(frozen=True, slots=True)
class Made:
    """What the loop came to.

    Attributes:
        judge: holds the course of the search.
        found: the best rule set, and why the search ended.
        verdict: the last comparison; None: nothing was found to compare.
        result: all of it, as it is kept and printed.
    """

    judge: Judge
    found: Found
    verdict: RuleVerdict | None
    result: SharpSearchResult


def make_rules(
    task: Task, open_history: Callable[[], History], listener: Callable[[SearchProgress], None]
) -> Made:
    """Search for rules, and compare the best of them with the system as it is.

    Args:
        task: says what is asked for.
        open_history: opens the history that keeps what the search came to, once the task is known to be good.
        listener: hears of every run.

    Raises:
        InputError: the objective or a bound names what no run tells, or a journal is of another search.
        KeyboardInterrupt: the runs that have ended are kept, and a task that resumes goes on from them.
    """
    with task.bench() as bench:
        rehearsal = rehearse(task, listener)
        with (
            task.journal(bench, rehearsal) as journal,
            open_history() as history,
            history.recording(*begun_search(task), go_on=task.begin == "resume") as kept,
        ):
            limits = task.limits(rehearsal)
            judge = Judge(bench, task.objective, journal, limits, listener=listener, bounds=task.bounds)
            found = search(judge, rehearsal.plan)
            verdict = None
            if found.best is not None:
                verdict = verify_all(judge, found.best.rules, task.test, task.budget_s(rehearsal))
            result = search_result(task, judge, found, verdict, rehearsal.evaluations)
            kept.conclude(result)
    return Made(judge, found, verdict, result)


def make_rules_on_testbed(
    task: Task,
    system: RealTestbed,
    open_history: Callable[[], History],
    listener: Callable[[SearchProgress | RealProgress], None],
) -> Made:
    """Search for rules in a testbed's scenario, then compare what was found there on the testbed itself.

    Args:
        task: says what is asked for.
        system: the testbed of the task.
        open_history: opens the history that keeps what the search came to, once the task is known to be good.
        listener: hears of every run.

    Raises:
        InputError: as `make_rules`; or the testbed cannot do what its scenario has clients do.
        KeyboardInterrupt: the testbed is gone; the runs that have ended are kept, and a task that resumes
            goes on from them.
    """
    with task.bench() as bench:
        candidates = simulated_first(task, system, listener)
        rehearsal = Rehearsal(task.plan, candidates.evaluations, candidates.elapsed_s)
        with (
            task.journal(bench, rehearsal) as journal,
            open_history() as history,
            history.recording(*begun_search(task), go_on=task.begin == "resume") as kept,
        ):
            judge = Judge(bench, task.objective, journal, bounds=task.bounds)
            until_s = task.budget_s(rehearsal)
            proven = prove(task, system, judge, candidates, until_s=until_s, listener=listener)
            if proven.best is not None:
                judge.take_as_best(proven.best)
            found = Found(proven.best, proven.stopped)
            result = search_result(
                task, judge, found, proven.verdict, rehearsal.evaluations, proof=proven.proof
            )
            kept.conclude(result)
    return Made(judge, found, proven.verdict, result)
