"""`ascar measure`: run a command until its result can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    ConfidenceOrNone,
    Export,
    IntervalWidth,
    Json,
    Kinds,
    MetricList,
    Plot,
    Preset,
    Quiet,
    Readings,
    ReportOnly,
    RoundLimit,
    RoundsMax,
    ShortRound,
    WorkAmount,
)
from ascar.cli.outputs import Outputs

if TYPE_CHECKING:
    from ascar.pilot import CommandRunner, Goal, Indicator, MeasurementPlan, WorkAmounts

EXAMPLES = examples(
    "ascar measure -- gzip -kf big.tar",
    "ascar measure --preset quick --metric mb_per_s='([0-9.]+) MB/s' -- ./bench.sh",
    "ascar measure --metric iops=json:jobs[0].read.iops -- fio --output-format=json job.fio",
    "ascar measure --work-amount 1,4096 -- dd if=/dev/zero of=f bs=1M count=%WORK_AMOUNT% conv=fsync",
)


def measure(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...",
            help="After --: a program and its arguments. No shell reads them. %WORK_AMOUNT% stands for the "
            "work amount of a round.",
        ),
    ],
    metric: MetricList = None,
    kind: Kinds = None,
    report_only: ReportOnly = None,
    preset: Preset = "normal",
    interval_width: IntervalWidth = None,
    confidence: ConfidenceOrNone = None,
    work_amount: WorkAmount = None,
    short_round: ShortRound = "1 s",
    limit: Budget = "1 h",
    round_limit: RoundLimit = None,
    rounds_max: RoundsMax = 10_000,
    export: Export = None,
    plot: Plot = None,
    readings: Readings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Run a command again and again until the interval of its result is narrow enough.

    Warm-up and cool-down inside a round are removed where unit readings tell them; where there are none but
    the work amount can be adjusted, by regression over rounds of different length. The report says which
    resource limited the result and what the measuring itself cost. Exit status 3 when a limit ended it first:
    what was measured is kept, and marked.

    --preset quick asks for an interval 20% of the mean wide, 12 readings in the stable phase and 1 round;
    normal for 10%, 50 readings and 3 rounds; strict for 10%, 200 readings and 5 rounds.
    """
    from ascar.cli.goals import goal_of

    outputs = Outputs(export, plot, readings, quiet, json)
    asked = _Asked(
        tuple(command),
        dict(_named("--metric", metric or [])),
        dict(_named("--kind", kind or [])),
        tuple(report_only or ()),
    )
    goal = goal_of(preset, interval_width, confidence)
    runner = _runner(asked, round_limit)
    plan = _plan(asked, goal, _work(runner, work_amount, short_round, limit), limit, rounds_max)
    return _run(runner, plan, outputs)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What shall be measured.

    Attributes:
        command: the program and its arguments.
        metrics: the place of each metric in the output, by name.
        kinds: the kind of mean of each metric, by name.
        report_only: names that decide nothing.
    """

    command: tuple[str, ...]
    metrics: dict[str, str]
    kinds: dict[str, str]
    report_only: tuple[str, ...]


def _named(option: str, texts: list[str]) -> list[tuple[str, str]]:
    from ascar.cli.outputs import named
    from ascar.errors import InputError

    pairs: list[tuple[str, str]] = []
    for text in texts:
        name, rest = named(option, text)
        if name in dict(pairs):
            raise InputError(f"{option} names {name!r} twice")
        pairs.append((name, rest))
    return pairs


def _runner(asked: _Asked, round_limit: str | None) -> CommandRunner:
    from ascar.cli.outputs import round_limit_s
    from ascar.pilot import CommandRunner

    return CommandRunner(asked.command, asked.metrics, round_limit_s(round_limit))


def _plan(
    asked: _Asked, goal: Goal, work: WorkAmounts | None, limit: str, rounds_max: int
) -> MeasurementPlan:
    from ascar.errors import InputError
    from ascar.pilot import Limits, MeasurementPlan
    from ascar.study import duration

    indicators = _indicators(asked, goal, adjustable=work is not None)
    if work is None and all(indicator.goal is None for indicator in indicators):
        raise InputError(
            f"--report-only {asked.report_only[0]}: no metric is left to decide when to stop; name fewer"
        )
    return MeasurementPlan(indicators, goal, work, Limits(duration("--budget", limit), rounds_max))


def _indicators(asked: _Asked, goal: Goal, *, adjustable: bool) -> list[Indicator]:
    """What is read; the mean duration of rounds that do different amounts of work means nothing."""
    from ascar.errors import InputError
    from ascar.pilot import Indicator
    from ascar.pilot.command import DURATION

    names = list(asked.metrics) or ([] if adjustable else [DURATION])
    if DURATION in asked.report_only and DURATION not in names:
        names.append(DURATION)
    for option, given in (("--kind", asked.kinds), ("--report-only", asked.report_only)):
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise InputError(f"{option} {unknown[0]!r}: must be one of {', '.join(names) or 'none'}")
    return [
        Indicator.parse(name, asked.kinds.get(name, "ordinary"), None if name in asked.report_only else goal)
        for name in names
    ]


def _work(runner: CommandRunner, text: str | None, short_round: str, limit: str) -> WorkAmounts | None:
    """The schedule of work amounts, where the command takes one."""
    from ascar.errors import InputError
    from ascar.pilot import WorkAmounts
    from ascar.pilot.command import WORK_AMOUNT
    from ascar.study import duration

    short_s = duration("--short-round", short_round)
    if text is None:
        if runner.adjustable:
            raise InputError(f"COMMAND has {WORK_AMOUNT}: give its range with --work-amount, e.g. 1,1000")
        return None
    if not runner.adjustable:
        raise InputError(
            f"--work-amount = {text!r}: COMMAND must have {WORK_AMOUNT} where the work amount goes"
        )
    low, _, high = text.partition(",")
    try:
        ends = float(low), float(high)
    except ValueError as error:
        raise InputError(f"--work-amount = {text!r}: must be MIN,MAX, e.g. 1,1000") from error
    whole = all(end.strip().lstrip("+").isdigit() for end in (low, high))
    longest_s = duration("--budget", limit) / 20
    return WorkAmounts(*ends, whole=whole, short_round_s=short_s, longest_round_s=max(longest_s, short_s))


def _run(runner: CommandRunner, plan: MeasurementPlan, outputs: Outputs) -> int:
    from functools import partial

    from ascar.cli.interrupts import Interrupted
    from ascar.cli.measure_progress import progress_line, showing
    from ascar.cli.measure_result import MeasureOutput
    from ascar.cli.statuses import decided
    from ascar.errors import AscarError
    from ascar.pilot import Measured, Sampler, run_session
    from ascar.pilot.command import start_cost_s

    command, cost_s = tuple(runner.argv), start_cost_s()
    sampler = Sampler()
    with showing(partial(progress_line, plan), quiet=outputs.quiet) as told:
        try:
            with sampler:
                session = run_session(runner, plan, told.take)
        except (KeyboardInterrupt, AscarError) as error:
            # With --json there is one document, the error's; people see what was measured until then.
            if told.last is not None and told.last.used and not outputs.json:
                told.close()
                MeasureOutput(Measured(command, plan, told.last, sampler.used, cost_s)).show()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted("interrupted; nothing of the command is left running") from None
            raise
    measured = Measured(command, plan, session, sampler.used, cost_s)
    measured.check()
    outputs.deliver(MeasureOutput(measured))
    return decided(session.reached)
