"""What `ascar variation` works on: runs of the history, tables, or several of either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import polars as pl

from ascar import typed
from ascar.analysis.variation_latency import is_latency
from ascar.analysis.variation_runs import FrameLayout
from ascar.analysis.variation_study import SOURCE
from ascar.analysis.variation_trials import (
    SETUP,
    initialises_lazily,
    readings,
    trial_material,
    unselected_rows,
)
from ascar.errors import AscarError, InputError
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ascar.analysis.table_columns import ColumnOptions
    from ascar.history import Run
    from ascar.results.measurement import Series

_STARTED = "trial.started_at"
_RECORD, _RUN = "trial.record", "trial.run"


@dataclass(frozen=True, slots=True, eq=False)
class VariationSource:
    """A frame, how it is read, and what it is called."""

    name: str
    frame: pl.DataFrame
    layout: FrameLayout


def run_source(run: Run) -> VariationSource:
    """The trials of a run of the history, without those that a search chose by their score."""
    frame, layout = trial_material(run)
    return VariationSource(f"run {run.id} ({run.name})", frame, layout)


class _Series(msgspec.Struct):
    seconds: list[float | None]
    values: list[float | None]


class _Change(msgspec.Struct):
    step_s: dict[str, float | None] = {}
    filled: bool = False


class _Record(msgspec.Struct):
    series: dict[str, _Series] = {}
    change: _Change | None = None


class _Run(msgspec.Struct):
    text: str = ""


def table_source(
    path: Path, columns: ColumnOptions, step: Callable[[str], None] = lambda _: None
) -> VariationSource:
    """A CSV or Parquet file, or `dataset:NAME`.

    Raises:
        InputError: the file cannot be read, or has no such columns.
    """
    step(f"reading {path}")
    frame, objective, parameters = columns.read(path, is_latency)
    if "trial.state" in frame.columns:
        frame = frame.filter(unselected_rows(frame))
    order = columns.order
    if order is None and _STARTED in frame.columns and frame[_STARTED].null_count() == 0:
        order = _STARTED
    layout = FrameLayout(objective, parameters, order, columns.setup, lazily=_lazily(frame))
    if _RECORD in frame.columns and frame[_RECORD].dtype == pl.String:
        step("reading the trials' records")
        frame, layout = _with_records(frame, layout, columns.series)
    elif columns.series is not None:
        raise InputError(f"--series = {columns.series!r}: the table has no readings (no column {_RECORD})")
    return VariationSource(str(path), frame, layout)


def _with_records(
    frame: pl.DataFrame, layout: FrameLayout, asked: str | None
) -> tuple[pl.DataFrame, FrameLayout]:
    records: list[_Record] = []
    for row, text in enumerate(frame[_RECORD]):
        try:
            records.append(_Record() if text is None else typed.decode(text, _Record))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(
                f"row {row + 1}, {_RECORD}: {error}; export the run again, or drop the column"
            ) from error
    names = list(dict.fromkeys(name for one in records for name in one.series))
    if asked is not None and asked not in names:
        raise InputError(f"--series = {asked!r}: was not recorded; recorded are {', '.join(names) or 'none'}")
    name = asked or (layout.objective if layout.objective in names else names[0] if len(names) == 1 else None)
    note = ""
    if name is None and names:
        note = f"readings of {', '.join(names)} were recorded; choose with --series"
    elif name is not None and name != layout.objective:
        note = f"readings over time are of {name}"
    series = [
        None if name is None or name not in one.series else _series(one.series[name]) for one in records
    ]
    if layout.setup is None and layout.order is not None:
        order = np.argsort(frame[layout.order].to_numpy(), kind="stable")
        fresh = np.array(
            [one.change is None or "format" in one.change.step_s or not one.change.filled for one in records]
        )
        setup = np.empty(len(records), np.int64)
        setup[order] = np.cumsum(fresh[order])
        frame, layout = frame.with_columns(pl.Series(SETUP, setup)), replace(layout, setup=SETUP)
    return frame, replace(
        layout, series=series if any(one is not None for one in series) else (), rate=name or "", note=note
    )


def _series(one: _Series) -> Series | None:
    return readings(
        np.array([np.nan if x is None else x for x in one.seconds]),
        np.array([np.nan if x is None else x for x in one.values]),
    )


def _lazily(frame: pl.DataFrame) -> bool | None:
    """False where the study that the table brings along initialises nothing lazily."""
    texts = frame[_RUN].drop_nulls() if _RUN in frame.columns and frame[_RUN].dtype == pl.String else ()
    try:
        kinds = [initialises_lazily(Study.parse(typed.decode(text, _Run).text)) for text in texts]
    except (AscarError, msgspec.MsgspecError, RecursionError):
        return None
    return False if kinds and all(kind is False for kind in kinds) else None


def joined(sources: Sequence[VariationSource]) -> VariationSource:
    """Several sources as one, with a parameter that tells them apart.

    Raises:
        InputError: they have another objective or no common columns.
    """
    if len(sources) == 1:
        return sources[0]
    objectives = {one.layout.title or one.layout.objective for one in sources}
    if len(objectives) > 1:
        raise InputError(
            f"sources measure different things: {', '.join(sorted(objectives))}; give those of one"
        )
    if any(SOURCE in one.frame.columns for one in sources):
        raise InputError(f"column {SOURCE!r}: several sources are told apart by that name; rename the column")
    names = [one.name for one in sources]
    if len(set(names)) < len(names):
        raise InputError(f"{names[0]}: is given twice; give each source once")
    offset, frames = 0, list[pl.DataFrame]()
    for one in sources:
        frame = one.frame.with_columns(pl.lit(one.name).alias(SOURCE))
        if SETUP in frame.columns:
            frame = frame.with_columns(pl.col(SETUP) + offset)
            offset = int(frame[SETUP].max() or 0)  # type: ignore[arg-type]
        frames.append(frame)
    try:
        frame = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"sources: their columns do not fit together: {str(error).splitlines()[0]}"
        ) from error
    layouts = [one.layout for one in sources]
    parameters = tuple(dict.fromkeys([SOURCE, *(name for one in layouts for name in one.parameters)]))
    series = [s for one in sources for s in (one.layout.series or [None] * one.frame.height)]
    first = layouts[0]
    layout = FrameLayout(
        first.objective,
        parameters,
        first.order if all(one.order == first.order for one in layouts) else None,
        first.setup if all(one.setup == first.setup for one in layouts) else None,
        series if any(one is not None for one in series) else (),
        first.title,
        " and ".join(dict.fromkeys(one.rate for one in layouts if one.rate)),
        "; ".join(dict.fromkeys(one.note for one in layouts if one.note)),
        False if all(one.lazily is False for one in layouts) else None,
    )
    return VariationSource(", ".join(names), frame, layout)
