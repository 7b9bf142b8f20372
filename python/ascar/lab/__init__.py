"""The laboratory: which optimizer to trust, found by thousands of simulated searches with a known truth."""

from ascar.lab.archive import Archive
from ascar.lab.benchmark import Benchmark
from ascar.lab.problem import (
    NoiseModel,
    SearchProblem,
    Specification,
    SyntheticSpecification,
    TableSpecification,
)
from ascar.lab.results import Results
from ascar.lab.simulation import Budget, Contender, SimulatedSearch, simulate
from ascar.lab.summary import summarize
from ascar.lab.sweeps import Sweep
from ascar.lab.work import Conduct, Experiment, LabProgress, carry_out
from ascar.results.lab import CheckpointSummary, OptimizerComparison, OptimizerRank

__all__ = [
    "Archive",
    "Benchmark",
    "Budget",
    "CheckpointSummary",
    "Conduct",
    "Contender",
    "Experiment",
    "LabProgress",
    "NoiseModel",
    "OptimizerComparison",
    "OptimizerRank",
    "Results",
    "SearchProblem",
    "SimulatedSearch",
    "Specification",
    "Sweep",
    "SyntheticSpecification",
    "TableSpecification",
    "carry_out",
    "simulate",
    "summarize",
]
