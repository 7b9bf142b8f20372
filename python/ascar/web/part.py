"""A run or a table, read: which of its columns were set, which were measured."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from ascar.analysis.frames import trials_frame
from ascar.analysis.spectra import text_in
from ascar.analysis.tables import ended_trials
from ascar.errors import AscarError, InputError
from ascar.results.trial import TrialState
from ascar.study import Study
from ascar.systems.recording_columns import name_of, own_space
from ascar.web.exploration import NothingYet, RowOrigin
from ascar.workloads.open_loop import closed_loop_note

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.history import Run
    from ascar.space import Space

SCORE = "trial.score"
"""The metric that a study's formula makes."""
COST = "change_category"
"""The metric that says which category (Cao, Table 9.1) the change from the default configuration has."""
_OWN_METRICS = (SCORE, "trial.seconds", "trial.change_s")
_VALUES_MANY = 32
_HIGHEST = (2, 4, 8)  # a mask of categories from here on has category 1, 2, 3 in it


@dataclass(frozen=True, slots=True)
class Roles:
    """What the user says of a table's columns.

    Attributes:
        objective: the column that was measured.
        parameters: columns that were set; empty: see `of_table`.
        metrics: other columns that were measured.
        ignore: columns that are neither.
    """

    objective: str
    parameters: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RowSource:
    """Rows from one place.

    Attributes:
        origin: the place.
        frame: a row an evaluation.
        dimensions: the columns that were set or given.
        given: the dimensions that are not parameters: load, device, study.
        metrics: the measured columns.
        space: the space of the search; None: unknown.
        objective: the metric it is about.
        minimize: whether less of it is better; None: not said.
        notes: one line for each omission, and for percentiles of a closed loop.
        changes: uint8 (rows,), bit c set where a parameter of category c (Cao, Table 9.1) departs from its
            default; None: unknown.
    """

    origin: RowOrigin
    frame: pl.DataFrame
    dimensions: tuple[str, ...]
    metrics: tuple[str, ...]
    space: Space | None
    objective: str
    minimize: bool | None = None
    given: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changes: NDArray[np.uint8] | None = None


def of_run(run: Run) -> RowSource:
    """What a run has measured so far: complete, pruned and failed trials of the search.

    Raises:
        NothingYet: no trial has ended well yet.
    """
    trials = [
        trial
        for trial in run.trials(readings=False)
        if trial.state in (TrialState.COMPLETE, TrialState.FAILED, TrialState.PRUNED)
    ]
    if not any(trial.score is not None for trial in trials):
        raise NothingYet(f"run {run.id} ({run.name}): nothing was measured yet; wait for its first trial")
    frame, pruned = trials_frame(trials, run.objective), TrialState.PRUNED.value
    whole = ended_trials(frame)
    left_out = frame.filter(pl.col("trial.state") == pruned).height
    notes = (f"{left_out} trials that were ended early are not shown",) if left_out else ()
    setting = _setting(run.text, run.machine) | {"study": run.name}
    origin = RowOrigin(f"{run.name} (run {run.id})", run.id)
    formula = str(run.objective.formula)
    objective = formula if formula in frame.columns else SCORE
    part = _part(origin, whole, run.space, setting, objective)
    notes += _loop([run.machine], part.metrics)
    return replace(part, minimize=run.objective.sign < 0, notes=notes)


def of_table(frame: pl.DataFrame, name: str, roles: Roles) -> RowSource:
    """A table's columns.

    A table of ascar's own (`ascar history export`, `ascar sweep`) says itself what was set. In another one,
    where the user does not name the parameters, every column is one, but numbers that hold fractions and
    take more than 32 values: those were measured.

    Args:
        frame: the table as it was read.
        name: the table's name.
        roles: the roles that the user gave to columns.

    Raises:
        InputError: no such column, or the objective holds something else than numbers.
    """
    asked = {"objective": (roles.objective,), "parameters": roles.parameters}
    asked |= {"metrics": roles.metrics, "ignore": roles.ignore}
    for role, names in asked.items():
        for column in names:
            if column not in frame.columns:
                raise InputError(
                    f"{name}: {role}: the table has no column {column!r}; it has "
                    f"{', '.join(frame.columns[:40])}"
                )
    for column in (roles.objective, *roles.metrics):
        if not frame[column].dtype.is_numeric():
            raise InputError(
                f"{name}: column {column!r}: {text_in(frame[column])}; a metric must hold numbers"
            )
        if column in roles.parameters:
            raise InputError(
                f"{name}: column {column!r}: cannot be both a parameter and a metric; name it once"
            )
    own = own_space(frame.rename({column: name_of(column) for column in frame.columns}))
    records: list[_Record] = []
    if "trial.run" in frame.columns and frame["trial.run"].dtype == pl.String:
        records = _records(frame["trial.run"])
    if "trial.state" in frame.columns:
        frame = ended_trials(frame)
    kept = frame.drop(list(roles.ignore))
    origin = RowOrigin(name)
    if own is not None and not roles.parameters:
        part = _part(origin, kept, own, _common_setting(records), roles.objective)
        return replace(part, notes=_loop([one.machine for one in records], part.metrics))
    apart = {roles.objective, *roles.metrics}
    free = [column for column in kept.columns if column not in apart and not column.startswith("trial.")]
    parameters = roles.parameters or tuple(column for column in free if not looks_measured(kept[column]))
    others = (column for column in free if column not in parameters and kept[column].dtype.is_numeric())
    metrics = tuple(dict.fromkeys((roles.objective, *roles.metrics, *others)))
    return RowSource(origin, kept, tuple(parameters), metrics, None, roles.objective)


def looks_measured(column: pl.Series) -> bool:
    """Whether a column of a table that says nothing of itself was measured rather than set."""
    if not column.dtype.is_float():
        return False
    values = column.drop_nulls()
    return bool((values.round(0) != values).any()) and values.n_unique() > _VALUES_MANY


def _part(
    origin: RowOrigin, frame: pl.DataFrame, space: Space, setting: Mapping[str, str], objective: str
) -> RowSource:
    """Of a run, or of a table that says from which space it is."""
    names = tuple(name for name in space.names if name in frame.columns)
    given = {key: value for key, value in setting.items() if key not in frame.columns}
    changes = _changes(frame, space, names)
    highest = np.searchsorted(_HIGHEST, changes, "right").astype(np.float64)
    frame = frame.with_columns(
        *(pl.lit(value).alias(key) for key, value in given.items()), pl.Series(COST, highest)
    )
    metrics = [
        column
        for column in frame.columns
        if column not in names
        and frame[column].dtype.is_numeric()
        and (column in _OWN_METRICS or not column.startswith("trial."))
    ]
    ordered = tuple(dict.fromkeys((objective, *metrics)))
    if objective not in frame.columns or not frame[objective].dtype.is_numeric():
        raise InputError(
            f"{origin.name}: {objective!r} was not measured; choose one of {', '.join(metrics[:40])}"
        )
    return RowSource(
        origin, frame, (*given, *names), ordered, space, objective, given=tuple(given), changes=changes
    )


def _changes(frame: pl.DataFrame, space: Space, names: Sequence[str]) -> NDArray[np.uint8]:
    """uint8 (rows,): of each row, which categories the parameters have that depart from their default."""
    mask = np.zeros(frame.height, np.uint8)
    for name in names:
        column, default = frame[name], space[name].default
        if column.dtype.is_numeric() and isinstance(default, (int, float)):
            same = column == default
        else:
            same = column.cast(pl.String).str.to_lowercase() == _text(default)
        departs = (column.is_not_null() & ~same).fill_null(value=False)
        mask |= departs.to_numpy().astype(np.uint8) << np.uint8(space[name].cost.category)
    return mask


def _text(value: Any) -> str:
    return str(value).lower()


@dataclass(frozen=True, slots=True)
class _Record:
    """What a table of ascar's own says of a run: its study, and what its results hold for."""

    text: str
    machine: dict[str, Any]


def _records(column: pl.Series) -> list[_Record]:
    """The runs in a table of ascar's own, the first ones of many; none where one cannot be read."""
    found: list[_Record] = []
    for text in column.drop_nulls().head(_VALUES_MANY):
        try:
            record = json.loads(text)
            found.append(_Record(str(record["text"]), dict(record["machine"])))
        except (KeyError, TypeError, ValueError, RecursionError):
            return []
    return found


def _common_setting(records: Sequence[_Record]) -> dict[str, str]:
    """What runs have in common; a table of several loads says nothing of it."""
    settings = [set(_setting(one.text, one.machine).items()) for one in records]
    return dict(set.intersection(*settings)) if settings else {}


def _loop(machines: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> tuple[str, ...]:
    """What is to be known of percentiles, a line for each kind of load that the rows were measured under."""
    notes = (closed_loop_note(machine, metrics) for machine in machines)
    return tuple(dict.fromkeys(note for note in notes if note))


def _setting(text: str, machine: Mapping[str, Any]) -> dict[str, str]:
    """Under which load, on what."""
    found: dict[str, str] = {}
    try:
        load = Study.parse(text).workload
        kind = str(load.get("kind", ""))
        found["workload"] = str(load.get("personality") or load.get("preset") or load.get("job") or kind)
    except AscarError:
        pass
    device = machine.get("device")
    if isinstance(device, dict):
        found["device"] = str(cast("dict[str, Any]", device).get("kind", ""))
    return {key: value for key, value in found.items() if value}
