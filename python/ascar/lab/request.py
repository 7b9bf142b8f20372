"""What a comparison of optimizers is to simulate, from its options as texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.lab.benchmark import Benchmark
from ascar.lab.problem import NoiseModel, TableSpecification
from ascar.lab.simulation import Budget, Contender, built
from ascar.lab.sweeps import Sweep
from ascar.lab.work import Conduct, Experiment
from ascar.names import names_of
from ascar.optimizers import open_optimizer
from ascar.study import duration
from ascar.systems.recording_columns import TableColumns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ascar.lab.problem import Specification
    from ascar.lab.simulation import SimulatedSearch

_CHECKPOINTS = (25, 50, 100)
_RUNS, _EVALUATIONS = 100, 100
_NUMBER_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """Options as they were given; see `ascar lab optimizers --help`."""

    table: Path | None
    objective: str | None
    direction: str | None
    parameters: str | None
    ignore: str | None
    seconds: str | None
    noise: str | None
    restrict: str | None
    start: tuple[str, ...]
    benchmark: Path | None
    tables: Path | None
    problems: str | None
    optimizers: str
    sweeps: tuple[str, ...]
    runs: int | None
    evaluations: int | None
    checkpoints: str | None
    seed: int | None
    budget: str | None
    workers: int | None


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be simulated.

    Attributes:
        problems: the problems to search.
        restricted: the same problems with some parameters fixed, by the problem's name.
        contenders: the optimizers.
        sweeps: variants of single optimizers.
        budget: the budget of every experiment.
        conduct: the way in which experiments are carried out.
    """

    problems: tuple[Specification, ...]
    restricted: dict[str, Specification]
    contenders: tuple[Contender, ...]
    sweeps: tuple[Sweep, ...]
    budget: Budget
    conduct: Conduct

    @classmethod
    def of(cls, asked: Asked) -> Request:
        """Read the options, and the files that they name.

        Raises:
            InputError: an option is wrong, or two do not go together.
        """
        kinds = names_of("--optimizers", asked.optimizers)
        budget_s = None if asked.budget is None else duration("--budget", asked.budget)
        conduct = Conduct(budget_s=budget_s, workers=asked.workers)
        restricted: dict[str, Specification] = {}
        if asked.benchmark is not None:
            _alone(asked)
            file = Benchmark.read(asked.benchmark, asked.tables or asked.benchmark.parent)
            problems = _chosen(file.problems, asked.problems)
            marks = file.checkpoints
            runs, first = asked.runs or file.runs, file.seed if asked.seed is None else asked.seed
            slow = None if asked.runs is not None else file.runs_slow
            conduct = replace(conduct, runs_slow=slow, slow_s=file.slow_s)
            evaluations = asked.evaluations or marks[-1]
        else:
            specification = _table(asked)
            problems, marks = (specification,), _CHECKPOINTS
            runs, evaluations = asked.runs or _RUNS, asked.evaluations or _EVALUATIONS
            first = 1 if asked.seed is None else asked.seed
            if asked.restrict is not None:
                fixed = _pairs("--restrict", asked.restrict)
                label = f"{specification.name} with {', '.join(name for name, _ in fixed)} fixed"
                restricted[specification.name] = replace(specification, fixed=fixed, label=label)
        if asked.checkpoints is not None:
            marks = tuple(_number("--checkpoints", text) for text in asked.checkpoints.split(","))
        for key, value in (("--runs", runs), ("--evaluations", evaluations)):
            if not 1 <= value <= _NUMBER_MAX:
                raise InputError(f"{key} = {value}: must be from 1 to {_NUMBER_MAX}")
        request = cls(
            tuple(problems),
            restricted,
            tuple(Contender(kind) for kind in kinds),
            tuple(Sweep.parse(text) for text in asked.sweeps),
            Budget(runs, evaluations, marks, first),
            conduct,
        )
        request.check()
        return request

    def check(self) -> None:
        """Make each problem, and each optimizer once: what is wrong is said before hours of work.

        Raises:
            InputError: a file, a column, an optimizer or an option is not as said.
        """
        for specification in (*self.problems, *self.restricted.values()):
            built(specification)
        space = built(self.problems[0]).space
        for one in (*self.contenders, *(one for sweep in self.sweeps for one in sweep.contenders)):
            open_optimizer({**one.options, "kind": one.kind}, space, 0, where="--optimizers")

    def experiments(self) -> list[Experiment]:
        """All that is to be simulated, each once."""
        return list(dict.fromkeys(self._experiments()))

    def of_contenders(self) -> list[Experiment]:
        """Without the sweeps."""
        problems = (*self.problems, *self.restricted.values())
        return [
            Experiment(problem, contender, self.budget)
            for problem in problems
            for contender in self.contenders
        ]

    def of_sweep(self, sweep: Sweep) -> list[Experiment]:
        """Of one sweep."""
        return [
            Experiment(problem, contender, self.budget)
            for problem in self.problems
            for contender in sweep.contenders
        ]

    def missing(self, done: Mapping[Experiment, Sequence[SimulatedSearch]]) -> int:
        """Runs that the budget ended before; a slow optimizer's fewer runs are as many as are wanted."""
        count = 0
        for one in self.experiments():
            runs = done[one]
            mean_s = sum(float(run.ask_tell_s.sum()) for run in runs) / max(1, len(runs))
            slow = self.conduct.runs_slow is not None and mean_s > self.conduct.slow_s
            wanted = min(one.budget.runs, self.conduct.runs_slow or 0) if slow else one.budget.runs
            count += max(0, wanted - len(runs))
        return count

    def _experiments(self) -> Iterator[Experiment]:
        yield from self.of_contenders()
        for sweep in self.sweeps:
            yield from self.of_sweep(sweep)


def _table(asked: Asked) -> TableSpecification:
    if asked.table is None:
        raise InputError("what is searched is missing: give --table FILE.csv or --benchmark FILE.toml")
    if asked.tables is not None or asked.problems is not None:
        raise InputError("--tables and --problems apply only to --benchmark; leave them out with --table")
    if asked.objective is None:
        raise InputError("--objective is missing: name the table's column that is optimised")
    if asked.direction not in ("min", "max"):
        raise InputError(f"--direction = {asked.direction!r}: must be min or max")
    if asked.parameters is not None and asked.ignore is not None:
        raise InputError("--parameters and --ignore: give one of the two; what is not named is ignored")
    ignored = () if asked.ignore is None else names_of("--ignore", asked.ignore)
    columns = TableColumns(
        parameters=() if asked.parameters is None else names_of("--parameters", asked.parameters),
        ignore=tuple(name for name in ignored if name != asked.seconds),
        seconds=asked.seconds,
    )
    return TableSpecification(
        str(asked.table),
        asked.objective,
        asked.direction == "max",
        columns,
        NoiseModel.parse(asked.noise or "replicates"),
        start=tuple(_pairs("--start", text) for text in asked.start),
    )


def _alone(asked: Asked) -> None:
    """Refuse options that the benchmark file decides."""
    for key, value in (
        ("--table", asked.table),
        ("--objective", asked.objective),
        ("--direction", asked.direction),
        ("--parameters", asked.parameters),
        ("--ignore", asked.ignore),
        ("--duration-column", asked.seconds),
        ("--noise", asked.noise),
        ("--restrict", asked.restrict),
        ("--start", asked.start or None),
    ):
        if value is not None:
            raise InputError(f"{key}: the benchmark file sets it; leave it out with --benchmark")


def _chosen(problems: tuple[Specification, ...], wanted: str | None) -> tuple[Specification, ...]:
    if wanted is None:
        return problems
    names = names_of("--problems", wanted)
    known = {problem.name: problem for problem in problems}
    for name in names:
        if name not in known:
            raise InputError(f"--problems = {name!r}: must be among {', '.join(known)}")
    return tuple(known[name] for name in names)


def _pairs(key: str, text: str) -> tuple[tuple[str, str], ...]:
    """Names with values, or without: then the table's first row gives them."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not pairs:
        raise InputError(f"{key} = {text!r}: must be NAME=VALUE with commas between them")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def _number(key: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= _NUMBER_MAX:
        raise InputError(f"{key}: {text.strip()!r}: must be a number from 1 to {_NUMBER_MAX}")
    return number
