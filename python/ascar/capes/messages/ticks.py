"""Ticks as the interface publishes them: their parts are assembled, and malformed ones dropped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ascar import typed
from ascar.errors import ExpressionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.objective import Objective

_VERSION: Final = 1
_PARTS_MAX: Final = 100_000
_TICK_MAX: Final = 1 << 53
_JUMP_TICKS: Final = 3_600

Row = tuple[tuple[str, ...], tuple[float | None, ...]]
"""Names and values of a node's indicators."""


class _Part(msgspec.Struct, frozen=True):
    tick: int
    metrics: dict[str, float | None]
    setting: dict[str, float | str | bool | None] | None
    version: int = _VERSION
    part: int = 0
    parts: int = 1
    stored: bool = True
    layouts: dict[str, tuple[str, ...]] = {}
    nodes: dict[str, tuple[str, tuple[float | None, ...]]] = {}
    mode: str = ""
    holding: str | None = None
    workload: str | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick, all parts of it that came.

    Attributes:
        number: the number of the tick.
        rows: the values of each node that sent a frame.
        metrics: the metrics by name; None if a metric has no value.
        setting: the setting in force, by key.
        holding: why nothing may be changed; None where it may.
        workload: the announced workload; empty without one.
    """

    number: int
    rows: Mapping[str, Row]
    metrics: Mapping[str, float | None]
    setting: Mapping[str, Any]
    holding: str | None = None
    workload: str = ""


class Assembler:
    """Puts the parts of ticks together.

    A tick is given when all its parts are there, or when a later one begins. What is older than the last one
    given is passed over; so is a jump ahead by more than an hour of ticks, unless a second one confirms it.
    A long setting is told in pieces, one a part, and only now and then: until the next one it counts.

    Attributes:
        unreadable: messages that were no part of a tick.
        refused: why the last one of them was refused whose version was the reason.
    """

    def __init__(self) -> None:
        self.unreadable = 0
        self.refused: str | None = None
        self._parts: dict[int, _Part] = {}
        self._last = self._far = -1
        self._setting: dict[str, Any] = {}

    def take(self, document: Mapping[str, Any]) -> list[Tick]:
        """The ticks whose last part this is, and earlier ones of which parts are missing; in order."""
        part = _read(document)
        if part is None:
            self.unreadable += 1
            self.refused = later_version(document) or self.refused
            return []
        newest = max(self._last, next(iter(self._parts.values())).tick if self._parts else -1)
        if part.tick <= self._last or part.tick < newest:
            return []
        if newest >= 0 and part.tick - newest > _JUMP_TICKS and not 0 < part.tick - self._far <= _JUMP_TICKS:
            self._far = part.tick
            return []
        found: list[Tick] = []
        if part.tick > newest and self._parts:
            found.append(self._whole())
        self._parts[part.part] = part
        if len(self._parts) >= part.parts:
            found.append(self._whole())
        return found

    def _whole(self) -> Tick:
        parts = list(self._parts.values())
        self._parts = {}
        first = parts[0]
        self._last = first.tick
        rows: dict[str, Row] = {}
        for part in parts:
            for node, (layout, values) in part.nodes.items():
                names = part.layouts.get(layout)
                if names is not None and len(names) == len(values):
                    rows[node] = (names, values)
        pieces = [part.setting for part in parts if part.setting is not None]
        if pieces:
            # Of a part that is missing its values are as they were.
            known = self._setting if len(parts) < first.parts else {}
            self._setting = {**known, **{key: value for one in pieces for key, value in one.items()}}
        holding = first.holding if first.stored else first.holding or "storage"
        return Tick(first.tick, rows, first.metrics, self._setting, holding, first.workload or "")


def later_version(document: Mapping[str, Any]) -> str | None:
    """Why ticks of a later interface are not read; None where their version is not the reason."""
    version = document.get("version")
    if not isinstance(version, int) or version <= _VERSION:
        return None
    return f"ticks of version = {version}: this ascar reads {_VERSION}, install matching versions"


def performance_of(objective: Objective, metrics: Mapping[str, float | None]) -> float:
    """The objective's value, more being better; NaN where a metric is missing or the formula has no value."""
    known = {name: value for name, value in metrics.items() if value is not None and math.isfinite(value)}
    if not set(objective.formula.names) <= set(known):
        return math.nan
    try:
        return objective.sign * objective.score(known)
    except (ExpressionError, TypeError, ValueError):
        return math.nan


def _read(document: Mapping[str, Any]) -> _Part | None:
    try:
        part = typed.convert(document, _Part)
    except msgspec.ValidationError:
        return None
    right = part.version <= _VERSION and 0 <= part.tick < _TICK_MAX
    return part if right and 0 <= part.part < part.parts <= _PARTS_MAX else None
