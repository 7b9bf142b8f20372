"""How many pairs of runs a comparison in turns will probably take until it is decided."""

from __future__ import annotations

from functools import lru_cache
from math import log1p
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core

if TYPE_CHECKING:
    from ascar.pilot.turns import InTurns, PairTest

_PAIRS_MOST = 1 << 14


def pairs_needed(gain: float, sd: float, test: PairTest) -> int | None:
    """The number of pairs after which a comparison is decided, if they have this mean and this scatter.

    The limits of the mean of n pairs are a known multiple of their standard deviation (see
    `crates/statistics/src/paired.rs`); the answer is the smallest n whose lower limit is above zero, or whose
    upper limit is below the margin.

    Args:
        gain: the mean of the pairs, as a logarithm of the ratio; above zero is better.
        sd: the standard deviation of a pair, in the same measure.
        test: the test; its `pairs_max` is not looked at.

    Returns:
        The number of pairs, at least `pairs_min`; None if more than some ten thousand would be needed.
    """
    distance = max(gain, -gain, log1p(test.margin) - gain if test.margin > 0 else 0.0)
    if sd <= 0:
        return test.pairs_min if distance > 0 else None
    return pairs_until(distance / sd, test.level, test.pairs_min)


def pairs_until(
    half_width: float, level: float, pairs_min: int, *, dof: int = 0, prior: float | None = None
) -> int | None:
    """The number of pairs whose mean has an interval of this half width, in standard deviations of a pair.

    Args:
        half_width: what is wanted.
        level: the level of the test.
        pairs_min: the least that is answered.
        dof: degrees of freedom that the standard deviation has beside those of the pairs.
        prior: as for `_core.pairs_half_width`.

    Returns:
        None if more than some ten thousand would be needed.
    """
    low, high = 1, pairs_min
    while _half_width(high, level, dof, prior) > half_width:
        low, high = high, 2 * high
        if high > _PAIRS_MOST:
            return None
    while high > max(low + 1, pairs_min):
        middle = (low + high) // 2
        low, high = (middle, high) if _half_width(middle, level, dof, prior) > half_width else (low, middle)
    return high


def more_pairs_needed(found: InTurns) -> int | None:
    """The number of further pairs that would probably decide a comparison; None where no number would."""
    gain = found.gain
    if gain is None:
        return found.test.pairs_min
    reference, candidate = np.array(found.reference), np.array(found.candidate)
    if gain.gain_relative is not None:
        pairs = np.log(candidate) - np.log(reference)
        mean = abs(float(pairs.mean())) * (1 if gain.gain_relative > 0 else -1)
    elif size := abs(float(reference.mean())):
        pairs = (candidate - reference) / size
        mean = gain.difference / size
    else:
        return None
    needed = pairs_needed(mean, float(pairs.std(ddof=1)), found.test)
    return None if needed is None else max(1, needed - len(pairs))


@lru_cache(maxsize=4096)
def _half_width(pairs: int, level: float, dof: int, prior: float | None) -> float:
    """Half of the interval of a mean of so many pairs, in standard deviations; infinite below two pairs."""
    if pairs - 1 + dof < 1:
        return float("inf")
    return _core.pairs_half_width(pairs, float(pairs - 1 + dof), alpha=level, prior=prior)
