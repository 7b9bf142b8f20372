"""The result of `ascar variation`."""

from __future__ import annotations

import msgspec

from ascar.results.measurement import Count
from ascar.space import Configuration


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """What was left out.

    Attributes:
        measured_once: the number of configurations that were measured once.
        runs_failed: the number of runs without a finite objective.
        mean_zero: the number of configurations with a mean of 0, to which nothing is relative.
    """

    measured_once: Count
    runs_failed: Count
    mean_zero: Count


class SpreadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Relative standard deviations (eq. 6.2).

    Attributes:
        median: the median over configurations.
        p90: the 90th percentile.
        max: the largest value.
    """

    median: float
    p90: float
    max: float


class VariationGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Configurations that are alike.

    Attributes:
        name: the name of the group.
        configurations: the number of configurations.
        runs_min: the smallest number of runs of a configuration.
        runs_max: the largest number of runs of a configuration.
        mean_min: the smallest mean of a configuration.
        mean_max: the largest mean of a configuration.
        rsd: the relative standard deviations (eq. 6.2).
        range: the relative ranges (eq. 6.3).
        large_share: the share of configurations with an RSD above 5% and a range above 9%.
        range_coverage: the share of all runs that the range of runs_min runs covers at least, with 95%
            confidence.
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
        parameter: the name of the parameter.
        h: the statistic of Kruskal and Wallis, over the relative standard deviations by value.
        groups: the number of values.
        p_value: the p-value of the test.
        p_adjusted: the p-value, corrected for all parameters.
    """

    parameter: str
    h: float
    groups: Count
    p_value: float
    p_adjusted: float


class MostVarying(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration whose runs vary most.

    Attributes:
        configuration: a value for every active parameter.
        group: the group of the configuration.
        runs: the number of runs.
        mean: the mean over the runs.
        low: the lowest run.
        high: the highest run.
        rsd: the relative standard deviation.
        rsd_ci_low: the lower end of its 95% interval, exact for normal runs; null if there is none.
        rsd_ci_high: the upper end of that interval.
        range: the relative range.
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
        group: the name of the group.
        runs: the number of runs.
        run_s: the median length of a run.
        median_s: the median time until the cumulative throughput stays within the tolerance.
        p90_s: the 90th percentile of that time.
        late_share: the share of runs that settle only in their second half.
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
        group: the name of the group.
        window_s: the length of a window.
        configurations: the number of configurations.
        windows: the number of windows.
        idle_windows: the number of windows without work in any run, which do not count.
        range: the relative ranges over the runs.
    """

    group: str
    window_s: float
    configurations: Count
    windows: Count
    idle_windows: Count
    range: SpreadSummary


class OperationCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """How variation goes with an operation.

    Attributes:
        group: the name of the group.
        operation: the name of the operation.
        configurations: the number of configurations.
        correlation: the correlation of the latency's range with the throughput's range.
        ci_low: the lower end of its interval; null if there is none.
        ci_high: the upper end of that interval.
    """

    group: str
    operation: str
    configurations: Count
    correlation: float
    ci_low: float | None
    ci_high: float | None


class CauseCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A possible cause of variation, tested.

    Attributes:
        cause: the name of the cause.
        statistic: the value of the test's statistic.
        statistic_name: the name of the statistic.
        sample: the sample of the test, in words.
        p_value: the p-value of the test.
        p_adjusted: the p-value, corrected for all checks.
        effect: the size of the effect: a share of the mean, a correlation, or a share of variance.
        held: whether the check held.
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
        name: the name of the figure.
        path: the file of the figure; null if it was not drawn.
        left_out: the reason why the figure was not drawn; null if it was.
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
        source: the runs or the files of the tables.
        objective: the column of the objective.
        configurations: the number of configurations with at least two runs.
        runs: the number of runs.
        left_out: the configurations and runs that were left out.
        by: the parameter whose values are the groups; null for one group.
        groups: the groups.
        goes_with: the parameters that variation depends on, the most significant first.
        most_varying: the configurations with the largest relative range, at most 1000.
        tolerance: the share of its end within which a run counts as settled.
        settling: the times that runs take to settle.
        windows: the variation between windows.
        correlations: the correlations of an operation's latency range with the throughput's range, over
            configurations.
        level: the probability that any check holds without a cause.
        checks: the checks of possible causes.
        advice: the causes that were found, with remedies.
        figures: the figures; empty without --plots.
        note: a remark about the table; empty without one.
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
