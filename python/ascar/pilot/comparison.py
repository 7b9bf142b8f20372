"""Two sets of runs compared: Welch's test, and how many runs it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Comparison:
    """How b stands against a.

    Attributes:
        gain_relative: mean of b over mean of a, minus one.
        gain_low: lower end of its interval; None where none exists.
        gain_high: upper end, or None.
        p_value: two-sided, Welch; None with fewer than two runs a side.
        runs_a: runs of a.
        runs_b: runs of b.
    """

    gain_relative: float
    gain_low: float | None
    gain_high: float | None
    p_value: float | None
    runs_a: int
    runs_b: int


def compare(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Comparison:
    """Compare independent runs of b with those of a by Welch's t-test (Li's thesis, section 4.2.4).

    Raises:
        InputError: a side is empty or holds numbers that are not finite, or the confidence is impossible.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence!r}: must be between 0 and 1, e.g. 0.95")
    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    for name, side in (("a", left), ("b", right)):
        if side.size == 0 or not np.isfinite(side).all():
            raise InputError(f"runs of {name} = {side.tolist()}: must be at least one finite number")
    ratio = float(right.mean() / left.mean()) if left.mean() != 0 else float("nan")
    if min(left.size, right.size) < 2:
        return Comparison(ratio - 1, None, None, None, left.size, right.size)
    try:
        found = _core.welch(right, left, confidence)
    except ValueError as error:
        raise InputError(f"runs of b against runs of a: {error}") from error
    low, high = found.ratio_ci_low, found.ratio_ci_high
    return Comparison(
        gain_relative=ratio - 1,
        gain_low=None if low is None else low - 1,
        gain_high=None if high is None else high - 1,
        p_value=found.p_value,
        runs_a=left.size,
        runs_b=right.size,
    )


def runs_needed(
    a: Sequence[float], b: Sequence[float], relative_sd: float, alpha: float, power: float
) -> int:
    """Runs a side that separate means like these, fixed before the first of them is made.

    Args:
        a: scores seen so far of the one.
        b: scores seen so far of the other.
        relative_sd: standard deviation between runs over their mean, where the scores are too few to tell.
        alpha: level of the test.
        power: chance of finding a difference of the size seen so far.
    """
    mean_a, mean_b = float(np.mean(a)), float(np.mean(b))
    sd_a = max(float(np.std(a, ddof=1)) if len(a) > 2 else 0.0, relative_sd * abs(mean_a))
    sd_b = max(float(np.std(b, ddof=1)) if len(b) > 2 else 0.0, relative_sd * abs(mean_b))
    if mean_a == mean_b:
        return 1_000_000
    return int(_core.welch_sample_size(mean_a, sd_a, mean_b, sd_b, alpha, power))
