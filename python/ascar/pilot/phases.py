"""The phases of a series: what was kept, what was removed, and why (Li's thesis, section 4.2.1)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ascar.results.measurement import Measurement


class PhaseKind(StrEnum):
    """What a phase is to the measurement."""

    STABLE = "stable"
    WARM_UP = "warm-up"
    COOL_DOWN = "cool-down"
    UNSTABLE = "unstable"


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of readings on one level.

    Attributes:
        start: index of its first reading.
        end: index past its last reading.
        mean: the mean of its readings.
        kind: "stable", the phase that the result is about; "warm-up" before it, "cool-down" after it;
            "unstable", where no phase holds more than half of the readings.
        reason: why it was removed; empty for the stable phase.
    """

    start: int
    end: int
    mean: float
    kind: PhaseKind
    reason: str = ""

    def __len__(self) -> int:
        return self.end - self.start


def phases_of(values: NDArray[np.float64], measurement: Measurement) -> tuple[Phase, ...]:
    """All phases of a series in order; together they cover it.

    Args:
        values: (n,) the readings that were analysed.
        measurement: the measurement of the series by `analyze`.
    """
    start, end = measurement.stable_start, measurement.stable_end
    inside = [point for point in measurement.change_points if start < point < end]
    if inside:
        # Changes inside what the result covers: no phase was long enough to be called stable.
        edges = [start, *inside, end]
        return tuple(
            Phase(a, b, float(values[a:b].mean()), PhaseKind.UNSTABLE, measurement.reason)
            for a, b in itertools.pairwise(edges)
        )
    stable = Phase(start, end, float(values[start:end].mean()), PhaseKind.STABLE)
    before = [point for point in measurement.change_points if point <= start]
    after = [point for point in measurement.change_points if point >= end]
    front = sorted({0, *before, start})
    back = sorted({end, *after, len(values)})
    return (
        *(_removed(values, span, PhaseKind.WARM_UP, stable, before) for span in itertools.pairwise(front)),
        stable,
        *(_removed(values, span, PhaseKind.COOL_DOWN, stable, after) for span in itertools.pairwise(back)),
    )


def _removed(
    values: NDArray[np.float64],
    span: tuple[int, int],
    kind: PhaseKind,
    stable: Phase,
    changes: list[int],
) -> Phase:
    """A phase that is not part of the result, and why.

    Args:
        values: the whole series.
        span: first reading and past the last.
        kind: the kind of the phase.
        stable: the stable phase.
        changes: change points on this side of the stable phase.
    """
    start, end = span
    mean = float(values[start:end].mean())
    if not changes:
        reason = (
            "unlike all readings after it" if kind is PhaseKind.WARM_UP else "unlike all readings before it"
        )
    elif (kind is PhaseKind.WARM_UP and start == changes[-1]) or (
        kind is PhaseKind.COOL_DOWN and end == changes[0]
    ):
        reason = "beside a change of level, whose end may reach this far"
    else:
        reason = f"on another level, {mean / stable.mean - 1:+.1%}" if stable.mean else "on another level"
    return Phase(start, end, mean, kind, reason)
