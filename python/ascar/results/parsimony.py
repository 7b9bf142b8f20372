"""How a recommendation was reduced to the parameters that earn their place."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import Any, Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.verdict import Verdict

ReductionEnd = Literal["within-margin", "worse", "unlikely", "runs-max", "time", "failures"]


class ReductionStep(msgspec.Struct, frozen=True):
    """A comparison of the best configuration with one that changes fewer parameters.

    Attributes:
        left_out: the parameters that went back to the default, beside those of the steps accepted before.
        configuration: the configuration that was tried.
        accepted: whether it is proven to be less than the margin worse than the best.
        gain_relative: its gain over the best configuration, below zero if it is worse; null if some scores
            are not above zero, or before two pairs could be compared.
        gain_low: lower end of the gain's interval, at all looks together; null without one. The scatter of
            the pairs of earlier comparisons counts too.
        gain_high: upper end, or null.
        difference: the difference from the best in the objective's unit, below zero if it is worse.
        difference_low: lower end of its interval where there is no relative gain, else null.
        difference_high: upper end, or null.
        confidence: the confidence of the intervals: the k-th step errs with probability p / (k (k + 1)), so
            that all steps together keep the study's level p.
        pairs: the number of pairs of runs, failed ones included.
        ended: why no more pairs were made: "within-margin": accepted; "worse": it is shown to be more than
            half of the margin worse; "unlikely": what is left of the budget would probably not suffice to
            accept it; "runs-max"; "time": no further pair fits into the budget; "failures": its runs fail too
            often.
    """

    left_out: tuple[str, ...]
    configuration: Mapping[str, Any]
    accepted: bool
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    confidence: float = 0.0
    pairs: Count = 0
    ended: ReductionEnd = "time"


class ParameterWorth(msgspec.Struct, frozen=True):
    """What a parameter that is kept brings: the loss where it alone was left out.

    Attributes:
        name: the parameter's name.
        loss_relative: the share of the best configuration's score that leaving it out costs, above zero if it
            costs; null where that was not measured.
        loss_low: lower end of its interval; null without one.
        loss_high: upper end, or null.
        loss: the same in the objective's unit.
    """

    name: str
    loss_relative: float | None = None
    loss_low: float | None = None
    loss_high: float | None = None
    loss: float | None = None


class Parsimony(msgspec.Struct, frozen=True):
    """How the best configuration was reduced to the parameters that earn their place.

    Attributes:
        best: the configuration that was reduced, and that every other was compared with.
        kept: the parameters that still differ from their defaults.
        left_out: the parameters that went back to the default.
        margin: the relative loss, against the best itself, that all of it together may cost.
        steps: the comparisons, in order.
        worth: what each parameter that is kept brings.
        verdict: the verdict of the reduced configuration against the default; null if they were not compared.
        best_verdict: the verdict of the best configuration against the default.
        recommended: whether the reduced configuration takes the best one's place: it is proven to beat the
            default, in turns with it, or as the best gains at least more than it loses at most.
        gain_kept: the share of the best configuration's gain over the default that the reduced one keeps;
            null if nothing was left out, or before it was measured.
        gain_kept_low: lower end of its interval; null without one.
        gain_kept_high: upper end, or null.
        gain_kept_confidence: the confidence of this interval; 0 without one.
        note: how it ended, one sentence.
        pairs: the number of pairs of runs, those with the default included.
        seconds: the time that these took.
    """

    best: Mapping[str, Any]
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    margin: float
    steps: tuple[ReductionStep, ...]
    worth: tuple[ParameterWorth, ...]
    verdict: Verdict | None
    best_verdict: Verdict
    recommended: bool
    note: str
    gain_kept: float | None = None
    gain_kept_low: float | None = None
    gain_kept_high: float | None = None
    gain_kept_confidence: float = 0.0
    pairs: Count = 0
    seconds: float = 0.0
