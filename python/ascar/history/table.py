"""Trials as a table: one row a trial, one column a parameter and a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.trial import Trial

_INT64 = range(-(2**63), 2**63)

OWN_COLUMNS: dict[str, type[pl.DataType]] = {
    "trial.number": pl.Int64,
    "trial.purpose": pl.String,
    "trial.state": pl.String,
    "trial.started_at": pl.String,
    "trial.seconds": pl.Float64,
    "trial.score": pl.Float64,
    "trial.ci_low": pl.Float64,
    "trial.ci_high": pl.Float64,
    "trial.unmet": pl.String,
    "trial.change_category": pl.Int64,
    "trial.change_s": pl.Float64,
    "trial.origin": pl.String,
    "trial.reason": pl.String,
    "trial.failure_stage": pl.String,
    "trial.failure": pl.String,
}
"""What every trial has, beside its parameters and metrics; the prefix keeps them apart from both."""


RUN_COLUMN, RECORD_COLUMN = "trial.run", "trial.record"
"""What an export adds: all of a run in its first row, all of a trial in each."""


def trials_table(trials: Sequence[Trial]) -> pl.DataFrame:
    """Trials as a frame, in their order.

    Columns: `OWN_COLUMNS`; then parameters by their names, null where a parameter does not apply; then
    metrics by theirs, null where they were not measured ("metric." before a name that is taken).
    """
    parameters = list(dict.fromkeys(name for trial in trials for name in trial.configuration))
    metrics = list(dict.fromkeys(name for trial in trials for name in trial.metrics))
    own = [_own(trial) for trial in trials]
    columns = [pl.Series(name, [row[name] for row in own], kind) for name, kind in OWN_COLUMNS.items()]
    columns += [_values(name, [trial.configuration.get(name) for trial in trials]) for name in parameters]
    taken = {*OWN_COLUMNS, *parameters, RECORD_COLUMN, RUN_COLUMN}
    for name in metrics:
        title = name
        while title in taken:
            title = f"metric.{title}"
        taken.add(title)
        columns.append(pl.Series(title, [trial.metrics.get(name) for trial in trials], pl.Float64))
    return pl.DataFrame(columns)


def _own(trial: Trial) -> dict[str, Any]:
    measurement, change, failure = trial.measurement, trial.change, trial.failure
    return {
        "trial.number": trial.number,
        "trial.purpose": trial.purpose.value,
        "trial.state": trial.state.value,
        "trial.started_at": trial.started_at,
        "trial.seconds": float(sum(trial.stage_s.values())),
        "trial.score": trial.score,
        "trial.ci_low": measurement and measurement.ci_low,
        "trial.ci_high": measurement and measurement.ci_high,
        "trial.unmet": _storable("; ".join(trial.unmet)),
        "trial.change_category": change and change.category,
        "trial.change_s": change and change.total_s,
        "trial.origin": trial.origin and trial.origin.value,
        "trial.reason": _storable(trial.reason),
        "trial.failure_stage": failure and _storable(failure.stage),
        "trial.failure": failure and _storable(failure.message),
    }


def _storable(text: str) -> str:
    """Text without lone surrogates: a program's bytes that are no text fit in no table."""
    return text.encode("utf-8", "backslashreplace").decode()


def _values(name: str, values: Sequence[Any]) -> pl.Series:
    """A parameter's column in the narrowest type that holds every value; text where kinds are mixed."""
    kinds: set[type[object]] = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int} and all(value is None or value in _INT64 for value in values):
        return pl.Series(name, values, pl.Int64)
    if float in kinds and kinds <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
    return pl.Series(name, [None if value is None else _text(value) for value in values], pl.String)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
