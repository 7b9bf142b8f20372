"""How alike workloads are, each feature counting as much as it tells of what becomes of a gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.sharp.library.features import difference, row_of
from ascar.sharp.library.information import gain_classes, ranking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.sharp.library.information import Informative
    from ascar.sharp.library.store import Library

PAIRS_MIN = 20
"""Pairs of workloads below which nothing can be learned, and all features count alike."""
_ALIKE_AT = 1.0  # one doubling, or all of a share
_GAIN_MIN = 0.01


@dataclass(frozen=True, slots=True)
class Similarity:
    """Distances between workloads.

    Attributes:
        weights: the weight of each feature; the weights sum to 1.
        informative: the learned information of each feature, the most informative first; empty: all features
            count alike.
        pairs: the number of pairs that it was learned from.
    """

    weights: Mapping[str, float]
    informative: tuple[Informative, ...] = ()
    pairs: int = 0

    def distance(self, a: Mapping[str, float], b: Mapping[str, float]) -> float:
        """From 0, alike, to 1, nothing in common.

        The weighted root mean square of how far each feature lies apart: 1 - exp(-d), d being the difference
        of a share, and the binary logarithm of the ratio of others; a feature that only one has counts 1.
        """
        names = list(self.weights)
        apart = np.abs(difference(row_of(a, names), row_of(b, names)))
        terms = 1 - np.exp(-apart / _ALIKE_AT)
        weights = np.array([self.weights[name] for name in names])
        return math.sqrt(float(np.sum(weights * terms**2)))

    def nearest(
        self, features: Mapping[str, float], library: Library, count: int | None = None
    ) -> list[tuple[str, float]]:
        """Workloads of the library and their distances, the nearest first."""
        found = [(name, self.distance(features, one.values)) for name, one in library.workloads.items()]
        return sorted(found, key=lambda pair: (pair[1], pair[0]))[:count]


def learned(library: Library, objective: str, names: Sequence[str]) -> Similarity:
    """Learn from a library's gains which of the named features count.

    Args:
        library: the library whose gains are used.
        objective: gains of others tell nothing.
        names: the names of the features.
    """
    own: list[float] = []
    other: list[float] = []
    changes: list[np.ndarray] = []
    for (rules, workload, aim), gain in library.gains.items():
        home = library.rules[rules].workload
        at_home = library.gain(rules, home, objective)
        if aim != objective or home == workload or at_home is None or at_home.gain < _GAIN_MIN:
            continue
        a, b = (row_of(library.workloads[name].values, names) for name in (home, workload))
        own.append(at_home.gain)
        other.append(gain.gain)
        changes.append(difference(a, b))
    if len(own) < PAIRS_MIN:
        return Similarity({name: 1 / len(names) for name in names}, (), len(own))
    found = ranking(names, np.array(changes), gain_classes(np.array(own), np.array(other)))
    total = sum(one.bits for one in found)
    if total <= 0:
        return Similarity({name: 1 / len(names) for name in names}, tuple(found), len(own))
    weights = {one.feature: one.bits / total for one in found if one.bits > 0}
    return Similarity(weights, tuple(found), len(own))
