"""`ascar watch`: tell when the mean of readings that come for days has shifted."""

from __future__ import annotations

import sys
import time as clock
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascar.cli.options import Json, Quiet, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.pilot import Batch, Batches, Level, Shift, Watcher, WatchPlan
    from ascar.pilot.sources.stream import Stream

__all__ = ["EXAMPLES", "watch"]

EXAMPLES = examples(
    "ascar watch month.csv --column mb_per_s --time seconds",
    "monitor | ascar watch - --column iops --every '10 s' --period none",
    "ascar watch --follow node1.jsonl node2.jsonl --time at --column mb_per_s --combine sum",
)

_POLL_S = 1.0
_LINE_EVERY_S = 5.0
# Smaller times are on a clock of the measurement's own, larger ones are seconds since 1970.
_EPOCH_S = 1e8


def watch(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...|-",
            help="CSV or TSV with a header, or JSON lines, with one reading a line; - is the standard input. "
            "Several: one a node, brought together with --combine.",
        ),
    ],
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column or key with the readings.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column or key with the time: seconds, or ISO 8601."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Where there is no such column: the time between readings."),
    ] = None,
    combine: Annotated[
        str | None,
        typer.Option(
            metavar="HOW", help="Several nodes' readings as one: sum (throughput) or mean (latency)."
        ),
    ] = None,
    period: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="The readings' pattern repeats after this time; none: no pattern."
        ),
    ] = "1 day",
    batch: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Readings are averaged over it; it must divide the period."),
    ] = "15 min",
    false_alarm: Annotated[
        str,
        typer.Option(metavar="DURATION", help="While nothing shifts, mean time to an alarm, at least."),
    ] = "365 days",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on at the end of the files, until interrupted.")
    ] = False,
    limit: Annotated[
        str | None, typer.Option(metavar="DURATION", help="With --follow: go on no longer than this.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Watch readings for days, and say when their mean has shifted: since when, how much, which way.

    Each batch of readings is compared with those at the same time of the days before, so a daily pattern is
    no shift; the first period is only learned. Found or not, the exit status is 0, and the verdict says
    which. With --json every shift is a line as soon as it is found, and the last line is the summary.
    """
    from ascar.errors import InputError
    from ascar.pilot import Batches, Watcher, WatchPlan
    from ascar.pilot.sources.stream import Columns
    from ascar.study import duration

    columns = Columns(column, time, None if every is None else duration("--every", every))
    plan = WatchPlan(
        None if period == "none" else duration("--period", period),
        duration("--batch", batch),
        duration("--false-alarm", false_alarm),
    )
    if columns.every_s is not None and columns.every_s > plan.batch_s:
        raise InputError(f"--every = {every!r}: must be at most a batch, --batch = {batch!r}")
    if limit is not None and not follow:
        raise InputError(f"--limit = {limit!r}: is for --follow")
    limit_s = None if limit is None else duration("--limit", limit)
    names = _names(files, combine)
    with ExitStack() as stack:
        streams = dict(zip(names, (_open(path, columns) for path in files), strict=True))
        for stream in streams.values():
            stack.callback(stream.close)
        batches = Batches(plan.batch_s, tuple(names), "mean" if combine == "mean" else "sum")
        task = _Task(files, streams, batches, Watcher(plan), quiet, json)
        try:
            task.run(None if not follow else limit_s or float("inf"))
        except KeyboardInterrupt:
            if not follow:
                raise
        task.close()
    return 0


def _names(files: list[Path], how: str | None) -> list[str]:
    from ascar.errors import InputError

    names = [str(path) for path in files]
    if len(names) == 1:
        return [""]
    if how not in ("sum", "mean"):
        raise InputError(
            f"{len(files)} files and --combine = {how!r}: must be 'sum' or 'mean'; or give one file"
        )
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{twice[0]!r} is given twice: give one file a node")
    if "-" in names:
        raise InputError("'-' must be the only source: give the nodes' readings in files")
    return names


def _open(path: Path, columns: Any) -> Stream:
    from ascar.pilot.sources.stream import Stream

    if str(path) == "-":
        return Stream(Path("standard input"), sys.stdin.buffer, columns, columns.value)
    return Stream.open(path, columns)


@dataclass(slots=True)
class _Task:
    """One watch: sources, what they come to, where it is told."""

    files: list[Path]
    streams: dict[str, Stream]
    batches: Batches
    watcher: Watcher
    quiet: bool
    json: bool
    seen: int = 0
    end_s: float = 0.0
    _said_s: float = field(default_factory=clock.monotonic)

    def run(self, follow_s: float | None) -> None:
        """Take in what there is, and with `follow_s` what comes in that time."""
        until_s = clock.monotonic() + (follow_s or 0.0)
        left = {name: stream.readings(last=follow_s is None) for name, stream in self.streams.items()}
        last_s = dict.fromkeys(left, float("-inf"))
        while True:
            while left:
                # The node that is furthest behind goes on, so that few batches are under way at once.
                name = min(left, key=lambda node: last_s[node])
                last_s[name] = self._take(name, left[name])
                if last_s[name] == float("inf"):
                    del left[name]
            if follow_s is None or clock.monotonic() >= until_s:
                return
            clock.sleep(min(_POLL_S, max(until_s - clock.monotonic(), 0.0)))
            left = {name: stream.readings(last=False) for name, stream in self.streams.items()}
            last_s = dict.fromkeys(left, float("-inf"))

    def _take(self, name: str, readings: Iterator[tuple[float, float]]) -> float:
        """Take a batch's worth of a node's readings; the last one's time, infinite if there are no more."""
        first_s: float | None = None
        for at_s, value in readings:
            self.end_s = max(self.end_s, at_s)
            for batch in self.batches.add(at_s, value, name):
                self._watch(batch)
            first_s = at_s if first_s is None else first_s
            if at_s - first_s >= self.batches.batch_s:
                return at_s
        return float("inf")

    def close(self) -> None:
        """What is left, and the summary.

        Raises:
            InputError: there was not one reading.
        """
        from ascar.errors import InputError

        for batch in self.batches.close():
            self._watch(batch)
        empty = [stream for stream in self.streams.values() if not stream.taken]
        if empty:
            raise InputError(f"{str(empty[0].path)!r}: holds no readings; check --column, or wait for some")
        _emit_summary(self) if self.json else _print_summary(self)

    @property
    def name(self) -> str:
        """Of the readings."""
        return next(iter(self.streams.values())).name or "value"

    def _watch(self, batch: Batch) -> None:
        from ascar.cli.output import emit, people, say

        self.watcher.start_s = self.batches.start_s or 0.0
        self.seen += 1
        shift = self.watcher.add(batch)
        if shift is not None and self.json:
            emit("watch-shift", {"name": self.name, **_document(shift)}, line=True)
        elif shift is not None:
            people().print(_line(shift, self.name), markup=False)
        if not self.quiet and clock.monotonic() - self._said_s >= _LINE_EVERY_S:
            self._said_s = clock.monotonic()
            say(_progress(self))


def _when(at_s: float) -> str:
    """A time for people: a date where it is one, else how long after the clock's zero."""
    from datetime import UTC, datetime

    from ascar.cli.text import duration

    if _EPOCH_S < at_s < 2.5e11:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return duration(at_s) if at_s >= 0 else f"-{duration(-at_s)}"


def _line(shift: Shift, name: str) -> str:
    """E.g. "mb_per_s down -3.1% ... since ...; found ..."."""
    from ascar.cli.text import number, percent

    low = "the beginning" if shift.began_low_s is None else _when(shift.began_low_s)
    form = {"step": "a step", "drift": "a drift", "either": "a step or a drift"}[shift.form]
    return (
        f"{name} {shift.direction} {percent(shift.relative)}: {number(shift.before)} to "
        f"{number(shift.before + shift.size)} (moved by {number(shift.size_low)} to "
        f"{number(shift.size_high)}), "
        f"{form}; began {_when(shift.began_s)}, between {low} and {_when(shift.began_high_s)}; "
        f"found {_when(shift.found_s)}"
    )


def _progress(task: _Task) -> str:
    from ascar.cli.text import number

    level = task.watcher.level
    mean = "-" if level is None else number(level.mean)
    state = "learning the pattern" if task.watcher.learning else "watching"
    return f"{_when(task.end_s)}: {state}; {task.name} {mean}; {len(task.watcher.shifts)} shifts"


def _document(shift: Shift) -> dict[str, Any]:
    """A shift, JSON-ready."""
    return {
        "found_s": shift.found_s,
        "began_s": shift.began_s,
        "began_low_s": shift.began_low_s,
        "began_high_s": shift.began_high_s,
        "form": shift.form,
        "direction": shift.direction,
        "before": shift.before,
        "size": shift.size,
        "size_low": shift.size_low,
        "size_high": shift.size_high,
        "relative": shift.relative,
    }


def _levels(watcher: Watcher) -> list[Level]:
    return [*watcher.levels, *([] if watcher.level is None else [watcher.level])]


def _verdict(task: _Task) -> tuple[str, str]:
    """A word for programs and a line for people."""
    from ascar.cli.text import duration

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


def _emit_summary(task: _Task) -> None:
    from ascar.cli.output import emit

    watcher, plan = task.watcher, task.watcher.plan
    verdict, line = _verdict(task)
    emit(
        "watch",
        {
            "files": [str(path) for path in task.files],
            "name": task.name,
            "readings": sum(stream.taken for stream in task.streams.values()),
            "nodes": len(task.streams),
            "start_s": watcher.start_s,
            "end_s": task.end_s,
            "period_s": plan.period_s,
            "batch_s": plan.batch_s,
            "batches": task.seen,
            "batches_left_out": task.batches.left_out,
            "false_alarm_s": plan.false_alarm_s,
            "false_alarm_probability_max": min(1.0, task.seen * plan.batch_s / plan.false_alarm_s),
            "verdict": verdict,
            "verdict_line": line,
            "shifts": [_document(shift) for shift in watcher.shifts],
            "levels": [
                {"start_s": one.start_s, "end_s": one.end_s, "batches": one.batches, "mean": one.mean}
                for one in _levels(watcher)
            ],
        },
        line=True,
    )


def _print_summary(task: _Task) -> None:
    from rich.table import Table

    from ascar.cli.output import people
    from ascar.cli.text import number

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
