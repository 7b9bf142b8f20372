"""`ascar measure`: run a command until its result can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    ConfidenceOrNone,
    Export,
    Force,
    Goals,
    IntervalWidth,
    Json,
    Kinds,
    Method,
    MetricList,
    NodesFile,
    OutOrNone,
    Plot,
    Preset,
    Quiet,
    Readings,
    ReadingsMin,
    ReportOnly,
    RoundLimit,
    RoundsMax,
    RoundsMin,
    ShortRound,
    Sources,
    WorkAmount,
)
from ascar.cli.outputs import Outputs

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.cli.sources import Measurands
    from ascar.nodes import Node
    from ascar.pilot import Goal, Indicator, Limits, MeasurementPlan, Runner, WorkAmounts
    from ascar.pilot.measured import MeasuredCommand

_SHORT_ROUND = "1 s"
EXAMPLES = examples(
    "ascar measure -- gzip -kf big.tar",
    "ascar measure --preset quick --metric mb_per_s='([0-9.]+) MB/s' -- ./bench.sh",
    "ascar measure --metric iops=json:jobs[0].read.iops -- fio --output-format=json job.fio",
    "ascar measure --metric iops='iops=([0-9]+)' --metric p99_ms='p99=([0-9.]+)' --goal iops:3% -- ./b.sh",
    "ascar measure --source a=./load.sh --source b@10.0.0.2=./load.sh --metric mb_per_s='([0-9.]+) MB/s'",
    "ascar measure --work-amount 1,4096 -- dd if=/dev/zero of=f bs=1M count=%WORK_AMOUNT% conv=fsync",
)


def measure(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...]",
            help="After --: a program and its arguments. No shell reads them. %WORK_AMOUNT% stands for the "
            "work amount of a round. --source takes its place.",
        ),
    ] = None,
    source: Sources = None,
    nodes: NodesFile = None,
    metric: MetricList = None,
    kind: Kinds = None,
    goal: Goals = None,
    report_only: ReportOnly = None,
    preset: Preset = "normal",
    method: Method = "corrected",
    interval_width: IntervalWidth = None,
    confidence: ConfidenceOrNone = None,
    readings_min: ReadingsMin = None,
    rounds_min: RoundsMin = None,
    work_amount: WorkAmount = None,
    short_round: ShortRound = None,
    limit: Budget = "1 h",
    round_limit: RoundLimit = None,
    rounds_max: RoundsMax = 10_000,
    out: OutOrNone = None,
    force: Force = False,
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
    what was measured is kept, and marked. With --source several commands run in each round; a metric's name
    then stands for that of every source, and SOURCE.METRIC for one.

    --preset quick asks for an interval 20% of the mean wide, 12 readings in the stable phase and 1 round;
    normal for 10%, 50 readings and 3 rounds; strict for 10%, 200 readings and 5 rounds. Rounds of adjustable
    work shorter than 1 s do not count. With --method faithful the presets are those of the released Pilot:
    20%, 30 subsessions of autocorrelation at most 0.8 and rounds of 3 s; 10%, 50, 0.2 and 10 s; 10%, 200, 0.1
    and 20 s.
    """
    from ascar.cli.goals import goal_of

    outputs = Outputs(export, plot, readings, quiet, json, out, force)
    wanted = _least(goal_of(preset, interval_width, confidence, method), readings_min, rounds_min)
    asked = _Asked(
        dict(_named("--metric", metric or [])),
        dict(_named("--kind", kind or [])),
        tuple(goal or ()),
        tuple(report_only or ()),
    )
    found = _measurands(tuple(command or ()), tuple(source or ()), asked, nodes, round_limit)
    if short_round is None:
        short_round = _SHORT_ROUND if method == "corrected" else _published_short(preset)
    work = _work(found, work_amount, short_round, limit)
    return _run(found, _plan(found, asked, wanted, work, _limits(limit, rounds_max)), outputs)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What shall be measured.

    Attributes:
        metrics: the place of each metric in the output, by name.
        kinds: the kind of mean of each metric, by name.
        goals: the goals of single metrics.
        report_only: names that decide nothing.
    """

    metrics: dict[str, str]
    kinds: dict[str, str]
    goals: tuple[str, ...]
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


def _least(goal: Goal, readings_min: int | None, rounds_min: int | None) -> Goal:
    """A goal with other minima."""
    return replace(
        goal,
        readings_min=goal.readings_min if readings_min is None else readings_min,
        rounds_min=goal.rounds_min if rounds_min is None else rounds_min,
    )


def _published_short(preset: str) -> str:
    from ascar.pilot.presets import PUBLISHED

    return f"{PUBLISHED[preset].short_round_s:g} s"


def _limits(limit: str, rounds_max: int) -> Limits:
    from ascar.pilot import Limits
    from ascar.study import duration

    return Limits(duration("--budget", limit), rounds_max)


def _measurands(
    command: tuple[str, ...],
    sources: tuple[str, ...],
    asked: _Asked,
    nodes: Path | None,
    round_limit: str | None,
) -> Measurands:
    from ascar.cli.outputs import round_limit_s
    from ascar.cli.sources import command_of, sources_of
    from ascar.errors import InputError

    limit_s = round_limit_s(round_limit)
    if not sources:
        if nodes is not None:
            raise InputError(f"--nodes = {str(nodes)!r}: only --source NAME@NODE=COMMAND runs on a node")
        return command_of(command, asked.metrics, limit_s)
    if command:
        raise InputError(
            f"COMMAND {command[0]!r:.80}: leave it out with --source, or give it as one more --source"
        )
    return sources_of(sources, asked.metrics, nodes, limit_s)


def _plan(
    found: Measurands, asked: _Asked, goal: Goal, work: WorkAmounts | None, limits: Limits
) -> MeasurementPlan:
    from ascar.cli.goals import goals_of
    from ascar.errors import InputError
    from ascar.pilot import MeasurementPlan
    from ascar.pilot.measured import SPEED

    # A run time is read when it is named; of rounds of different work its mean means nothing.
    speed = () if work is None else (SPEED,)
    silent = {one for name in asked.report_only for one in found.meant("--report-only", name)}
    goals = dict(goals_of(asked.goals, goal, lambda option, name: found.meant(option, name, speed)))
    named = (*found.names, *(one for one in found.durations if one in silent or one in goals))
    names = tuple(dict.fromkeys(named))
    for name in sorted(set(goals) & silent):
        raise InputError(f"--goal {name!r}: contradicts --report-only; give one of them")
    for name in sorted(set(goals) & set(found.durations)):
        if work is not None:
            raise InputError(f"--goal {name!r}: rounds do different amounts of work; give {SPEED} a goal")
    kinds = {one: kind for name, kind in asked.kinds.items() for one in found.meant("--kind", name)}
    unread = sorted(set(kinds) - set(names))
    if unread:
        raise InputError(f"--kind {unread[0]!r}: must be one of {', '.join(names) or 'none'}")
    indicators = _indicators(names, kinds, {**dict.fromkeys(names, goal), **goals}, silent)
    if work is None and all(indicator.goal is None for indicator in indicators):
        raise InputError(
            f"--report-only {asked.report_only[0]}: no metric is left to decide when to stop; name fewer"
        )
    return MeasurementPlan(indicators, goal, work, limits, goals.get(SPEED))


def _indicators(
    names: tuple[str, ...], kinds: dict[str, str], goals: dict[str, Goal], silent: set[str]
) -> list[Indicator]:
    from ascar.pilot import Indicator

    return [
        Indicator.parse(name, kinds.get(name, "ordinary"), None if name in silent else goals[name])
        for name in names
    ]


def _work(found: Measurands, text: str | None, short_round: str, limit: str) -> WorkAmounts | None:
    """The schedule of work amounts, where the command takes one."""
    from ascar.errors import InputError
    from ascar.pilot import WorkAmounts
    from ascar.pilot.command import WORK_AMOUNT
    from ascar.study import duration

    short_s = duration("--short-round", short_round)
    runner = found.runner
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


def _run(found: Measurands, plan: MeasurementPlan, outputs: Outputs) -> int:
    from functools import partial

    from ascar.cli.interrupts import Interrupted
    from ascar.cli.measure_progress import progress_line, showing
    from ascar.cli.measure_result import MeasureOutput
    from ascar.cli.statuses import decided
    from ascar.errors import AscarError
    from ascar.pilot import Sampler, run_session
    from ascar.pilot.command import start_cost_s
    from ascar.pilot.machine import record_end, record_machine
    from ascar.pilot.measured import Ran

    begun = tuple(record_machine(node) for node in _places(found))
    ran = Ran(_commands(found), start_cost_s(), begun)
    sampler, runner = Sampler(), cast("Runner", found.runner)
    with showing(partial(progress_line, plan), quiet=outputs.quiet) as told:
        try:
            with sampler:
                session = run_session(runner, plan, told.take)
        except (KeyboardInterrupt, AscarError) as error:
            # With --json there is one document, the error's; people see what was measured until then.
            if told.last is not None and told.last.used and not outputs.json:
                told.close()
                MeasureOutput(ran.measured(plan, told.last, sampler.used)).show()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted("interrupted; nothing of the command is left running") from None
            raise
    ended = tuple(record_end(*one) for one in zip(begun, _places(found), strict=True))
    measured = replace(ran, machines=ended).measured(plan, session, sampler.used)
    if not session.rounds:
        _name_cut_off(found, session.ended)
    measured.check()
    outputs.deliver(MeasureOutput(measured))
    return decided(session.reached)


def _name_cut_off(found: Measurands, ended: str) -> None:
    """Say which sources the only round waited for.

    Raises:
        WorkError: some had not ended when the session's time was over.
    """
    from ascar.errors import WorkError
    from ascar.pilot.several import SeveralSources

    if isinstance(found.runner, SeveralSources) and found.runner.cut_off:
        names = ", ".join(found.runner.cut_off)
        raise WorkError(
            f"source {names:.400}: had not ended, so no round did: {ended}; raise --budget, or end what "
            "hangs earlier by --round-limit"
        )


def _places(found: Measurands) -> list[Node | None]:
    """This machine, and every node once: its resources are what the report names."""
    return [None, *{node.name: node for node in found.nodes if node is not None}.values()]


def _commands(found: Measurands) -> tuple[MeasuredCommand, ...]:
    from ascar.pilot import CommandRunner
    from ascar.pilot.measured import MeasuredCommand

    if isinstance(found.runner, CommandRunner):
        return (MeasuredCommand("", tuple(found.runner.argv), None),)
    return tuple(
        MeasuredCommand(
            one.name, tuple(one.runner.argv), None if one.runner.node is None else one.runner.node.name
        )
        for one in found.runner.sources
    )
