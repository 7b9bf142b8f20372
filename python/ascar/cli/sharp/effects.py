"""What rules change besides the objective, as tables and lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.render import estimate, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from ascar.results.rule_search import BoundStanding, ControllerEffects, FigureChange

_NAMES = {
    "throughput_mb_per_s": "throughput, MB/s",
    "stdev": "deviation, MB/s",
    "latency_ms_p99": "p99 latency, ms",
    "service_time_ms_p99": "p99 service time, ms",
    "metadata_operations_per_s": "metadata operations/s",
    "metadata_latency_ms_p99": "p99 latency of metadata, ms",
    "jain_index": "Jain's index",
}
_PRICES = ("latency_ms_p99", "jain_index")
_GROUPS_SHOWN = 16


def effects_table(figures: Sequence[FigureChange], groups: Sequence[FigureChange]) -> Table:
    """A row a figure, and a row a group, those that lose most first."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "without rules", "with rules", "change (99% interval)"):
        table.add_column(heading, justify="left" if not heading or "change" in heading else "right")
    losers = sorted(groups, key=lambda one: one.change or 0.0)[:_GROUPS_SHOWN] if len(groups) > 1 else []
    for one in (*figures, *losers):
        change = "" if one.change is None else estimate(one.change, one.change_low, one.change_high)
        table.add_row(
            _NAMES.get(one.name, one.name), number(one.default_mean), number(one.rules_mean), change
        )
    return table


def controllers_table(effects: Sequence[ControllerEffects]) -> Table:
    """A row a controller: what its clients pay for what it gains, against the scenario as it is."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("against as it is", *(_NAMES[name] for name in _PRICES), "the group that loses most"):
        table.add_column(heading.partition(",")[0])
    for effect in effects:
        figures = {one.name: one for one in effect.figures}
        shown = [figures[name] for name in _PRICES]
        shown += sorted(effect.groups, key=lambda one: one.change or 0.0)[:1]
        table.add_row(effect.name, *(estimate(one.change, one.change_low, one.change_high) for one in shown))
    return table


def standing_lines(bounds: Sequence[BoundStanding]) -> Iterator[str]:
    """A line for each bound that the rules are not shown to keep."""
    for one in bounds:
        limits = "" if one.low is None else f" ({number(one.low)} to {number(one.high)})"
        if one.standing == "broken":
            what = f"broken: {one.bound}; it is {number(one.value)}{limits}"
            yield f"{what}: leave these rules out, or search again"
        elif one.standing == "open":
            known = "it was not measured" if one.value is None else f"it is {number(one.value)}{limits}"
            yield f"not shown to be kept: {one.bound}; {known}"
