"""Thousands of simulated searches on all cores: problem -> optimizer -> evaluations -> recommendation."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.errors import Exhausted
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.recommendation import recommend
from ascar.optimizers.stopping import Diversity
from ascar.results.trial import TrialState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.lab.problem import SearchProblem, Specification
    from ascar.optimizers import Optimizer
    from ascar.optimizers.stopping import Generation

    Clock = Callable[[], float]

_WALKERS = ("random", "annealing", "dqn")
_CONVERGED = Diversity()


@dataclass(frozen=True, slots=True)
class Contender:
    """An optimizer and its options.

    Attributes:
        kind: the optimizer's registered name.
        options: the keys of its `[optimizer]` table.
        name: the name in tables and plots; empty: the kind.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or self.kind

    def __hash__(self) -> int:
        """Of everything; options are small tables."""
        return hash((self.kind, self.name, repr(sorted(self.options.items()))))


@dataclass(frozen=True, slots=True)
class Budget:
    """How much is simulated.

    Attributes:
        runs: searches.
        evaluations: the number of evaluations in each search.
        checkpoints: evaluations after which the recommendation is judged; the last one always is.
        seed: the seed of the first run; each further run has the next number.
    """

    runs: int
    evaluations: int
    checkpoints: tuple[int, ...] = ()
    seed: int = 1

    @property
    def judged(self) -> tuple[int, ...]:
        """Checkpoints in order, the last evaluation included."""
        return tuple(sorted({*(at for at in self.checkpoints if at < self.evaluations), self.evaluations}))


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedSearch:
    """One simulated search.

    Attributes:
        contender: the optimizer's label.
        problem: the problem's name.
        seed: the run's seed.
        truth: float64 (n,), the true loss of each configuration evaluated.
        observed: float64 (n,), the loss that the optimizer was told; NaN where the evaluation failed.
        seconds: float64 (n,), what each evaluation took on the recorded system; NaN where unknown.
        ask_tell_s: float64 (n,), what the optimizer took for each.
        mutations: float64 (n,), of a genetic search the mutations since its population converged (Cao 9.6,
            M = N = 80); NaN before that, and in other searches.
        recommended: float64 (checkpoints, 2): true and reported loss of the recommendation; NaN without one.
    """

    contender: str
    problem: str
    seed: int
    truth: NDArray[np.float64]
    observed: NDArray[np.float64]
    seconds: NDArray[np.float64]
    ask_tell_s: NDArray[np.float64]
    mutations: NDArray[np.float64]
    recommended: NDArray[np.float64]


def simulate(
    specification: Specification,
    contender: Contender,
    budget: Budget,
    workers: int | None = None,
    each: Callable[[SimulatedSearch], None] | None = None,
) -> list[SimulatedSearch]:
    """Simulate searches, and judge what each recommends by the truth.

    Args:
        specification: the problem's recipe.
        contender: the optimizer.
        budget: the number of searches and evaluations.
        workers: processes; None: one a core; 0: in this process.
        each: told of each run as it ends, in the order of the seeds.

    Returns:
        One a seed, in order: the same for any number of workers.
    """
    seeds = range(budget.seed, budget.seed + budget.runs)
    workers = (os.cpu_count() or 1) if workers is None else workers
    if workers == 0 or budget.runs == 1:
        problem = built(specification)
        return [_noted(search(problem, contender, budget, seed), each) for seed in seeds]
    # Workers are spawned: forking a process that has threads (Polars, BLAS) can hang it.
    with worker_pool(workers) as pool:
        chunk = max(1, min(16, budget.runs // (4 * workers)))
        tasks = [(specification, contender, budget, seed) for seed in seeds]
        return [_noted(run, each) for run in pool.map(_task, tasks, chunksize=chunk)]


def search(
    problem: SearchProblem,
    contender: Contender,
    budget: Budget,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> SimulatedSearch:
    """One simulated search; `clock` tells the seconds that the optimizer took."""
    # As in Cao 5.2: methods that walk begin at one configuration, the others at all that are known.
    start = problem.start[:1] if contender.kind in _WALKERS else problem.start
    optimizer = open_optimizer({**contender.options, "kind": contender.kind}, problem.space, seed, start)
    return replace(follow(optimizer, problem, budget, seed, clock), contender=contender.label)


def follow(
    optimizer: Optimizer,
    problem: SearchProblem,
    budget: Budget,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> SimulatedSearch:
    """Feed an optimizer until the budget is spent, or nothing is left to propose."""
    rng = np.random.default_rng([seed, 0xA5CA])
    history: list[Evaluation] = []
    rows: list[tuple[float, float, float, float, float]] = []
    judged: dict[int, tuple[float, float]] = {}
    for number in range(1, budget.evaluations + 1):
        start_s = clock()
        try:
            configuration = optimizer.ask()
        except Exhausted:
            break
        asked_s = clock()
        loss, seconds = problem.draw(configuration, rng)
        failed = not np.isfinite(loss)
        state = TrialState.FAILED if failed else TrialState.COMPLETE
        evaluation = Evaluation(configuration, state, None if failed else loss, None, seconds)
        history.append(evaluation)
        told_s = clock()
        optimizer.tell(evaluation)
        spent_s = asked_s - start_s + clock() - told_s
        since = _mutations(optimizer)
        rows.append((problem.truth(configuration), loss, seconds, spent_s, since))
        if number in budget.judged:
            judged[number] = _judge(optimizer, history, problem)
    last = _judge(optimizer, history, problem)
    truth, observed, seconds, spent, mutations = np.array(rows, np.float64).reshape(-1, 5).T
    recommended = np.array([judged.get(at, last) for at in budget.judged], np.float64)
    return SimulatedSearch("", problem.name, seed, truth, observed, seconds, spent, mutations, recommended)


def _judge(
    optimizer: Optimizer, history: Sequence[Evaluation], problem: SearchProblem
) -> tuple[float, float]:
    """True and reported loss of what would be put in force now."""
    recommendation = recommend(optimizer, history)
    if recommendation is None:
        return float("nan"), float("nan")
    return problem.truth(recommendation.configuration), recommendation.loss


def _noted(run: SimulatedSearch, each: Callable[[SimulatedSearch], None] | None) -> SimulatedSearch:
    if each is not None:
        each(run)
    return run


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """Processes of one thread each: the matrices are small, and the cores are taken by the other workers."""
    # Libraries read these when they are loaded, which in a spawned worker is before its initializer runs.
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))
    return ProcessPoolExecutor(workers, get_context("spawn"))


def _mutations(optimizer: Optimizer) -> float:
    generations: Sequence[Generation] = getattr(optimizer, "generations", ())
    since = _CONVERGED.since(generations)
    return float("nan") if since is None else float(since)


@lru_cache(maxsize=32)
def built(specification: Specification) -> SearchProblem:
    """The problem of a specification, made once a process."""
    return specification.build()


def _task(task: tuple[Specification, Contender, Budget, int]) -> SimulatedSearch:
    specification, contender, budget, seed = task
    return search(built(specification), contender, budget, seed)
