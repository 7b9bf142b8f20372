"""The result of `ascar analyze`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count, JudgedMeasurement


class PhaseFound(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of readings on one level.

    Attributes:
        start: index of the first reading.
        end: index past the last reading.
        mean: the mean over the phase.
        kind: the kind of the phase.
        reason: why it was removed; empty for the stable phase.
    """

    start: Count
    end: Count
    mean: float
    kind: Literal["stable", "warm-up", "cool-down", "unstable"]
    reason: str


class AnalyzeResult(
    JudgedMeasurement,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/analyze/1",
):
    """What a recorded series of readings says.

    Attributes:
        files: the files that were read.
        name: the name of the column.
        readings: the number of readings in the files.
        phases: the phases of the series, in order.
        note: a remark about combined nodes; empty without one.
    """

    files: tuple[str, ...]
    name: str
    readings: Count
    phases: tuple[PhaseFound, ...]
    note: str
