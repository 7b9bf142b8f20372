"""The options that say how good a measurement must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.pilot import Goal


def goal_of(preset: str, width: float | None, confidence: float | None) -> Goal:
    """The goal that these options ask for.

    Raises:
        InputError: one of them is wrong.
    """
    from ascar.pilot import Goal

    return Goal.of(preset, interval_width=width, confidence=confidence)
