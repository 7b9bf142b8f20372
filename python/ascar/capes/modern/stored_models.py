"""Conversion of a modern learner's models to plain values and arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ascar.capes.axes import units
from ascar.capes.modern.surface import Surface, VisitedSetting
from ascar.capes.modern.workload_models import WorkloadRecord
from ascar.errors import InputError
from ascar.library import IndicatorSummary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.modern.learner import Modern

_PLACE = 6
Arrays = dict[str, "NDArray[Any]"]


class _StoredWorkload(msgspec.Struct, frozen=True):
    name: str | None
    designed: int


class StoredModels(msgspec.Struct, frozen=True, rename={"workloads": "regimes", "drifts": "wanders"}):
    """The values beside the arrays.

    Attributes:
        workloads: the name of each workload, and the progress of its design.
        changes: the number of changes of workload.
        moves: the number of moves that the learner chose.
        drifts: the number of measured changes of indicators from visit to visit.
    """

    workloads: tuple[_StoredWorkload, ...]
    changes: int
    moves: int
    drifts: float = 0.0


def taken_from(learner: Modern) -> tuple[StoredModels, Arrays]:
    """The models of a learner as values and arrays."""
    knobs = len(learner.knobs)
    records = learner.workloads.all()
    arrays: Arrays = {"evidence": learner.settling.evidence}
    drift = learner.workloads.drift
    if drift.squares is not None:
        arrays["wandered"] = drift.squares
    arrays["refused"] = np.array(list(learner.refused), float).reshape(-1, knobs)
    for at, one in enumerate(records):
        places = one.surface.places
        arrays[f"settings{at:03d}"] = np.array(list(places), float).reshape(-1, knobs)
        rows = [(p.visits, p.ticks, p.mean, p.between, p.within, p.last) for p in places.values()]
        arrays[f"places{at:03d}"] = np.array(rows, float).reshape(-1, _PLACE)
        arrays[f"looked{at:03d}"] = np.array(list(one.indicators), float).reshape(-1, knobs)
        indicators = [np.stack(seen) for seen in one.indicators.values()]
        arrays[f"looks{at:03d}"] = np.stack(indicators) if indicators else np.empty((0, 2, 0))
    about = tuple(_StoredWorkload(one.name, one.surface.designed) for one in records)
    return StoredModels(about, learner.workloads.changes, learner.moves, drift.count), arrays


def put_back(learner: Modern, memory: StoredModels, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the models in a learner of the same knobs; settings that are out of range now are left out.

    Raises:
        InputError: an array is missing, has another shape, or holds impossible values.
    """
    if not memory.workloads:
        raise InputError("it has no workload")
    knobs = learner.knobs
    evidence = _array(arrays, "evidence", len(learner.settling.evidence))
    refused = _array(arrays, "refused", None, len(knobs))
    records = [_workload(knobs, at, one, arrays) for at, one in enumerate(memory.workloads)]
    learner.settling.evidence = evidence
    learner.refused = {one: units(knobs, one) for one in map(_setting, refused) if _inside(knobs, one)}
    learner.moves = memory.moves
    learner.workloads.put_back(records, memory.changes)
    if "wandered" in arrays:
        widths = {len(seen.mean) for one in records for seen in one.indicators.values()}
        drift = _array(arrays, "wandered", None)
        if widths - {len(drift)} or memory.drifts < 0 or (drift < 0).any():
            raise InputError("array wandered has another shape, or holds impossible values")
        learner.workloads.drift.squares, learner.workloads.drift.count = drift, memory.drifts


def _workload(
    knobs: Sequence[Axis], at: int, about: _StoredWorkload, arrays: Mapping[str, NDArray[Any]]
) -> WorkloadRecord:
    settings = _array(arrays, f"settings{at:03d}", None, len(knobs))
    rows = _array(arrays, f"places{at:03d}", len(settings), _PLACE)
    measured = _array(arrays, f"looked{at:03d}", None, len(knobs))
    indicators = arrays.get(f"looks{at:03d}")
    if (
        indicators is None
        or indicators.ndim != 3
        or indicators.shape[:2] != (len(measured), 2)
        or np.isnan(indicators).any()
    ):
        raise InputError(f"array looks{at:03d} is missing or has another shape")
    if (rows[:, [0, 1, 5]] < 1).any() or (rows[:, 3:5] < -1e-9 * np.abs(rows[:, 2:3])).any():
        raise InputError(f"array places{at:03d} holds impossible values")
    places: dict[Setting, VisitedSetting] = {}
    for setting, row in zip(map(_setting, settings), rows.tolist(), strict=True):
        if _inside(knobs, setting):
            visits, ticks, mean, between, within, last = row
            places[setting] = VisitedSetting(
                units(knobs, setting), int(visits), int(ticks), mean, between, within, int(last)
            )
    found = {
        setting: IndicatorSummary(seen[0].astype(float), seen[1].astype(float))
        for setting, seen in zip(map(_setting, measured), indicators, strict=True)
        if _inside(knobs, setting)
    }
    return WorkloadRecord(about.name, Surface.restored(knobs, max(1, about.designed), places), found)


def _array(
    arrays: Mapping[str, NDArray[Any]], name: str, rows: int | None, columns: int | None = None
) -> NDArray[np.float64]:
    array = arrays.get(name)
    dimensions = 1 if columns is None else 2
    right = array is not None and array.ndim == dimensions and array.dtype.kind == "f"
    if not right or array is None or (rows is not None and len(array) != rows):
        raise InputError(f"array {name} is missing or has another shape")
    if (columns is not None and array.shape[1] != columns) or not np.isfinite(array).all():
        raise InputError(f"array {name} has another shape, or values that are not finite")
    return array.astype(float)


def _setting(row: NDArray[np.float64]) -> Setting:
    return tuple(row.tolist())


def _inside(knobs: Sequence[Axis], setting: Setting) -> bool:
    return all(knob.low <= value <= knob.high for knob, value in zip(knobs, setting, strict=True))
