"""Pilot: statistically valid measurement in the shortest time (Li's thesis, chapter 4)."""

from ascar.pilot.analysis import Method, analyze
from ascar.pilot.comparison import Comparison, compare, runs_needed
from ascar.pilot.nodes import Combined, combine
from ascar.pilot.phases import Phase, PhaseKind, phases_of
from ascar.pilot.presets import PRESETS, Goal
from ascar.pilot.verdict import Verdict, verdict_on

__all__ = [
    "PRESETS",
    "Combined",
    "Comparison",
    "Goal",
    "Method",
    "Phase",
    "PhaseKind",
    "Verdict",
    "analyze",
    "combine",
    "compare",
    "phases_of",
    "runs_needed",
    "verdict_on",
]
