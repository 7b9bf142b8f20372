"""Which features count: how much a change of each tells of what becomes of a rule set's gain.

Li, section 3.1.7, does "an information gain feature selection using the results of the experiments", in which
workloads are changed and the effectiveness of a rule set is measured again. Here the experiments are all
pairs of a rule set's own workload and another one that it was measured on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

CLASSES = ("harmful", "useless", "part", "kept")
"""What becomes of a gain: a loss of 1% or more; within 1% of none, or under a third of it; up to two
thirds; more."""

_NOTICEABLE = 0.01
_BINS = 5


@dataclass(frozen=True, slots=True)
class Informative:
    """How much a feature tells.

    Attributes:
        feature: the feature's name.
        bits: information gain, less what chance alone would be expected to give; never below zero.
        share: the share of the classes' entropy that the feature explains.
    """

    feature: str
    bits: float
    share: float


def gain_classes(own: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class of each pair, as index into `CLASSES`.

    Args:
        own: gains on the workloads that rules were made for, above 1%.
        other: the gains of the same rules elsewhere.
    """
    kept = other / own
    found = np.where(kept > 2 / 3, 3, np.where(kept > 1 / 3, 2, 1))
    found = np.where(other < _NOTICEABLE, 1, found)
    return np.where(other <= -_NOTICEABLE, 0, found).astype(np.int64)


def information_gain(change: NDArray[np.float64], classes: NDArray[np.int64]) -> float:
    """Bits that knowing the size of a change gives about the class; Miller's correction taken off.

    Sizes are cut into no change and up to four parts of equal frequency.
    """
    bins = _binned(np.abs(change))
    table = np.zeros((int(bins.max(initial=0)) + 1, len(CLASSES)))
    np.add.at(table, (bins, classes), 1.0)
    n = table.sum()
    if n == 0:
        return 0.0
    inside = sum(_entropy(row) * row.sum() / n for row in table)
    gain = _entropy(table.sum(axis=0)) - inside
    rows, columns = (int((table.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    return max(0.0, gain - (rows - 1) * (columns - 1) / (2 * n * np.log(2)))


def ranking(
    names: Sequence[str], changes: NDArray[np.float64], classes: NDArray[np.int64]
) -> list[Informative]:
    """All features, the most informative first.

    Args:
        names: the names of the features.
        changes: float64 (pairs, features), as `difference` gives them.
        classes: int64 (pairs,), as `gain_classes`.
    """
    assert changes.shape == (len(classes), len(names)), "a row a pair, a column a feature"
    whole = _entropy(np.bincount(classes, minlength=len(CLASSES)).astype(np.float64))
    found: list[Informative] = []
    for column, name in enumerate(names):
        bits = information_gain(changes[:, column], classes) if len(classes) else 0.0
        found.append(Informative(name, bits, bits / whole if whole > 0 else 0.0))
    return sorted(found, key=lambda one: (-one.bits, one.feature))


def _binned(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    moved = sizes > 1e-9
    if not moved.any():
        return np.zeros(len(sizes), np.int64)
    edges = np.unique(np.quantile(sizes[moved], np.arange(1, _BINS - 1) / (_BINS - 1)))
    return np.where(moved, 1 + np.searchsorted(edges, sizes, side="left"), 0).astype(np.int64)


def _entropy(counts: NDArray[np.float64]) -> float:
    total = counts.sum()
    shares = counts[counts > 0] / total if total > 0 else counts[:0]
    return float(-(shares * np.log2(shares)).sum())
