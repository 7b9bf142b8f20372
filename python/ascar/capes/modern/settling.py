"""Settling: after how many ticks a change shows, learnt from the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRIOR_DECAY = 0.58
_SURE = 0.95
_FOR_MAX, _AGAINST_MAX = 1.0, 4.0
_FORGET = 0.98
_APART, _TINY = 0.5, 1e-9


class SettlingDelay:
    """A posterior over the ticks that a change takes to show in full, from 0 to a most.

    Each change is evidence: from then on ticks look like the setting entered; before they lie anywhere
    between it and the setting left, for knobs may differ in their delays. Small delays are more likely before
    anything is known. A tick can say much more against having settled than for it, and neither without limit,
    so that no outlier decides; old evidence fades, because delays may change.

    Args:
        ticks_max: the longest.

    Attributes:
        evidence: (ticks_max + 1,), log of what changes have said for each number of ticks.
    """

    def __init__(self, ticks_max: int) -> None:
        self._prior = np.log(_PRIOR_DECAY) * np.arange(ticks_max + 1)
        self.evidence = np.zeros(ticks_max + 1)

    @property
    def ticks(self) -> int:
        """The ticks after which a change shows with a probability of 95%."""
        return int(np.searchsorted(np.cumsum(self.probabilities()), _SURE))

    def probabilities(self) -> NDArray[np.float64]:
        """(ticks_max + 1,): the probability of each number of ticks."""
        log = self._prior + self.evidence
        weight = np.exp(log - log.max())
        return weight / weight.sum()

    def learn(self, values: NDArray[np.float64], left: float, entered: float, sd: float) -> None:
        """Take in one change.

        Args:
            values: measured after it, tick by tick; NaN where nothing was.
            left: mean of the setting before.
            entered: mean of the setting after it.
            sd: the standard deviation of one tick.
        """
        if not sd > 0:
            return
        most = len(self.evidence)
        seen = values[: most - 1]
        low, high = min(left, entered), max(left, entered)
        if high - low < _APART * sd:
            return  # such a change cannot be seen
        # Of each tick, log of the density between the settings, with noise, over that at the one entered.
        share = _core.normal_below((seen - low) / sd) - _core.normal_below((seen - high) / sd)
        between = share * sd / (high - low)
        at_entered = np.exp(-((seen - entered) ** 2) / (2 * sd * sd)) / np.sqrt(2 * np.pi)
        says = np.log(between + _TINY) - np.log(at_entered + _TINY)
        says = np.clip(np.nan_to_num(says), -_FOR_MAX, _AGAINST_MAX)
        of_ticks = np.concatenate([[0.0], np.cumsum(says)])
        of_ticks = np.pad(of_ticks, (0, most - len(of_ticks)), mode="edge")
        self.evidence = _FORGET * self.evidence + of_ticks
