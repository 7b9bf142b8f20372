"""A small regression tree that people can read (Breiman et al., "Classification and Regression Trees", 1984).

ASCAR's slides show one such tree for one rule set: it "can precisely predict the performance of using a
specific rule set with a new workload".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Shape:
    """How far a tree grows.

    Attributes:
        depth_max: splits one below another.
        leaf_min: rows of a leaf at least.
        gain_min: share of the whole variance that a split must explain.
    """

    depth_max: int = 6
    leaf_min: int = 3
    gain_min: float = 0.01


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows that are predicted alike.

    Attributes:
        mean: the mean of their values.
        sd: standard deviation around it.
        rows: the number of rows.
    """

    mean: float
    sd: float
    rows: int


@dataclass(frozen=True, slots=True)
class Split:
    """Two parts, told apart by one feature.

    Attributes:
        feature: the column of the feature.
        threshold: rows up to it are below.
        below: the part below the threshold.
        above: the other.
    """

    feature: int
    threshold: float
    below: Node
    above: Node


Node = Leaf | Split


def grow(rows: NDArray[np.float64], values: NDArray[np.float64], shape: Shape | None = None) -> Node:
    """A tree that minimises squared errors split by split.

    Args:
        rows: float64 (n, features), finite.
        values: float64 (n,), what is to be predicted.
        shape: the limits of its growth.
    """
    assert len(rows) == len(values) > 0, "a value a row"
    shape = shape or Shape()
    least = shape.gain_min * float(np.var(values)) * len(values)
    return _grow(rows, values, shape, (shape.depth_max, least))


def leaf_of(node: Node, row: NDArray[np.float64]) -> Leaf:
    """The leaf that a row comes to."""
    while isinstance(node, Split):
        node = node.below if row[node.feature] <= node.threshold else node.above
    return node


def lines(node: Node, names: Sequence[str], shown: Callable[[str, float], str]) -> Iterator[str]:
    """The tree as indented text.

    Args:
        node: the tree's root.
        names: the names of the columns.
        shown: a threshold of a feature, for people.
    """
    yield from _lines(node, names, shown, 0)


def _lines(node: Node, names: Sequence[str], shown: Callable[[str, float], str], depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(node, Leaf):
        yield f"{pad}{node.mean:+.1%} (sd {node.sd:.1%}, {node.rows} pairs)"
        return
    name = names[node.feature]
    bound = shown(name, node.threshold)
    yield f"{pad}{name} <= {bound}:"
    yield from _lines(node.below, names, shown, depth + 1)
    yield f"{pad}{name} > {bound}:"
    yield from _lines(node.above, names, shown, depth + 1)


def _grow(
    rows: NDArray[np.float64], values: NDArray[np.float64], shape: Shape, left: tuple[int, float]
) -> Node:
    depth, least = left
    best = _best_split(rows, values, shape.leaf_min) if depth > 0 else None
    if best is None or best[0] < least or best[0] <= 0:
        return Leaf(float(np.mean(values)), float(np.std(values)), len(values))
    _, feature, threshold = best
    below = rows[:, feature] <= threshold
    parts = [_grow(rows[part], values[part], shape, (depth - 1, least)) for part in (below, ~below)]
    return Split(feature, threshold, parts[0], parts[1])


def _best_split(
    rows: NDArray[np.float64], values: NDArray[np.float64], leaf_min: int
) -> tuple[float, int, float] | None:
    """The sum of squares that the best split takes away, its feature and threshold; None: there is none."""
    count = len(values)
    if count < 2 * leaf_min:
        return None
    order = np.argsort(rows, axis=0, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=0)
    centred = (values - np.mean(values))[order]
    sums = np.cumsum(centred, axis=0)[:-1]
    sizes = np.arange(1, count, dtype=np.float64)[:, None]
    gains = sums**2 * (1 / sizes + 1 / (count - sizes))
    allowed = (ordered[1:] > ordered[:-1]) & (sizes >= leaf_min) & (sizes <= count - leaf_min)
    gains = np.where(allowed, gains, -np.inf)
    at, feature = np.unravel_index(int(np.argmax(gains)), gains.shape)
    gain = float(gains[at, feature])
    if not np.isfinite(gain):
        return None
    return gain, int(feature), float((ordered[at, feature] + ordered[at + 1, feature]) / 2)
