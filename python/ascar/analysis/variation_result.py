"""The result of a study of variation."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ascar.analysis.variation_checks import LEVEL
from ascar.analysis.variation_summary import deviation_of
from ascar.results.variation import (
    CauseCheck,
    Dependence,
    Figure,
    LeftOut,
    MostVarying,
    OperationCorrelation,
    SettlingTime,
    SpreadSummary,
    VariationGroup,
    VariationResult,
    WindowVariation,
)
from ascar.space import Configuration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ascar.analysis.variation_study import Variation
    from ascar.space import Value

_LISTED_MAX = 1_000


def result_of(source: str, found: Variation, drawn: Mapping[str, Path | str]) -> VariationResult:
    """The result of a study of variation.

    Args:
        source: the name of the runs or tables.
        found: the study's findings.
        drawn: the file of each figure, or why it was not drawn.
    """
    runs = found.runs
    return VariationResult(
        source=source,
        objective=runs.objective,
        configurations=len(runs),
        runs=len(runs.scores),
        left_out=LeftOut(measured_once=runs.alone, runs_failed=runs.failed, mean_zero=runs.zero),
        by=found.by,
        groups=_groups(found),
        goes_with=tuple(
            Dependence(
                parameter=one.parameter,
                h=one.statistic,
                groups=one.groups,
                p_value=one.p_value,
                p_adjusted=one.p_adjusted,
            )
            for one in found.links
        ),
        most_varying=tuple(_varying(found, place) for place in map(int, found.spread.order[:_LISTED_MAX])),
        tolerance=found.asked.tolerance,
        settling=_settling(found),
        windows=_windows(found),
        correlations=tuple(
            OperationCorrelation(
                group=one.group,
                operation=one.operation,
                configurations=one.configurations,
                correlation=one.estimate.value,
                ci_low=one.estimate.low,
                ci_high=one.estimate.high,
            )
            for one in found.correlations
        ),
        level=LEVEL,
        checks=_checks(found),
        advice=tuple(found.advice),
        figures=tuple(_figure(name, path) for name, path in drawn.items()),
        note=runs.note,
    )


def _varying(found: Variation, place: int) -> MostVarying:
    runs, spread = found.runs, found.spread
    estimate = deviation_of(runs, place)
    return MostVarying(
        configuration=Configuration(cast("Mapping[str, Value]", runs.configuration(place))),
        group=found.names[int(found.of[place])],
        runs=int(runs.counts[place]),
        mean=float(spread.mean[place]),
        low=float(spread.low[place]),
        high=float(spread.high[place]),
        rsd=estimate.value,
        rsd_ci_low=estimate.low,
        rsd_ci_high=estimate.high,
        range=float(spread.range[place]),
    )


def _groups(found: Variation) -> tuple[VariationGroup, ...]:
    return tuple(
        VariationGroup(
            name=one.name,
            configurations=one.configurations,
            runs_min=one.runs[0],
            runs_max=one.runs[1],
            mean_min=one.mean[0],
            mean_max=one.mean[1],
            rsd=_spread(one.rsd),
            range=_spread(one.range),
            large_share=one.large,
            range_coverage=one.coverage,
        )
        for one in found.groups
    )


def _settling(found: Variation) -> tuple[SettlingTime, ...]:
    return tuple(
        SettlingTime(
            group=one.group,
            runs=one.runs,
            run_s=one.run_s,
            median_s=one.median_s,
            p90_s=one.most_s,
            late_share=one.late,
        )
        for one in found.settled
    )


def _windows(found: Variation) -> tuple[WindowVariation, ...]:
    return tuple(
        WindowVariation(
            group=one.group,
            window_s=one.window_s,
            configurations=one.configurations,
            windows=len(one.ranges),
            idle_windows=one.idle,
            range=_spread(one.quantiles),
        )
        for one in found.windows
    )


def _checks(found: Variation) -> tuple[CauseCheck, ...]:
    return tuple(
        CauseCheck(
            cause=one.cause,
            statistic=one.result.statistic,
            statistic_name=one.result.name,
            sample=one.result.sample,
            p_value=one.result.p_value,
            p_adjusted=one.p_adjusted,
            effect=one.effect,
            held=one.held,
        )
        for one in found.checks
    )


def _figure(name: str, path: Path | str) -> Figure:
    if isinstance(path, str):
        return Figure(name=name, path=None, left_out=path)
    return Figure(name=name, path=str(path), left_out=None)


def _spread(values: Sequence[float]) -> SpreadSummary:
    median, p90, most = values
    return SpreadSummary(median=median, p90=p90, max=most)
