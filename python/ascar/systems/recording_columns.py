"""The columns of a recorded table: which were set, which were measured, and from which space."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from ascar.errors import SpaceError, StudyError
from ascar.space.document import space_from_document, space_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.space import Space

_RUNS_MAX = 1_000
_UNENDED = ("running", "interrupted", "quarantined")
_OWN = "trial."  # what ascar's own tables say of each trial; neither set nor measured by the load


@dataclass(frozen=True, slots=True)
class TableColumns:
    """What the columns of a file are, by their names there or as formulas write them (see `name_of`).

    Columns whose names begin with "trial.", as in ascar's own tables, are ignored unless they are named; such
    a table knows which of the others were set, and from which space (conditions, constraints, costs of
    changes). Where its parameters are not named, that space is the recording's. Where they are, every
    combination of their values may be asked for, and what does not apply makes no difference.

    Attributes:
        parameters: the columns that were set; empty: all columns that are neither metric, nor ignored, nor
            constant.
        metrics: the measured columns; empty: every other numeric column. Either parameters or metrics must be
            named.
        ignore: columns that are neither.
        seconds: the column that tells what one evaluation took; None: unknown.
    """

    parameters: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    seconds: str | None = None


def name_of(column: str) -> str:
    """A column's name as formulas write it: what is not a letter, digit or "_" becomes "_"."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", column) or "_"
    return f"_{name}" if name[0].isdigit() else name


def roles_of(
    frame: pl.DataFrame, columns: TableColumns, originals: Mapping[str, str], own: Space | None
) -> TableColumns:
    """The columns with nothing left to be inferred; messages call them as the file does."""
    all_of_them = ", ".join(list(originals.values())[:40])
    asked = {
        key: tuple(_known(originals, f"target.{key}", name) for name in names)
        for key, names in (
            ("parameters", columns.parameters),
            ("metrics", columns.metrics),
            ("ignore", columns.ignore),
            ("seconds", () if columns.seconds is None else (columns.seconds,)),
        )
    }
    named = [name for names in asked.values() for name in names]
    for name in named:
        if named.count(name) > 1:
            raise StudyError(f"target: column {originals[name]!r} is given two roles; name it once")
    if not asked["parameters"] and not asked["metrics"]:
        raise StudyError(f"target: name the metrics or the parameters among the columns {all_of_them}")
    left = [name for name in frame.columns if name not in named and not originals[name].startswith(_OWN)]
    tuned = _tuned(frame)
    parameters = (
        tuple(own.names)
        if own is not None
        else asked["parameters"]
        or tuple(name for name in left if frame[name].n_unique() > 1 and (not tuned or name in tuned))
    )
    if tuned:
        left = [name for name in left if name not in tuned]
    metrics = asked["metrics"] or tuple(name for name in left if frame[name].dtype.is_numeric())
    if not parameters or not metrics:
        lacking = "metrics" if parameters else "parameters"
        raise StudyError(f"target.{lacking}: no column is left among {all_of_them}")
    for name in (*metrics, *asked["seconds"]):
        if not frame[name].dtype.is_numeric():
            raise StudyError(
                f"target: column {originals[name]!r} holds {frame[name].dtype}, but a metric must be numeric"
            )
    for name in parameters if own is None else ():
        _check_parameter(originals[name], frame[name], absent=name in tuned)
    return TableColumns(parameters, metrics, (), asked["seconds"][0] if asked["seconds"] else None)


def _tuned(frame: pl.DataFrame) -> frozenset[str]:
    """The parameters of the run that a table of ascar's own holds; empty where it is another table."""
    name = name_of(f"{_OWN}run")
    if name not in frame.columns or frame[name].dtype != pl.String:
        return frozenset()
    try:
        run = json.loads(frame[name].drop_nulls()[0])
        return frozenset(name_of(str(parameter["name"])) for parameter in run["space"]["parameters"])
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return frozenset()


def _known(originals: Mapping[str, str], key: str, name: str) -> str:
    """A column by its name in the file or in formulas."""
    if name_of(name) not in originals:
        raise StudyError(
            f"{key}: {name!r} is not a column; the table has {', '.join(list(originals.values())[:40])}"
        )
    return name_of(name)


def _check_parameter(name: str, column: pl.Series, *, absent: bool) -> None:
    """Check what stands in a parameter's column; only ascar's own tables may say that it does not apply."""
    if not (column.dtype.is_numeric() or isinstance(column.dtype, (pl.String, pl.Boolean))):
        raise StudyError(f"target.parameters: column {name!r} holds {column.dtype}; must be numbers or text")
    missing = column.is_null() if not absent or column.null_count() == len(column) else column.is_in([])
    if column.dtype.is_float():
        missing |= (column.is_nan() | column.is_infinite()).fill_null(value=False)
    if missing.any():
        row = int(missing.arg_max() or 0) + 1
        raise StudyError(
            f"target.parameters: column {name!r} has no value in row {row}; fill it, or ignore the column"
        )


def ended(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Without the trials of ascar's own tables that came to no end: they tell nothing of a configuration."""
    state = name_of(f"{_OWN}state")
    if state not in frame.columns or frame[state].dtype != pl.String:
        return frame
    kept = frame.filter(frame[state].is_in(_UNENDED).fill_null(value=False).not_())
    if not kept.height:
        raise StudyError(f"table {str(path)!r}: no trial in it has ended; measure some")
    return kept


def own_space(frame: pl.DataFrame) -> Space | None:
    """The space of the runs that a table of ascar's own holds; None: another table, or several spaces."""
    name = name_of(f"{_OWN}run")
    if name not in frame.columns or frame[name].dtype != pl.String:
        return None
    try:
        spaces = [
            space_from_document(json.loads(run)["space"]) for run in frame[name].drop_nulls().head(_RUNS_MAX)
        ]
    except (SpaceError, KeyError, TypeError, ValueError, RecursionError):
        return None
    if not spaces or any(space_key(space) != space_key(spaces[0]) for space in spaces[1:]):
        return None
    always = {one.name for one in spaces[0].parameters if one.condition is None}
    return spaces[0] if always <= {*frame.columns} else None
