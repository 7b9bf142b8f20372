"""What rules change besides the objective: figures, what each group gets, and whether bounds are kept."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from ascar.pilot.turns import PAIRS_MIN, Gain, mean_at_any_time, mean_of_runs
from ascar.results.rule_search import BoundStanding, FigureChange, Standing
from ascar.sharp.trials.bench import FRESH, RuleRun, RuleTrial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.rules import RuleSet
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.trials.judge import Judge

LEVEL = 0.01
"""Probability that an interval is wrong, over all looks; of those of groups, over all groups together."""
FIGURES = (
    "throughput_mb_per_s",
    "stdev",
    "latency_ms_p99",
    "service_time_ms_p99",
    "metadata_operations_per_s",
    "metadata_latency_ms_p99",
    "jain_index",
)
"""What is always told of rules, unless it is 0 in all runs: then it does not happen there."""

Runs = tuple[tuple[RuleRun, ...], tuple[RuleRun, ...]]
"""Runs without rules, and with them, pair by pair."""
Estimate = tuple[float | None, float | None, float | None]
"""A value with the limits of its interval, as far as there are any."""


def compared_runs(judge: Judge, rules: RuleSet, pairs: int) -> Runs:
    """The runs of the last comparison, which the journal has."""
    sides = [[RuleTrial(one, FRESH + pair) for pair in range(pairs)] for one in (None, rules)]
    without, under = (tuple(judge.fetch(trials)) for trials in sides)
    return without, under


def figure_changes(runs: Runs) -> tuple[FigureChange, ...]:
    """What became of `FIGURES`."""
    without, under = runs
    if not without:
        return ()
    return tuple(
        _change(name, [one.metrics[name] for one in without], [one.metrics[name] for one in under], LEVEL)
        for name in FIGURES
        if any(one.metrics.get(name) for one in (*without, *under))
    )


def group_changes(names: Sequence[str], runs: Runs) -> tuple[FigureChange, ...]:
    """What became of each group's share of the system; its figure is MB/s, or operations a second."""
    without, under = runs
    return tuple(
        _change(
            name, [one.groups[at] for one in without], [one.groups[at] for one in under], LEVEL / len(names)
        )
        for at, name in enumerate(names)
        if without and len(without[0].groups) == len(names)
    )


def standings(
    bounds: Sequence[MetricBound], runs: Runs, groups: Sequence[FigureChange]
) -> tuple[BoundStanding, ...]:
    """How the rules stand to each bound; a share is that of the group that is worst off."""
    return tuple(_standing(one, runs, groups) for one in bounds)


def _standing(bound: MetricBound, runs: Runs, groups: Sequence[FigureChange]) -> BoundStanding:
    told = [one.metrics[bound.metric] for one in runs[1] if bound.metric in one.metrics]
    of_groups = bound.metric == "group_share_min" or (bound.metric == "client_share_min" and not told)
    value, low, high = _least(groups) if of_groups else _mean(told)
    standing: Standing = "open"
    if low is not None and high is not None:
        worst, best = (low, high) if bound.is_floor else (high, low)
        standing = "broken" if bound.excess(best) else "open" if bound.excess(worst) else "kept"
    return BoundStanding(bound=str(bound), value=value, low=low, high=high, standing=standing)


def _least(groups: Sequence[FigureChange]) -> Estimate:
    """The share of the group that is worst off, and limits that hold for all groups together."""
    shares = [one for one in groups if one.change is not None]
    if not shares:
        return None, None, None
    changes, lows, highs = zip(
        *((one.change, one.change_low, one.change_high) for one in shares), strict=True
    )
    if None in lows or None in highs:
        return 1 + min(changes), None, None
    return 1 + min(changes), 1 + min(lows), 1 + min(highs)


def _mean(values: Sequence[float]) -> Estimate:
    if not values:
        return None, None, None
    low, high = mean_at_any_time(values, LEVEL) or (None, None)
    return mean_of_runs(values), low, high


def _change(name: str, without: Sequence[float], under: Sequence[float], level: float) -> FigureChange:
    """The relative change of a figure; a figure that was zero has none."""
    change: Estimate = (None, None, None)
    mean = fmean(without)
    if len(without) >= PAIRS_MIN:
        gain = Gain.of(without, under, "maximize", level)
        if gain.gain_relative is not None:
            change = (gain.gain_relative, gain.gain_low, gain.gain_high)
        elif mean > 0:
            limits = (gain.difference_low, gain.difference_high)
            low, high = (None if one is None else one / mean for one in limits)
            change = (gain.difference / mean, low, high)
    return FigureChange(
        name=name,
        default_mean=mean,
        rules_mean=fmean(under),
        change=change[0],
        change_low=change[1],
        change_high=change[2],
        pairs=len(without),
    )
