"""Which of several optimizers is better, and how sure that is: paired tests and ranks."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ascar.results.lab import OptimizerComparison, OptimizerRank
from ascar.significance import holm, mid_ranks, signed_rank_p_value

if TYPE_CHECKING:
    from collections.abc import Mapping


def compare(regrets: Mapping[str, Mapping[str, Mapping[int, float]]]) -> list[OptimizerComparison]:
    """All pairs of optimizers on each problem.

    Args:
        regrets: the regrets by problem, optimizer and seed.
    """
    found: list[tuple[str, str, str, int, float, float]] = []
    for problem, by_name in regrets.items():
        for one, other in combinations(by_name, 2):
            seeds = sorted(set(by_name[one]) & set(by_name[other]))
            differences = np.array([by_name[one][seed] - by_name[other][seed] for seed in seeds])
            if seeds:
                mean = float(differences.mean())
                found.append((problem, one, other, len(seeds), mean, signed_rank_p_value(differences)))
    corrected = holm([row[-1] for row in found])
    return [OptimizerComparison(*row, p) for row, p in zip(found, corrected, strict=True)]


def ranks(means: Mapping[str, Mapping[str, float]]) -> list[OptimizerRank]:
    """Optimizers by their mean rank, the best first.

    Args:
        means: mean regret by problem and optimizer; problems that not all were tried on are left out.
    """
    names = list(dict.fromkeys(name for by_name in means.values() for name in by_name))
    whole = [by_name for by_name in means.values() if set(by_name) == set(names)]
    if not whole:
        return []
    values = np.array([[by_name[name] for name in names] for by_name in whole])
    placed = np.array([mid_ranks(row) for row in values])
    first = (values == values.min(1, keepdims=True)).sum(0)
    found = [
        OptimizerRank(name, float(placed[:, index].mean()), len(whole), int(first[index]))
        for index, name in enumerate(names)
    ]
    return sorted(found, key=lambda rank: rank.rank_mean)
