"""Rules of the library for the workload that runs (Li, section 3.1.7).

`fill` makes rules for the common workloads, `Chooser` finds those that a new workload gains most from, and
`RuleWatcher` is the daemon that observes a load, finds rules, verifies them, and takes them back.
"""

from ascar.sharp.matching.alteration import alterations
from ascar.sharp.matching.bootstrap import Bootstrapped, BootstrapProgress, Effort, Workloads
from ascar.sharp.matching.bootstrap import bootstrap as fill
from ascar.sharp.matching.choice import CAUTION, Choice, Chooser, FoundRules
from ascar.sharp.matching.common import Mix, common_set
from ascar.sharp.matching.features import WorkloadObservation, workload_features
from ascar.sharp.matching.gains import RuleGain, gain_of, gains
from ascar.sharp.matching.managed import WatchedSystem, watched
from ascar.sharp.matching.observation import observed, observed_on
from ascar.sharp.matching.prediction import Predicted, Predictor
from ascar.sharp.matching.rule_watcher import RuleWatcher, WatchEvent, WatchOptions
from ascar.sharp.matching.simulated_system import SimulatedClusterSystem, WatchableSystem
from ascar.sharp.matching.traits import EFFECTS, TRAITS
from ascar.sharp.simulated_traces import trace_of

__all__ = [
    "CAUTION",
    "EFFECTS",
    "TRAITS",
    "BootstrapProgress",
    "Bootstrapped",
    "Choice",
    "Chooser",
    "Effort",
    "FoundRules",
    "Mix",
    "Predicted",
    "Predictor",
    "RuleGain",
    "RuleWatcher",
    "SimulatedClusterSystem",
    "WatchEvent",
    "WatchOptions",
    "WatchableSystem",
    "WatchedSystem",
    "WorkloadObservation",
    "Workloads",
    "alterations",
    "common_set",
    "fill",
    "gain_of",
    "gains",
    "observed",
    "observed_on",
    "trace_of",
    "watched",
    "workload_features",
]
