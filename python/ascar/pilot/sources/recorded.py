"""What a file of readings gives, and the refusals that all formats share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FILE_BYTES_MAX = 1_000_000_000
_SHOWN_MAX = 400


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSeries:
    """One series of readings.

    Attributes:
        name: the column's, with its unit last where the format tells it.
        values: float64 (n,), n >= 1, finite, in the order they were taken.
        seconds: float64 (n,), when they were taken, never decreasing; None where the file does not say.
        note: a line worth telling about the file; empty where there is none.
        metric: the quantity that was read, where the name is something else; empty: the name says it.
    """

    name: str
    values: NDArray[np.float64]
    seconds: NDArray[np.float64] | None = None
    note: str = ""
    metric: str = ""


def number(path: Path, where: int | str, name: str, found: Any) -> float:
    """A finite number.

    Args:
        path: the path, for the error.
        where: the place in the file: a line's number, or words.
        name: the name of the number.
        found: the value found.

    Raises:
        InputError: it is none; says where.
    """
    try:
        value = float(found) if not isinstance(found, bool) else float("nan")
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    if not np.isfinite(value):
        place = f"line {where}" if isinstance(where, int) else where
        raise InputError(f"{str(path)!r} {place}: {name} = {repr(found)[:60]}: must be a finite number")
    return value


def pick(path: Path, column: str | None, known: Sequence[str], numeric: Sequence[str]) -> str:
    """The column asked for, or the only one with numbers.

    Raises:
        InputError: there is no such column, or it is not clear which.
    """
    shown = (", ".join(repr(name) for name in known) or "none")[:_SHOWN_MAX]
    if column is not None:
        if column not in known:
            raise InputError(f"{str(path)!r} has no column {column!r}; it has {shown}")
        return column
    if len(numeric) == 1:
        return numeric[0]
    if not numeric:
        raise InputError(f"{str(path)!r}: no column begins with a number; it has {shown}")
    raise InputError(f"{str(path)!r} has several columns; name one with --column: {shown}")


def readings(path: Path, name: str, values: Any, seconds: Any = None, note: str = "") -> RecordedSeries:
    """Values as a series.

    Raises:
        InputError: there are none, or time runs backwards.
    """
    taken = np.ascontiguousarray(values, np.float64)
    if taken.size == 0:
        raise InputError(f"{str(path)!r}: holds no readings of {name!r}")
    if seconds is None:
        return RecordedSeries(name, taken, None, note)
    at = np.ascontiguousarray(seconds, np.float64)
    backwards = np.flatnonzero(np.diff(at) < 0)
    if backwards.size:
        index = int(backwards[0]) + 1
        raise InputError(
            f"{str(path)!r}: time runs backwards at reading {index}: {at[index]:g} after {at[index - 1]:g}"
        )
    return RecordedSeries(name, taken, at, note)
