"""The value of a visit to a setting, and the choice of the one that pays most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.surrogate.acquisition import expected_improvement

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VISITS = (1, 3, 9)
_STAY = 0.25
_CURRENT, _INITIAL = 0, 1


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSettings:
    """Settings to choose from: first the one in force, then the initial one, then more that were visited.

    Attributes:
        mean: float64 (m,), of each one's performance, losses compressed.
        sd: float64 (m,), of it.
        plain: float64 (m,), the mean with losses as they are.
        allowed: bool (m,).
        known: the number of leading settings that were visited.
    """

    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    plain: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    known: int


@dataclass(frozen=True, slots=True)
class ChoiceCriteria:
    """The criteria by which a visit pays.

    Attributes:
        ticks: the number of ticks of a settled visit.
        settle_ticks: the number of ticks until a change has its effect.
        horizon_ticks: a visit must pay within so many.
        noise: standard deviation of a tick, as a share.
        visit_sd: the further standard deviation from visit to visit, in the objective's units.
        worth: a visit must promise this share of its performance beyond its cost, and to leave the initial
            setting must bring this share.
        initial_sds: the number of standard deviations by which, in addition to `worth`, a setting must be
            better to replace the initial one for good.
        rest: whether a visit elsewhere must wait while the initial setting is the best one known.
    """

    ticks: int
    settle_ticks: int
    horizon_ticks: int
    noise: float
    visit_sd: float
    worth: float
    initial_sds: float
    rest: bool


def promise(
    mean: NDArray[np.float64], sd: NDArray[np.float64], base: float, noise_variance: float
) -> NDArray[np.float64]:
    """(m,): by how much more than the best one known a setting is expected to turn out, after a visit.

    That is the expected improvement (Mockus 1975) with the deviation of the posterior mean after one visit
    (knowledge gradient; Frazier, Powell and Dayanik 2009): what a noisy visit cannot show promises nothing.

    Args:
        mean: the mean performance of each setting.
        sd: the standard deviation of that mean.
        base: mean of the best one known.
        noise_variance: the variance of a visit's mean.
    """
    shown = sd * sd / np.sqrt(sd * sd + noise_variance + 1e-300)
    shown = np.maximum(shown, 1e-12 * max(abs(base), 1e-300))
    return expected_improvement(-mean, shown, -base)


def paying(prospects: CandidateSettings, criteria: ChoiceCriteria) -> int:
    """The setting whose visit pays most within the horizon; where none pays, the best one known.

    What was visited often and by chance looks best is seldom better than the initial setting: until one
    surely is, the initial one is the best one known, and a visit promises what exceeds it by `worth`.

    Returns:
        The number of the setting.
    """
    mean, sd, allowed, known = prospects.mean, prospects.sd, prospects.allowed, prospects.known
    best = int(np.argmax(np.where(allowed[:known], mean[:known], -np.inf)))
    base = bar = float(mean[best])
    variance = (criteria.noise * base) ** 2 / criteria.ticks + criteria.visit_sd**2
    sure = criteria.worth * abs(base) + criteria.initial_sds * float(np.hypot(sd[best], sd[_INITIAL]))
    keeps_initial = criteria.initial_sds > 0 and bool(allowed[_INITIAL]) and base - mean[_INITIAL] <= sure
    if keeps_initial:
        best, base = _INITIAL, float(mean[_INITIAL])
        if criteria.rest:
            return _INITIAL
        bar = base + criteria.worth * abs(base)
    cost = np.maximum(base - prospects.plain, 0)
    value = np.max(
        [
            criteria.horizon_ticks * promise(mean, sd, bar, variance / visits)
            - (visits * criteria.ticks + 2 * criteria.settle_ticks) * cost
            for visits in _VISITS
        ],
        axis=0,
    )
    most = int(np.argmax(np.where(allowed, value, -np.inf)))
    if value[most] > criteria.worth * criteria.ticks * abs(base):
        return most
    if (
        not keeps_initial
        and allowed[_CURRENT]
        and mean[best] - mean[_CURRENT] <= _STAY * criteria.worth * abs(base)
    ):
        return _CURRENT
    return best
