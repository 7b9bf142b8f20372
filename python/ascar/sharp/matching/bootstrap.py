"""Filling a library: rules for each of the common workloads, and their gains on all others (Li, 3.1.7).

Three passes, each of which goes on where it was left: features of every workload; a search for each common
one; gains of every rule set on every workload. Runs of searches are in journals beside the library, all else
in the library itself.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.library.entries import GainEntry
from ascar.sharp.matching.gains import gains
from ascar.sharp.matching.observation import observed
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.rule_search import search
from ascar.sharp.trials.bench import SimulatedBench
from ascar.sharp.trials.judge import Judge, SearchLimits
from ascar.sharp.trials.run_journal import About, Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ascar.library.store import Library
    from ascar.objective import Objective
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.trials.run_journal import Begin
    from ascar.simulation import Scenario


@dataclass(frozen=True, slots=True)
class Effort:
    """What a bootstrap may take.

    Attributes:
        plan: the plan of each search.
        evaluations: the most evaluations of each search.
        pairs: the number of pairs of runs for each gain.
        threads: the number of runs at a time; None: one a core.
        budget_s: the budget of this call; None: until all is done.
    """

    plan: SearchPlan
    evaluations: int = 500
    pairs: int = 4
    threads: int | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range.
        """
        if self.evaluations < 1 or self.pairs < 1:
            raise InputError(
                f"evaluations = {self.evaluations}, pairs = {self.pairs}: must be 1 or more each"
            )
        if self.budget_s is not None and not self.budget_s > 0:
            raise InputError(f"budget = {self.budget_s} s: must be above zero")


@dataclass(frozen=True, slots=True)
class Workloads:
    """What a library is filled with, by name.

    Attributes:
        common: rules are made for these.
        altered: rules are only tried on these.
    """

    common: Mapping[str, Scenario]
    altered: Mapping[str, Scenario] = field(default_factory=dict[str, "Scenario"])


@dataclass(frozen=True, slots=True)
class BootstrapProgress:
    """How far a bootstrap is.

    Attributes:
        what: "features", "search" or "gains".
        workload: the workload that the step belongs to.
        done: the steps done in this pass.
        of: the steps of this pass.
        left_s: the rest of the budget; None: there is none.
    """

    what: str
    workload: str
    done: int
    of: int
    left_s: float | None


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """What the library has after it.

    Attributes:
        complete: whether all three passes are over.
        searched: workloads that rules were found for.
        measured: gains that were added by this call.
    """

    complete: bool
    searched: int
    measured: int


def ignore(step: BootstrapProgress) -> None:
    """Listen to nothing."""


class _Spent(Exception):  # named for what happened
    """The budget is spent."""


@dataclass(slots=True)
class _Run:
    library: Library
    common: Mapping[str, Scenario]
    scenarios: Mapping[str, Scenario]
    objective: Objective
    effort: Effort
    journals: Path
    listener: Callable[[BootstrapProgress], None]
    clock: Callable[[], float]
    began_s: float
    measured: int = 0

    @property
    def left_s(self) -> float | None:
        budget_s = self.effort.budget_s
        return None if budget_s is None else budget_s - (self.clock() - self.began_s)

    def tell(self, what: str, workload: str, done: int) -> None:
        """Tell the listener.

        Raises:
            _Spent: there is no time left.
        """
        left_s = self.left_s
        if left_s is not None and left_s <= 0:
            raise _Spent
        self.listener(
            BootstrapProgress(
                what, workload, done, len(self.common if what == "search" else self.scenarios), left_s
            )
        )

    def features(self) -> None:
        for done, (name, scenario) in enumerate(self.scenarios.items()):
            if name not in self.library.workloads:
                self.tell("features", name, done)
                self.library.add_workload(name, observed(scenario), f"simulated: {scenario.name}")

    def searches(self) -> int:
        """Rules for each; how many have some."""
        for done, name in enumerate(self.common):
            if not self._has_rules(name):
                self.tell("search", name, done)
                self._search(name)
        return sum(self._has_rules(name) for name in self.common)

    def gains(self) -> None:
        text = self.objective.text
        for done, (name, scenario) in enumerate(self.scenarios.items()):
            missing = [key for key in self._rules() if self.library.gain(key, name, text) is None]
            if not missing:
                continue
            self.tell("gains", name, done)
            bench = SimulatedBench(scenario, self.objective, self.effort.threads)
            sets = [self.library.solutions[key].rule_set for key in missing]
            found = gains(bench, self.objective, sets, self.effort.pairs)
            for key, gain in zip(missing, found, strict=True):
                if gain is not None:
                    entry = GainEntry(key, name, text, gain.mean, gain.low, gain.high, gain.pairs)
                    self.library.add_gain(entry)
                    self.measured += 1

    def _rules(self) -> list[str]:
        return [key for key, one in self.library.rules.items() if one.objective == self.objective.text]

    def _has_rules(self, workload: str) -> bool:
        """Whether its search is over."""
        return (workload, self.objective.text) in self.library.made_for

    def _search(self, name: str) -> None:
        effort, scenario = self.effort, self.scenarios[name]
        bounds = bounds_of(None)
        bench = SimulatedBench(scenario, self.objective, effort.threads, bounds=bounds)
        path = self.journals / f"{_file_name(name)}.journal"
        begin: Begin = "resume" if path.exists() else "new"
        limits = SearchLimits(effort.evaluations)
        with Journal(path, About.of(bench, self.objective, effort.plan, bounds), begin) as journal:
            known = len(journal)

            def check(_: object) -> None:
                # Runs of an earlier call are gone through again first; a call makes one new run at least.
                if len(journal) > known and self.left_s is not None and self.left_s <= 0:
                    raise _Spent

            judge = Judge(bench, self.objective, journal, limits, listener=check, bounds=bounds)
            found = search(judge, effort.plan)
        if found.best is not None:
            how = f"search {effort.plan.schedule}, {judge.evaluations} evaluations, {found.stopped}"
            self.library.add_rules(found.best.observed, name, self.objective.text, how)
        path.unlink()


def bootstrap(
    library: Library,
    workloads: Workloads,
    objective: Objective,
    effort: Effort,
    *,
    listener: Callable[[BootstrapProgress], None] = ignore,
    clock: Callable[[], float] = time.monotonic,
) -> Bootstrapped:
    """Fill a library for one objective; may be called again until it is complete.

    Args:
        library: open for writing; journals go to a directory beside it, named as it is with ".d".
        workloads: the workloads to make rules for.
        objective: the objective of the searches and gains.
        effort: the effort that it may take.
        listener: told before each part.
        clock: seconds, monotonic.

    Raises:
        InputError: a workload of the library has the name of another scenario.
        WorkError: something cannot be written.
    """
    journals = library.path.with_name(f"{library.path.name}.d") / _file_name(objective.text)
    journals.mkdir(parents=True, exist_ok=True)
    everything = {**workloads.common, **workloads.altered}
    run = _Run(library, workloads.common, everything, objective, effort, journals, listener, clock, clock())
    searched, complete = 0, True
    try:
        run.features()
        searched = run.searches()
        run.gains()
    except _Spent:
        complete = False
    return Bootstrapped(complete, searched, run.measured)


def _file_name(text: str) -> str:
    """A name of a file that stands for any text."""
    plain = "".join(one if one.isascii() and (one.isalnum() or one in "-._") else "-" for one in text)[:60]
    return f"{plain.lstrip('.')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
