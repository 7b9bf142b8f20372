"""The result of `ascar importance`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count


class RankedParameter(msgspec.Struct, frozen=True):
    """A parameter and its importance.

    Attributes:
        parameter: the name of the parameter.
        importance: the reduction in variance, in the objective's unit squared: PI, or CPI given
            `conditional_on`.
        ci_low: the lower end of the 95% interval; null without resampling. The interval allows for the bias
            of few rows, which make every parameter look important: it may lie below `importance`.
        ci_high: the upper end of the interval.
        conditional_on: the parameters that were chosen before this one.
        importance_alone: PI, given no other parameter; if it is much less than `importance`, the parameter
            interacts with those.
        first_share: the share of the resamples in which this parameter is first among the remaining ones;
            null without resampling.
        selected: whether the parameter was chosen; the others are ranked by their importance at the end.
        same_as: parameters that split the rows in the same way: the data cannot distinguish them.
    """

    parameter: str
    importance: float
    ci_low: float | None
    ci_high: float | None
    conditional_on: tuple[str, ...]
    importance_alone: float
    first_share: float | None = None
    selected: bool = False
    same_as: tuple[str, ...] = ()


class ImportanceResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/importance/1",
):
    """Which parameters matter for an objective, by the variance that each explains.

    Attributes:
        source: the table's file, or the run.
        objective: the column that was measured.
        rows: the number of rows that were used.
        rows_failed: the number of rows without a finite objective, which were left out.
        mean: the mean of the rows.
        variance: the variance of the rows, in the objective's unit squared.
        rsd: relative standard deviation of the rows; null: their mean is 0.
        rsd_left: the greatest of rows in which the selected parameters are equal.
        ranking: the most important first.
        stop_reason: the reason why no further parameter was chosen.
        rank_stability: share of the resamples in which the selected are selected in this order.
        r_squared: the R squared of each parameter alone, by least squares on its values.
        best_values: the best values of the selected parameters together; empty if the direction is not known.
        plots: the files of the plots.
    """

    source: str
    objective: str
    rows: Count
    rows_failed: Count
    mean: float
    variance: float
    rsd: float | None
    rsd_left: float | None
    ranking: tuple[RankedParameter, ...]
    stop_reason: Literal["rsd", "no-evidence", "exhausted", "count", "too-fine"]
    rank_stability: float | None
    r_squared: dict[str, float]
    best_values: dict[str, str]
    plots: tuple[str, ...]
