"""What was kept of a gain, and what each parameter that is kept brings of it."""

from __future__ import annotations

from itertools import product
from math import log1p
from typing import TYPE_CHECKING, Any

from ascar.results.parsimony import ParameterWorth

if TYPE_CHECKING:
    from ascar.results.parsimony import ReductionStep
    from ascar.results.verdict import Verdict

    Estimate = tuple[float | None, float | None, float | None]


def gain_kept(verdict: Verdict, step: ReductionStep, sign: int) -> dict[str, Any]:
    """The share of a gain that a smaller configuration keeps, by the keys of `Parsimony`.

    With the gain g of the best over the default, and s of the smaller one over the best, the share is
    1 + s (1 + g) / g, or 1 + s / g of differences. It has no greater or smaller value in the limits of both
    than at their corners; these hold together with the sum of both levels.

    Args:
        verdict: the best configuration against the default.
        step: the smaller one against the best.
        sign: 1 if more is better, else -1.
    """
    if verdict.gain_relative is not None and step.gain_relative is not None:
        gain: Estimate = verdict.gain_relative, verdict.gain_low, verdict.gain_high
        change: Estimate = step.gain_relative, step.gain_low, step.gain_high
        scale = sign
    else:
        gain = verdict.difference, verdict.difference_low, verdict.difference_high
        change = step.difference, step.difference_low, step.difference_high
        scale = 0
    if gain[0] is None or change[0] is None or gain[0] <= 0:
        return {}

    def share(of: float, lost: float) -> float:
        return 1 + lost * (1 + scale * of) / of

    found: dict[str, Any] = {"gain_kept": share(gain[0], change[0])}
    limits = [one for one in (*gain[1:], *change[1:]) if one is not None]
    if len(limits) < 4 or limits[0] <= 0:
        return found
    corners = [share(of, lost) for of, lost in product(limits[:2], limits[2:])]
    found |= {"gain_kept_low": min(corners), "gain_kept_high": max(corners)}
    return found | {"gain_kept_confidence": max(0.0, step.confidence - verdict.p_value_limit)}


def still_better(verdict: Verdict, step: ReductionStep, sign: int) -> bool:
    """Whether the best gains at least more over the default than the smaller one loses at most against it."""
    if verdict.gain_low is not None and step.gain_low is not None:
        return log1p(sign * verdict.gain_low) * sign + log1p(sign * step.gain_low) * sign > 0
    if verdict.difference_low is not None and step.difference_low is not None:
        return verdict.difference_low + step.difference_low > 0
    return False


def worth_of(name: str, step: ReductionStep | None) -> ParameterWorth:
    """What a parameter brings, by the comparison in which it was left out; nothing known without one."""
    if step is None or step.pairs == 0:
        return ParameterWorth(name)
    return ParameterWorth(
        name,
        loss_relative=_negative(step.gain_relative),
        loss_low=_negative(step.gain_high),
        loss_high=_negative(step.gain_low),
        loss=_negative(step.difference),
    )


def worth_of_all(name: str, verdict: Verdict, sign: int) -> ParameterWorth:
    """What the only parameter that is kept brings: without it the default is left."""

    def loss(gain: float | None) -> float | None:
        return None if gain is None or 1 + sign * gain <= 0 else gain / (1 + sign * gain)

    limits = loss(verdict.gain_low), loss(verdict.gain_high)
    return ParameterWorth(name, loss(verdict.gain_relative), *limits, loss=verdict.difference)


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
