"""When a shift began and how large it is, from the batches before an alarm.

Two shapes are fitted by least squares for every possible beginning: a step, and a drift that goes on until
the alarm; each time of the period has a level of its own, and residuals that correlate are whitened (Prais
and Winsten 1954). The interval is the set of beginnings, of either shape, that the likelihood ratio does
not reject: Siegmund 1988, "Confidence sets in change-point problems", with his limit for a step, which for
a drift, where the likelihood is regular, is the more cautious one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Form = Literal["step", "drift", "either"]

_CONFIDENCE = 0.95
# The likelihood falls off on both sides of a step; each side's greatest excess over it is exponential.
_LIMIT = -math.log(1 - math.sqrt(_CONFIDENCE))
# Beginnings that are tried: so many over all, and each of so many last ones, where large steps begin.
_CANDIDATES = 200
_NORMAL_QUANTILE = 1.96


@dataclass(frozen=True, slots=True)
class Onset:
    """What the batches say about a shift; places are indexes of batches.

    Attributes:
        began: most likely the first batch of the shift.
        began_low: earliest that is not rejected; None: it may have begun before what is remembered.
        began_high: latest that is not rejected.
        form: "step", "drift", or "either" where the batches fit both.
        before: the level before.
        size: the distance that the level has moved at the last batch.
        size_low: lower end of its interval.
        size_high: upper end.
    """

    began: float
    began_low: float | None
    began_high: float
    form: Form
    before: float
    size: float
    size_low: float
    size_high: float


def onset_of(at: NDArray[np.float64], values: NDArray[np.float64], bins: int, *, upwards: bool) -> Onset:
    """Fit a shift in the direction in which the evidence says that there was one.

    Args:
        at: (n,) increasing whole numbers, the batches' places.
        values: (n,) their means.
        bins: batches in a period.
        upwards: the direction.
    """
    n = len(at)
    spread = np.linspace(1, n - 1, min(n - 1, _CANDIDATES)).astype(np.int64)
    places = np.union1d(spread, np.arange(max(1, n - _CANDIDATES), n))
    steps = (at[None, :] >= at[places][:, None]).astype(np.float64)
    # A drift begins between two batches and is whole at the last.
    ramps = np.maximum(at[None, :] - at[places - 1][:, None], 0.0)
    ramps /= ramps[:, -1:]
    shapes = np.concatenate([steps, ramps])
    season = (at.astype(np.int64) % bins)[None, :] == np.unique(at.astype(np.int64) % bins)[:, None]
    freedom = max(n - len(season) - 2, 1)
    free_values, free_shapes = _without_season(values[None, :], season)[0], _without_season(shapes, season)
    sizes, left, _ = _fitted(free_values, free_shapes)
    best = int(np.argmin(left))
    residual = free_values - sizes[best] * free_shapes[best]
    total = float(residual @ residual)
    phi = float(residual[1:] @ residual[:-1]) / total if total > 0 else 0.0
    phi = min(max(phi + (1 + 4 * max(phi, 0.0)) / n, 0.0), 0.95)
    sizes, left, weights = _fitted(_whitened(free_values, phi), _whitened(free_shapes, phi))
    left = np.where((sizes > 0) == upwards, left, np.inf) if ((sizes > 0) == upwards).any() else left
    best = int(np.argmin(left))
    floor = max(float(left[best]), 1e-300)
    kept = np.flatnonzero(freedom / 2 * np.log(np.maximum(left, floor) / floor) <= _LIMIT)
    half = _NORMAL_QUANTILE * np.sqrt(floor / freedom / np.maximum(weights, 1e-300))
    began = np.concatenate([at[places], at[places - 1] + 1])
    stepped = kept < len(places)
    level = float((values - sizes[best] * shapes[best]).mean())
    return Onset(
        began=float(began[best]),
        began_low=None if began[kept].min() <= at[1] else float(began[kept].min()),
        began_high=float(began[kept].max()),
        form="either" if stepped.any() and not stepped.all() else "step" if stepped.all() else "drift",
        before=level,
        size=float(sizes[best]),
        size_low=float((sizes - half)[kept].min()),
        size_high=float((sizes + half)[kept].max()),
    )


def _without_season(rows: NDArray[np.float64], season: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Rows less their mean at each time of the period.

    Args:
        rows: (rows, n).
        season: (times, n), which batch is at which time.
    """
    members = season.astype(np.float64)
    means = (rows @ members.T) / members.sum(axis=1)
    return rows - means @ members


def _whitened(rows: NDArray[np.float64], phi: float) -> NDArray[np.float64]:
    first = rows[..., :1] * math.sqrt(1 - phi * phi)
    return np.concatenate([first, rows[..., 1:] - phi * rows[..., :-1]], axis=-1)


def _fitted(
    values: NDArray[np.float64], shapes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Sizes, sums of squares left, and sums of squares of the shapes themselves."""
    weights = (shapes * shapes).sum(axis=1)
    told = weights > 1e-9
    sizes = np.where(told, shapes @ values / np.where(told, weights, 1.0), 0.0)
    return sizes, np.maximum(float(values @ values) - sizes * sizes * weights, 0.0), weights
