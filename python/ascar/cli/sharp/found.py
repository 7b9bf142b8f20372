"""What a search for rules came to, as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.cli.contenders import gain_words
from ascar.cli.sharp.effects import effects_table, standing_lines
from ascar.render import VERDICTS, count, duration, number, p_value, percentage
from ascar.rules import INDICATOR_LIST, INDICATORS_OF_THESIS, INFINITY
from ascar.sharp.search_result import TOO_FEW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from ascar.loops.rules import Made
    from ascar.results.rule_search import ContenderFigures, RuleVerification, SharpSearchResult, TestbedProof
    from ascar.rules import Interval, Rule, StateIndicator
    from ascar.sharp import Judge, RuleSet
    from ascar.sharp.task import Task
    from ascar.sharp.verification import RuleVerdict

_STOPPED = {
    "evaluations": "all evaluations were used",
    "time": "the time was spent",
    "no-gain": "epochs brought nothing more",
    "rules": "no more rules are allowed",
    "failures": "three runs in a row failed",
}
_RULES_SHOWN = 64
_WITHOUT_STATIC = 2  # contenders


def print_found(console: Console, task: Task, made: Made) -> None:
    """The rules, how they were found, and what they are worth."""
    from ascar.sharp.task import Live

    judge, found = made.judge, made.found
    if found.best is not None:
        console.print(rules_table(found.best.observed))
    if made.result.testbed is not None:
        _print_proof(console, made.result, made.result.testbed)
        return
    first = made.result.first_evaluations
    before = f"{first} runs in simulation first; " if first else ""
    console.print(
        f"{before}{judge.evaluations} runs, {judge.epoch} epochs, {judge.round} rounds in "
        f"{duration(judge.elapsed_s)}; {_STOPPED[found.stopped]}",
        soft_wrap=True,
        markup=False,
    )
    pairs = "pairs of fresh intervals" if isinstance(task.system, Live) else "pairs on fresh seeds"
    console.print(_words(judge, made.verdict, pairs), soft_wrap=True, markup=False)
    _print_effects(console, made.result)


def print_search(console: Console, result: SharpSearchResult) -> None:
    """A search of the history."""
    shown = result.verification
    rules = "no rules" if result.best is None else count(len(result.best.rules), "rule")
    console.print(
        f"search for {result.scenario}, {result.objective}: {rules} after {result.evaluations} runs in "
        f"{duration(result.elapsed_s)}; {_STOPPED[result.stopped]}",
        soft_wrap=True,
        markup=False,
    )
    if result.testbed is not None:
        _print_proof(console, result, result.testbed)
    else:
        _print_verdict(console, shown)
        _print_effects(console, result)
    console.print(f"rules: {result.out}", soft_wrap=True, markup=False)


def _print_verdict(console: Console, shown: RuleVerification) -> None:
    if shown.difference is None:
        console.print(f"not verified: {shown.note}", soft_wrap=True, markup=False)
        return
    head = VERDICTS[shown.kind]
    limits = f"{number(shown.difference_low)} to {number(shown.difference_high)}"
    console.print(
        f"{head}: {number(shown.best_mean)} against {number(shown.default_mean)}, "
        f"{number(shown.difference)} ({limits}); "
        f"{p_value(shown.p_value)}, {count(shown.pairs, 'pair')}; {shown.note}",
        soft_wrap=True,
        markup=False,
    )


def _print_proof(console: Console, result: SharpSearchResult, proof: TestbedProof) -> None:
    """What a search came to on a testbed: simulated and real figures side by side, and how they differ."""

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False)

    say(
        f"{result.first_evaluations} runs in simulation first; {count(proof.runs, 'run')} on the testbed in "
        f"{duration(result.elapsed_s)}, of which {proof.chosen_in_runs} chose and "
        f"{count(proof.turns, 'turn')} of {len(proof.contenders)} runs compared; {_STOPPED[result.stopped]}"
    )
    if len(proof.contenders) == _WITHOUT_STATIC:
        say("the best rules are the best static setting, which has their place")
    console.print(contenders_side_by_side(proof))
    for failed in proof.failures:
        say(f"run {failed.number} failed ({failed.setting}): {failed.reason}")
    _print_verdict(console, result.verification)
    _print_effects(console, result)
    say("simulation and testbed differ:")
    for line in proof.differences:
        say(f"  {line}")


def contenders_side_by_side(proof: TestbedProof) -> Table:
    """Two rows a contender, simulated and real: mean with interval, and what the rules gain over it."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "setting", "", "mean (95% interval)", "runs", "p99 ms", "rules gain over it"):
        table.add_column(heading, justify="right" if heading in ("runs", "p99 ms") else "left")
    for one in proof.contenders:
        table.add_row(one.name, one.setting, "in simulation", *_figure_cells(one.simulated))
        table.add_row("", "", "real", *_figure_cells(one.real))
    return table


def _figure_cells(figures: ContenderFigures | None) -> tuple[str, str, str, str]:
    if figures is None:
        return ("not measured", "0", "", "")
    mean = number(figures.mean)
    if figures.mean_low is not None and figures.mean_high is not None:
        mean = f"{mean} ({number(figures.mean_low)} to {number(figures.mean_high)})"
    p99 = "" if figures.latency_ms_p99 is None else number(figures.latency_ms_p99)
    return (mean, str(figures.runs), p99, gain_words(figures))


def _print_effects(console: Console, result: SharpSearchResult) -> None:
    """What else the rules change."""
    shown = result.verification
    if shown.figures:
        console.print(effects_table(shown.figures, shown.groups))
    for line in standing_lines(shown.bounds):
        console.print(line, soft_wrap=True, markup=False)


def _words(judge: Judge, verdict: RuleVerdict | None, pairs: str) -> str:
    """The verdict in one line."""
    if verdict is None:
        return f"not verified: {TOO_FEW}"
    gain, means = verdict.gain, verdict.comparison.means
    if gain is None or means is None:
        return f"not verified: {verdict.note}"
    head, (default, best) = VERDICTS[verdict.kind], means
    return (
        f"{head}: {gain.words} in {judge.objective.unit}, above zero is better; "
        f"{number(best)} against {number(default)}; {p_value(gain.p_value)}, {gain.pairs} {pairs}; "
        f"{verdict.note}"
    )


def files_line(rules: RuleSet) -> str | None:
    """How many files may be active under rules; None where they say nothing of it."""
    return f"{rules.active_files} files of a stream at a time, in turns" if rules.active_files else None


def bounded_axes(rules: Sequence[Rule]) -> list[int]:
    """The indicators of the thesis, and those beyond them that one of the rules bounds."""
    further = range(len(INDICATORS_OF_THESIS), len(rules[0].region))
    bounded = (axis for axis in further if len({rule.region[axis] for rule in rules}) > 1)
    return [*range(len(INDICATORS_OF_THESIS)), *bounded]


def interval_text(bounds: Interval, indicator: StateIndicator) -> str:
    """An interval in the unit of the indicator's heading."""
    scale = indicator.scale
    return f"{bounds.lo / scale:g}-{'' if bounds.hi == INFINITY else f'{bounds.hi / scale:g}'}"


def rules_table(rules: RuleSet) -> Any:
    """Rules, a line each, with the share of the times that one of them was used."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, caption=files_line(rules), caption_justify="left")
    axes = bounded_axes(rules.rules)
    for heading in ("rule", *(INDICATOR_LIST[axis].heading for axis in axes), "m", "b", "tau ms", "used"):
        table.add_column(heading, justify="right")
    used = sum(0 if rule.observed is None else rule.observed.used_times for rule in rules.rules) or 1
    for at, rule in enumerate(rules.rules[:_RULES_SHOWN], start=1):
        bounds = (interval_text(rule.region[axis], INDICATOR_LIST[axis]) for axis in axes)
        action = rule.action
        table.add_row(
            str(at),
            *bounds,
            "1" if action.m100 < 0 else f"{action.m100 / 100:g}",
            f"{action.b100 / 100:g}",
            f"{action.tau_us / 1_000:g}",
            percentage(0 if rule.observed is None else rule.observed.used_times / used, 0),
        )
    return table
