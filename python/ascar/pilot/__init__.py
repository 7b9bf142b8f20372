"""Pilot: statistically valid measurement in the shortest time (Li's thesis, chapter 4)."""

from ascar.pilot.analysis import analyze
from ascar.pilot.comparison import Comparison, compare, runs_needed
from ascar.pilot.presets import PRESETS, Goal

__all__ = ["PRESETS", "Comparison", "Goal", "analyze", "compare", "runs_needed"]
