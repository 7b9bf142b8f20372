"""The options that say how good a measurement must be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.pilot import Goal

# An interval of twice the mean reaches 0: a wider one says nothing of a number above 0.
_WIDTH_MAX = 2.0


def goal_of(preset: str, width: float | None, confidence: float | None, method: str = "corrected") -> Goal:
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
    return Goal.of(preset, interval_width=width, confidence=confidence, method=method)


def goals_of(
    texts: Sequence[str], goal: Goal, meant: Callable[[str, str], Sequence[str]]
) -> Mapping[str, Goal]:
    """The goals of `--goal`, by the names of what is measured.

    Args:
        texts: the option's values, NAME:WIDTH or NAME:WIDTH:LEVEL.
        goal: the goal that each of them changes.
        meant: what is measured by a name; raises an `InputError` where nothing is.

    Raises:
        InputError: one of them is wrong, or names something twice.
    """
    from dataclasses import replace

    from ascar.errors import InputError

    found: dict[str, Goal] = {}
    for text in texts:
        name, *rest = text.split(":")
        if not name or len(rest) not in (1, 2):
            raise InputError(
                f"--goal = {text!r:.80}: must be NAME:WIDTH or NAME:WIDTH:LEVEL, e.g. latency_ms_p99:10%"
            )
        width = share_of(f"--goal = {text!r:.80}: width", rest[0])
        if not 0 < width <= _WIDTH_MAX:
            raise InputError(
                f"--goal = {text!r:.80}: the width must be above 0% and at most 200% of the mean"
            )
        level = goal.confidence if len(rest) == 1 else share_of(f"--goal = {text!r:.80}: level", rest[1])
        if not 0 < level < 1:
            raise InputError(f"--goal = {text!r:.80}: the level must be between 0 and 1, e.g. 0.95")
        for one in meant("--goal", name):
            if one in found:
                raise InputError(f"--goal = {text!r:.80}: names {one!r} a second time; give each one goal")
            found[one] = replace(goal, interval_width=width, confidence=level)
    return found


def share_of(what: str, text: str) -> float:
    """A share from "2%" or "0.02".

    Raises:
        InputError: it is neither.
    """
    from ascar.errors import InputError

    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise InputError(f"{what} = {text!r:.40}: must be a share, e.g. 1% or 0.01") from error
