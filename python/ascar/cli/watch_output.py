"""What `ascar watch` says: shifts as they are found, progress, the summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ascar.cli.watch_task import Watched
    from ascar.pilot import LevelSegment, Shift, ShiftDetector, WatchPlan

# Smaller times are on a clock of the measurement's own, larger ones are seconds since 1970.
_EPOCH_S = 1e8


def _when(at_s: float) -> str:
    """A time for people: a date where it is one, else how long after the clock's zero."""
    from datetime import UTC, datetime

    from ascar.render import duration

    if _EPOCH_S < at_s < 2.5e11:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return duration(at_s) if at_s >= 0 else f"-{duration(-at_s)}"


def print_shift(shift: Shift, name: str) -> None:
    """E.g. "mb_per_s down -3.1% ... since ...; found ..."."""
    from ascar.cli.output import people
    from ascar.render import number, percent

    low = "the beginning" if shift.began_low_s is None else _when(shift.began_low_s)
    form = {"step": "a step", "drift": "a drift", "either": "a step or a drift"}[shift.form]
    line = (
        f"{name} {shift.direction} {percent(shift.relative)}: {number(shift.before)} to "
        f"{number(shift.before + shift.size)} (moved by {number(shift.size_low)} to "
        f"{number(shift.size_high)}), "
        f"{form}; began {_when(shift.began_s)}, between {low} and {_when(shift.began_high_s)}; "
        f"found {_when(shift.found_s)}"
    )
    people().print(line, markup=False)


def emit_shift(shift: Shift, name: str) -> None:
    """A shift's document, one line."""
    from ascar.cli.output import emit
    from ascar.results.encode import extended
    from ascar.results.watch import WatchShift

    emit("watch-shift", extended(WatchShift, shift, name=name), line=True)


def progress(task: Watched) -> str:
    """How far a watch is, in a line."""
    from ascar.render import number

    level = task.watcher.level
    mean = "-" if level is None else number(level.mean)
    state = "learning the pattern" if task.watcher.learning else "watching"
    return f"{_when(task.end_s)}: {state}; {task.name} {mean}; {len(task.watcher.shifts)} shifts"


def _levels(watcher: ShiftDetector) -> list[LevelSegment]:
    return [*watcher.levels, *([] if watcher.level is None else [watcher.level])]


def _verdict(task: Watched) -> tuple[Literal["shifted", "steady", "too-short"], str]:
    """A word for programs and a line for people."""
    from ascar.render import duration

    watcher, plan = task.watcher, task.watcher.plan
    chance = min(1.0, task.seen * plan.batch_s / plan.false_alarm_s)
    if watcher.shifts:
        found = len(watcher.shifts)
        line = f"the mean has shifted, {found} time{'s' if found > 1 else ''}"
        return "shifted", f"{line}; without any shift the chance of an alarm by now is at most {chance:.2g}"
    if watcher.learning:
        return "too-short", f"{task.seen} batches are too few to judge: {_needed(plan)}"
    return "steady", f"no shift found in {duration(task.seen * plan.batch_s)}"


def _needed(plan: WatchPlan) -> str:
    if plan.period_s is None:
        return "watch longer, or with shorter batches"
    return "more than a period is learned first; watch longer, or with --period none"


def emit_summary(task: Watched) -> None:
    """The document of a watch that has ended, one line."""
    from ascar.cli.output import emit
    from ascar.results.watch import WatchResult

    watcher, plan = task.watcher, task.watcher.plan
    verdict, line = _verdict(task)
    result = WatchResult(
        files=tuple(str(path) for path in task.files),
        name=task.name,
        readings=sum(stream.taken for stream in task.streams.values()),
        nodes=len(task.streams),
        start_s=watcher.start_s,
        end_s=task.end_s,
        period_s=plan.period_s,
        batch_s=plan.batch_s,
        batches=task.seen,
        batches_left_out=task.batches.left_out,
        false_alarm_s=plan.false_alarm_s,
        false_alarm_probability_max=min(1.0, task.seen * plan.batch_s / plan.false_alarm_s),
        verdict=verdict,
        verdict_line=line,
        shifts=tuple(watcher.shifts),
        levels=tuple(_levels(watcher)),
    )
    emit("watch", result, line=True)


def print_summary(task: Watched) -> None:
    """What was read, levels and verdict, for people."""
    from rich.table import Table

    from ascar.cli.output import people
    from ascar.render import number

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    readings = sum(stream.taken for stream in task.streams.values())
    table.add_row("readings", f"{readings:,} in {task.seen:,} batches, {task.batches.left_out:,} left out")
    for heading, one in zip(
        ["levels", *[""] * len(task.watcher.levels)], _levels(task.watcher), strict=False
    ):
        table.add_row(heading, f"{number(one.mean)} from {_when(one.start_s)} to {_when(one.end_s)}")
    verdict, line = _verdict(task)
    table.add_row("verdict", f"{verdict}: {line}")
    people().print(table)
