"""The options that say how good a measurement must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascar.pilot import Goal, GoalVerdict


def goal_of(preset: str, width: float | None, confidence: float | None) -> Goal:
    """The goal that these options ask for.

    Raises:
        InputError: one of them is wrong.
    """
    from ascar.pilot import Goal

    return Goal.of(preset, interval_width=width, confidence=confidence)


def judged(verdict: GoalVerdict, goal: Goal) -> dict[str, Any]:
    """A verdict and its goal, by the keys that `JudgedMean` adds to `Mean`."""
    from ascar.results.mean import Goal as Wanted

    wanted = Wanted(
        interval_width_relative=goal.interval_width,
        readings_min=goal.readings_min,
        confidence=goal.confidence,
    )
    return {"verdict": verdict.word, "verdict_line": verdict.line, "goal": wanted}
