"""A benchmark file: tables and made-up systems, with their noise, checkpoints and seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ascar.datasets import located
from ascar.errors import StudyError
from ascar.lab.problem import NoiseModel, SyntheticSpecification, TableSpecification
from ascar.small_file import SmallFile
from ascar.study import FILE_BYTES_MAX, convert
from ascar.systems.recording_columns import TableColumns

if TYPE_CHECKING:
    from ascar.lab.problem import Specification

_DIRECTIONS = {"maximize": True, "minimize": False}


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    file: str
    objective: str
    noise: str
    parameters: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    seconds: str | None = None


class _Synthetic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    parameters: int
    effective: int
    seed: int
    noise: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    checkpoints_evaluations: tuple[int, ...]
    seeds: int
    seed_first: int = 1
    seeds_slow: int | None = None
    slow_s: float = 10.0
    table: tuple[_Table, ...] = ()
    synthetic: tuple[_Synthetic, ...] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark file says.

    Attributes:
        problems: tables first.
        checkpoints: evaluations after which recommendations are judged; the greatest ends a run.
        runs: a problem and optimizer.
        seed: the seed of the first run.
        runs_slow: the number of runs for an optimizer that takes longer than `slow_s` a run; None: the same
            number as for the others.
        slow_s: seconds.
    """

    problems: tuple[Specification, ...]
    checkpoints: tuple[int, ...]
    runs: int
    seed: int
    runs_slow: int | None
    slow_s: float

    @classmethod
    def read(cls, path: Path, tables: Path) -> Benchmark:
        """Read a file.

        Args:
            path: the benchmark's TOML file.
            tables: the directory that its tables' names are relative to.

        Raises:
            StudyError: it cannot be read, or a key is wrong.
        """
        source = SmallFile(path, f"benchmark {str(path)!r}", FILE_BYTES_MAX, "give a TOML file", StudyError)
        file = convert(source.toml(), _File)
        _check(file)
        problems = (
            *(_table(one, tables) for one in file.table),
            *(
                SyntheticSpecification(
                    one.name, one.parameters, one.effective, one.seed, NoiseModel.parse(one.noise)
                )
                for one in file.synthetic
            ),
        )
        checkpoints = tuple(sorted(file.checkpoints_evaluations))
        return cls(problems, checkpoints, file.seeds, file.seed_first, file.seeds_slow, file.slow_s)


def _table(one: _Table, tables: Path) -> TableSpecification:
    direction, _, objective = one.objective.partition(" ")
    if direction not in _DIRECTIONS or not objective:
        raise StudyError(
            f"table {one.name!r}: objective = {one.objective!r}: must be 'maximize COLUMN' or "
            "'minimize COLUMN'"
        )
    shipped = located(Path(one.file))
    return TableSpecification(
        one.file if shipped != Path(one.file) else str(tables / one.file),
        objective,
        _DIRECTIONS[direction],
        TableColumns(one.parameters, (), one.ignore, one.seconds),
        NoiseModel.parse(one.noise),
        one.name,
    )


def _check(file: _File) -> None:
    """Ranges that types cannot say."""
    if not file.checkpoints_evaluations or min(file.checkpoints_evaluations) < 1:
        raise StudyError(
            f"checkpoints_evaluations = {list(file.checkpoints_evaluations)}: must be 1 or more each"
        )
    for key, value in (("seeds", file.seeds), ("seeds_slow", file.seeds_slow or 1)):
        if not 1 <= value <= 1_000_000:
            raise StudyError(f"{key} = {value}: must be from 1 to 1000000")
    names = [one.name for one in (*file.table, *file.synthetic)]
    if not names:
        raise StudyError("table, synthetic: there is none; a benchmark has one problem at least")
    for name in names:
        if names.count(name) > 1:
            raise StudyError(f"name = {name!r}: two problems have this name; give each its own")
    for one in file.synthetic:
        if not 1 <= one.effective <= min(one.parameters, 7):
            raise StudyError(
                f"synthetic {one.name!r}: effective = {one.effective}: must be from 1 to 7, "
                f"and not above parameters = {one.parameters}"
            )
