"""How alike workloads are, each feature counting as much as it tells of what becomes of a gain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from ascar.library.information import gain_classes, ranking
from ascar.library.signature import difference, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.library.information import Informative
    from ascar.library.store import Library

Name = TypeVar("Name", str, int)
Signature = TypeVar("Signature")

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


class Neighbour(NamedTuple, Generic[Name]):
    """A workload that is alike.

    Attributes:
        name: the workload.
        distance: the distance to it, in the measure that was asked for.
    """

    name: Name
    distance: float


def nearest(
    signature: Signature,
    known: Mapping[Name, Signature],
    distance: Callable[[Signature, Signature], float],
    within: float = math.inf,
) -> list[Neighbour[Name]]:
    """The workloads that are nearer than a bound, the nearest first; of equals the first name.

    Args:
        signature: the load signature of the workload that runs.
        known: signatures of workloads by name.
        distance: from a known signature to the one that is looked for.
        within: the bound.
    """
    found = [Neighbour(name, distance(one, signature)) for name, one in known.items()]
    return sorted((one for one in found if one.distance < within), key=lambda one: (one.distance, one.name))


def learned(library: Library, objective: str, names: Sequence[str]) -> Similarity:
    """Learn from a library's gains which of the named features count.

    Args:
        library: the library whose gains are used.
        objective: gains for others tell nothing, nor do gains of anything but rules.
        names: the names of the features.
    """
    own: list[float] = []
    other: list[float] = []
    changes: list[np.ndarray] = []
    sets = library.rules
    for (key, workload, aim), gain in library.gains.items():
        if key not in sets:
            continue
        home = sets[key].workload
        at_home = library.gain(key, home, objective)
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
