"""Runs out of one history and into another: JSON, Parquet or CSV, complete in each of them.

A table has, beside the columns that people and other programs want, two that hold everything: `trial.record`,
and `trial.run` in the first row of each run. An import reads those two alone.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ascar.datasets import located
from ascar.errors import HistoryError, InputError
from ascar.history import codec
from ascar.history.record import FORMAT, FORMAT_VERSION, trial_record
from ascar.tables import TableLimits, json_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ascar.results.trial import Trial

_LIMITS = TableLimits(columns_max=20_000)
_SUFFIXES = (".json", ".parquet", ".csv")


def suffix_of(path: Path) -> str:
    """Which of the three forms a file has, by its name.

    Raises:
        InputError: none of them.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"file {str(path)!r}: its name must end with {', '.join(_SUFFIXES)}")
    return path.suffix.lower()


def write_runs(path: Path, runs: Sequence[tuple[dict[str, Any], Sequence[Trial]]], *, readings: bool) -> None:
    """Write runs to a file, in place of what is there, as a whole or not at all.

    Args:
        path: ends with .json, .parquet or .csv.
        runs: each as a record without its trials, and its trials.
        readings: include the unit readings, which are most of the size.

    Raises:
        InputError: the name's ending is none of these.
        HistoryError: it cannot be written.
    """
    suffix = suffix_of(path)
    whole = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if suffix == ".json":
            whole.write_text(codec.dump(_document(runs, readings=readings)), "ascii")
        else:
            from ascar.history.runs_table import write_runs_table  # JSON does without Polars

            write_runs_table(whole, suffix, runs, readings=readings)
        whole.replace(path)
    except OSError as error:
        with suppress(OSError):
            whole.unlink()
        raise HistoryError(f"file {str(path)!r}: cannot be written: {error}; name another file") from error


def read_runs(path: Path) -> list[dict[str, Any]]:
    """The runs of a file, as its JSON says them; nothing is checked but that they are objects.

    Raises:
        InputError: it cannot be read, is not an export of ours, or names no dataset that there is.
    """
    path = located(path)
    suffix, where = suffix_of(path), f"file {str(path)!r}"
    try:
        if suffix != ".json":
            from ascar.history.runs_table import rows_of_runs  # JSON does without Polars

            return _runs_of(rows_of_runs(path, where, _LIMITS), where)
        if path.stat().st_size > _LIMITS.file_bytes_max:
            raise InputError(
                f"{where}: is larger than {_LIMITS.file_bytes_max} bytes; export fewer runs, or no readings"
            )
        content = path.read_bytes()
        _check_size(json_bytes(content), where)
        runs = _mapping(json.loads(content), where).get("runs")
        if not isinstance(runs, list):
            raise InputError(f"{where}: is not an export of a history; `ascar history export` makes one")
        return [_mapping(run, where) for run in cast("list[Any]", runs)]
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{where}: is not an export of a history ({reason}); `ascar history export` makes one"
        ) from error


def _check_size(size: int, where: str) -> None:
    if size > _LIMITS.decoded_bytes_max:
        raise InputError(
            f"{where}: would take {size} bytes in memory, at most {_LIMITS.decoded_bytes_max} are allowed; "
            "export fewer runs, or no readings"
        )


def _document(runs: Sequence[tuple[dict[str, Any], Sequence[Trial]]], *, readings: bool) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "runs": [
            {**run, "trials": [trial_record(trial, readings=readings) for trial in trials]}
            for run, trials in runs
        ],
    }


def _runs_of(rows: Iterable[tuple[str | None, str | None]], where: str) -> list[dict[str, Any]]:
    """The runs of a table's rows: the record of a run, in its first row, and of a trial."""
    runs: list[dict[str, Any]] = []
    size = 0
    for run, record in rows:
        size += json_bytes(run or "") + json_bytes(record or "")
        _check_size(size, where)
        if run:
            runs.append({**_mapping(json.loads(run), where), "trials": []})
        if record:
            if not runs:
                raise InputError(f"{where}: its first row names no run; export it again, and do not sort it")
            runs[-1]["trials"].append(_mapping(json.loads(record), where))
    return runs


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: is not an export of a history; `ascar history export` makes one")
    return cast("dict[str, Any]", value)
