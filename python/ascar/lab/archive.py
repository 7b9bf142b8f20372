"""Raw results of every simulated search, kept as Parquet: a finished search is never simulated again."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.errors import StudyError, WorkError
from ascar.lab.simulation import SimulatedSearch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from pathlib import Path

    from ascar.lab.work import Experiment

_SCHEMA = {
    "seed": pl.Int64,
    "evaluation": pl.Int32,
    "truth": pl.Float64,
    "observed": pl.Float64,
    "seconds": pl.Float64,
    "ask_tell_s": pl.Float64,
    "mutations": pl.Float64,
    "recommended_truth": pl.Float64,
    "recommended_reported": pl.Float64,
}
_UNSAFE = re.compile(r"[^A-Za-z0-9.=-]+")


@dataclass(slots=True)
class Archive:
    """A directory with one Parquet file a contender and problem, one row an evaluation.

    The columns are those of `SimulatedSearch`; `recommended_*` are null between checkpoints. The file's
    name ends in the key of everything that its runs depend on but their seed (`ascar.lab.identity`).

    Attributes:
        directory: made when missing.
    """

    directory: Path
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])

    def __post_init__(self) -> None:
        """Make the directory.

        Raises:
            StudyError: it cannot be made.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(
                f"--results = {str(self.directory)!r}: {error.strerror}; name a directory that can be written"
            ) from error

    def path(self, experiment: Experiment) -> Path:
        """The file of an experiment's runs."""
        parts = (experiment.specification.name, experiment.contender.label, experiment.key)
        name = "--".join(_UNSAFE.sub("_", part)[:80] for part in parts)
        return self.directory / f"{name}.parquet"

    def load(self, experiment: Experiment) -> list[SimulatedSearch]:
        """The experiment's runs that are finished, by their seeds.

        Raises:
            StudyError: its file is not one of ours.
        """
        frame = self._frame(experiment)
        budget = experiment.budget
        seeds = set(range(budget.seed, budget.seed + budget.runs))
        parts = frame.partition_by("seed", maintain_order=True) if frame.height else []
        runs = [_run(part, experiment) for part in parts if part["seed"][0] in seeds]
        return sorted(runs, key=lambda run: run.seed)

    def keep(self, experiment: Experiment, runs: Sequence[SimulatedSearch]) -> None:
        """Add finished runs; the file is replaced as a whole, so it is never half written.

        Another laboratory may add to the same file: what it has added stays.

        Raises:
            WorkError: it cannot be written.
        """
        if not runs:
            return
        added = pl.concat([_frame(run, experiment.budget.judged) for run in runs])
        path = self.path(experiment)
        partial = path.with_suffix(".partial")
        try:
            with self._alone():
                frame = pl.concat([_read(path), added]).unique(
                    ["seed", "evaluation"], keep="first", maintain_order=True
                )
                frame.write_parquet(partial)
                partial.replace(path)
        except OSError as error:
            raise WorkError(f"{str(path)!r} cannot be written: {error}; free some space and go on") from error
        self._frames[path.name] = frame

    @contextmanager
    def _alone(self) -> Generator[None]:
        """No other process writes to the directory meanwhile."""
        directory = os.open(self.directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)

    def _frame(self, experiment: Experiment) -> pl.DataFrame:
        path = self.path(experiment)
        if path.name not in self._frames:
            self._frames[path.name] = _read(path)
        return self._frames[path.name]


def _read(path: Path) -> pl.DataFrame:
    if not path.exists():
        return pl.DataFrame(schema=_SCHEMA)
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StudyError(f"{str(path)!r}: cannot be read as Parquet; remove it to run it again") from error
    if dict(frame.schema) != _SCHEMA:
        raise StudyError(f"{str(path)!r}: does not have the columns of results; remove it to run it again")
    return frame


def _frame(run: SimulatedSearch, judged: Iterable[int]) -> pl.DataFrame:
    """One row an evaluation; a run that ended early is judged on its last one."""
    n = len(run.truth)
    truth, reported = np.full(n, np.nan), np.full(n, np.nan)
    marked = np.zeros(n, np.bool_)
    for index, at in enumerate(judged):
        if n:
            row = min(at, n) - 1
            truth[row], reported[row] = run.recommended[index]
            marked[row] = True
    frame = pl.DataFrame(
        {
            "seed": np.full(n, run.seed, np.int64),
            "evaluation": np.arange(1, n + 1, dtype=np.int32),
            "truth": run.truth,
            "observed": run.observed,
            "seconds": run.seconds,
            "ask_tell_s": run.ask_tell_s,
            "mutations": run.mutations,
            "recommended_truth": truth,
            "recommended_reported": reported,
        },
        schema=_SCHEMA,
    )
    between = pl.Series(~marked)
    return frame.with_columns(
        pl.when(between).then(None).otherwise(pl.col(name)).alias(name)
        for name in ("recommended_truth", "recommended_reported")
    )


def _run(part: pl.DataFrame, experiment: Experiment) -> SimulatedSearch:
    rows = [min(at, part.height) - 1 for at in experiment.budget.judged]
    columns = {name: part[name].to_numpy().astype(np.float64) for name in part.columns[2:7]}
    recommended = part.select("recommended_truth", "recommended_reported").fill_null(float("nan"))
    return SimulatedSearch(
        experiment.contender.label,
        experiment.specification.name,
        int(part["seed"][0]),
        columns["truth"],
        columns["observed"],
        columns["seconds"],
        columns["ask_tell_s"],
        columns["mutations"],
        recommended.to_numpy()[rows],
    )
