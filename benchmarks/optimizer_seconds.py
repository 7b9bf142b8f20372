"""Regret over time of `auto` with and without `per_second`, where changes take time.

    python -m benchmarks.optimizer_seconds --budget 30min

Simulated searches of systems that keep their state from trial to trial, as `state = "reuse"` does: measuring
once more what is in force costs no change, nor does a knob, a mount a little, a new format and fill a lot
(`SYSTEMS` says how much). As in a study the default is measured twice, then the search has the rest of the
time. The recommendation that stands at a time is judged by the truth: 0 is the best, 1 the middling
configuration. The same seeds for all contenders; differences are of pairs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from ascar.errors import Exhausted
from ascar.lab import NoiseModel, TableSpecification
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.recommendation import recommend
from ascar.results.trial import TrialState
from ascar.space import ChangeCost, Space, categorical, ordinal
from ascar.systems.recording_columns import TableColumns

from .harness import Benchmark, Piece, mean, number, sources, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.lab.problem import SearchProblem
    from ascar.space import Configuration

    Runs = list[dict[str, Any]]
    Values = Callable[[dict[str, Any]], Sequence[float]]

CONTENDERS: dict[str, dict[str, Any]] = {
    "auto": {"kind": "auto"},
    "auto per second": {"kind": "auto", "per_second": True},
}
SEEDS = range(1, 31)
DEFAULT_RUNS = 2
EVALUATIONS_MAX = 150
# At which shares of the time the recommendation is judged.
SHARES = (0.25, 0.5, 0.75, 1.0)

SLOW, MOUNT, KNOB = ChangeCost.REFORMAT_RESTORE, ChangeCost.UMOUNT_MOUNT, ChangeCost.DYN_KERNEL


@dataclass(frozen=True, slots=True)
class System:
    """A system whose changes take time.

    Attributes:
        problem: opens what is searched.
        load_s: of every trial.
        change_s: by cost; a cost that is not named takes none. A new format is missing where the seconds
            that were recorded with a trial tell what format, fill and settling took beside its load.
        time_s: of the whole search.
    """

    problem: Callable[[], SearchProblem]
    load_s: float
    change_s: Mapping[ChangeCost, float]
    time_s: float


def dataset(name: str) -> SearchProblem:
    """The project's own dataset: 160 configurations, their replicates as noise."""
    columns = TableColumns(seconds="trial.seconds")
    return TableSpecification(
        f"dataset:{name}", "operations", True, columns, NoiseModel(replicates=True)
    ).build()


@dataclass(slots=True)
class Engines:
    """A made-up system of conditional parameters: value = 1000 exp(engine + its own + knobs under it).

    Four engines, each with two parameters of its own (format and mount), and four knobs, a part of whose
    effect is the engine's own; 128,000 configurations. One evaluation has 10% noise.
    """

    name: str = "engines"
    sign: int = -1
    start: tuple[Configuration, ...] = ()
    space: Space = field(init=False)
    best: float = field(init=False)
    median: float = field(init=False)
    _own: NDArray[np.float64] = field(init=False)
    _knobs: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Make it up from a fixed seed."""
        rng = np.random.default_rng(0x5EC0)
        engines = ("a", "b", "c", "d")
        own = [
            parameter
            for engine in engines
            for parameter in (
                ordinal(f"page_{engine}", [1, 2, 4, 8], default=2, cost=SLOW, when=f'engine == "{engine}"'),
                ordinal(
                    f"log_{engine}", [1, 2, 4, 8, 16], default=4, cost=MOUNT, when=f'engine == "{engine}"'
                ),
            )
        ]
        costs = (KNOB, KNOB, ChangeCost.REMOUNT, ChangeCost.REMOUNT)
        knobs = [
            ordinal(f"knob_{at}", [2**power for power in range(size)], default=2, cost=cost)
            for at, (size, cost) in enumerate(zip((8, 8, 5, 5), costs, strict=True))
        ]
        self.space = Space(
            (categorical("engine", engines, default="a", cost=SLOW), *own, *knobs), name="engines"
        )
        self._own = 0.3 * rng.normal(size=(4, 1, 1)) + np.stack(
            [0.25 * _curve(rng, 4)[:, None] + 0.25 * _curve(rng, 5)[None, :] for _ in engines]
        )
        shared = [_curve(rng, 8) for _ in knobs]
        self._knobs = 0.2 * np.array([[one + 0.7 * _curve(rng, 8) for one in shared] for _ in engines])
        highest = self._own.max((1, 2)) + sum(
            self._knobs[:, at, :size].max(1) for at, size in enumerate((8, 8, 5, 5))
        )
        self.best = -1000.0 * float(np.exp(highest.max()))
        drawn = self.space.sample(np.random.default_rng(1), 4_000)
        self.median = float(np.median([self.truth(one) for one in drawn]))

    def truth(self, configuration: Configuration) -> float:
        """The value, negated."""
        engine = str(configuration["engine"])
        row = "abcd".index(engine)

        def rank(name: str) -> int:
            return int(np.log2(float(configuration[name])))

        total = self._own[row, rank(f"page_{engine}"), rank(f"log_{engine}")]
        total += sum(self._knobs[row, at, rank(f"knob_{at}")] for at in range(4))
        return -1000.0 * float(np.exp(total))

    def draw(self, configuration: Configuration, rng: np.random.Generator) -> tuple[float, float]:
        """One evaluation."""
        return self.truth(configuration) * (1 + 0.1 * float(rng.normal())), float("nan")


def _curve(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """A smooth effect with a peak somewhere, mean 0 and standard deviation 1."""
    curve = -((np.linspace(0, 1, size) - rng.uniform(-0.2, 1.2)) ** 2) + 0.05 * rng.normal(size=size)
    return (curve - curve.mean()) / curve.std()


# Of the recorded changes, which all include a format, the median is 0.3 s; a mount takes no longer.
_RECORDED = {MOUNT: 0.3, ChangeCost.REMOUNT: 0.3}
# Assumed: a data set of 10 GB is filled in some 5 minutes, and a load lasts one.
_LARGE = {SLOW: 300.0, MOUNT: 10.0, ChangeCost.REMOUNT: 5.0}
SYSTEMS = {
    "fileserver, as recorded": System(partial(dataset, "storage-v5-fileserver"), 5.0, _RECORDED, 320.0),
    "mailserver, as recorded": System(partial(dataset, "storage-v5-mailserver"), 5.0, _RECORDED, 320.0),
    "fileserver, large": System(partial(dataset, "storage-v5-fileserver"), 60.0, _LARGE, 9_000.0),
    "mailserver, large": System(partial(dataset, "storage-v5-mailserver"), 60.0, _LARGE, 9_000.0),
    "engines": System(Engines, 60.0, _LARGE, 9_000.0),
}


def main() -> None:
    """Simulate what is missing, print the tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "30min")
    build = sources(
        __spec__.name, "ascar.optimizers.auto", within=("ascar.optimizers", "ascar.surrogate", "ascar.lab")
    )
    pieces = [
        Piece(f"{system}/{contender}/{seed}", partial(search, system, contender, seed), build)
        for seed in SEEDS
        for system in SYSTEMS
        for contender in CONTENDERS
    ]
    found = benchmark.run(pieces)
    for system, description in SYSTEMS.items():
        seeds = [
            seed for seed in SEEDS if all(f"{system}/{contender}/{seed}" in found for contender in CONTENDERS)
        ]
        runs = {one: [found[f"{system}/{one}/{seed}"] for seed in seeds] for one in CONTENDERS}
        if seeds:
            compare(system, description, runs)


def compare(name: str, system: System, runs: Mapping[str, Runs]) -> None:
    """Mean regrets at some times; from the second row on, differences from the first, of pairs."""
    first, *others = runs  # the contenders' names
    print(f"{name}: {len(runs[first])} seeds\n")

    def row(label: str, values: Values, of: Runs, less: Runs) -> list[str]:
        own: NDArray[np.float64] = np.array([values(one) for one in of])
        if less:
            own = own - np.array([values(one) for one in less])
        return [label, *(number(mean(own[:, at].tolist())) for at in range(own.shape[1]))]

    def regrets(one: dict[str, Any]) -> list[float]:
        return [*one["regret"], sum(one["regret"]) / len(SHARES)]

    def made(one: dict[str, Any]) -> list[float]:
        return [one["evaluations"], one["changes"].get(SLOW.value, 0)]

    times = [f"after {_time(share * system.time_s)}" for share in SHARES]
    table(
        ["regret", *times, "mean of these"],
        [
            *(row(one, regrets, known, []) for one, known in runs.items()),
            *(row(f"{one}, less {first}", regrets, runs[one], runs[first]) for one in others),
        ],
    )
    table(["made", "evaluations", "new formats"], [row(one, made, known, []) for one, known in runs.items()])


def search(system: str, contender: str, seed: int) -> dict[str, Any]:
    """Regret of what is recommended at each of the times; evaluations and changes made."""
    known, problem = SYSTEMS[system], opened(system)
    optimizer = open_optimizer(CONTENDERS[contender], problem.space, seed)
    noise = np.random.default_rng([seed, 0x5EC])
    history: list[Evaluation] = []
    changes: dict[str, int] = {}
    regret: list[float] = []
    clock_s, held = 0.0, None
    while len(regret) < len(SHARES) and len(history) < EVALUATIONS_MAX:
        try:
            default = len(history) < DEFAULT_RUNS
            asked = problem.space.default() if default else optimizer.ask()
        except Exhausted:
            break
        # The first trial makes the system, whatever it is.
        cost = SLOW if held is None else problem.space.change(held, asked).cost
        loss, recorded_s = problem.draw(asked, noise)
        change_s = 0.0 if cost is None else known.change_s.get(cost, 0.0)
        if cost is SLOW and SLOW not in known.change_s:
            change_s = recorded_s - known.load_s
        clock_s, held = clock_s + change_s + known.load_s, asked
        while len(regret) < len(SHARES) and SHARES[len(regret)] * known.time_s < clock_s:
            regret.append(_regret(problem, optimizer, history))
        state = TrialState.COMPLETE if np.isfinite(loss) else TrialState.FAILED
        told = loss if state is TrialState.COMPLETE else None
        history.append(Evaluation(asked, state, told, None, change_s + known.load_s, (), change_s))
        optimizer.tell(history[-1])
        if cost is not None:
            changes[cost.value] = changes.get(cost.value, 0) + 1
    while len(regret) < len(SHARES):
        regret.append(_regret(problem, optimizer, history))
    return {"regret": regret, "evaluations": len(history), "changes": changes, "seconds": clock_s}


@cache
def opened(system: str) -> SearchProblem:
    """What is searched, opened once."""
    return SYSTEMS[system].problem()


def _regret(problem: SearchProblem, optimizer: Any, history: Sequence[Evaluation]) -> float:
    found = recommend(optimizer, history)
    truth = problem.median if found is None else problem.truth(found.configuration)
    return (truth - problem.best) / (problem.median - problem.best)


def _time(time_s: float) -> str:
    return f"{time_s:.0f} s" if time_s < 600 else f"{time_s / 60:.0f} min"


if __name__ == "__main__":
    main()
