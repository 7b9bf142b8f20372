"""The rule library: rule sets, the features of their workloads, and which new workloads they serve.

`Library` is the file; `fill` bootstraps it, `Chooser` finds rules for the features of a workload, and
`RuleWatcher` is the daemon that observes a load, finds rules, verifies them, and takes them back.
"""

from ascar.sharp.library.alteration import alterations
from ascar.sharp.library.bootstrap import Bootstrapped, BootstrapProgress, Effort, Workloads
from ascar.sharp.library.bootstrap import bootstrap as fill
from ascar.sharp.library.choice import CAUTION, Choice, Chooser
from ascar.sharp.library.common import Mix, common_set
from ascar.sharp.library.entries import GainEntry, RulesEntry, WorkloadEntry
from ascar.sharp.library.features import ABSENT, WorkloadObservation, workload_features
from ascar.sharp.library.gains import RuleGain, gain_of, gains
from ascar.sharp.library.information import Informative, ranking
from ascar.sharp.library.managed import WatchedSystem, watched
from ascar.sharp.library.observation import observed, observed_on
from ascar.sharp.library.prediction import Predicted, Predictor
from ascar.sharp.library.rule_watcher import RuleWatcher, WatchEvent, WatchOptions
from ascar.sharp.library.similarity import Similarity, learned
from ascar.sharp.library.simulated_system import SimulatedClusterSystem, WatchableSystem
from ascar.sharp.library.store import Library, default_path
from ascar.sharp.library.traits import EFFECTS, TRAITS
from ascar.sharp.library.tree import grow, lines
from ascar.sharp.simulated_traces import trace_of

__all__ = [
    "ABSENT",
    "CAUTION",
    "EFFECTS",
    "TRAITS",
    "BootstrapProgress",
    "Bootstrapped",
    "Choice",
    "Chooser",
    "Effort",
    "GainEntry",
    "Informative",
    "Library",
    "Mix",
    "Predicted",
    "Predictor",
    "RuleGain",
    "RuleWatcher",
    "RulesEntry",
    "Similarity",
    "SimulatedClusterSystem",
    "WatchEvent",
    "WatchOptions",
    "WatchableSystem",
    "WatchedSystem",
    "WorkloadEntry",
    "WorkloadObservation",
    "Workloads",
    "alterations",
    "common_set",
    "default_path",
    "fill",
    "gain_of",
    "gains",
    "grow",
    "learned",
    "lines",
    "observed",
    "observed_on",
    "ranking",
    "trace_of",
    "watched",
    "workload_features",
]
