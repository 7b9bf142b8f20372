"""The end of a study for people: verdict, what to set, what the time went on, validity, what next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ascar.cli.compromise import front_of, print_front, print_gains
from ascar.cli.parsimony import print_parsimony
from ascar.render import count, duration, number, p_value, percentage, plain, score
from ascar.results.stages import STAGES, in_order
from ascar.results.trial import TrialState
from ascar.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from ascar.history import Run
    from ascar.objective import Objective
    from ascar.results.outcome import Outcome
    from ascar.results.trial import Trial
    from ascar.results.verdict import Verdict
    from ascar.space import Configuration, Space

# A budget that is proposed holds more than what will probably be needed.
_ROUNDED_UP = 1.5
_TOO_LONG = ("programs", "kernel_defaults", "other_settings")


def print_outcome(console: Console, outcome: Outcome, run: Run) -> None:
    """Print all of it."""
    space, objective = run.space, run.objective
    style = {"improved": "bold green", "default-is-fine": "bold"}.get(outcome.verdict.kind, "bold yellow")
    console.print(verdict_line(outcome, objective), style=style, soft_wrap=True, markup=False)
    console.print(f"  {outcome.verdict.note}", style="dim", soft_wrap=True, markup=False)
    if more := prospect(outcome.verdict):
        console.print(f"  {more}", soft_wrap=True, markup=False)
    for line in (*_evidence(outcome, objective.unit), *_loop(outcome, run)):
        console.print(f"  {line}", soft_wrap=True, markup=False)
    print_gains(console, outcome)
    luckier = _luckier(outcome, run)
    if luckier is not None and outcome.best is not None:
        console.print(
            f"  trial {luckier.number} has a better single reading, {score(luckier, '')}; from all trials "
            f"together, more is expected of trial {outcome.best.number}",
            soft_wrap=True,
        )
    console.print()
    if outcome.best is None or outcome.verdict.kind == "default-is-fine":
        console.print("recommended: keep the default configuration")
    else:
        heads = {"improved": "recommended:", "undecided": "best found, undecided:"}
        console.print(heads.get(outcome.verdict.kind, "best found, not verified:"))
        improved = outcome.verdict.kind == "improved"
        shown = outcome.recommended if improved else outcome.best.configuration
        console.print(_configuration_table(space, shown))
    print_parsimony(console, outcome, objective)
    _print_several(console, outcome, run)
    console.print()
    console.print(_time_table(outcome))
    ended = f"; the search ended because {outcome.stopped}" if outcome.stopped else ""
    console.print(f"{_counts(outcome)}{ended}", soft_wrap=True)
    console.print()
    console.print("valid for:")
    for line in _facts(outcome.machine):
        console.print(f"  {line}", soft_wrap=True, markup=False)
    console.print()
    console.print("next:")
    for command, purpose in _next_commands(outcome):
        console.print(f"  {command:<36} {purpose}", soft_wrap=True)


def _print_several(console: Console, outcome: Outcome, run: Run) -> None:
    """Of a study with several objectives, what else there is to choose."""
    objectives = run.objectives
    front = front_of(run, objectives) if len(objectives) > 1 else None
    if front is None or not front.chosen:
        return
    console.print()
    console.print("the Pareto set: what nothing beats without losing in another objective")
    best = None if outcome.best is None else outcome.best.configuration
    print_front(console, front, best if outcome.verdict.kind == "improved" else None)
    console.print(
        f"  to take another one: ascar apply {run.id} --trial NUMBER (not verified); to have another one "
        "verified: change [study] weights, and tune again",
        soft_wrap=True,
        markup=False,
    )


def print_sweep(console: Console, outcome: Outcome, unit: str) -> None:
    """The end of a sweep: what was seen, and no claim."""
    whole = (
        f"stopped early: {outcome.stopped}; go on with --resume"
        if outcome.stopped
        else "every configuration measured"
    )
    console.print(whole, style="bold", soft_wrap=True)
    console.print(_counts(outcome), soft_wrap=True)
    if outcome.default is not None:
        console.print(f"  default  {score(outcome.default, unit)}", soft_wrap=True)
    if outcome.best is not None:
        console.print(
            f"  highest ranked  {score(outcome.best, unit)} (trial {outcome.best.number})", soft_wrap=True
        )
        console.print(
            "  the best of many looks better than it is: `ascar tune` verifies before it claims a gain"
        )
    console.print()
    console.print(_time_table(outcome))


def _next_commands(outcome: Outcome) -> Iterator[tuple[str, str]]:
    run = outcome.run_id
    if outcome.verdict.kind == "improved":
        if _is_on_machine(outcome):
            yield f"ascar apply {run} --dry-run", "what would be changed to put it in force here"
        yield f"ascar export {run} --as shell", "as commands; also sysctl, udev, fstab, tuned"
    elif outcome.best is not None and not outcome.verdict.is_decided:
        budget = duration(_ROUNDED_UP * (outcome.verdict.more_s or 0.0) or 60.0)
        yield f"ascar verify {run} --budget '{budget}'", "go on with the last comparison"
    yield f"ascar report {run} --out report", "one page with the plots"


def _is_on_machine(outcome: Outcome) -> bool:
    """Whether there is something that the configuration could be put in force on."""
    from ascar.errors import AscarError
    from ascar.systems import system_of

    try:
        return system_of({"kind": outcome.machine.get("target", "")}).on_machine
    except AscarError:  # of a kind that is not installed here
        return False


def _evidence(outcome: Outcome, unit: str) -> Iterator[str]:
    """What the verdict rests on: the runs of the last comparison; without one, the trials of the search."""
    verdict, best = outcome.verdict, outcome.best
    if verdict.default_scores and verdict.best_scores:
        level = verdict.p_value_limit
        reference = "default" if verdict.against is None else f"trial {verdict.against}"
        yield f"{reference} {_mean(verdict.default_scores, level, unit)}"
        which = "" if best is None else f" (the configuration of trial {best.number})"
        yield f"best    {_mean(verdict.best_scores, level, unit)}{which}"
        return
    if outcome.default is not None:
        yield f"default {score(outcome.default, unit)}"
    if best is not None:
        yield f"best    {score(best, unit)} (trial {best.number}; the best of many looks better than it is)"


def _loop(outcome: Outcome, run: Run) -> Iterator[str]:
    """What is to be known of the percentiles that the study goes by."""
    from ascar.workloads.open_loop import closed_loop_note

    names = [name for one in run.objectives for name in one.formula.names]
    if note := closed_loop_note(outcome.machine, names):
        yield note


def _mean(scores: Sequence[float], level: float, unit: str) -> str:
    """Mean of the last comparison's runs, its limits (at all looks together), and how many they were."""
    from ascar.pilot.turns import mean_at_any_time, mean_of_runs

    limits = mean_at_any_time(scores, level)
    shown = "" if limits is None else f" [{number(limits[0])}, {number(limits[1])}]"
    return f"{number(mean_of_runs(scores))}{shown} {unit}, mean of {len(scores)} runs"


def _luckier(outcome: Outcome, run: Run) -> Trial | None:
    """The trial of another configuration with a better score than the best one's, where there is one."""
    best = outcome.best
    if best is None or best.score is None:
        return None
    others = [
        trial
        for trial in run.trials(readings=False)
        if trial.usable and trial.purpose.of_search and trial.configuration != best.configuration
    ]
    first = max(others, key=lambda trial: run.objective.sign * (trial.score or 0.0), default=None)
    if first is None or first.score is None or not run.objective.better(first.score, best.score):
        return None
    return first


def verdict_line(outcome: Outcome, objective: Objective) -> str:
    """The verdict in one line."""
    verdict, gain = outcome.verdict, ""
    if said := objective.gained(verdict):
        other = "the default" if verdict.against is None else f"trial {verdict.against}"
        gain = f"{said} {objective.unit} than {other}"
    if limits := objective.gained_between(verdict):
        confidence = f"{1 - verdict.p_value_limit:.4g}".removeprefix("0.").ljust(2, "0")
        gain += f" ({confidence}% interval {limits})"
    tested = f"{p_value(verdict.p_value)}, {verdict.runs_per_side} runs a side"
    match verdict.kind:
        case "improved":
            return f"improved: {gain}, {tested}"
        case "default-is-fine":
            if verdict.against is not None:
                return f"trial {verdict.against} is as good, or better: {gain}, {tested}"
            no_better = f"the best found is not {percentage(verdict.margin)} better"
            return f"the default is fine: {no_better}: {gain}, {tested}"
        case "undecided":
            return f"undecided: the best found has {gain}, {tested}"
        case "not-verified":
            return "not verified: no gain is claimed"


def prospect(verdict: Verdict) -> str:
    """What would probably decide an undecided comparison; empty where nothing is known of it."""
    if verdict.kind != "undecided":
        return ""
    if verdict.more_pairs is None or verdict.more_s is None:
        return "no number of pairs that could be made would probably decide it"
    more = f"{count(verdict.more_pairs, 'more pair')} ({duration(verdict.more_s)})"
    return f"about {more} would probably decide it"


def changes(
    space: Space, configuration: Configuration
) -> Iterator[tuple[str, object, object, str, list[str]]]:
    """Name, default, value, cost and weakened guarantees of each parameter that differs from the default."""
    default = space.default()
    for parameter in space.parameters:
        name = parameter.name
        before, after = default.get(name), configuration.get(name)
        if before == after:
            continue
        weaker = [] if after is None else sorted(guarantee.value for guarantee in parameter.weakens(after))
        yield name, before, after, parameter.cost.value, weaker


def _configuration_table(space: Space, configuration: Configuration) -> Table:
    from rich.table import Table

    chosen = space.departures(configuration)
    rows = [row for row in changes(space, configuration) if row[2] is not None]
    rows.sort(key=lambda row: row[0] not in chosen)  # then what only began to apply, with its own default
    table = Table(box=None, padding=(0, 2, 0, 2))
    for heading in ("parameter", "default", "recommended", "change cost"):
        table.add_column(heading)
    if any(weaker for *_, weaker in rows):
        table.add_column("weakens", style="red")
    for name, before, after, cost, weaker in rows:
        table.add_row(name, plain(before), plain(after), cost, ", ".join(weaker))
    return table


def _time_table(outcome: Outcome) -> Table:
    from rich.table import Table

    total_s = sum(outcome.stage_s.values())
    table = Table(
        box=None, padding=(0, 2, 0, 0), title="what the time went on", title_justify="left", title_style=""
    )
    table.add_column("")
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for stage in in_order(outcome.stage_s):
        spent_s = outcome.stage_s[stage]
        share = spent_s / total_s if total_s > 0 else 0.0
        table.add_row(f"  {stage}", duration(spent_s), percentage(share, 0), STAGES.get(stage, ""))
    table.add_row("  all", duration(total_s), "", "")
    return table


def _counts(outcome: Outcome) -> str:
    total = sum(outcome.counts.values())
    parts = [f"{outcome.counts[state]} {state.value}" for state in TrialState if outcome.counts.get(state)]
    text = f"{total} trials: {', '.join(parts)}"
    if outcome.counts.get(TrialState.PRUNED):
        text += f" (abandoned early, which saved about {duration(outcome.saved_s)} of load)"
    return text


def _facts(machine: Mapping[str, Any]) -> Iterator[str]:
    """A description, one line a fact; a table inside it is one line too. The longest are left to `--json`."""
    for key, fact in machine.items():
        text = _fact(key, fact)
        if text and key not in _TOO_LONG:
            yield f"{key.removesuffix('_bytes')}: {text}"


def _fact(key: str, fact: object) -> str:
    if fact is None:
        return ""
    if isinstance(fact, dict):
        table = cast("dict[str, object]", fact)
        inner = {name: _fact(name, value) for name, value in table.items() if not isinstance(value, dict)}
        return ", ".join(f"{name.removesuffix('_bytes')} {text}" for name, text in inner.items() if text)
    if isinstance(fact, (list, tuple)):
        return ", ".join(str(item) for item in cast("list[object]", fact))
    if isinstance(fact, int) and not isinstance(fact, bool) and key.endswith("_bytes"):
        return format_size(fact)
    return plain(fact)
