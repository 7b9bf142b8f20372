"""Recorded readings: CSV, JSON lines, fio's JSON and logs, hyperfine's JSON."""

from __future__ import annotations

import csv
import json
import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["FILE_BYTES_MAX", "read_column"]

FILE_BYTES_MAX = 2_000_000_000
_READINGS_MAX = 100_000_000


def read_column(path: Path, column: str | None = None) -> tuple[str, NDArray[np.float64]]:
    """One series of readings from a file; the format follows from the name's ending and the content.

    Args:
        path: `.csv`; `.jsonl` or `.ndjson`, one object a line; `.log`, fio's bw/iops/lat log (time, value,
            direction, size[, offset]); `.json`, hyperfine's export (its times, in seconds) or fio's output
            (none: fio's JSON holds no series; its logs do).
        column: name of the column or key; may be left out where there is only one numeric column.

    Returns:
        The column's name, and float64 (n,) readings in the file's order.

    Raises:
        InputError: the file cannot be read, has no such column, or holds text where a number should be.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{str(path)!r}: {error.strerror}") from error
    if size > FILE_BYTES_MAX:
        raise InputError(f"{str(path)!r} has {size} bytes: at most {FILE_BYTES_MAX} are read")
    readers = {
        ".csv": _read_csv,
        ".jsonl": _read_json_lines,
        ".ndjson": _read_json_lines,
        ".json": _read_json,
        ".log": _read_fio_log,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{str(path)!r}: readings come in files ending in {', '.join(readers)}")
    try:
        name, values = reader(path, column)
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{str(path)!r}: cannot be read as {path.suffix}: {error}") from error
    readings = np.asarray(values, np.float64)
    if readings.size == 0:
        raise InputError(f"{str(path)!r}: holds no readings of {name!r}")
    return name, readings


def _number(path: Path, line: int, name: str, text: Any) -> float:
    """A finite number, or an error that says where it is not."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or isinstance(text, bool):
        shown = repr(text)[:60]
        raise InputError(f"{str(path)!r} line {line}: {name} = {shown} is not a finite number")
    return value


def _pick(path: Path, column: str | None, known: list[str], numeric: list[str]) -> str:
    """The column asked for, or the only one there is."""
    if column is not None:
        if column not in known:
            raise InputError(f"{str(path)!r} has no column {column!r}; it has {', '.join(known)[:400]}")
        return column
    if len(numeric) == 1:
        return numeric[0]
    raise InputError(f"{str(path)!r} has several columns; name one with --column: {', '.join(known)[:400]}")


def _read_csv(path: Path, column: str | None) -> tuple[str, list[float]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, None)
        if not header:
            raise InputError(f"{str(path)!r}: is empty; the first line names the columns")
        names = [name.strip() for name in header]
        first = next(rows, None)
        numeric = [name for name, text in zip(names, first or [], strict=False) if _is_number(text)]
        name = _pick(path, column, names, numeric)
        index = names.index(name)
        values: list[float] = []
        for line, row in enumerate([first] if first else [], start=2):
            values.append(_cell(path, line, name, row, index))
        for line, row in enumerate(rows, start=3):
            if row:
                values.append(_cell(path, line, name, row, index))
    return name, values


def _cell(path: Path, line: int, name: str, row: list[str], index: int) -> float:
    if index >= len(row):
        raise InputError(f"{str(path)!r} line {line}: has {len(row)} cells; {name!r} is number {index + 1}")
    return _number(path, line, name, row[index])


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return not isinstance(text, bool)


def _read_json_lines(path: Path, column: str | None) -> tuple[str, list[float]]:
    values: list[float] = []
    name = column or ""
    for line, entry in _objects(path):
        if not name:
            name = _pick(path, None, list(entry), [key for key, value in entry.items() if _is_number(value)])
        if name in entry:
            values.append(_number(path, line, name, entry[name]))
    if not values and column is not None:
        raise InputError(f"{str(path)!r}: no line has the key {column!r}")
    return name, values


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            entry: Any = json.loads(text)
            if not isinstance(entry, dict):
                raise InputError(f"{str(path)!r} line {line}: must be a JSON object")
            yield line, cast("dict[str, Any]", entry)


def _read_json(path: Path, column: str | None) -> tuple[str, list[float]]:
    document: Any = json.loads(path.read_text("utf-8"))
    if isinstance(document, list):
        listed = cast("list[Any]", document)
        return column or "value", [_number(path, at, "value", v) for at, v in enumerate(listed, start=1)]
    if isinstance(document, dict) and "results" in document:
        return _hyperfine(path, column, cast("dict[str, Any]", document))
    if isinstance(document, dict) and "jobs" in document:
        raise InputError(
            f"{str(path)!r}: fio's JSON holds totals, not a series; run fio with --write_iops_log or "
            "--write_bw_log and --log_avg_msec, and analyse the .log file"
        )
    raise InputError(f"{str(path)!r}: must be a list of numbers, or hyperfine's --export-json")


def _hyperfine(path: Path, column: str | None, document: dict[str, Any]) -> tuple[str, list[float]]:
    """The times of one command of hyperfine's export; `column` is the command where there are several."""
    times: dict[str, Any] = {}
    for result in cast("list[Any]", document["results"] if isinstance(document["results"], list) else []):
        if isinstance(result, dict):
            named = cast("dict[str, Any]", result)
            times[str(named.get("command"))] = named.get("times")
    name = _pick(path, column, list(times), list(times))
    if not isinstance(times[name], list):
        raise InputError(f"{str(path)!r}: the results of {name!r} hold no list of times")
    values = cast("list[Any]", times[name])
    return name, [_number(path, at, "times", value) for at, value in enumerate(values, start=1)]


def _read_fio_log(path: Path, column: str | None) -> tuple[str, list[float]]:
    """Logs of fio: `time_ms, value, direction (0 read, 1 write, 2 trim), block size[, offset, priority]`.

    Readings of one instant and several directions are added up, as a throughput's should be.
    """
    directions = {"read": "0", "write": "1", "trim": "2"}
    if column is not None and column not in directions:
        raise InputError(f"{str(path)!r}: --column = {column!r}: must be one of {', '.join(directions)}")
    totals: dict[float, float] = {}
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            cells = [cell.strip() for cell in text.split(",")]
            if len(cells) < 4:
                raise InputError(f"{str(path)!r} line {line}: is no line of a fio log: {text.strip()[:60]!r}")
            if column is not None and cells[2] != directions[column]:
                continue
            at = _number(path, line, "time", cells[0])
            totals[at] = totals.get(at, 0.0) + _number(path, line, "value", cells[1])
    return column or "value", [totals[at] for at in sorted(totals)]
