"""`ascar sharp explain`: a rule set in words, as a table, and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.cli.epilog import examples
from ascar.cli.options import (
    DurationOrNone,
    Json,
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
    from ascar.results.sharp import SharpExplainResult
    from ascar.sharp import Interval, RuleSet
    from ascar.sharp.words import Explained
    from ascar.simulation import ClusterOutcome, Scenario

EXAMPLES = examples(
    "ascar sharp explain rules.txt",
    "ascar sharp explain rules.txt --scenario btio-b --plots figures",
)
_INFINITE = 2_147_483_647
_ROWS_MAX = 64


def explain(
    file: RuleFile,
    scenario: ScenarioOrNone = None,
    plot: Plots = None,
    plot_format: PlotFormat = "svg",
    stream: Stream = 0,
    seconds: DurationOrNone = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Explain a rule set: when each rule holds, what it does, how often it was used (Li, table 3.5).

    --plots draws the rules in the space of congestion states, coloured by what they do; with --scenario also
    the course of a stream under them (Li, figure 3.2).
    """
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.cli.sim.options import check_plots
    from ascar.errors import InputError
    from ascar.sharp.words import explain as in_words

    check_plots(plot, plot_format)
    rules = read(file)
    if scenario is None and (seconds is not None or seed is not None or settings):
        raise InputError("--duration, --seed and --set: need --scenario")
    outcome = None
    if scenario is not None:
        wanted = _wanted(scenario, seconds, seed, settings)
        if stream >= wanted.client_count * wanted.server_count:
            most = wanted.client_count * wanted.server_count - 1
            raise InputError(f"--stream = {stream}: streams are 0 to {most}")
        outcome, rules = _run(wanted, rules, quiet=quiet)
    explained = in_words(rules)
    drawn: list[Path] = []
    if plot is not None:
        from ascar.cli.sharp.explain_plots import draw_rules, draw_stream

        name = "rules" if str(file) == "-" else file.stem
        drawn.append(draw_rules(rules, plot / f"{name}-rules.{plot_format}"))
        if outcome is not None:
            drawn.append(draw_stream(outcome, stream, plot / f"{name}-stream-{stream}.{plot_format}"))
    if json:
        emit("sharp-explain", _result(rules, explained, scenario, drawn))
        return 0
    out = people()
    out.print(_table(explained))
    if len(explained) > _ROWS_MAX:
        out.print(f"... {len(explained)} rules in all; --json has them")
    for path in drawn:
        out.print(f"plot: {path}", soft_wrap=True, markup=False)
    return 0


def _wanted(named: str, seconds: str | None, seed: int | None, settings: list[str] | None) -> Scenario:
    from msgspec import structs

    from ascar.cli.sim.options import scenario_of

    return structs.replace(scenario_of(named, seconds, seed, settings), record_streams=True)


def _run(scenario: Scenario, rules: RuleSet, *, quiet: bool) -> tuple[ClusterOutcome, RuleSet]:
    """The course under the rules, and the rules with their use."""
    from ascar.cli.sim.progress import showing
    from ascar.sharp import RuleSet
    from ascar.sharp.trials.bench import merged
    from ascar.simulation import run_many, with_rule_text

    with showing(quiet=quiet) as listener:
        outcome = run_many([with_rule_text(scenario, rules.bare().text())], listener=listener)[0]
    used = [RuleSet.parse(text) for text in outcome.rules if text is not None]
    return outcome, merged(used)


def _result(
    rules: RuleSet, explained: tuple[Explained, ...], scenario: str | None, drawn: list[Path]
) -> SharpExplainResult:
    from ascar.results.encode import extended
    from ascar.results.sharp import ExplainedRule, SharpExplainResult
    from ascar.sharp.deployment.naming import rules_id
    from ascar.sharp.rule_results import rule_result

    return SharpExplainResult(
        id=rules_id(rules),
        updates_per_second=rules.updates_per_second,
        scenario=scenario,
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
        plots=tuple(str(path) for path in drawn),
    )


def _table(explained: tuple[Explained, ...]) -> Any:
    """Table 3.5 with words, rules that were used most first."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    headings = (
        "rule",
        "ack ms",
        "send ms",
        "PT ratio",
        "m",
        "b",
        "tau ms",
        "times",
        "avg ack ms",
        "avg PT ratio",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for heading in ("when", "what"):
        table.add_column(heading)
    numbered = sorted(enumerate(explained, start=1), key=lambda one: -(one[1].used_share or 0))
    for number, one in numbered[:_ROWS_MAX]:
        action, seen = one.rule.action, one.rule.observed
        scales = (1_000, 1_000, 100)
        used = seen is not None and seen.used_times > 0
        table.add_row(
            str(number),
            *(_interval(at, scale) for at, scale in zip(one.rule.region[:3], scales, strict=True)),
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


def _interval(at: Interval, scale: int) -> str:
    return f"{at.lo / scale:g}-{'' if at.hi == _INFINITE else f'{at.hi / scale:g}'}"
