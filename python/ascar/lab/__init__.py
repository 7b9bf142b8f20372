"""The laboratory: which optimizer to trust, found by thousands of simulated searches with a known truth."""

from ascar.lab.problem import Noise, Problem, Specification, SyntheticSpecification, TableSpecification
from ascar.lab.simulation import Budget, Contender, Run, simulate
from ascar.lab.summary import Summary, summarize

__all__ = [
    "Budget",
    "Contender",
    "Noise",
    "Problem",
    "Run",
    "Specification",
    "Summary",
    "SyntheticSpecification",
    "TableSpecification",
    "simulate",
    "summarize",
]
