"""Importance, conditional importance and their kin, each by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.importance.sums import Parts, Sums, centred

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.importance.observations import Observations
    from ascar.importance.sums import Across

_ROUNDING = 1e-12


def importance(observations: Observations, name: str) -> float:
    """PI (7.2): by how much splitting by a parameter reduces the variance, in the objective's unit squared.

    Raises:
        InputError: no such parameter.
    """
    return conditional_importance(observations, name, ())


def conditional_importance(
    observations: Observations, name: str, given: Sequence[str], across: Across = "max"
) -> float:
    """CPI (7.3, 7.4) of a parameter given one or several others.

    Args:
        observations: the measured rows.
        name: the parameter's name.
        given: the parameters whose values are fixed; none: PI.
        across: "max": the greatest over the combinations of their values (7.4); "mean": weighted by rows.

    Raises:
        InputError: no such parameter.
    """
    parts = Parts.by(observations, given)
    return Sums.of(observations.factor(name), parts, centred(observations), None).reduction(across)


def correlation(observations: Observations, given: Sequence[str] = ()) -> dict[str, float]:
    """R squared of each other parameter (Cao 5.4): of least squares on one dummy variable a value.

    With parameters fixed it is the greatest over the combinations of their values, as there. Above 0.6 it
    counts as significant there; combinations of few rows reach that by chance.

    Raises:
        InputError: no such parameter.
    """
    parts, values = Parts.by(observations, given), centred(observations)
    squares = np.bincount(parts.of_row, values**2, len(parts.sizes))
    variances = (
        squares - np.bincount(parts.of_row, values, len(parts.sizes)) ** 2 / parts.sizes
    ) / parts.sizes
    varied = variances > _ROUNDING * squares / parts.sizes
    found: dict[str, float] = {}
    for factor in observations.factors:
        if factor.name not in given:
            reductions = Sums.of(factor, parts, values, None).reductions()
            found[factor.name] = float(
                np.divide(reductions, variances, out=np.zeros_like(reductions), where=varied).max()
            )
    return found


def interaction(observations: Observations, one: str, other: str) -> float:
    """What a pair explains together beyond what each explains alone, in the objective's unit squared.

    On a full grid this is the variance component of their interaction. It is below 0 where the rows hold
    the values of the two unevenly, so that both explain the same.

    Raises:
        InputError: no such parameter.
    """
    return conditional_importance(observations, other, [one], "mean") - importance(observations, other)


def chance(observations: Observations, name: str, parts: Parts, rows_min: int = 0) -> float:
    """How likely a split by a parameter without any effect explains that much in the part where it does most.

    An F test (analysis of variance) in each part that has more rows than values, by Bonferroni's rule over
    the parts; 1 where there is no such part.

    Raises:
        InputError: no such parameter.
    """
    factor, values = observations.factor(name), centred(observations)
    sums, count = Sums.of(factor, parts, values, None, rows_min), len(parts.sizes)
    held = factor.codes >= 0
    held[held] = sums.counts[0][parts.of_row[held], factor.codes[held]] > 0
    inside, counts = parts.of_row[held], sums.counts[0]
    rows, groups = counts.sum(1), (counts > 0).sum(1)
    whole = np.bincount(inside, values[held] ** 2, count) - np.divide(
        sums.totals[0].sum(1) ** 2, rows, out=np.zeros(count), where=rows > 0
    )
    between = sums.reductions() * sums.rows[0]
    free = rows - groups
    tested = (free > 0) & (groups > 1) & (whole > _ROUNDING * float((values**2).sum()))
    if not tested.any():
        return 1.0
    between, free, degrees = between[tested], free[tested], groups[tested] - 1
    within = np.maximum(whole[tested] - between, _ROUNDING * whole[tested])
    chances = _core.f_above(
        between / degrees / (within / free), degrees.astype(np.float64), free.astype(np.float64)
    )
    return min(1.0, float(chances.min()) * int(tested.sum()))


def relative_deviation(values: NDArray[np.float64]) -> float:
    """Sample standard deviation over the mean's magnitude (6.2).

    0 where there are fewer than two values or all are equal; infinite where their mean is 0 and they differ.
    """
    return float(
        relative_deviations(values, Parts(np.zeros(len(values), np.intp), np.array([len(values)])))[0]
    )


def relative_deviations(values: NDArray[np.float64], parts: Parts) -> NDArray[np.float64]:
    """float64 (parts,): the same of each part."""
    middle = float(values.mean())
    rest = values - middle
    count = len(parts.sizes)
    offsets = np.bincount(parts.of_row, rest, count) / parts.sizes
    squares = np.bincount(parts.of_row, (rest - offsets[parts.of_row]) ** 2, count)
    deviations = np.sqrt(squares / np.maximum(parts.sizes - 1, 1))
    means = np.abs(offsets + middle)
    alike = deviations <= _ROUNDING * np.maximum(means, abs(middle))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(alike, 0.0, deviations / means)
