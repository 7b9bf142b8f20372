"""Carrying out experiments on all cores: what is missing is simulated, in an order fair at any time."""

from __future__ import annotations

import os
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ascar.errors import AscarError, WorkError
from ascar.lab.identity import key_of
from ascar.lab.simulation import simulate, worker_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import ProcessPoolExecutor

    from ascar.lab.archive import Archive
    from ascar.lab.problem import Specification
    from ascar.lab.simulation import Budget, Contender, SimulatedSearch

_TASK_S = 1.0  # so much work is given to a worker at once
_FLUSH_S = 15.0


@dataclass(frozen=True)
class Experiment:
    """A contender on a problem.

    Attributes:
        specification: the problem's recipe.
        contender: the optimizer.
        budget: the number of runs and of evaluations in each.
    """

    specification: Specification
    contender: Contender
    budget: Budget

    @cached_property
    def key(self) -> str:
        """Of everything that its runs depend on but their seed."""
        return key_of(self.specification, self.contender, self.budget)


@dataclass(frozen=True, slots=True)
class Conduct:
    """How experiments are carried out.

    Attributes:
        budget_s: nothing is begun later than this; None: no limit.
        workers: processes; None: one a core; 0: in this process.
        slow_s: an optimizer that takes longer than this a run is given fewer runs.
        runs_slow: the number of runs that such an optimizer is given; None: the same number as the others.
    """

    budget_s: float | None = None
    workers: int | None = None
    slow_s: float = 10.0
    runs_slow: int | None = None


@dataclass(frozen=True, slots=True)
class LabProgress:
    """How far the work has come.

    Attributes:
        done: runs that are finished, those of earlier times included.
        wanted: runs in all.
        left_s: seconds that the rest will take; None while unknown.
        latest: the run that finished last, for people.
    """

    done: int
    wanted: int
    left_s: float | None
    latest: str


@dataclass(slots=True)
class _Progress:
    """Of one experiment."""

    experiment: Experiment
    runs: list[SimulatedSearch]
    missing: list[int]
    given: int = 0  # seeds that a worker has
    spent_s: float = 0.0
    finished: int = 0
    unsaved: list[SimulatedSearch] = field(default_factory=list["SimulatedSearch"])

    @property
    def each_s(self) -> float | None:
        """Seconds a run takes a worker; None while unknown."""
        if self.finished:
            return self.spent_s / self.finished
        if self.runs:
            return sum(float(run.ask_tell_s.sum()) for run in self.runs) / len(self.runs)
        return None

    def trim(self, conduct: Conduct) -> None:
        """A slow optimizer is given fewer runs."""
        if conduct.runs_slow is not None and self.each_s is not None and self.each_s > conduct.slow_s:
            last = self.experiment.budget.seed + conduct.runs_slow
            self.missing = [seed for seed in self.missing if seed < last]

    def take(self) -> list[int]:
        """Seeds for a worker: about a second's work."""
        count = 1 if self.each_s is None else max(1, min(16, int(_TASK_S / max(self.each_s, 1e-3))))
        seeds, self.missing = self.missing[:count], self.missing[count:]
        self.given += len(seeds)
        return seeds


def carry_out(
    experiments: Sequence[Experiment],
    archive: Archive | None,
    conduct: Conduct,
    each: Callable[[LabProgress], None] | None = None,
) -> dict[Experiment, list[SimulatedSearch]]:
    """Simulate what the archive does not have; seeds go first to the experiments that have the fewest.

    Args:
        experiments: the experiments to complete.
        archive: the archive of finished runs; None: nothing is kept.
        conduct: budget and processes.
        each: told as runs finish.

    Returns:
        The runs of each experiment, by their seeds; fewer than wanted where the budget ended it, or where it
        is slow (see `Conduct`).

    Raises:
        WorkError: an optimizer failed; runs finished before that are kept.
    """
    work: list[_Progress] = []
    for one in experiments:
        known = [] if archive is None else archive.load(one)
        seeds = {run.seed for run in known}
        wanted = range(one.budget.seed, one.budget.seed + one.budget.runs)
        work.append(_Progress(one, known, [seed for seed in wanted if seed not in seeds]))
    workers = (os.cpu_count() or 1) if conduct.workers is None else conduct.workers
    try:
        if any(progress.missing for progress in work):
            if workers == 0:
                _Worker(work, conduct, archive, each).alone()
            else:
                with worker_pool(workers) as pool:
                    _Worker(work, conduct, archive, each).together(pool, workers)
    finally:
        _flush(work, archive)
    return {progress.experiment: sorted(progress.runs, key=lambda run: run.seed) for progress in work}


class _Worker:
    """Gives out seeds, and takes in runs."""

    def __init__(
        self,
        work: list[_Progress],
        conduct: Conduct,
        archive: Archive | None,
        each: Callable[[LabProgress], None] | None,
    ) -> None:
        self._work, self._conduct, self._archive, self._each = work, conduct, archive, each
        self._begun_s = self._flushed_s = time.monotonic()
        self._workers = 1

    def alone(self) -> None:
        """In this process."""
        while (task := self._next()) is not None:
            start_s = time.perf_counter()
            self._take(task[0], _simulated(task[0].experiment, task[1]), time.perf_counter() - start_s)

    def together(self, pool: ProcessPoolExecutor, workers: int) -> None:
        """In the pool's processes; each has one task waiting, so that none is idle."""
        self._workers = workers
        out: dict[Future[tuple[list[SimulatedSearch], float]], _Progress] = {}
        try:
            while True:
                while len(out) < 2 * workers and (task := self._next()) is not None:
                    out[pool.submit(_timed, task[0].experiment, task[1])] = task[0]
                if not out:
                    return
                done, _ = wait(out, return_when=FIRST_COMPLETED)
                for future in done:
                    runs, spent_s = future.result()
                    self._take(out.pop(future), runs, spent_s)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise

    def _next(self) -> tuple[_Progress, list[int]] | None:
        """The experiment with the fewest seeds given out, and some of its seeds."""
        limit_s = self._conduct.budget_s
        if limit_s is not None and time.monotonic() - self._begun_s >= limit_s:
            return None
        for progress in self._work:
            progress.trim(self._conduct)
        waiting = [progress for progress in self._work if progress.missing]
        if not waiting:
            return None
        chosen = min(waiting, key=lambda progress: progress.missing[0] - progress.experiment.budget.seed)
        return chosen, chosen.take()

    def _take(self, progress: _Progress, runs: list[SimulatedSearch], spent_s: float) -> None:
        progress.runs += runs
        progress.unsaved += runs
        progress.finished += len(runs)
        progress.given -= len(runs)
        progress.spent_s += spent_s
        if time.monotonic() - self._flushed_s > _FLUSH_S:
            _flush(self._work, self._archive)
            self._flushed_s = time.monotonic()
        if self._each is not None:
            self._each(self._standing(progress.experiment))

    def _standing(self, latest: Experiment) -> LabProgress:
        done = sum(len(one.runs) for one in self._work)
        left = [one.given + len(one.missing) for one in self._work]
        known = [one.each_s for one in self._work if one.each_s is not None]
        middle = sorted(known)[len(known) // 2]
        each = [middle if one.each_s is None else one.each_s for one in self._work]
        left_s = sum(count * each_s for count, each_s in zip(left, each, strict=True))
        name = f"{latest.contender.label} on {latest.specification.name}"
        return LabProgress(done, done + sum(left), left_s / self._workers, name)


def _simulated(experiment: Experiment, seeds: Sequence[int]) -> list[SimulatedSearch]:
    """Runs of neighbouring or other seeds.

    Raises:
        WorkError: the optimizer failed.
    """
    runs: list[SimulatedSearch] = []
    for seed in seeds:
        budget = replace(experiment.budget, runs=1, seed=seed)
        try:
            runs += simulate(experiment.specification, experiment.contender, budget, 0)
        except AscarError:
            raise
        except Exception as error:
            raise WorkError(
                f"optimizer {experiment.contender.label!r} failed on {experiment.specification.name!r}, "
                f"seed {seed}: {type(error).__name__}: {error}; leave it out, or mend it"
            ) from error
    return runs


def _timed(experiment: Experiment, seeds: Sequence[int]) -> tuple[list[SimulatedSearch], float]:
    start_s = time.perf_counter()
    runs = _simulated(experiment, seeds)
    return runs, time.perf_counter() - start_s


def _flush(work: Sequence[_Progress], archive: Archive | None) -> None:
    for progress in work:
        if archive is not None:
            archive.keep(progress.experiment, progress.unsaved)
        progress.unsaved = []
