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
    from math import isfinite

    from ascar.errors import InputError
    from ascar.pilot import Goal

    if width is not None and not (isfinite(width) and width > 0):
        raise InputError(f"--interval-width = {width!r}: must be a number above 0, e.g. 0.1 for 10%")
    if confidence is not None and not 0 < confidence < 1:
        raise InputError(f"--confidence = {confidence!r}: must be between 0 and 1, e.g. 0.95")
    return Goal.of(preset, interval_width=width, confidence=confidence)
