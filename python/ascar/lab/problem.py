"""What optimizers are tried on in the laboratory: systems whose truth is known."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ascar.datasets import located
from ascar.errors import SpaceError, StudyError
from ascar.lab.synthetic import LANDSCAPE_VERSION, Landscape
from ascar.space import Choices
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns, name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.space import Configuration, Space, Value

_MEDIAN_DRAWS = 4_000


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """How an evaluation differs from the truth.

    Attributes:
        replicates: a table's own rows are drawn at random; else its mean is taken.
        relative_sd: the standard deviation of additional Gaussian noise, relative to the value.
    """

    replicates: bool = False
    relative_sd: float = 0.0

    @classmethod
    def parse(cls, text: str) -> NoiseModel:
        """Read "replicates", "gaussian:RELATIVE_SD" or "none".

        Raises:
            StudyError: it is none of these.
        """
        kind, _, number = text.partition(":")
        if kind in ("replicates", "none") and not number:
            return cls(replicates=kind == "replicates")
        if kind == "gaussian":
            try:
                deviation = float(number)
            except ValueError:
                deviation = -1.0
            if 0 <= deviation <= 10:
                return cls(relative_sd=deviation)
        raise StudyError(f"noise = {text!r}: must be 'replicates', 'none' or 'gaussian:0.1' (0 to 10)")


class SearchProblem(Protocol):
    """A system with a known truth; losses are lower where better.

    Attributes:
        name: the problem's name in tables and plots.
        space: the space to search.
        start: configurations that searches begin with; empty: as each optimizer likes.
        sign: -1 where the measured value is maximised (the loss is its negative), else 1.
        best: the lowest true loss.
        median: the true loss of the middling configuration: what random picking gets.
    """

    name: str
    space: Space
    start: tuple[Configuration, ...]
    sign: int
    best: float
    median: float

    def truth(self, configuration: Configuration) -> float:
        """The loss that endless measuring would tell."""
        ...

    def draw(self, configuration: Configuration, rng: np.random.Generator) -> tuple[float, float]:
        """One evaluation: the loss that it tells, and the seconds that it takes (NaN where unknown)."""
        ...


class Specification(Protocol):
    """A recipe for a problem: small, and sent to workers in place of it.

    Attributes:
        name: the problem's name in tables and plots.
    """

    @property
    def name(self) -> str:
        """For tables and plots."""
        ...

    def identity(self) -> dict[str, Any]:
        """Everything that results depend on, JSON-ready: contents, not places."""
        ...

    def build(self) -> SearchProblem:
        """The problem."""
        ...


@dataclass(frozen=True, slots=True)
class TableSpecification:
    """A recorded table as a problem.

    Attributes:
        file: CSV or Parquet, or `dataset:NAME`.
        objective: the column to optimise.
        maximize: whether more is better.
        columns: the columns that are parameters; see `TableColumns` (its metrics are set to the objective).
        noise: the noise added to the table's values, or drawn from its replicates.
        label: the problem's name in tables and plots; empty: the file's stem.
        fixed: parameters that are not changed, with their values as text; what is found is still judged by
            the whole table.
        start: configurations that searches begin with, as pairs of name and text.
    """

    file: str
    objective: str
    maximize: bool
    columns: TableColumns = field(default_factory=TableColumns)
    noise: NoiseModel = NoiseModel()
    label: str = ""
    fixed: tuple[tuple[str, str], ...] = ()
    start: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def name(self) -> str:
        """The label, or the file's stem."""
        return self.label or located(Path(self.file)).stem

    def identity(self) -> dict[str, Any]:
        """Everything that results depend on.

        Raises:
            StudyError: the file cannot be read.
        """
        try:
            with located(Path(self.file)).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise StudyError(f"table {self.file!r}: {error.strerror}; give a CSV or Parquet file") from error
        return {**asdict(self), "file": digest, "label": ""}

    def build(self) -> TableProblem:
        """Read the table.

        Raises:
            StudyError: the file, or a column, is not as said.
        """
        columns = self.columns
        wanted = TableColumns(columns.parameters, (self.objective,), columns.ignore, columns.seconds)
        recording = MeasurementTable.read(Path(self.file), wanted)
        return TableProblem(self, recording)


class TableProblem:
    """A recorded table; a configuration that was not measured stands for the nearest one that was."""

    def __init__(self, specification: TableSpecification, recording: MeasurementTable) -> None:
        self.name = specification.name
        self.recording = recording
        self.start = tuple(_configuration(recording.space, start) for start in specification.start)
        self.space = _pinned(recording.space, specification.fixed)
        self.sign = -1 if specification.maximize else 1
        self._noise = specification.noise
        self._losses: NDArray[np.float64] = self.sign * recording.truth(name_of(specification.objective))
        known = np.asarray(self._losses[np.isfinite(self._losses)], np.float64)
        if not len(known):
            raise StudyError(f"objective {specification.objective!r}: the table has no number in this column")
        self._rows: NDArray[np.float64] = self.sign * recording.values[name_of(specification.objective)]
        self.best, self.median = float(np.min(known)), float(np.median(known))

    def truth(self, configuration: Configuration) -> float:
        """Mean of the configuration's rows; NaN where all failed."""
        return self._losses.item(self.recording.nearest(configuration))

    def draw(self, configuration: Configuration, rng: np.random.Generator) -> tuple[float, float]:
        """One row at random, or the mean; with noise. A failed evaluation is NaN."""
        place = self.recording.nearest(configuration)
        rows = self.recording.rows(place)
        row = int(rng.integers(int(rows.start), int(rows.stop)))
        loss = float(self._rows[row]) if self._noise.replicates else float(self._losses[place])
        seconds = float("nan") if self.recording.seconds is None else float(self.recording.seconds[row])
        return loss * (1 + self._noise.relative_sd * float(rng.normal())), seconds

    def losses(self) -> NDArray[np.float64]:
        """(configurations,): every true loss in the table."""
        return self._losses


@dataclass(frozen=True, slots=True)
class SyntheticSpecification:
    """A made-up system of many parameters, few of them effective; see `Landscape`.

    Attributes:
        name: the problem's name in tables and plots.
        parameters: the number of parameters.
        effective: the number of parameters that have an effect.
        seed: the seed of the synthetic system.
        noise: the noise of an evaluation.
    """

    name: str
    parameters: int
    effective: int
    seed: int
    noise: NoiseModel = NoiseModel(relative_sd=0.1)

    def identity(self) -> dict[str, Any]:
        """Everything that results depend on; the landscape's own code is counted in."""
        return {**asdict(self), "name": "", "landscape": LANDSCAPE_VERSION}

    def build(self) -> SyntheticProblem:
        """Make it up."""
        return SyntheticProblem(self, Landscape.make(self.parameters, self.effective, self.seed))


class SyntheticProblem:
    """A landscape as a system whose throughput is maximised."""

    sign = -1
    start: tuple[Configuration, ...] = ()

    def __init__(self, specification: SyntheticSpecification, landscape: Landscape) -> None:
        self.name = specification.name
        self.space = landscape.space
        self._landscape = landscape
        self._noise = specification.noise
        self.best = -landscape.best
        drawn = self.space.sample(np.random.default_rng([specification.seed, 1]), _MEDIAN_DRAWS)
        self.median = float(np.median(np.array([self.truth(one) for one in drawn])))

    def truth(self, configuration: Configuration) -> float:
        """The landscape's value, negated."""
        return -self._landscape.value(configuration)

    def draw(self, configuration: Configuration, rng: np.random.Generator) -> tuple[float, float]:
        """The truth with relative Gaussian noise."""
        return self.truth(configuration) * (1 + self._noise.relative_sd * float(rng.normal())), float("nan")


def _configuration(space: Space, texts: tuple[tuple[str, str], ...]) -> Configuration:
    """The default of what has these values: with `fs=xfs`, that of xfs.

    Raises:
        StudyError: a value is none of the space, or does not go with the others.
    """
    values = _values(space, texts)
    try:
        found = space.pin(values).default()
    except SpaceError as error:
        raise StudyError(f"start: {error.message.removeprefix('pinned: ')}") from error
    idle = next((name for name in values if name not in found), None)
    if idle is not None:
        raise StudyError(
            f"start: {idle} = {values[idle]!r} does not apply with the other values; leave it out"
        )
    return found


def _pinned(space: Space, texts: tuple[tuple[str, str], ...]) -> Space:
    """The space with some parameters fixed."""
    return space.pin(_values(space, texts)) if texts else space


def _values(space: Space, texts: tuple[tuple[str, str], ...]) -> dict[str, Value]:
    """Values of parameters from text; an empty text stands for the default, the table's first row.

    Raises:
        StudyError: no such parameter, or the table has no such value.
    """
    values: dict[str, Value] = {}
    for name, text in texts:
        key = name_of(name)
        if key not in space.names:
            raise StudyError(f"{name!r} is not a parameter; the table has {', '.join(space.names)}")
        values[key] = _value(space, key, text) if text else space[key].default
    return values


def _value(space: Space, name: str, text: str) -> Value:
    domain = space.domain(name)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isinstance(domain, Choices):
        if domain.low <= number <= domain.high:
            return domain.canonical(int(number) if domain.integer else number)
        raise StudyError(f"{name} = {text!r}: must be from {domain.low} to {domain.high}")
    for value in domain.values:
        alike = not isinstance(value, (str, bool)) and float(value) == number
        if str(value).lower() == text.lower() or alike:
            return value
    raise StudyError(f"{name} = {text!r}: must be one of {', '.join(map(str, domain.values[:40]))}")
