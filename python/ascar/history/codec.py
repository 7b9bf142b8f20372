"""Trials as rows and back, bit for bit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
import numpy as np

from ascar import typed
from ascar.errors import HistoryError
from ascar.history.words import OF_TRIAL, see_words
from ascar.results.measurement import Measurement, Series
from ascar.results.trial import Abandonment, Change, Failure, Origin, Purpose, Trial, TrialState
from ascar.space import Configuration

if TYPE_CHECKING:
    from numpy.typing import NDArray

_T = TypeVar("_T")


def dump(value: Any, *, ordered: bool = False) -> str:
    """JSON text that `load` turns back; NaN and infinities become strings that `decode` reads.

    Everything outside ASCII is escaped: the last words of a failing program may hold bytes that are no text,
    and those (lone surrogates) no database would take as they are.

    Args:
        value: mappings, sequences, structs, text and numbers.
        ordered: keys stay in their order; else they are sorted, so that equal values give equal text.
    """
    return json.dumps(
        plain(value), ensure_ascii=True, allow_nan=False, sort_keys=not ordered, separators=(",", ":")
    )


def load(text: str, where: str) -> Any:
    """The value of JSON text from the history.

    Raises:
        HistoryError: it is not JSON.
    """
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"{where}: is not JSON ({error}); put back a copy of the history") from error


def decode(value: Any, kind: Any, where: str) -> Any:
    """A value from `load` as type `kind`; "nan" and "inf" become numbers where a number belongs.

    Raises:
        HistoryError: the value is of another shape.
    """
    try:
        return typed.convert(value, kind, strict=False)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise HistoryError(f"{where}: {error}; put back a copy of the history, or export it again") from error


def plain(value: Any) -> Any:
    """`value` as what strict JSON can say; NaN and infinities as strings that `decode` reads."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Sequence):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    if hasattr(value, "item"):  # a NumPy scalar
        return plain(value.item())
    raise TypeError(f"no JSON form for {type(value).__name__}")


def trial_row(trial: Trial, boot_id: str) -> dict[str, Any]:
    """The columns of a trial, without its run's id."""
    assert trial.score is None or math.isfinite(trial.score), (
        "a score is a number or None; NaN is a failed trial"
    )
    return {
        "number": trial.number,
        "configuration_key": trial.configuration.key(),
        "configuration": json.dumps(dict(trial.configuration), ensure_ascii=True, allow_nan=False),
        "purpose": trial.purpose.value,
        "state": trial.state.value,
        "score": trial.score,
        "duration_s": float(sum(trial.stage_s.values())),
        "measurement": None if trial.measurement is None else dump(trial.measurement),
        "change": None if trial.change is None else dump(trial.change),
        "stage_s": dump(trial.stage_s),
        "unmet": dump(trial.unmet),
        "failure": None if trial.failure is None else dump(trial.failure),
        "abandonment": None if trial.abandonment is None else dump(trial.abandonment),
        "boot_id": boot_id,
        "started_at": trial.started_at,
        "origin": None if trial.origin is None else trial.origin.value,
        "reason": trial.reason,
        "crashed": int(_crashed(trial)),
    }


def _crashed(trial: Trial) -> bool:
    failure = trial.failure
    return trial.state is TrialState.INTERRUPTED and failure is not None and failure.stage == "machine"


def metric_rows(trial: Trial) -> list[dict[str, Any]]:
    """One row a metric; NaN is NULL."""
    return [
        {"number": trial.number, "name": name, "value": None if math.isnan(value) else float(value)}
        for name, value in trial.metrics.items()
    ]


def reading_rows(trial: Trial) -> list[dict[str, Any]]:
    """One row a series."""
    return [
        {
            "number": trial.number,
            "name": name,
            "count": len(series),
            "seconds_f64": _blob(series.seconds),
            "values_f64": _blob(series.values),
        }
        for name, series in trial.series.items()
    ]


def series_of(row: Any, where: str) -> Series:
    """A series from its row.

    Raises:
        HistoryError: the blobs do not hold `count` numbers each.
    """
    if len(row.seconds_f64) != 8 * row.count or len(row.values_f64) != 8 * row.count:
        raise HistoryError(f"{where}: readings of {row.name!r} are cut off; put back a copy of the history")
    return Series(_array(row.seconds_f64), _array(row.values_f64))


def configuration_of(text: str, where: str) -> Configuration:
    """The configuration that `trial_row` wrote; valid then, so not checked again.

    Raises:
        HistoryError: it is none.
    """
    values = load(text, where)
    if not isinstance(values, dict):
        raise HistoryError(f"{where}: is not a table of values; put back a copy of the history")
    return Configuration(cast("dict[str, Any]", values))


def trial_of(
    row: Any,
    metrics: Mapping[str, float],
    series: Mapping[str, Series],
    where: str,
) -> Trial:
    """A trial from its row and what belongs to it.

    Raises:
        HistoryError: a column holds what no version of ascar wrote.
    """
    see_words(row._mapping, OF_TRIAL, where)
    return Trial(
        number=row.number,
        configuration=configuration_of(row.configuration, f"{where}: configuration"),
        purpose=Purpose(row.purpose),
        state=TrialState(row.state),
        score=row.score,
        measurement=_maybe(row.measurement, Measurement, f"{where}: measurement"),
        metrics=metrics,
        series=series,
        change=_maybe(row.change, Change, f"{where}: change"),
        stage_s=_needed(row.stage_s, dict[str, float], f"{where}: stage_s"),
        unmet=_needed(row.unmet, tuple[str, ...], f"{where}: unmet"),
        failure=_maybe(row.failure, Failure, f"{where}: failure"),
        abandonment=_maybe(row.abandonment, Abandonment, f"{where}: abandonment"),
        started_at=row.started_at,
        origin=None if row.origin is None else Origin(row.origin),
        reason=row.reason,
    )


def _maybe(text: str | None, kind: type[_T], where: str) -> _T | None:
    return None if text is None else _needed(text, kind, where)


def _needed(text: str, kind: type[_T], where: str) -> _T:
    return decode(load(text, where), kind, where)


def _blob(numbers: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(numbers, "<f8").tobytes()


def _array(blob: bytes) -> NDArray[np.float64]:
    return np.frombuffer(blob, "<f8").astype(np.float64)
