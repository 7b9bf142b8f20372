"""What is asked of a search for rules: the system, the objective, the plan, its ends, its files."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ascar.sharp.deployment.managed_system import ManagedSystem, trial_length_s
from ascar.sharp.plan import FIRST, FIRST_OF_KERNELS
from ascar.sharp.trials.bench import SimulatedBench
from ascar.sharp.trials.judge import SearchLimits
from ascar.sharp.trials.live_bench import LiveBench
from ascar.sharp.trials.run_journal import About, Journal
from ascar.sharp.trials.testbed_bench import TestbedBench
from ascar.sharp.trials.testbed_places import windows_on

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from ascar.objective import Objective
    from ascar.pilot.turns import PairTest
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.trials.bench import Bench
    from ascar.sharp.trials.run_journal import Begin
    from ascar.simulation import Scenario
    from ascar.simulation.controlled import Followers
    from ascar.testbed.file import TestbedFile

_FIRST_SHARE = 1 / 3
_SEARCH_SHARE = 0.9  # of the budget; the rest is for the last comparison


@dataclass(frozen=True, slots=True)
class Live:
    """Controllers behind a message server, as a system that rules are made for.

    Attributes:
        name: the name for people: the workload's, or "controllers".
        workload: the workload of the controllers; None means all controllers.
        connection: file of it; None: found elsewhere.
        settle_s: left out of a run.
        run_s: length of a run.
    """

    name: str
    workload: str | None
    connection: Path | None
    settle_s: float
    run_s: float

    @contextmanager
    def bench(self, objective: Objective, bounds: Sequence[MetricBound]) -> Generator[LiveBench]:
        """The live controllers; rules that are on trial at the end are removed.

        Raises:
            MessagingError: nobody is there.
        """
        trial_s = trial_length_s(self.settle_s, self.run_s)
        with ManagedSystem.connected(self.workload, self.connection, trial_s=trial_s) as system:
            yield LiveBench(system, objective, self.settle_s, self.run_s, bounds=bounds)


@dataclass(frozen=True, slots=True)
class RealTestbed:
    """A testbed as a system that rules are made for, with what its clients do.

    Attributes:
        wanted: the testbed.
        scenario: the scenario of its disks, in which candidates are found first.
        runs: the largest number of runs on the testbed.
    """

    wanted: TestbedFile
    scenario: Scenario
    runs: int

    @property
    def name(self) -> str:
        """The name of the testbed."""
        return self.wanted.name

    def plan_for(self, asked: SearchPlan) -> SearchPlan:
        """The plan of a search among rules that what is on the testbed can follow.

        Raises:
            InputError: more is asked for than queues of kernels can do.
        """
        windows = windows_on(self.wanted)
        if windows is None:
            return asked
        start = FIRST_OF_KERNELS if asked.start == FIRST else asked.start
        return replace(asked, start=start, windows=windows)


@dataclass(frozen=True, slots=True)
class Ends:
    """When a search ends at the latest.

    Attributes:
        evaluations: runs of the search; None: any number.
        budget_s: the time for the whole search, the last comparison included; None sets no limit.
    """

    evaluations: int | None
    budget_s: float | None


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a first phase in simulation came to.

    Attributes:
        plan: the plan of the search on the system.
        evaluations: runs that were made.
        elapsed_s: seconds that it took; None: there was no such phase.
    """

    plan: SearchPlan
    evaluations: int = 0
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked for.

    Attributes:
        system: the system for which rules are made.
        also: scenarios that each run is made in, too.
        first_in: simulation in which the search begins; None: it begins on the system.
        objective: the objective of the search.
        bounds: the bounds that rules must keep.
        plan: the plan of the search.
        ends: the limits of the search.
        test: the test of the last comparison.
        threads: runs at a time; None: one a core.
        out: file of the rule set.
        begin: the way in which journals start.
        followers: the streams that rules are made for.
    """

    system: Scenario | Live | RealTestbed
    also: tuple[Scenario, ...]
    first_in: Scenario | None
    objective: Objective
    bounds: tuple[MetricBound, ...]
    plan: SearchPlan
    ends: Ends
    test: PairTest
    threads: int | None
    out: Path
    begin: Begin
    followers: Followers = None

    @contextmanager
    def bench(self) -> Generator[Bench]:
        """The system under its signature workload.

        Raises:
            InputError: the objective or a bound names what no run tells, or a testbed cannot do what its
                scenario has clients do.
            MessagingError: no controllers are there.
        """
        if isinstance(self.system, Live):
            with self.system.bench(self.objective, self.bounds) as live:
                yield live
        elif isinstance(self.system, RealTestbed):
            yield TestbedBench(self.system.wanted, self.system.scenario, self.objective, bounds=self.bounds)
        else:
            yield SimulatedBench(
                self.system,
                self.objective,
                self.threads,
                self.also,
                bounds=self.bounds,
                followers=self.followers,
            )

    def journal(self, bench: Bench, rehearsal: Rehearsal) -> Journal:
        """Of the runs on the system.

        Raises:
            InputError: it is there, and of another search.
        """
        path = self.journal_path()
        # A search that was cut off in its first phase has no journal of the second.
        is_first = rehearsal.elapsed_s is not None and self.begin == "resume" and not path.exists()
        about = About.of(bench, self.objective, rehearsal.plan, self.bounds)
        return Journal(path, about, "new" if is_first else self.begin)

    def journal_path(self, part: str = "") -> Path:
        """The file in which runs are written down."""
        return self.out.with_name(f"{self.out.name}{part}.journal")

    def budget_s(self, rehearsal: Rehearsal) -> float | None:
        """For the search on the system and the last comparison; None: any time."""
        if self.ends.budget_s is None:
            return None
        return max(1.0, self.ends.budget_s - (rehearsal.elapsed_s or 0.0))

    def limits(self, rehearsal: Rehearsal) -> SearchLimits:
        """Of the search on the system."""
        budget_s = self.budget_s(rehearsal)
        return SearchLimits(self.ends.evaluations, None if budget_s is None else _SEARCH_SHARE * budget_s)

    def first_limits(self) -> SearchLimits:
        """Of the first phase, which has a third of the time at most and any number of runs."""
        budget_s = self.ends.budget_s
        return SearchLimits(None, None if budget_s is None else _FIRST_SHARE * budget_s)
