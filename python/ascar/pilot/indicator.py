"""A performance indicator: what is measured, and how well (Li's thesis, sections 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.pilot.presets import PRESETS, Goal

if TYPE_CHECKING:
    from ascar._core import IndicatorValues


class Kind(StrEnum):
    """How readings of an indicator are averaged."""

    ORDINARY = "ordinary"
    RATIO = "ratio"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Indicator:
    """One performance indicator (the thesis calls it a performance index).

    Attributes:
        name: the name with its unit last, e.g. "throughput_mb_per_s".
        kind: ordinary numbers; ratios such as speeds over equal amounts of work, whose mean is harmonic; or
            binary outcomes 0 and 1.
        goal: the precision that its measurement must reach; None: it is reported, and never keeps a session
            going.
    """

    name: str
    kind: Kind = Kind.ORDINARY
    goal: Goal | None = field(default=PRESETS["normal"])

    @property
    def values(self) -> IndicatorValues:
        """As `ascar._core` takes it."""
        return self.name, self.kind.value, None if self.goal is None else self.goal.values

    @classmethod
    def parse(cls, name: str, kind: str, goal: Goal | None) -> Indicator:
        """An indicator from words.

        Raises:
            InputError: the kind is unknown.
        """
        if kind not in set(Kind):
            raise InputError(f"indicator {name!r} has kind {kind!r}: must be one of {', '.join(Kind)}")
        return cls(name, Kind(kind), goal)
