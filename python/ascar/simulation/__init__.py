"""A storage cluster in virtual time: scenarios, runs to the end, and runs step by step."""

from ascar.results.cluster import (
    FIGURES,
    ClusterOutcome,
    Indicators,
    Latency,
    SeedMean,
    ServerReport,
    StaticGain,
    StaticSetting,
    StreamSeries,
)
from ascar.simulation.arrivals import with_arrivals
from ascar.simulation.batch import BatchProgress, run_many, seeded
from ascar.simulation.cluster import INDICATORS, SERVER_INDICATORS, Cluster, ClusterTrace
from ascar.simulation.controlled import with_control, with_rule_text, with_rules
from ascar.simulation.fleet import Fleet
from ascar.simulation.overrides import with_settings
from ascar.simulation.presets import PRESETS, STORAGE, open_scenario, preset, with_storage
from ascar.simulation.reading import parse_scenario, read_scenario, scenario_of
from ascar.simulation.scenario import Scenario
from ascar.simulation.spread import spread_of
from ascar.simulation.statics import Grid, Swept, sweep

__all__ = [
    "FIGURES",
    "INDICATORS",
    "PRESETS",
    "SERVER_INDICATORS",
    "STORAGE",
    "BatchProgress",
    "Cluster",
    "ClusterOutcome",
    "ClusterTrace",
    "Fleet",
    "Grid",
    "Indicators",
    "Latency",
    "Scenario",
    "SeedMean",
    "ServerReport",
    "StaticGain",
    "StaticSetting",
    "StreamSeries",
    "Swept",
    "open_scenario",
    "parse_scenario",
    "preset",
    "read_scenario",
    "run_many",
    "scenario_of",
    "seeded",
    "spread_of",
    "sweep",
    "with_arrivals",
    "with_control",
    "with_rule_text",
    "with_rules",
    "with_settings",
    "with_storage",
]
