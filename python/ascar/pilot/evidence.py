"""Evidence that the mean of a stream has moved: an e-detector of the Shiryaev-Roberts kind.

Source: Shin, Ramdas and Rinaldo 2024, "E-detectors: a nonparametric framework for sequential change
detection", section 3: M_t = (1 + M_(t-1)) L_t, where L_t >= 0 has expectation at most 1 whatever was seen
before, as long as nothing has changed. Then M_t - t is a supermartingale; the first time that M_t reaches A
comes after A steps or more on average, and within n steps with probability at most n / A. Several such M
with weights that add up to 1 are one. Here L_t = 1 + tanh(b e_t), the likelihood ratio of a normal step of
mean b to the same made symmetric, for any step e_t that is symmetric around 0 given the past: one plus an
odd function within -1 and 1, the form that all admissible evidence against symmetry has (Ramdas, Ruf,
Larsson and Koolen 2020, "Admissible anytime-valid sequential inference must rely on nonnegative
martingales", section 5). No variance need be known or stay the same, and no single step, however large,
counts for more than the factor 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Bets, in standard deviations of a step to the minus one: for shifts of a twentieth to two of them.
_BETS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
_SIGNED = np.concatenate([-_BETS, _BETS])
_LOG_2 = float(np.log(2.0))


@dataclass(slots=True)
class EDetector:
    """The detector's state: constant memory, one small update a step."""

    _log_m: NDArray[np.float64] = field(default_factory=lambda: np.full(_SIGNED.size, -np.inf), repr=False)

    def add(self, step: float) -> None:
        """Take in a step, in units of about its standard deviation, which may be known only roughly."""
        self._log_m = np.logaddexp(0.0, self._log_m) + _LOG_2 - np.logaddexp(0.0, -2 * _SIGNED * step)

    @property
    def log(self) -> float:
        """The mixture's natural logarithm; an alarm is due when it reaches that of A."""
        return float(np.logaddexp.reduce(self._log_m)) - float(np.log(_SIGNED.size))

    @property
    def upwards(self) -> bool:
        """Whether more of the evidence is for a rise than for a fall."""
        half = _BETS.size
        return bool(np.logaddexp.reduce(self._log_m[half:]) > np.logaddexp.reduce(self._log_m[:half]))
