"""What a modern learner knows, as plain values and arrays, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ascar.capes.knobs import units
from ascar.capes.modern.surface import Surface, VisitedSetting
from ascar.capes.modern.workload_models import IndicatorSums, WorkloadRecord
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.capes.knobs import Knob, Setting
    from ascar.capes.modern.learner import Modern

_PLACE = 6
Arrays = dict[str, "NDArray[Any]"]


class _Regime(msgspec.Struct, frozen=True):
    name: str | None
    designed: int


class StoredModels(msgspec.Struct, frozen=True):
    """Beside the arrays.

    Attributes:
        regimes: of each workload its name and how far its design is.
        changes: of workloads.
        moves: that it chose.
        wanders: of indicators, that were measured.
    """

    regimes: tuple[_Regime, ...]
    changes: int
    moves: int
    wanders: float = 0.0


def taken_from(learner: Modern) -> tuple[StoredModels, Arrays]:
    """What a learner knows."""
    knobs = len(learner.knobs)
    regimes = learner.regimes.all()
    arrays: Arrays = {"evidence": learner.settling.evidence}
    if learner.regimes.wandered is not None:
        arrays["wandered"] = learner.regimes.wandered
    arrays["refused"] = np.array(list(learner.refused), float).reshape(-1, knobs)
    for at, one in enumerate(regimes):
        places = one.surface.places
        arrays[f"settings{at:03d}"] = np.array(list(places), float).reshape(-1, knobs)
        rows = [(p.visits, p.ticks, p.mean, p.between, p.within, p.last) for p in places.values()]
        arrays[f"places{at:03d}"] = np.array(rows, float).reshape(-1, _PLACE)
        arrays[f"looked{at:03d}"] = np.array(list(one.looks), float).reshape(-1, knobs)
        looks = [np.stack(look) for look in one.looks.values()]
        arrays[f"looks{at:03d}"] = np.stack(looks) if looks else np.empty((0, 2, 0))
    about = tuple(_Regime(one.name, one.surface.designed) for one in regimes)
    return StoredModels(about, learner.regimes.changes, learner.moves, learner.regimes.wanders), arrays


def put_back(learner: Modern, memory: StoredModels, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Have a learner of the same knobs know it again; settings that are out of range by now are left out.

    Raises:
        InputError: an array is missing, has another shape, or holds what cannot be.
    """
    if not memory.regimes:
        raise InputError("it has no workload")
    knobs = learner.knobs
    evidence = _array(arrays, "evidence", len(learner.settling.evidence))
    refused = _array(arrays, "refused", None, len(knobs))
    regimes = [_regime(knobs, at, one, arrays) for at, one in enumerate(memory.regimes)]
    learner.settling.evidence = evidence
    learner.refused = {one: units(knobs, one) for one in map(_setting, refused) if _inside(knobs, one)}
    learner.moves = memory.moves
    learner.regimes.put_back(regimes, memory.changes)
    if "wandered" in arrays:
        widths = {len(look.mean) for one in regimes for look in one.looks.values()}
        wandered = _array(arrays, "wandered", None)
        if widths - {len(wandered)} or memory.wanders < 0 or (wandered < 0).any():
            raise InputError("array wandered has another shape, or holds what cannot be")
        learner.regimes.wandered, learner.regimes.wanders = wandered, memory.wanders


def _regime(
    knobs: Sequence[Knob], at: int, about: _Regime, arrays: Mapping[str, NDArray[Any]]
) -> WorkloadRecord:
    settings = _array(arrays, f"settings{at:03d}", None, len(knobs))
    rows = _array(arrays, f"places{at:03d}", len(settings), _PLACE)
    looked = _array(arrays, f"looked{at:03d}", None, len(knobs))
    looks = arrays.get(f"looks{at:03d}")
    if looks is None or looks.ndim != 3 or looks.shape[:2] != (len(looked), 2) or np.isnan(looks).any():
        raise InputError(f"array looks{at:03d} is missing or has another shape")
    if (rows[:, [0, 1, 5]] < 1).any() or (rows[:, 3:5] < -1e-9 * np.abs(rows[:, 2:3])).any():
        raise InputError(f"array places{at:03d} holds what cannot be")
    places: dict[Setting, VisitedSetting] = {}
    for setting, row in zip(map(_setting, settings), rows.tolist(), strict=True):
        if _inside(knobs, setting):
            visits, ticks, mean, between, within, last = row
            places[setting] = VisitedSetting(
                units(knobs, setting), int(visits), int(ticks), mean, between, within, int(last)
            )
    found = {
        setting: IndicatorSums(look[0].astype(float), look[1].astype(float))
        for setting, look in zip(map(_setting, looked), looks, strict=True)
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


def _inside(knobs: Sequence[Knob], setting: Setting) -> bool:
    return all(knob.low <= value <= knob.high for knob, value in zip(knobs, setting, strict=True))
