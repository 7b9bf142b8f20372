"""The laboratory: which optimizer to trust, found by thousands of simulated searches with a known truth."""

from ascar.lab.archive import Archive
from ascar.lab.benchmark import Benchmark
from ascar.lab.problem import Noise, Problem, Specification, SyntheticSpecification, TableSpecification
from ascar.lab.ranking import Comparison, Rank
from ascar.lab.results import Results
from ascar.lab.simulation import Budget, Contender, Run, simulate
from ascar.lab.summary import Summary, summarize
from ascar.lab.sweeps import Sweep
from ascar.lab.work import Conduct, Experiment, Standing, carry_out

__all__ = [
    "Archive",
    "Benchmark",
    "Budget",
    "Comparison",
    "Conduct",
    "Contender",
    "Experiment",
    "Noise",
    "Problem",
    "Rank",
    "Results",
    "Run",
    "Specification",
    "Standing",
    "Summary",
    "Sweep",
    "SyntheticSpecification",
    "TableSpecification",
    "carry_out",
    "simulate",
    "summarize",
]
