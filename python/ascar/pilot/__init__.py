"""Pilot: statistically valid measurement in the shortest time (Li's thesis, chapter 4)."""

from ascar.pilot.analysis import Method, analyze
from ascar.pilot.callables import measure
from ascar.pilot.command import CommandRunner
from ascar.pilot.comparison import Comparison, compare, runs_needed
from ascar.pilot.findings import Finding
from ascar.pilot.indicator import Indicator, Kind
from ascar.pilot.nodes import Combined, combine
from ascar.pilot.phases import Phase, PhaseKind, phases_of
from ascar.pilot.presets import PRESETS, Goal
from ascar.pilot.resources import Bottleneck, Resources, Sampler, bottlenecks
from ascar.pilot.round import Round, Runner
from ascar.pilot.session import Limits, Plan, Session, run_session
from ascar.pilot.speed import Speed, speed_of
from ascar.pilot.verdict import Verdict, verdict_on
from ascar.pilot.work_amounts import WorkAmounts

__all__ = [
    "PRESETS",
    "Bottleneck",
    "Combined",
    "CommandRunner",
    "Comparison",
    "Finding",
    "Goal",
    "Indicator",
    "Kind",
    "Limits",
    "Method",
    "Phase",
    "PhaseKind",
    "Plan",
    "Resources",
    "Round",
    "Runner",
    "Sampler",
    "Session",
    "Speed",
    "Verdict",
    "WorkAmounts",
    "analyze",
    "bottlenecks",
    "combine",
    "compare",
    "measure",
    "phases_of",
    "run_session",
    "runs_needed",
    "speed_of",
    "verdict_on",
]
