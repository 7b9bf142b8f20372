"""The result of `ascar variation`."""

from __future__ import annotations

import msgspec

from ascar.results.measurement import Count
from ascar.space import Configuration


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was left out.

    Attributes:
        measured_once: configurations.
        runs_failed: without a finite objective.
        mean_zero: configurations; nothing is relative to a mean of 0.
    """

    measured_once: Count
    runs_failed: Count
    mean_zero: Count


class SpreadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Relative standard deviations (eq. 6.2)."""

    median: float
    p90: float
    max: float


class VariationGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Configurations that are alike.

    Attributes:
        rsd: relative standard deviations (eq. 6.2).
        range: relative ranges (eq. 6.3).
        large_share: of configurations with an RSD above 5% and a range above 9%.
        range_coverage: share of all runs that the range of runs_min runs covers at least, 95% sure.
    """

    name: str
    configurations: Count
    runs_min: Count
    runs_max: Count
    mean_min: float
    mean_max: float
    rsd: SpreadSummary
    range: SpreadSummary
    large_share: float
    range_coverage: float


class Dependence(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter that variation goes with.

    Attributes:
        h: Kruskal and Wallis, of relative standard deviations by value.
        p_adjusted: over all parameters.
    """

    parameter: str
    h: float
    groups: Count
    p_value: float
    p_adjusted: float


class MostVarying(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration whose runs vary most.

    Attributes:
        configuration: a value for every parameter that is active; one that does not apply is
            absent.
        low: the least.
        high: the greatest.
        rsd_ci_low: 95%, exact for normal runs; null: there is none.
    """

    configuration: Configuration
    group: str
    runs: Count
    mean: float
    low: float
    high: float
    rsd: float
    rsd_ci_low: float | None
    rsd_ci_high: float | None
    range: float


class SettlingTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long runs take to settle.

    Attributes:
        run_s: median length.
        median_s: until the cumulative throughput stays within the tolerance.
        late_share: of runs that settle in their second half only.
    """

    group: str
    runs: Count
    run_s: float
    median_s: float
    p90_s: float
    late_share: float


class WindowVariation(msgspec.Struct, frozen=True, kw_only=True):
    """Variation between windows of a run.

    Attributes:
        idle_windows: left out: nothing was done in any run.
        range: relative ranges over the runs.
    """

    group: str
    window_s: float
    configurations: Count
    windows: Count
    idle_windows: Count
    range: SpreadSummary


class OperationCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """How variation goes with an operation."""

    group: str
    operation: str
    configurations: Count
    correlation: float
    ci_low: float | None
    ci_high: float | None


class CauseCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A possible cause of variation, tested.

    Attributes:
        p_adjusted: over all checks.
        effect: a share of the mean, a correlation, or a share of variance.
    """

    cause: str
    statistic: float
    statistic_name: str
    sample: str
    p_value: float
    p_adjusted: float
    effect: float
    held: bool


class Advice(msgspec.Struct, frozen=True):
    """A cause of variation, and the remedy.

    Attributes:
        cause: the name of the check.
        title: the cause in a few words.
        evidence: the numbers, with the test.
        action: what the user should do.
    """

    cause: str
    title: str
    evidence: str
    action: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that was drawn, or why it was not.

    Attributes:
        left_out: why it is not drawn.
    """

    name: str
    path: str | None
    left_out: str | None


class VariationResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/variation/1",
):
    """How much runs of one configuration differ, over what times, and what may be the cause.

    Attributes:
        source: the runs or the tables' files.
        objective: the column that was measured.
        configurations: with at least two runs.
        by: the parameter whose values are the groups; null: one group.
        goes_with: the surest first.
        most_varying: by relative range, the first 1000.
        tolerance: share of its end in which a run counts as settled.
        correlations: of an operation's latency range with the throughput's range, over
            configurations.
        level: probability of any check that holds where there is nothing.
        checks: causes that were looked for.
        figures: empty without --plots.
    """

    source: str
    objective: str
    configurations: Count
    runs: Count
    left_out: LeftOut
    by: str | None
    groups: tuple[VariationGroup, ...]
    goes_with: tuple[Dependence, ...]
    most_varying: tuple[MostVarying, ...]
    tolerance: float
    settling: tuple[SettlingTime, ...]
    windows: tuple[WindowVariation, ...]
    correlations: tuple[OperationCorrelation, ...]
    level: float
    checks: tuple[CauseCheck, ...]
    advice: tuple[Advice, ...]
    figures: tuple[Figure, ...]
    note: str
