"""All that a study with repetitions says of its variation, and the figures of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.variation_advice import advice_of
from ascar.analysis.variation_checks import checks_of
from ascar.analysis.variation_latency import correlated, percentiles
from ascar.analysis.variation_summary import grouped, groups_of, linked, spread_of
from ascar.analysis.variation_time import settling, windowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.analysis.drawing import Drawing
    from ascar.analysis.variation_checks import Check
    from ascar.analysis.variation_latency import Correlated, Percentiles
    from ascar.analysis.variation_runs import Runs
    from ascar.analysis.variation_summary import Group, ParameterEffect, Spread
    from ascar.analysis.variation_time import RunLength, Windowed
    from ascar.results.variation import Advice

FIGURES: Mapping[str, str] = {
    "range-mean": "relative range against mean (Fig. 6.2)",
    "across": "the same configurations under several values (Fig. 6.3)",
    "boxes": "the configurations that vary most (Fig. 6.4)",
    "cumulative": "cumulative throughput over time (Fig. 6.1)",
    "bands": "throughput of windows over time (Fig. 6.7)",
    "windows": "ranges by length of window (Fig. 6.8)",
    "instantaneous": "readings over time (Fig. 6.9)",
    "latencies": "latency distributions (Fig. 6.10)",
    "correlations": "latencies and throughput (Fig. 6.11)",
}
"""What can be drawn, by name."""

SOURCE = "source"
"""The parameter that tells several studies or tables apart."""

_LINK_LEVEL = 0.05
_NO_READINGS = "no readings over time were recorded"


@dataclass(frozen=True, slots=True)
class VariationRequest:
    """What is to be found out.

    Attributes:
        by: the parameter to group by; None: that with which variation goes most surely, if there is one.
        windows_s: lengths of windows; empty: about five, from a reading to a run.
        tolerance: share of its end within which the cumulative throughput counts as settled.
        seed: the seed of the permutation tests.
    """

    by: str | None = None
    windows_s: tuple[float, ...] = ()
    tolerance: float = 0.05
    seed: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """What was found.

    Attributes:
        runs: the runs that were analysed.
        asked: the request.
        by: the parameter of the groups; None: one group.
        names: the groups' names.
        of: intp (k,), the group of each configuration.
        spread: the variation of each configuration's runs.
        groups: variation at a glance.
        links: the parameters that go with the variation.
        settled: the run length that each group needs.
        windows: ranges by length of window.
        latencies: percentiles by operation.
        correlations: the correlations of latency variation with throughput variation.
        checks: causes that were looked for.
        advice: the advice on the causes that were found.
    """

    runs: Runs
    asked: VariationRequest
    by: str | None
    names: tuple[str, ...]
    of: NDArray[np.intp]
    spread: Spread
    groups: Sequence[Group]
    links: Sequence[ParameterEffect]
    settled: Sequence[RunLength]
    windows: Sequence[Windowed]
    latencies: Sequence[Percentiles]
    correlations: Sequence[Correlated]
    checks: Sequence[Check]
    advice: Sequence[Advice]


def examined(runs: Runs, asked: VariationRequest, step: Callable[[str], None] = lambda _: None) -> Variation:
    """Everything but the figures.

    Args:
        runs: see `ascar.analysis.variation_runs`.
        asked: the request.
        step: is told what comes next.

    Raises:
        InputError: the groups or windows that were asked for cannot be.
    """
    step("comparing runs")
    spread = spread_of(runs)
    links = linked(runs, spread)
    by = asked.by
    if by is None and SOURCE in runs.varying:
        by = SOURCE
    if by is None and links and links[0].p_adjusted <= _LINK_LEVEL:
        by = links[0].parameter
    names, of = grouped(runs, by)
    step("reading over time")
    settled = settling(runs, names, of, asked.tolerance)
    windows = windowed(runs, names, of, asked.windows_s)
    step("comparing latencies")
    latencies = percentiles(runs.columns)
    correlations = correlated(latencies, runs, spread, (names, of))
    step("looking for causes")
    checks = checks_of(runs, spread, asked.seed)
    return Variation(
        runs, asked, by, names, of, spread, groups_of(names, of, runs, spread), links, settled, windows,
        latencies, correlations, checks, advice_of(checks, settled),
    )  # fmt: skip


def figures_of(found: Variation) -> dict[str, Drawing | str]:
    """Every figure by name, or why it is left out."""
    from ascar.analysis import variation_figures as between
    from ascar.analysis import variation_time_figures as within

    runs, spread, groups = found.runs, found.spread, (found.names, found.of)
    chosen = _examples(found)
    window_s = _band(found)
    lacking = "no operation's percentiles were recorded, e.g. in columns read_latency_ms_p50 and _p99"
    across: Drawing | str = "there is one group; name a parameter with --by"
    if found.by is not None:
        across = between.across_figure(runs, spread, groups, found.by)
    most = next((int(place) for place in spread.order if _known(found, int(place))), None)
    return {
        "range-mean": between.scatter_figure(runs, spread, groups, found.by),
        "across": across,
        "boxes": between.boxes_figure(runs, spread),
        "cumulative": within.cumulative_figure(runs, chosen, found.asked.tolerance, found.settled)
        or _NO_READINGS,
        "bands": (None if window_s is None else within.bands_figure(runs, chosen, window_s)) or _NO_READINGS,
        "windows": within.ranges_figure(found.windows) or _NO_READINGS,
        "instantaneous": within.instantaneous_figure(runs, chosen) or _NO_READINGS,
        "latencies": (None if most is None else within.latency_figure(found.latencies, runs, most))
        or lacking,
        "correlations": within.correlation_figure(found.correlations)
        or (
            "no group has 8 configurations whose latencies vary"
            if any(one.operation != "all" for one in found.latencies)
            else lacking
        ),
    }


def _examples(found: Variation) -> list[tuple[str, int]]:
    """Of each group the configuration that varies most, of those with readings."""
    runs = found.runs
    chosen: dict[int, int] = {}
    for place in found.spread.order if runs.series else ():
        group = int(found.of[place])
        if group not in chosen and sum(one is not None for one in runs.series[runs.of(int(place))]) > 1:
            chosen[group] = int(place)
    return [(found.names[group], chosen[group]) for group in sorted(chosen)]


def _band(found: Variation) -> float | None:
    """The first window asked for, or that nearest to a tenth of a run."""
    if found.asked.windows_s or not found.windows or not found.settled:
        return found.asked.windows_s[0] if found.asked.windows_s else None
    tenth_s = min(one.run_s for one in found.settled) / 10
    return min((one.window_s for one in found.windows), key=lambda length: abs(np.log(length / tenth_s)))


def _known(found: Variation, place: int) -> bool:
    rows = found.runs.of(place)
    return any(np.isfinite(one.values[rows]).all(1).any() for one in found.latencies)
