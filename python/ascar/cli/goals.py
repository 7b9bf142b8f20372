"""The options that say how good a measurement must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ascar.pilot import Goal, Verdict

Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How good the result must be: quick (interval 20% of the mean wide, 12 readings), "
        "normal (10%, 50) or strict (10%, 200).",
    ),
]
Width = Annotated[
    float | None,
    typer.Option(
        "--interval-width",
        metavar="SHARE",
        help="Width of the interval over the mean, instead of the preset's.",
    ),
]
Confidence = Annotated[float | None, typer.Option(metavar="LEVEL", help="Of the intervals; 0.95 by default.")]


def goal_of(preset: str, width: float | None, confidence: float | None) -> Goal:
    """The goal that these options ask for.

    Raises:
        InputError: one of them is wrong.
    """
    from ascar.pilot import Goal

    return Goal.of(preset, interval_width=width, confidence=confidence)


def judged(verdict: Verdict, goal: Goal) -> dict[str, Any]:
    """A verdict and its goal, JSON-ready."""
    return {
        "verdict": verdict.word,
        "verdict_line": verdict.line,
        "goal": {
            "interval_width_relative": goal.interval_width,
            "readings_min": goal.readings_min,
            "confidence": goal.confidence,
        },
    }
