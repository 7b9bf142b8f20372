"""Readings from CSV or TSV: the first line names the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.errors import InputError
from ascar.pilot.sources.recorded import RecordedSeries, number, pick, readings
from ascar.tables import is_packed

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import polars as pl
    from numpy.typing import NDArray


def read_table(path: Path, column: str | None, time: str | None) -> list[RecordedSeries]:
    """The series of one column."""
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    head = text_frame(path, separator=separator, n_rows=1)
    if not head.columns:
        raise InputError(f"{str(path)!r}: is empty; the first line must name the columns")
    numeric = [name for name in head.columns if name != time and _is_number(head[name])]
    name = pick(path, column, head.columns, numeric)
    if time is not None and time not in head.columns:
        pick(path, time, head.columns, ())
    wanted = [name] if time in (None, name) else [name, time]
    frame = text_frame(path, separator=separator, columns=wanted)
    values = numbers_of(path, frame[name], first_line=2)
    seconds = None if time is None else numbers_of(path, frame[time], first_line=2)
    return [readings(path, name, values, seconds)]


def text_frame(path: Path, **options: Any) -> pl.DataFrame:
    """A file of separated values, every cell as text.

    Raises:
        InputError: it is no such file.
    """
    import polars as pl  # only here: who reads no such file needs not have it

    with path.open("rb") as file:
        if is_packed(file.read(4)):
            raise InputError(f"{str(path)!r}: is compressed; unpack it first")
    try:
        return pl.read_csv(path, infer_schema=False, glob=False, **options)
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except pl.exceptions.PolarsError as error:
        problem = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{str(path)!r}: cannot be read as separated values: {problem[:200]}") from error


def numbers_of(path: Path, cells: pl.Series, first_line: int) -> NDArray[np.float64]:
    """A column's cells as finite numbers.

    Args:
        path: the path, for the error.
        cells: text.
        first_line: the file's line that the first cell is on.

    Raises:
        InputError: a cell is not a finite number; names its line.
    """
    import polars as pl

    parsed = cells.str.strip_chars().cast(pl.Float64, strict=False)
    bad = (~parsed.is_finite().fill_null(value=False)).arg_true()
    if len(bad):
        index = int(bad[0])
        number(path, first_line + index, repr(cells.name), cells[index] or "")
    return parsed.to_numpy()


def _is_number(cells: pl.Series) -> bool:
    import polars as pl

    return len(cells) > 0 and cells.str.strip_chars().cast(pl.Float64, strict=False)[0] is not None
