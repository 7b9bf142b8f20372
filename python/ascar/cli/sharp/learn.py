"""`ascar sharp learn`: the numbers of rules learned online, while controllers follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    Connection,
    ConstraintTexts,
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
    from ascar.rule_learning.learning import Learned

EXAMPLES = examples(
    "ascar sharp learn --workload writers --budget '30 min' --out better.txt",
    "ascar sharp learn random-write --rules rules.txt --fields m100,b100    a simulated cluster of its own",
)


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
    constraints: ConstraintTexts = None,
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
    from ascar.cli.connection import roster
    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people, say
    from ascar.cli.sharp.files import read
    from ascar.cli.sharp.system import scenario_or_live
    from ascar.history import History
    from ascar.rule_learning.result import learn_result
    from ascar.rule_learning.task import LearnTask, learn_rules
    from ascar.sharp import objective_of
    from ascar.sharp.metric_bounds import bounds_of
    from ascar.study import duration as seconds_of

    if out is not None:
        check_new(out, force=force)
    task = LearnTask(
        objective_of(objective),
        seconds_of("--budget", duration),
        scenario_or_live(
            scenario,
            simulated={"--set": settings},
            live={"--workload": workload, "--connection": connection},
            seed=seed,
            settings=settings,
        ),
        workload,
        connection,
        None if rules is None else read(rules).bare(),
        tuple(one.strip() for one in fields.split(",")),
        None if rule is None else tuple(one - 1 for one in rule),
        seed or 0,
        bounds_of(constraints),
    )

    def told(left_s: float, settings_seen: int) -> None:
        if not quiet:
            say(f"{left_s:.0f} s left; {settings_seen} settings seen")

    try:
        found = learn_rules(task, roster(), History, told)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; rules on trial are taken back") from None
    if out is not None:
        write_new(out, found.after.text(), force=force)
    if json:
        emit("sharp-learn", learn_result(task.objective.text, found))
    else:
        people().print(_words(found), soft_wrap=True, markup=False)
        people().print(found.after.text(), end="", markup=False)
    return 0


def _words(found: Learned) -> str:
    learned, comparison = f"{found.ticks} ticks, {found.settings} settings; ", found.comparison
    if comparison is None or comparison.gain is None:
        return learned + "nothing was better than the rules of the beginning"
    kept = "kept"
    if found.broken:
        kept = f"not kept, for {found.broken}: the rules of the beginning are in force"
    elif not comparison.improved:
        kept = "not shown to be better: the rules of the beginning are in force"
    return f"{learned}{comparison.gain.words}, {comparison.gain.pairs} pairs in turns; {kept}"
