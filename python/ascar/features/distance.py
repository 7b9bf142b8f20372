"""How far apart workloads are, by their features or by the distribution of one quantity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


SHARE_MIN = 0.02
"""Types of operation that make up less are not compared."""


def relative_distance(a: Mapping[str, float], b: Mapping[str, float], share_min: float = SHARE_MIN) -> float:
    """How far two workloads' features (`features_of`) lie apart: 0 alike, 1 nothing in common.

    The root mean square, over the features that either has, of |a - b| / max(|a|, |b|); shares count with
    their difference, and a feature that only one of them has counts 1. Left out are features of types that
    make up less than `share_min` of both. Symmetric; unlike `standardized_distance` it needs no other
    workloads to set a scale.
    """
    terms: list[float] = []
    for name in sorted(a.keys() | b.keys()):
        kind = f"{name.split('_', 1)[0]}_share"
        if all(workload.get(kind, 1.0) < share_min for workload in (a, b)):
            continue
        one, other = a.get(name, np.nan), b.get(name, np.nan)
        if np.isnan(one) and np.isnan(other):
            continue
        if np.isnan(one) or np.isnan(other):
            terms.append(1.0)
        elif name.endswith("_share"):
            terms.append(abs(one - other))
        else:
            largest = max(abs(one), abs(other))
            terms.append(abs(one - other) / largest if largest else 0.0)
    return float(np.sqrt(np.mean(np.square(terms)))) if terms else 0.0


def standardize(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column's z-scores (Cao, section 9.3): minus its mean, over its standard deviation.

    Args:
        rows: float64 (workloads, features); nan marks what is not known.

    Returns:
        The same shape; 0, the mean, where a value is not known or a column does not vary.
    """
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, rows, 0.0)
    mean = filled.sum(axis=0) / count
    centred = np.where(known, rows - mean, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=0) / count)
    # A column whose deviation is rounding error only does not vary.
    varies = deviation > 1e-12 * np.maximum(1.0, np.abs(mean))
    return np.where(varies, centred / np.where(varies, deviation, 1.0), 0.0)


def standardized_distance(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances between all pairs of workloads after `standardize`.

    Returns:
        float64 (workloads, workloads), symmetric, zero on the diagonal.
    """
    scores = standardize(rows)
    difference = scores[:, None, :] - scores[None, :, :]
    return np.sqrt((difference**2).sum(axis=2))


def earth_movers_distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The earth mover's distance between two samples of one quantity (Cao, section 9.3, [90, 194]).

    On a line it is the area between the two empirical distribution functions. In the quantity's unit; nan
    when a sample is empty.
    """
    if len(a) == 0 or len(b) == 0:
        return np.nan
    points = np.sort(np.concatenate([a, b]))
    below_a = np.searchsorted(np.sort(a), points[:-1], side="right") / len(a)
    below_b = np.searchsorted(np.sort(b), points[:-1], side="right") / len(b)
    return float(np.sum(np.abs(below_a - below_b) * np.diff(points)))
