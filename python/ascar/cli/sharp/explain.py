"""`ascar sharp explain`: a rule set in words, as a table, and drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.cli.epilog import examples
from ascar.cli.options import (
    DurationOrNone,
    Json,
    Metadata,
    PlotFormat,
    Plots,
    Quiet,
    RuleFile,
    ScenarioOrNone,
    ScenarioSettings,
    SeedOrNone,
    Stream,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.rule_sets import SharpExplainResult
    from ascar.sharp import RuleSet
    from ascar.sharp.words import Explained
    from ascar.simulation import ClusterOutcome, Scenario
    from ascar.simulation.controlled import Followers

EXAMPLES = examples(
    "ascar sharp explain rules.txt",
    "ascar sharp explain random-write --scenario random-write",
    "ascar sharp explain rules.txt --scenario btio-b --plots figures",
    "ascar sharp explain metadata.txt --scenario mdtest --metadata",
)
_ROWS_MAX = 64
_COLUMNS = 48


@dataclass(frozen=True, slots=True)
class _Course:
    """A stream of a run.

    Attributes:
        scenario: the name of its scenario; None: nothing was run.
        outcome: the run.
        stream: the number of the stream.
    """

    scenario: str | None
    outcome: ClusterOutcome | None
    stream: int

    @property
    def series(self) -> dict[str, tuple[float, ...]]:
        """Window, gap, queue and throughput over time, by name."""
        ticks = () if self.outcome is None else self.outcome.streams[self.stream].ticks
        if not ticks:
            return {}
        return {
            "window, requests": tuple(one.window for one in ticks),
            "gap, ms": tuple(one.tau_us / 1_000 for one in ticks),
            "in flight, requests": tuple(float(one.in_flight) for one in ticks),
            "waiting, requests": tuple(float(one.waiting) for one in ticks),
            "throughput, MB/s": tuple(one.read_mb_per_s + one.write_mb_per_s for one in ticks),
        }


def explain(
    file: RuleFile,
    scenario: ScenarioOrNone = None,
    plot: Plots = None,
    plot_format: PlotFormat = "svg",
    stream: Stream = 0,
    metadata: Metadata = False,
    seconds: DurationOrNone = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Explain a rule set: when each rule holds, what it does, how often it was used (Li, table 3.5).

    With --scenario it also shows what the rules did to a stream over time: window, gap, queue, throughput.
    --plots draws the rules in the space of congestion states, coloured by what they do, and the course of the
    stream under them (Li, figure 3.2). With --metadata the streams of metadata operations follow the rules;
    then it shows how often each rule was used.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.cli.sharp.found import files_line
    from ascar.cli.sim.options import check_plots
    from ascar.errors import InputError
    from ascar.sharp.words import explain as in_words

    check_plots(plot, plot_format)
    rules = read(file)
    if scenario is None and (seconds is not None or seed is not None or settings or metadata):
        raise InputError("--duration, --seed, --set and --metadata: need --scenario")
    if metadata and stream:
        raise InputError("--stream with --metadata: only streams of file data have a course; leave it out")
    outcome = None
    if scenario is not None:
        wanted = _wanted(scenario, seconds, seed, settings)
        if stream >= wanted.client_count * wanted.server_count:
            most = wanted.client_count * wanted.server_count - 1
            raise InputError(f"--stream = {stream}: streams are 0 to {most}")
        outcome, rules = _run(wanted, rules, "metadata" if metadata else None, quiet=quiet)
        if metadata:
            outcome = None
    explained = in_words(rules)
    drawn: list[Path] = []
    if plot is not None:
        from ascar.cli.sharp.explain_plots import draw_rules, draw_stream

        name = "rules" if str(file) == "-" else file.stem
        drawn.append(draw_rules(rules, plot / f"{name}-rules.{plot_format}"))
        if outcome is not None:
            drawn.append(draw_stream(outcome, stream, plot / f"{name}-stream-{stream}.{plot_format}"))
    if json:
        emit("sharp-explain", _result(rules, explained, _Course(scenario, outcome, stream), drawn))
        return 0
    out = people()
    out.print(_table(explained))
    if files := files_line(rules):
        out.print(files)
    if len(explained) > _ROWS_MAX:
        out.print(f"... {len(explained)} rules in all; --json has them")
    if outcome is not None:
        out.print(_course_table(_Course(scenario, outcome, stream)))
    for path in drawn:
        out.print(f"plot: {path}", soft_wrap=True, markup=False)
    return 0


def _wanted(named: str, seconds: str | None, seed: int | None, settings: list[str] | None) -> Scenario:
    from msgspec import structs

    from ascar.cli.sim.options import scenario_of

    return structs.replace(scenario_of(named, seconds, seed, settings), record_streams=True)


def _run(
    scenario: Scenario, rules: RuleSet, followers: Followers, *, quiet: bool
) -> tuple[ClusterOutcome | None, RuleSet]:
    """The course under the rules, and the rules with their use."""
    from ascar.cli.sim.progress import showing
    from ascar.sharp import RuleSet
    from ascar.sharp.trials.bench import merged
    from ascar.simulation import run_many, with_rule_text
    from ascar.simulation.controlled import rules_of

    with showing(quiet=quiet) as listener:
        outcome = run_many([with_rule_text(scenario, rules.bare().text(), followers)], listener=listener)[0]
    used = [RuleSet.parse(text) for text in rules_of(outcome, scenario, followers)]
    return outcome, merged(used)


def _result(
    rules: RuleSet, explained: tuple[Explained, ...], course: _Course, drawn: list[Path]
) -> SharpExplainResult:
    from ascar.results.encode import extended
    from ascar.results.rule_sets import CourseSeries, ExplainedRule, SharpExplainResult
    from ascar.sharp.deployment.naming import rules_id
    from ascar.sharp.rule_results import rule_result

    return SharpExplainResult(
        id=rules_id(rules),
        updates_per_second=rules.updates_per_second,
        scenario=course.scenario,
        rules=tuple(
            extended(
                ExplainedRule,
                rule_result(one.rule),
                when=one.when,
                what=one.what,
                window_settles_at=one.window_settles_at,
                used_share=one.used_share,
            )
            for one in explained
        ),
        stream=None if course.outcome is None else course.stream,
        tick_s=None if course.outcome is None else course.outcome.tick_s,
        course=tuple(CourseSeries(name=name, values=values) for name, values in course.series.items()),
        plots=tuple(str(path) for path in drawn),
        active_files=rules.active_files,
    )


def _course_table(course: _Course) -> Any:
    """What rules did to a stream over time, and what came of it."""
    from rich.table import Table

    from ascar.cli.output import people
    from ascar.render import number, sparkline

    table = Table(box=None, pad_edge=False)
    table.add_column(f"stream {course.stream}")
    for heading in ("least", "mean", "greatest"):
        table.add_column(heading, justify="right")
    table.add_column("over time")
    unicode = people().encoding.lower().startswith("utf")
    for name, values in course.series.items():
        lowest, mean, highest = min(values), sum(values) / len(values), max(values)
        drawn = sparkline(_thinned(values), unicode=unicode)
        table.add_row(name, number(lowest), number(mean), number(highest), drawn)
    return table


def _thinned(values: Sequence[float]) -> list[float]:
    """Means of neighbours, so that a line holds them."""
    step = -(-len(values) // _COLUMNS)
    parts = (values[at : at + step] for at in range(0, len(values), step))
    return [sum(part) / len(part) for part in parts]


def _table(explained: tuple[Explained, ...]) -> Any:
    """Table 3.5 with words, rules that were used most first."""
    from rich.table import Table

    from ascar.cli.sharp.found import bounded_axes, interval_text
    from ascar.rules import INDICATOR_LIST

    table = Table(box=None, pad_edge=False)
    axes = bounded_axes([one.rule for one in explained])
    bounds = (INDICATOR_LIST[axis].heading for axis in axes)
    for heading in ("rule", *bounds, "m", "b", "tau ms", "times", "avg ack ms", "avg PT ratio"):
        table.add_column(heading, justify="right")
    for heading in ("when", "what"):
        table.add_column(heading)
    numbered = sorted(enumerate(explained, start=1), key=lambda one: -(one[1].used_share or 0))
    for number, one in numbered[:_ROWS_MAX]:
        action, seen = one.rule.action, one.rule.observed
        used = seen is not None and seen.used_times > 0
        table.add_row(
            str(number),
            *(interval_text(one.rule.region[axis], INDICATOR_LIST[axis]) for axis in axes),
            "1" if action.m100 < 0 else f"{action.m100 / 100:g}",
            f"{action.b100 / 100:g}",
            f"{action.tau_us / 1_000:g}",
            "" if seen is None else str(seen.used_times),
            f"{seen.means[0] / 1_000:.3g}" if used and seen is not None else "",
            f"{seen.means[2] / 100:.3g}" if used and seen is not None else "",
            one.when,
            one.what,
        )
    return table
