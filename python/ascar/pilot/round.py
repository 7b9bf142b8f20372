"""One round of a benchmark: what it did, how long it took, what it read (Li's thesis, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    Attributes:
        seconds: the length of the round.
        work_amount: the amount of work done; None where the work cannot be adjusted.
        readings: the value of each performance indicator.
        unit_readings: the value of each performance indicator for each work unit, in the order taken.
    """

    seconds: float
    work_amount: float | None = None
    readings: Mapping[str, float] = field(default_factory=dict[str, float])
    unit_readings: Mapping[str, Sequence[float]] = field(default_factory=dict[str, "Sequence[float]"])


Runner = Callable[[float | None, float], Round | None]
"""Runs one round.

Takes the work amount, None where the work cannot be adjusted, and the seconds left to the session. Returns
None where the round was cut off because they were over.
"""
