"""Bounds that rules must keep whatever they gain: of what a group gets, of fairness, of latencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ascar.errors import ExpressionError, InputError
from ascar.expression import parse
from ascar.study.bounds import bound_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STEEPNESS = 10.0  # of what a broken bound costs: enough to lead back to what keeps it
USUAL = "group_share_min >= 0.9"
"""What holds unless another bound is given: no group gets less than 90% of what it gets without rules."""
NONE = "none"
_LEAST, _EXCESS_MAX = 1e-9, 1e6
_SHOWN_MAX = 120


@dataclass(frozen=True, slots=True)
class MetricBound:
    """A metric of a run, and what it must not fall below or exceed.

    Attributes:
        metric: the name of the metric.
        is_floor: whether the limit is the least value; else it is the greatest.
        limit: the limit.
    """

    metric: str
    is_floor: bool
    limit: float

    def __str__(self) -> str:
        """As it is given: "group_share_min >= 0.9"."""
        return f"{self.metric} {'>=' if self.is_floor else '<='} {self.limit:g}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "METRIC >= NUMBER" or "METRIC <= NUMBER".

        Raises:
            InputError: it is neither.
        """
        shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
        try:
            found = bound_of(str(parse(text)))
        except ExpressionError:
            found = None
        if found is None or found[1] not in (">=", "<=") or not math.isfinite(found[2]):
            raise InputError(
                f"--constraint = {shown!r}: must be 'METRIC >= NUMBER' or 'METRIC <= NUMBER', such as "
                f"{USUAL!r}, or {NONE}"
            )
        name, sign, limit = found
        return cls(name, sign == ">=", limit)

    def excess(self, value: float) -> float:
        """By how much a value breaks the bound, as a share of the limit, 1e6 at most; 0 where it keeps it."""
        beyond = self.limit - value if self.is_floor else value - self.limit
        return min(max(0.0, beyond) / max(abs(self.limit), _LEAST), _EXCESS_MAX)


def bounds_of(texts: Sequence[str] | None) -> tuple[MetricBound, ...]:
    """The bounds that options name; the usual one where there are none, nothing for "none".

    Raises:
        InputError: one is not a bound, or "none" stands beside others.
    """
    given = (USUAL,) if not texts else tuple(texts)
    if NONE not in given:
        return tuple(MetricBound.parse(one) for one in given)
    if len(given) > 1:
        raise InputError(f"--constraint = {NONE!r}: stands beside others; leave out {NONE!r} or the others")
    return ()


def excess_of(bounds: Sequence[MetricBound], metrics: Mapping[str, float]) -> float:
    """By how much a run breaks bounds, all together; a metric that the run does not tell breaks nothing."""
    return sum(one.excess(metrics[one.metric]) for one in bounds if one.metric in metrics)


def penalty(score: float, scale: float, excess: float) -> float:
    """What a search takes off a score for broken bounds, so that it is worth less than the system as it is.

    Args:
        score: the score; larger is better.
        scale: the size of the score of the system as it is.
        excess: by how much bounds are broken, see `excess_of`.
    """
    if not excess or not math.isfinite(score):
        return 0.0
    return max(abs(score), scale) * (1 + _STEEPNESS * excess)
