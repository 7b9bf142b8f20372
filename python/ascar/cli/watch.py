"""`ascar watch`: tell when the mean of readings that come for days has shifted."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Batch,
    BudgetOrNone,
    Column,
    Combine,
    Every,
    FalseAlarm,
    Follow,
    Json,
    Period,
    Quiet,
    Time,
)

if TYPE_CHECKING:
    from ascar.pilot.sources.stream import Stream

EXAMPLES = examples(
    "ascar watch month.csv --column mb_per_s --time seconds",
    "monitor | ascar watch - --column iops --every '10 s' --period none",
    "ascar watch --follow node1.jsonl node2.jsonl --time at --column mb_per_s --combine sum",
)


def watch(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...|-",
            help="CSV or TSV with a header, or JSON lines, with one reading a line; - is the standard input. "
            "Give several for several nodes, combined by --combine.",
        ),
    ],
    column: Column = None,
    time: Time = None,
    every: Every = None,
    combine: Combine = None,
    period: Period = "1 day",
    batch: Batch = "15 min",
    false_alarm: FalseAlarm = "365 days",
    follow: Follow = False,
    limit: BudgetOrNone = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Watch readings for days, and say when their mean has shifted: since when, how much, which way.

    Each batch of readings is compared with those at the same time of the days before, so a daily pattern is
    no shift; the first period is only learned. Found or not, the exit status is 0, and the verdict says
    which. With --json every shift is a line as soon as it is found, and the last line is the summary.
    """
    from ascar.cli.watch_task import Watched
    from ascar.errors import InputError
    from ascar.pilot import Batches, ShiftDetector, WatchPlan
    from ascar.pilot.sources.stream import StreamColumns
    from ascar.study import duration

    columns = StreamColumns(column, time, None if every is None else duration("--every", every))
    plan = WatchPlan(
        None if period == "none" else duration("--period", period),
        duration("--batch", batch),
        duration("--false-alarm", false_alarm),
    )
    if columns.every_s is not None and columns.every_s > plan.batch_s:
        raise InputError(f"--every = {every!r}: must be at most a batch, --batch = {batch!r}")
    if limit is not None and not follow:
        raise InputError(f"--budget = {limit!r}: applies only to --follow")
    limit_s = None if limit is None else duration("--budget", limit)
    names = _names(files, combine)
    with ExitStack() as stack:
        streams = dict(zip(names, (_open(path, columns) for path in files), strict=True))
        for stream in streams.values():
            stack.callback(stream.close)
        batches = Batches(plan.batch_s, tuple(names), "mean" if combine == "mean" else "sum")
        task = Watched(files, streams, batches, ShiftDetector(plan), quiet, json)
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
