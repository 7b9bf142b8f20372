"""Pilot: statistically valid measurement in the shortest time (Li's thesis, chapter 4)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascar._core import Speed, WorkAmounts
    from ascar.pilot.analysis import Method, analyze
    from ascar.pilot.batches import Batch, Batches
    from ascar.pilot.callables import measure
    from ascar.pilot.command import CommandRunner
    from ascar.pilot.compared import Compared, Contestant
    from ascar.pilot.comparison import Comparison, compare, runs_needed
    from ascar.pilot.contest import ComparisonTerms, Contest, Pair, Standing
    from ascar.pilot.direction import lower_is_better
    from ascar.pilot.findings import Finding
    from ascar.pilot.indicator import Indicator, Kind
    from ascar.pilot.interleaving import ContestPlan, ContestSession, run_contest
    from ascar.pilot.machine import record_machine
    from ascar.pilot.measured import Measured
    from ascar.pilot.nodes import Combined, combine
    from ascar.pilot.phases import Phase, PhaseKind, phases_of
    from ascar.pilot.presets import PRESETS, PUBLISHED, Goal
    from ascar.pilot.ranking import RecordedRanking, rank
    from ascar.pilot.resources import Bottleneck, Resources, Sampler, bottlenecks
    from ascar.pilot.round import Round, Runner, WorkUnits
    from ascar.pilot.saved import SavedResult, read_saved
    from ascar.pilot.session import Limits, MeasurementPlan, Session, run_session
    from ascar.pilot.several import SeveralSources, Source
    from ascar.pilot.speed import speed_of
    from ascar.pilot.verdict import GoalVerdict, verdict_on
    from ascar.pilot.watch import ShiftDetector, WatchPlan
    from ascar.results.watch import LevelSegment, Shift

__all__ = [
    "PRESETS",
    "PUBLISHED",
    "Batch",
    "Batches",
    "Bottleneck",
    "Combined",
    "CommandRunner",
    "Compared",
    "Comparison",
    "ComparisonTerms",
    "Contest",
    "ContestPlan",
    "ContestSession",
    "Contestant",
    "Finding",
    "Goal",
    "GoalVerdict",
    "Indicator",
    "Kind",
    "LevelSegment",
    "Limits",
    "Measured",
    "MeasurementPlan",
    "Method",
    "Pair",
    "Phase",
    "PhaseKind",
    "RecordedRanking",
    "Resources",
    "Round",
    "Runner",
    "Sampler",
    "SavedResult",
    "Session",
    "SeveralSources",
    "Shift",
    "ShiftDetector",
    "Source",
    "Speed",
    "Standing",
    "WatchPlan",
    "WorkAmounts",
    "WorkUnits",
    "analyze",
    "bottlenecks",
    "combine",
    "compare",
    "lower_is_better",
    "measure",
    "phases_of",
    "rank",
    "read_saved",
    "record_machine",
    "run_contest",
    "run_session",
    "runs_needed",
    "speed_of",
    "verdict_on",
]

# Loaded when first asked for: a command starts without what it does not use, NumPy above all.
_MODULES = {
    "ascar._core": ("Speed", "WorkAmounts"),
    "ascar.pilot.analysis": ("Method", "analyze"),
    "ascar.pilot.batches": ("Batch", "Batches"),
    "ascar.pilot.callables": ("measure",),
    "ascar.pilot.command": ("CommandRunner",),
    "ascar.pilot.compared": ("Compared", "Contestant"),
    "ascar.pilot.comparison": ("Comparison", "compare", "runs_needed"),
    "ascar.pilot.contest": ("Contest", "Pair", "Standing", "ComparisonTerms"),
    "ascar.pilot.direction": ("lower_is_better",),
    "ascar.pilot.findings": ("Finding",),
    "ascar.pilot.indicator": ("Indicator", "Kind"),
    "ascar.pilot.interleaving": ("ContestPlan", "ContestSession", "run_contest"),
    "ascar.pilot.machine": ("record_machine",),
    "ascar.pilot.measured": ("Measured",),
    "ascar.pilot.nodes": ("Combined", "combine"),
    "ascar.pilot.phases": ("Phase", "PhaseKind", "phases_of"),
    "ascar.pilot.presets": ("PRESETS", "PUBLISHED", "Goal"),
    "ascar.pilot.ranking": ("RecordedRanking", "rank"),
    "ascar.pilot.resources": ("Bottleneck", "Resources", "Sampler", "bottlenecks"),
    "ascar.pilot.round": ("Round", "Runner", "WorkUnits"),
    "ascar.pilot.saved": ("SavedResult", "read_saved"),
    "ascar.pilot.session": ("Limits", "MeasurementPlan", "Session", "run_session"),
    "ascar.pilot.several": ("SeveralSources", "Source"),
    "ascar.pilot.speed": ("speed_of",),
    "ascar.pilot.verdict": ("GoalVerdict", "verdict_on"),
    "ascar.pilot.watch": ("ShiftDetector", "WatchPlan"),
    "ascar.results.watch": ("LevelSegment", "Shift"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
