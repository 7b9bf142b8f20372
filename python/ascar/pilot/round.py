"""One round of a benchmark: what it did, how long it took, what it read (Li's thesis, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class WorkUnits:
    """What work units are, where they differ.

    Attributes:
        kinds: the kind of each unit; empty: all are of one.
        work: the work of each unit, above 0; empty: each does the same.
    """

    kinds: Sequence[str] = ()
    work: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    Attributes:
        seconds: the length of the round.
        work_amount: the amount of work done; None where the work cannot be adjusted.
        readings: the value of each performance indicator.
        unit_readings: the value of each performance indicator for each work unit, in the order taken.
        units: what these units are, for indicators whose units differ.
    """

    seconds: float
    work_amount: float | None = None
    readings: Mapping[str, float] = field(default_factory=dict[str, float])
    unit_readings: Mapping[str, Sequence[float]] = field(default_factory=dict[str, "Sequence[float]"])
    units: Mapping[str, WorkUnits] = field(default_factory=dict[str, WorkUnits])


Runner = Callable[[float | None, float], Round | None]
"""Runs one round.

Takes the work amount, None where the work cannot be adjusted, and the seconds left to the session. Returns
None where the round was cut off because they were over.
"""
