"""What the benchmarks of SHARP share: rows of Li's Table 3.4, searches with their course, fresh runs."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import msgspec
import numpy as np

from ascar.sharp import (
    About,
    Journal,
    Judge,
    SearchLimits,
    SearchPlan,
    SimulatedBench,
    objective_of,
    rehearsed,
    search,
)
from ascar.sharp.metric_bounds import bounds_of
from ascar.simulation import preset, with_control, with_rule_text
from ascar.simulation.batch import run_many

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ascar.objective import Objective
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.simulation import ClusterOutcome, Scenario
    from ascar.simulation.controlled import Followers

FRESH = 5_000_000
"""Seeds from here on had no part in any search."""
_SEEDS_APART = 100_000
TOTAL = "throughput_mb_per_s"
_BTIO = "throughput_while_active_mb_per_s"
WINDOWS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
TAUS_US = (0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0, 60_000.0, 80_000.0)
_STATIC_SEEDS = 5
_PLAN = SearchPlan()
_BOUNDS = bounds_of(None)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Table 3.4.

    Attributes:
        name: of the scenario.
        gain_percent: published, throughput under the objective of most throughput.
        deviation_percent: published, change of the standard deviation with alpha = 1.
        figure: what its throughput is.
        followers: the streams that are controlled.
    """

    name: str
    gain_percent: int
    deviation_percent: int
    figure: str = TOTAL
    followers: Followers = None

    @property
    def scenario(self) -> Scenario:
        """The simulated one."""
        return preset(self.name)

    @property
    def even(self) -> str:
        """The objective of even throughput; BTIO has none (Table 3.4's note)."""
        return "tp-stdev:1"

    @property
    def most(self) -> str:
        """The objective of most throughput."""
        return f"maximize {self.figure}"


ROWS = (
    Row("sequential-write", 2, -54),
    Row("sequential-read", 2, -11),
    Row("random-write", 25, -55),
    Row("random-read", 3, -17),
    Row("random-shared", 5, -3),
    Row("fileserver", 16, -4),
    Row("btio-b", 29, -57, _BTIO),
    Row("btio-c", 35, -55, _BTIO),
)


@dataclass(frozen=True, slots=True)
class Course:
    """How a search went.

    Attributes:
        rules: text of what it ended with.
        evaluations: runs of the workload.
        stopped: why it ended.
        steps: after how many runs it held which rules (texts), the best so far.
        runs: after how many runs a rule set was ahead of all by the mean of its own runs: what an interrupted
            round of a published schedule could hand back at best.
    """

    rules: str
    evaluations: int
    stopped: str
    steps: list[tuple[int, str]]
    runs: list[tuple[int, str]]


def searched(row: Row, objective: str, plan: SearchPlan, number: int, evaluations: int = 4_000) -> Course:
    """Search for rules of a row; each number has seeds of its own."""
    wanted = objective_of(objective)
    bench = SimulatedBench(seeded(row.scenario, number), wanted, 1)
    with _judging(bench, wanted, plan, evaluations) as (judge, path):
        found = search(judge, plan)
        assert found.best is not None, "at least the first rule set was run"
        counts = [count for count, _ in judge.course]
        steps = [(count, one.rules.text()) for count, one in zip(counts, judge.best_in_order, strict=True)]
        ahead = _ahead(path, wanted.formula.names, judge)
    return Course(found.best.rules.text(), judge.evaluations, found.stopped, steps, ahead)


def sized(scenarios: Sequence[Scenario], objective: str, number: int, evaluations: int = 4_000) -> str:
    """Rules that serve several scenarios: text of what one search over all of them ends with."""
    wanted = objective_of(objective)
    own, *others = (seeded(one, number) for one in scenarios)
    with _judging(SimulatedBench(own, wanted, 1, others), wanted, SearchPlan(), evaluations) as (judge, _):
        found = search(judge, SearchPlan())
    assert found.best is not None, "at least the first rule set was run"
    return found.best.rules.text()


def planned(model: Scenario, objective: str, number: int, evaluations: int) -> SearchPlan:
    """The plan after a first phase in a model (`--first-in`)."""
    wanted = objective_of(objective)
    with _judging(SimulatedBench(seeded(model, number), wanted, 1), wanted, SearchPlan(), evaluations) as (
        judge,
        _,
    ):
        return rehearsed(judge, SearchPlan())


def seeded(scenario: Scenario, number: int) -> Scenario:
    """With the seeds of a search of its own."""
    return msgspec.structs.replace(scenario, seed=_SEEDS_APART * (1 + number))


def bound(
    scenarios: Sequence[Scenario],
    objective: Objective,
    evaluations: int,
    plan: SearchPlan = _PLAN,
    bounds: Sequence[MetricBound] = _BOUNDS,
    *,
    followers: Followers = None,
) -> tuple[str, int, str]:
    """A search over scenarios that keeps bounds: its rules (text), the runs of all, its end."""
    own, *others = scenarios
    bench = SimulatedBench(own, objective, None, others, bounds=bounds, followers=followers)
    with _judging(bench, objective, plan, evaluations, bounds) as (judge, _):
        found = search(judge, plan)
    assert found.best is not None, "at least the first rule set was run"
    return found.best.rules.text(), judge.evaluations * len(scenarios), found.stopped


@contextmanager
def _judging(
    bench: SimulatedBench,
    wanted: Objective,
    plan: SearchPlan,
    evaluations: int,
    bounds: Sequence[MetricBound] = (),
) -> Generator[tuple[Judge, Path]]:
    memory = Path("/dev/shm")  # a simulated run is shorter than a disk's flush
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        path = Path(folder) / "journal"
        with Journal(path, About.of(bench, wanted, plan, bounds)) as journal:
            yield Judge(bench, wanted, journal, SearchLimits(evaluations), bounds=bounds), path


def behaviour() -> str:
    """What results depend on: all rows as they are, and a search; builds that do the same share results."""
    figures = [measured(row.scenario, 1)[0].figures() for row in ROWS]
    course = searched(ROWS[2], ROWS[2].even, SearchPlan(), 0, 200)
    said = json.dumps([figures, course.rules, course.evaluations, course.steps], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def _ahead(path: Path, names: Sequence[str], judge: Judge) -> list[tuple[int, str]]:
    """Who was ahead of all when, from the journal."""
    scores: dict[str, list[float]] = {}
    ahead: list[tuple[int, str]] = []
    best, leader = -np.inf, ""
    for count, line in enumerate(path.read_text().splitlines()[1:], start=1):
        entry = json.loads(line)
        own = scores.setdefault(entry["rules"], [])
        own.append(
            judge.objective.sign * judge.objective.score({name: entry["metrics"][name] for name in names})
        )
        mean = float(np.mean(own))
        if entry["rules"] == leader:
            best = mean
        elif mean > best:
            best, leader = mean, entry["rules"]
            ahead.append((count, leader))
    return ahead


def measured(scenario: Scenario, seeds: int, first: int = FRESH) -> list[ClusterOutcome]:
    """Runs on fresh seeds."""
    wanted = [msgspec.structs.replace(scenario, seed=first + seed) for seed in range(seeds)]
    return run_many(wanted, threads=1)


def under(scenario: Scenario, rules: str, followers: Followers = None) -> Scenario:
    """The scenario under a rule set."""
    return with_rule_text(scenario, rules, followers)


def static(row: Row) -> tuple[float, float]:
    """The best of the static windows and gaps of a row, see `static_of`."""
    return static_of(row.scenario, row.figure)


def static_of(scenario: Scenario, figure: str) -> tuple[float, float]:
    """The best of the static windows and gaps (requests, microseconds), on the sweep's own seeds."""
    points = [(window, tau_us) for tau_us in TAUS_US for window in WINDOWS]
    means = [
        np.mean(
            [
                one.figure(figure)
                for one in measured(with_control(scenario, window=window, tau_us=tau_us), _STATIC_SEEDS, 0)
            ]
        )
        for window, tau_us in points
    ]
    return points[int(np.argmax(means))]


def pairs(outcomes: Sequence[ClusterOutcome], figure: str) -> list[float]:
    """A figure of each run; "even" is eq. 3.1 with alpha = 1, "tp" and "stdev" are its parts."""
    if figure == "tp":
        return [one.throughput_per_client_mb_per_s for one in outcomes]
    if figure == "stdev":
        return [one.stdev_pooled_mb_per_s for one in outcomes]
    if figure == "even":
        return [one.throughput_per_client_mb_per_s - one.stdev_pooled_mb_per_s for one in outcomes]
    return [one.figure(figure) for one in outcomes]
