"""StorageGameSim: two knobs, noise and delay, to see whether a learner converges (Li 5.2.2, Fig. 5.2).

Throughput follows the congestion window: a peak, and less on either side of it; the gap between requests caps
it. It is "never meant to be realistic"; the simulated cluster is there for that. Constants that the thesis
leaves open: the window runs from 1 to 100 by 1; throughput falls by 2% of the ideal for each step away from
the peak, down to 2%, so that 11 windows are within 10% of the ideal; 20 streams send 1 MB requests, so that a
gap above 40 ms caps the ideal 500 MB/s.

The thesis' game has its peak at 50 and starts at window 8 without a gap. It has two weaknesses: whoever walks
by slowly wins, because 20 ticks near the peak are enough, and the answer is the same every time. In the
harder game the peak and the start are drawn anew for each run, and only who stays has won.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from ascar.capes.axes import Axis, Setting, checked, initial
from ascar.capes.policy import TickObservation
from ascar.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

GameKind = Literal["thesis", "hard"]
GAMES: Final[tuple[GameKind, ...]] = ("thesis", "hard")

TICKS: Final = 3600
IDEAL_MB_PER_S: Final = 500.0
_SLOPE, _FLOOR = 0.02, 0.02
_STREAMS, _REQUEST_MB = 20, 1.0
_WINDOW_MAX, _TAU_MS_MAX = 100, 100
_PEAK, _PEAKS = 50, (15, 85)
_NEAR = 0.1
_DELAY_MAX = 600


@dataclass(frozen=True, slots=True)
class GameOptions:
    """The rules of one run.

    Attributes:
        noise: standard deviation of what is measured, as a share of the throughput.
        delay_ticks: the number of ticks until a change of the window has its effect.
        peak: the best window.
        start: window, and gap in milliseconds.
        seed: the seed of the noise.

    Raises:
        InputError: noise or delay are out of range.
    """

    noise: float
    delay_ticks: int = 3
    peak: float = _PEAK
    start: Setting = (8.0, 0.0)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if not 0 <= self.noise <= 10:
            raise InputError(f"noise = {self.noise!r}: must be from 0 to 10, a share of the throughput")
        if not 0 <= self.delay_ticks <= _DELAY_MAX:
            raise InputError(f"--delay = {self.delay_ticks!r}: must be from 0 to {_DELAY_MAX} ticks")


def drawn(kind: GameKind, noise: float, delay_ticks: int, seed: int) -> GameOptions:
    """The rules of a run: the thesis', or peak and start drawn by the seed."""
    if kind == "thesis":
        return GameOptions(noise, delay_ticks, seed=seed)
    rng = np.random.default_rng([seed, 1])
    peak = float(rng.integers(_PEAKS[0], _PEAKS[1], endpoint=True))
    start = (
        float(rng.integers(1, _WINDOW_MAX, endpoint=True)),
        float(rng.integers(0, _TAU_MS_MAX, endpoint=True)),
    )
    return GameOptions(noise, delay_ticks, peak, start, seed)


def knobs_of(rules: GameOptions) -> tuple[Axis, ...]:
    """The knobs window and gap, at their initial values."""
    window, tau_ms = rules.start
    return Axis("window", window, 1, _WINDOW_MAX, 1), Axis("tau_ms", tau_ms, 0, _TAU_MS_MAX, 1)


class Game:
    """One run of the game.

    Args:
        rules: the options of the run.

    Attributes:
        rules: the same.
        knobs: window and gap.
        near: for each tick so far, whether the throughput without noise was within 10% of the ideal.
    """

    def __init__(self, rules: GameOptions) -> None:
        self.rules = rules
        self.knobs = knobs_of(rules)
        self.near: list[bool] = []
        self._rng = np.random.default_rng([rules.seed, 2])
        start = initial(self.knobs)
        self._windows = deque([start[0]] * (rules.delay_ticks + 1), maxlen=rules.delay_ticks + 1)

    def step(self, setting: Setting) -> TickObservation:
        """Simulate a second under a setting.

        Raises:
            InputError: the setting is out of range.
        """
        setting = checked(self.knobs, setting)
        self._windows.append(setting[0])
        truth = _throughput_mb_per_s(self._windows[0], setting[1], self.rules.peak)
        measured = truth * (1 + self.rules.noise * self._rng.standard_normal())
        self.near.append(abs(truth - IDEAL_MB_PER_S) <= _NEAR * IDEAL_MB_PER_S)
        return TickObservation(len(self.near), measured, _indicators(setting, measured), setting)


def _throughput_mb_per_s(window: float, tau_ms: float, peak: float) -> float:
    by_window = IDEAL_MB_PER_S * max(_FLOOR, 1 - _SLOPE * abs(window - peak))
    cap = _STREAMS * _REQUEST_MB * 1e3 / tau_ms if tau_ms > 0 else np.inf
    return min(by_window, cap)


def _indicators(setting: Setting, measured: float) -> NDArray[np.float32]:
    """(1, 3): both knobs and the throughput, on scales around 1."""
    return np.array(
        [[setting[0] / _WINDOW_MAX, setting[1] / _TAU_MS_MAX, measured / IDEAL_MB_PER_S]], np.float32
    )
