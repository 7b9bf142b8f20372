"""`ascar sharp refine`: a rule's action improved while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascar.cli.connection import Connection
from ascar.cli.options import Json, Quiet, examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.sharp import Action
    from ascar.sharp.refinement import Refined, Step

__all__ = ["EXAMPLES", "refine"]

EXAMPLES = examples(
    "ascar sharp refine --workload random --budget '2 h'",
    "ascar sharp refine --rule 3 --tau-us 0,20000 --objective tp-stdev:1 --out better.txt",
)
_KINDS = {
    "better": "better, followed",
    "worse": "worse, put back",
    "no-difference": "no difference shown, put back",
    "loss": "a great loss, put back at once",
    "verified": "better than at the beginning",
    "put-back": "not shown to be better than at the beginning: put back",
}


def refine(
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of this workload's controllers; default: all.")
    ] = None,
    rule: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="This rule, from 1; default: the hottest.")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            metavar="OBJECTIVE", help="A form of section 3.1.5, or a formula over what intervals tell."
        ),
    ] = "throughput",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Begin no step after so long, of the system's time; default: no limit."
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, metavar="N", help="Comparisons at most.")] = 60,
    restarts: Annotated[int, typer.Option(min=0, metavar="N", help="Jumps to random actions.")] = 2,
    settle: Annotated[
        str, typer.Option(metavar="DURATION", help="Left out after a change of rules.")
    ] = "4 s",
    interval: Annotated[
        str, typer.Option(metavar="DURATION", help="Length of a measured interval.")
    ] = "10 s",
    m: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Bounds of the multiplier, e.g. 0.5,1.5; default: table 3.2's, or around the rule.",
        ),
    ] = None,
    b: Annotated[str | None, typer.Option(metavar="LOW,HIGH", help="Bounds of what is added.")] = None,
    tau_us: Annotated[str | None, typer.Option(metavar="LOW,HIGH", help="Bounds of the gap.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the order of proposals, and of jumps.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rules in force at the end.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    connection: Connection = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Improve a rule while it runs: random-restart hill climbing, judged by comparisons in turns.

    A changed rule is followed on trial; when this command dies, controllers put it back by themselves. What
    was changed is compared with the beginning at the end, and stays only when it is shown to be better.
    """
    import math
    from dataclasses import replace

    from ascar.cli.connection import roster
    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.output import emit, people
    from ascar.errors import InputError
    from ascar.messaging import Background, find_settings
    from ascar.sharp import objective_of
    from ascar.sharp.deployment import Expected, ManagedSystem, rules_id
    from ascar.sharp.hill import Bounds
    from ascar.sharp.refinement import Course, Refiner
    from ascar.sharp.running import METRICS
    from ascar.study import duration

    if out is not None:
        check_new(out, force=force)
    goal = objective_of(objective)
    unknown = [name for name in goal.formula.names if name not in METRICS]
    if unknown:
        raise InputError(
            f"--objective names {unknown[0][:80]!r}; a running system tells {', '.join(sorted(METRICS))}"
        )
    course = Course(
        settle_s=duration("--settle", settle),
        measure_s=duration("--interval", interval),
        steps_max=steps,
        restarts=restarts,
        seed=seed,
    )
    given = _bounds({"m100": ("--m", m), "b100": ("--b", b), "tau_us": ("--tau-us", tau_us)})
    budget_s = math.inf if budget is None else duration("--budget", budget)
    settings = find_settings("manager", connection)
    trial_s = 3 * (course.settle_s + course.measure_s) + 30
    with Background() as background:
        system = ManagedSystem(background, settings, workload, trial_s=trial_s)
        try:
            rules = system.in_force()
            if rules is None:
                raise InputError("rules: none are in force; `ascar sharp deploy` some first")
            if rule is not None and rule > len(rules.rules):
                raise InputError(f"--rule = {rule}: the rules in force are 1 to {len(rules.rules)}")
            at = rules.hottest() if rule is None else rule - 1
            until_s = system.time_s + budget_s
            refiner = Refiner(
                system,
                goal,
                replace(Bounds.around(rules.rules[at].action), **given),
                course,
                over=lambda: system.time_s >= until_s,
                listener=_listener(quiet=quiet),
            )
            found = refiner.refine(rules, at)
        finally:
            system.close()
    if workload is not None:
        known = roster()
        known.write(Expected(workload=workload, rules=rules_id(found.rules), controllers=system.controllers))
    if out is not None:
        write_new(out, found.rules.text(), force=force)
    if json:
        emit("sharp-refine", _document(found))
    else:
        people().print(_words(found), soft_wrap=True, markup=False)
    return 0


def _bounds(given: dict[str, tuple[str, str | None]]) -> dict[str, tuple[int, int]]:
    """The bounds of the command line, by field.

    Raises:
        InputError: they are no two numbers, or outside of what may be asked for.
    """
    from ascar.errors import InputError
    from ascar.sharp.ranges import LIMITS

    bounds: dict[str, tuple[int, int]] = {}
    for name, (option, text) in given.items():
        if text is None:
            continue
        low, high = LIMITS[name]
        scale = 1 if name == "tau_us" else 100
        try:
            found = [round(float(part) * scale) for part in text.split(",")]
        except (ValueError, OverflowError):
            found = []
        if len(found) != 2 or not low <= found[0] <= found[1] <= high:
            raise InputError(
                f"{option} = {text[:80]!r}: must be two numbers from {low / scale:g} to {high / scale:g}, "
                "the lower one first"
            )
        bounds[name] = found[0], found[1]
    return bounds


def _listener(*, quiet: bool) -> Callable[[Step], None]:
    from ascar.cli.output import say

    def tell(step: Step) -> None:
        if not quiet:
            say(_line(step))

    return tell


def _line(step: Step) -> str:
    from ascar.cli.text import percent

    gain = ""
    if step.gain_relative is not None:
        low, high = step.gain_low, step.gain_high
        limits = "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"
        gain = f": {percent(step.gain_relative)}{limits}"
    return f"{_action(step.old)} to {_action(step.new)}{gain}, {step.pairs} pairs: {_KINDS[step.kind]}"


def _action(action: Action) -> str:
    m100 = 100 if action.m100 < 0 else action.m100
    return f"m {m100 / 100:g}, b {action.b100 / 100:g}, tau {action.tau_us / 1_000:g} ms"


def _words(found: Refined) -> str:
    if found.verification is None:
        return f"rule {found.rule + 1}: nothing was better; {len(found.steps)} comparisons"
    return f"rule {found.rule + 1}: {_line(found.verification)}; {len(found.steps)} comparisons"


def _document(found: Refined) -> dict[str, Any]:
    from ascar.cli.sharp.files import set_ready
    from ascar.sharp.deployment import rules_id

    return {
        "rule": found.rule + 1,
        "before": rules_id(found.before),
        "rules": rules_id(found.rules),
        "rule_set": set_ready(found.rules),
        "stopped": found.stopped,
        "intervals": found.intervals,
        "verification": None if found.verification is None else _step(found.verification),
        "steps": [_step(one) for one in found.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "restart": step.restart,
        "old": _numbers(step.old),
        "new": _numbers(step.new),
        "gain_relative": step.gain_relative,
        "gain_low": step.gain_low,
        "gain_high": step.gain_high,
        "pairs": step.pairs,
    }


def _numbers(action: Action) -> dict[str, int]:
    return {"m_x100": action.m100, "b_x100": action.b100, "tau_us": action.tau_us}
