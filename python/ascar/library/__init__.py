"""The library: load signatures of workloads, what was found for them, and what it gained.

`Library` is the file. `nearest` is the only way to find the workloads that are most like another one, by a
measure of distance: `Similarity` for features of loads, `Drift` for indicators of a running system.
"""

from ascar.library.drift import Drift, IndicatorSummary
from ascar.library.entries import GainEntry, SolutionEntry, WorkloadEntry
from ascar.library.information import Informative, ranking
from ascar.library.signature import ABSENT
from ascar.library.similarity import Neighbour, Similarity, learned, nearest
from ascar.library.store import Library, default_path
from ascar.library.tree import grow, lines

__all__ = [
    "ABSENT",
    "Drift",
    "GainEntry",
    "IndicatorSummary",
    "Informative",
    "Library",
    "Neighbour",
    "Similarity",
    "SolutionEntry",
    "WorkloadEntry",
    "default_path",
    "grow",
    "learned",
    "lines",
    "nearest",
    "ranking",
]
