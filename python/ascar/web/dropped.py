"""A table that was dropped on the page: what its columns are, and what can be explored in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ascar.analysis.tables import read_bytes
from ascar.errors import InputError
from ascar.web.exploration import VALUES_MAX, Exploration
from ascar.web.part import Roles, looks_measured, of_table

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_BYTES_MAX = 512 * 2**20


def inspected(content: bytes, name: str) -> dict[str, Any]:
    """The table's columns, each with the role that it seems to have.

    Args:
        content: the bytes of a CSV or Parquet file.
        name: the file's, for messages.

    Raises:
        InputError: it cannot be read, is empty, or holds no number that could have been measured.
    """
    frame = read_bytes(content, f"file {name!r}")
    columns = [
        _column(frame[one]) for one in frame.columns if not one.startswith("trial.") or one == "trial.score"
    ]
    if not any(column["numeric"] for column in columns):
        raise InputError(
            f"file {name!r}: no column holds numbers alone, so nothing in it was measured; "
            f"its columns are {', '.join(frame.columns[:40])}"
        )
    if not any(column["role"] == "metric" for column in columns):
        # Whoever writes a table puts what came out last.
        next(column for column in reversed(columns) if column["numeric"])["role"] = "metric"
    return {"name": name, "rows": frame.height, "columns": columns}


def explored(content: bytes, name: str, asked: Mapping[str, str]) -> Exploration:
    """The table as columns.

    Args:
        content: the bytes of a CSV or Parquet file.
        name: the file's.
        asked: "objective", "direction" ("min", "max" or nothing), and "parameters", "metrics", "ignore" as
            JSON lists' text, names with newlines between them.

    Raises:
        InputError: it cannot be explored so.
    """
    frame = read_bytes(content, f"file {name!r}")
    direction = asked.get("direction", "")
    if direction not in ("", "min", "max"):
        raise InputError(f"direction {direction!r}: must be min or max")
    objective = asked.get("objective", "")
    roles = Roles(objective, *(_lines(asked.get(key, "")) for key in ("parameters", "metrics", "ignore")))
    part = of_table(frame, name, roles)
    return Exploration.of([part], objective, {"": None, "min": True, "max": False}[direction])


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.split("\n") if line)


def _column(column: pl.Series) -> dict[str, Any]:
    numeric = column.dtype.is_numeric()
    different = column.drop_nulls().n_unique()
    note = ""
    role = "metric" if looks_measured(column) else "parameter"
    if not numeric and column.dtype == pl.String:
        numbers = column.drop_nulls().cast(pl.Float64, strict=False)
        texts = numbers.null_count()
        if 0 < texts < len(numbers) / 2:
            row = int((column.is_not_null() & column.cast(pl.Float64, strict=False).is_null()).arg_max() or 0)
            note = f"row {row + 1} holds {str(column[row])[:40]!r}, so it cannot be an objective"
        if different > VALUES_MAX:
            role, note = "ignore", note or f"{different} different texts, at most {VALUES_MAX} can be shown"
    if different < 2:
        role, note = "ignore", note or "has one value in all rows"
    return {"name": column.name, "numeric": numeric, "different": different, "role": role, "note": note}
