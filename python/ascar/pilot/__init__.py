"""Pilot: statistically valid measurement in the shortest time (Li's thesis, chapter 4)."""

from ascar._core import Speed, WorkAmounts
from ascar.pilot.analysis import Method, analyze
from ascar.pilot.batches import Batch, Batches
from ascar.pilot.callables import measure
from ascar.pilot.command import CommandRunner
from ascar.pilot.comparison import Comparison, compare, runs_needed
from ascar.pilot.contest import Contest, Pair, Standing, Terms
from ascar.pilot.direction import lower_is_better
from ascar.pilot.findings import Finding
from ascar.pilot.indicator import Indicator, Kind
from ascar.pilot.interleaving import ContestPlan, ContestSession, run_contest
from ascar.pilot.nodes import Combined, combine
from ascar.pilot.phases import Phase, PhaseKind, phases_of
from ascar.pilot.presets import PRESETS, Goal
from ascar.pilot.ranking import Ranking, rank
from ascar.pilot.resources import Bottleneck, Resources, Sampler, bottlenecks
from ascar.pilot.round import Round, Runner
from ascar.pilot.session import Limits, Plan, Session, run_session
from ascar.pilot.speed import speed_of
from ascar.pilot.verdict import Verdict, verdict_on
from ascar.pilot.watch import Level, Shift, Watcher, WatchPlan

__all__ = [
    "PRESETS",
    "Batch",
    "Batches",
    "Bottleneck",
    "Combined",
    "CommandRunner",
    "Comparison",
    "Contest",
    "ContestPlan",
    "ContestSession",
    "Finding",
    "Goal",
    "Indicator",
    "Kind",
    "Level",
    "Limits",
    "Method",
    "Pair",
    "Phase",
    "PhaseKind",
    "Plan",
    "Ranking",
    "Resources",
    "Round",
    "Runner",
    "Sampler",
    "Session",
    "Shift",
    "Speed",
    "Standing",
    "Terms",
    "Verdict",
    "WatchPlan",
    "Watcher",
    "WorkAmounts",
    "analyze",
    "bottlenecks",
    "combine",
    "compare",
    "lower_is_better",
    "measure",
    "phases_of",
    "rank",
    "run_contest",
    "run_session",
    "runs_needed",
    "speed_of",
    "verdict_on",
]
