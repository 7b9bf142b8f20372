"""A search for rules as it was asked for, and carried out."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ascar.objective import Objective
    from ascar.pilot.turns import InTurns, PairTest
    from ascar.sharp import Bench, Found, Judge, Moment, Plan, SimulatedBench
    from ascar.sharp.journal import Begin
    from ascar.sharp.live import LiveBench
    from ascar.simulation import Scenario

_FIRST_SHARE = 1 / 3
_SEARCH_SHARE = 0.9  # of the budget; the rest is for the last comparison


@dataclass(frozen=True, slots=True)
class Live:
    """Controllers behind a message server, as a system that rules are made for.

    Attributes:
        name: for people: the workload's, or "controllers".
        workload: whose controllers; None: all.
        connection: file of it; None: found elsewhere.
        settle_s: left out of a run.
        run_s: length of a run.
    """

    name: str
    workload: str | None
    connection: Path | None
    settle_s: float
    run_s: float

    def bench(self, objective: Objective, stack: ExitStack) -> LiveBench:
        """The controllers that are there; what is on trial at the end is taken back.

        Raises:
            MessagingError: nobody is there.
        """
        from ascar.messaging import Background, find_settings
        from ascar.sharp.deployment import ManagedSystem
        from ascar.sharp.live import LiveBench

        settings = find_settings("manager", self.connection)
        background = stack.enter_context(Background())
        trial_s = min(3_600.0, 3 * (self.settle_s + self.run_s) + 30)
        system = ManagedSystem(background, settings, self.workload, trial_s=trial_s)
        stack.callback(system.close)
        return LiveBench(system, objective, self.settle_s, self.run_s)


@dataclass(frozen=True, slots=True)
class Ends:
    """When a search ends at the latest.

    Attributes:
        evaluations: runs of the search; None: any number.
        budget_s: for all of it, the last comparison included; None: any time.
    """

    evaluations: int | None
    budget_s: float | None


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked for.

    Attributes:
        system: that rules are made for.
        also: scenarios that each run is made in, too.
        first_in: simulation in which the search begins; None: it begins on the system.
        objective: what is searched for.
        plan: how.
        ends: of the search.
        test: of the last comparison.
        threads: runs at a time; None: one a core.
        out: file of the rule set.
        begin: of the journals.
    """

    system: Scenario | Live
    also: tuple[Scenario, ...]
    first_in: Scenario | None
    objective: Objective
    plan: Plan
    ends: Ends
    test: PairTest
    threads: int | None
    out: Path
    begin: Begin


@dataclass(frozen=True, slots=True)
class Done:
    """What came out.

    Attributes:
        judge: with the course of the search.
        found: the rule set.
        verdict: the last comparison; None: nothing was found to compare.
        first_evaluations: runs in the simulation that the search began in.
    """

    judge: Judge
    found: Found
    verdict: InTurns | None
    first_evaluations: int = 0


def plan_from(schedule: str, start: Path | None, patience: int | None, *, faithful: bool) -> Plan:
    """The plan that options describe.

    Raises:
        InputError: two of them exclude each other, or one is wrong.
    """
    from ascar.cli.sharp.files import read
    from ascar.errors import InputError
    from ascar.sharp.plan import FIRST, plan_of

    if faithful and schedule not in ("sharp", "faithful"):
        raise InputError(f"--faithful with --schedule = {schedule!r}: give one of them")
    schedule = "faithful" if faithful else schedule
    # Algorithm 1 itself never ends; ours does when epochs bring nothing.
    endless = schedule == "faithful" and patience is None
    return plan_of(schedule, FIRST if start is None else read(start).bare(), 0 if endless else patience)


def ends_of(plan: Plan, budget: str | None, evaluations: int | None) -> Ends:
    """When the search ends at the latest.

    Raises:
        InputError: nothing ends it, or the budget is no time.
    """
    from ascar.errors import InputError
    from ascar.study import duration

    budget_s = None if budget is None else duration("--budget", budget)
    if plan.patience == 0 and budget_s is None and evaluations is None:
        raise InputError("--budget, --evaluations: must be given where nothing else ends the search")
    return Ends(evaluations, budget_s)


def carry_out(task: Task, listener: Callable[[Moment], None]) -> Done:
    """Search, and compare what was found with the system as it is.

    Raises:
        InputError: the objective names what no run tells, or a journal is of another search.
        Interrupted: on the keyboard; the runs that have ended are kept.
    """
    from ascar.cli.file_output import check_new
    from ascar.cli.interrupts import Interrupted
    from ascar.sharp import SimulatedBench

    check_new(task.out, force=task.begin != "new")
    try:
        with ExitStack() as stack:
            if isinstance(task.system, Live):
                bench: Bench = task.system.bench(task.objective, stack)
            else:
                bench = SimulatedBench(task.system, task.objective, task.threads, task.also)
            if task.first_in is None:
                return _searched(task, bench, task.plan, listener)
            rehearsal = SimulatedBench(task.first_in, task.objective, task.threads)
            first = _rehearsal(task, rehearsal, listener)
            return _searched(task, bench, first.plan, listener, first)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; the runs that have ended are kept in {_journal(task).name}; "
            "go on with the same command and --resume"
        ) from None


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    plan: Plan
    evaluations: int = 0
    elapsed_s: float = 0.0


def _rehearsal(task: Task, bench: SimulatedBench, listener: Callable[[Moment], None]) -> _Rehearsal:
    """The first phase, which has a third of the time at most and any number of runs."""
    from ascar.sharp import About, Journal, Judge, Limits, rehearsed

    plan = replace(task.plan, patience=task.plan.patience or type(task.plan)().patience)
    budget_s = task.ends.budget_s
    limits = Limits(None, None if budget_s is None else _FIRST_SHARE * budget_s)
    with Journal(_journal(task, ".first"), About.of(bench, task.objective, plan), task.begin) as journal:
        judge = Judge(bench, task.objective, journal, limits, listener=listener)
        found = rehearsed(judge, plan)
        return _Rehearsal(replace(found, patience=task.plan.patience), judge.evaluations, judge.elapsed_s)


def _searched(
    task: Task,
    bench: Bench,
    plan: Plan,
    listener: Callable[[Moment], None],
    first: _Rehearsal | None = None,
) -> Done:
    from ascar.sharp import About, Journal, Judge, Limits, search, verify

    spent_s = 0.0 if first is None else first.elapsed_s
    budget_s = None if task.ends.budget_s is None else max(1.0, task.ends.budget_s - spent_s)
    limits = Limits(task.ends.evaluations, None if budget_s is None else _SEARCH_SHARE * budget_s)
    path = _journal(task)
    # A search that was cut off in its first phase has no journal of the second.
    begin = "new" if first is not None and task.begin == "resume" and not path.exists() else task.begin
    with Journal(path, About.of(bench, task.objective, plan), begin) as journal:
        judge = Judge(bench, task.objective, journal, limits, listener=listener)
        found = search(judge, plan)
        verdict = None
        if found.best is not None:
            verdict = verify(judge, found.best.rules, task.test, budget_s)
    return Done(judge, found, verdict, 0 if first is None else first.evaluations)


def _journal(task: Task, part: str = "") -> Path:
    return task.out.with_name(f"{task.out.name}{part}.journal")
