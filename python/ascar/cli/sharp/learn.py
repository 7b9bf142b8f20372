"""`ascar sharp learn`: the numbers of rules learned online, while controllers follow them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    Connection,
    Fields,
    Force,
    Json,
    ObjectiveText,
    OnlyRules,
    OutOrNone,
    Quiet,
    RulesOrNone,
    ScenarioSettings,
    SeedOrNone,
    WorkloadOrNone,
)

if TYPE_CHECKING:
    from contextlib import ExitStack

    from ascar.results.sharp import SharpLearnResult
    from ascar.rule_learning.learning import Learned
    from ascar.sharp import RuleSet
    from ascar.sharp.running import TickedSystem

EXAMPLES = examples(
    "ascar sharp learn --workload writers --budget '30 min' --out better.txt",
    "ascar sharp learn random-write --rules rules.txt --fields m100,b100    a simulated cluster of its own",
)
_TRIAL_S = 120.0


def learn(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="A scenario file (.toml), or the name of a preset; without one: the live controllers.",
        ),
    ] = None,
    workload: WorkloadOrNone = None,
    rules: RulesOrNone = None,
    fields: Fields = "m100,b100,tau_us",
    rule: OnlyRules = None,
    objective: ObjectiveText = "throughput",
    duration: Budget = "20 min",
    out: OutOrNone = None,
    force: Force = False,
    connection: Connection = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Learn the numbers of rules online: CAPES turns them as knobs while controllers follow the rules.

    Rules that are tried are on trial: when this command dies, controllers put back what they kept. At the
    end the best are compared with those of the beginning, in turns, and kept only if they are shown to be
    better. From then on controllers follow them without a word to anybody.
    """
    from contextlib import ExitStack

    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people, say
    from ascar.errors import InputError
    from ascar.rule_learning.learning import learn_numbers
    from ascar.rule_learning.system import RuleSystem
    from ascar.sharp import objective_of
    from ascar.sharp.deployment.managed_system import METRICS
    from ascar.study import duration as seconds_of

    if out is not None:
        check_new(out, force=force)
    goal = objective_of(objective)
    unknown = [name for name in goal.formula.names if name not in METRICS]
    if unknown:
        raise InputError(
            f"--objective names {unknown[0][:80]!r}; a running system tells {', '.join(sorted(METRICS))}"
        )
    learn_s = seconds_of("--budget", duration)

    def told(left_s: float, settings_seen: int) -> None:
        if not quiet:
            say(f"{left_s:.0f} s left; {settings_seen} settings seen")

    with ExitStack() as stack:
        system = _system(stack, scenario, (workload, connection), (seed, settings))
        before = _kept(system, rules, live=scenario is None)
        turned = RuleSystem(system, before, goal).turn(
            [one.strip() for one in fields.split(",")], None if rule is None else [one - 1 for one in rule]
        )
        try:
            found = learn_numbers(system, turned, goal, learn_s=learn_s, seed=seed or 0, told=told)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; rules on trial are taken back") from None
        if scenario is None and workload is not None:
            _noted(workload, found.after, system)
    if out is not None:
        write_new(out, found.after.text(), force=force)
    if json:
        emit("sharp-learn", _result(goal.text, found))
    else:
        people().print(_words(found), soft_wrap=True, markup=False)
        people().print(found.after.text(), end="", markup=False)
    return 0


def _system(
    stack: ExitStack,
    scenario: str | None,
    there: tuple[str | None, Path | None],
    how: tuple[int | None, list[str] | None],
) -> TickedSystem:
    """A simulated cluster, or the controllers behind the message server.

    Raises:
        InputError: options of the one were given with the other.
    """
    from ascar.errors import InputError
    from ascar.messaging import Background, find_settings
    from ascar.sharp.deployment import ManagedSystem
    from ascar.sharp.running import SimulatedRunning

    workload, connection = there
    seed, settings = how
    if scenario is None:
        if settings:
            raise InputError("--set: needs a SCENARIO")
        reach = find_settings("manager", connection)
        background = stack.enter_context(Background())
        system: TickedSystem = ManagedSystem(background, reach, workload, trial_s=_TRIAL_S)
    else:
        from ascar.cli.sim.options import scenario_of

        if workload is not None or connection is not None:
            raise InputError(
                "--workload and --connection: apply only to live controllers; leave SCENARIO out"
            )
        system = SimulatedRunning(scenario_of(scenario, None, seed, settings))
    stack.callback(system.close)
    return system


def _kept(system: TickedSystem, given: Path | None, *, live: bool) -> RuleSet:
    """The rules that are turned, kept by the system.

    Raises:
        InputError: there are none.
    """
    from ascar.cli.sharp.files import read
    from ascar.errors import InputError

    kept = system.in_force()
    if given is None:
        if kept is None:
            where = "`ascar sharp deploy` some first" if live else "give --rules FILE"
            raise InputError(f"rules: none are in force; {where}")
        return kept.bare()
    rules = read(given).bare()
    if kept is None or kept.bare() != rules:
        if live:
            raise InputError(
                f"--rules = {str(given)!r}: others are in force; `ascar sharp deploy` these first"
            )
        system.try_out(rules)
        system.keep()
    return rules


def _noted(workload: str, rules: RuleSet, system: TickedSystem) -> None:
    """Who follows what, for later deployments."""
    from ascar.cli.connection import roster
    from ascar.sharp.deployment import ExpectedDeployment, ManagedSystem, rules_id

    assert isinstance(system, ManagedSystem)
    roster().write(
        ExpectedDeployment(workload=workload, rules=rules_id(rules), controllers=system.controllers)
    )


def _result(objective: str, found: Learned) -> SharpLearnResult:
    from ascar.cli.sharp.files import estimates_of
    from ascar.results.sharp import SharpLearnResult
    from ascar.sharp.deployment import rules_id
    from ascar.sharp.rule_results import rule_set_result

    return SharpLearnResult(
        objective=objective,
        ticks=found.ticks,
        settings=found.settings,
        before=rules_id(found.before),
        rules=rules_id(found.after),
        rule_set=rule_set_result(found.after),
        improved=found.after != found.before,
        **estimates_of(found.comparison),
        pairs=0 if found.comparison is None else len(found.comparison.reference),
    )


def _words(found: Learned) -> str:
    learned, comparison = f"{found.ticks} ticks, {found.settings} settings; ", found.comparison
    if comparison is None or comparison.gain is None:
        return learned + "nothing was better than the rules of the beginning"
    kept = "kept"
    if not comparison.improved:
        kept = "not shown to be better: the rules of the beginning are in force"
    return f"{learned}{comparison.gain.words}, {comparison.gain.pairs} pairs in turns; {kept}"
