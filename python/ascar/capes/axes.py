"""Parameters as an online learner sees them, as axes with a step, and the discrete actions of CAPES."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Setting = tuple[float, ...]
"""Where the knobs stand, one value a knob."""

_LEVELS_MAX = 64


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter as numbers: one axis of what a learner searches.

    Attributes:
        name: the name of the parameter.
        initial: the initial value.
        low: the least allowed.
        high: the most allowed.
        step: the change of one discrete action.
        logarithmic: whether ratios matter, and not differences.
        group: knobs of one group do the same at different places (the windows of several clients): they are
            tried together first; "": it has none.

    Raises:
        InputError: the numbers are not finite, are not in order, or the step is not above zero.
    """

    name: str
    initial: float
    low: float
    high: float
    step: float
    logarithmic: bool = False
    group: str = ""

    def __post_init__(self) -> None:
        """Refuse a range that is not in order, and steps out of it."""
        numbers = (self.low, self.initial, self.high, self.step)
        if not all(math.isfinite(one) for one in numbers) or not self.low <= self.initial <= self.high:
            raise InputError(
                f"knob {self.name!r}: low {self.low!r}, initial {self.initial!r}, high {self.high!r}: "
                "must be finite, and low <= initial <= high"
            )
        if not 0 < self.step <= self.high - self.low:
            raise InputError(
                f"knob {self.name!r}: step {self.step!r}: must be above zero, and at most high - low"
            )
        if self.logarithmic and self.low < 0:
            raise InputError(f"knob {self.name!r}: low {self.low!r}: must be 0 or more on a scale of ratios")

    def unit(self, value: float) -> float:
        """A value as a share of the range, 0 to 1."""
        if self.logarithmic:
            return math.log((value - self.low) / self.step + 1) / math.log(
                (self.high - self.low) / self.step + 1
            )
        return (value - self.low) / (self.high - self.low)

    def value(self, unit: float) -> float:
        """The value at a share of the range, a whole number of steps above the least."""
        share = min(max(unit, 0.0), 1.0)
        steps = (self.high - self.low) / self.step
        at = math.expm1(share * math.log1p(steps)) if self.logarithmic else share * steps
        return min(self.high, self.low + self.step * round(at))


def initial(knobs: Sequence[Axis]) -> Setting:
    """The initial setting."""
    return tuple(one.initial for one in knobs)


def knob_groups(knobs: Sequence[Axis]) -> list[list[int]]:
    """Indices of the knobs of each group; a knob without a group is one by itself."""
    found: dict[str, list[int]] = {}
    for at, knob in enumerate(knobs):
        found.setdefault(knob.group or f"\0{at}", []).append(at)
    return list(found.values())


def action_count(knobs: Sequence[Axis]) -> int:
    """The number of actions: up and down for each knob, and nothing (Li 5.1.7)."""
    return 2 * len(knobs) + 1


def moved(knobs: Sequence[Axis], setting: Setting, action: int) -> Setting:
    """The setting after a discrete action; a step out of range changes nothing.

    Args:
        knobs: the knobs of the setting.
        setting: the setting before the action.
        action: 0 nothing, 1 and 2 the first knob up and down, 3 and 4 the second one, and so on.
    """
    assert 0 <= action < action_count(knobs), "one of 2n + 1 actions"
    if action == 0:
        return setting
    at, knob = (action - 1) // 2, knobs[(action - 1) // 2]
    wanted = setting[at] + (knob.step if action % 2 else -knob.step)
    if not knob.low <= wanted <= knob.high:
        return setting
    return (*setting[:at], wanted, *setting[at + 1 :])


def checked(knobs: Sequence[Axis], setting: Sequence[float]) -> Setting:
    """The setting, where every value is allowed.

    Raises:
        InputError: another number of values than knobs, or one out of range.
    """
    if len(setting) != len(knobs):
        raise InputError(f"setting: has {len(setting)} values; must have one a knob, {len(knobs)}")
    for knob, value in zip(knobs, setting, strict=True):
        if not knob.low <= value <= knob.high:
            raise InputError(f"{knob.name} = {value!r}: must be from {knob.low:g} to {knob.high:g}")
    return tuple(float(one) for one in setting)


def units(knobs: Sequence[Axis], setting: Setting) -> NDArray[np.float64]:
    """(knobs,): each value as a share of its range."""
    return np.array([knob.unit(value) for knob, value in zip(knobs, setting, strict=True)])


def levels(knob: Axis) -> NDArray[np.float64]:
    """Different values over the range, evenly spaced by share; at most 65, with both ends."""
    count = min(_LEVELS_MAX, max(1, round((knob.high - knob.low) / knob.step)))
    found = {knob.value(share) for share in np.linspace(0, 1, count + 1)}
    return np.array(sorted(found | {knob.initial}))
