"""`ascar sharp watch`: rules found, verified and taken back while a load runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    Caution,
    CheckShare,
    Connection,
    ConstraintTexts,
    Json,
    LibraryFile,
    Moved,
    ObjectiveText,
    Observe,
    Quiet,
    ScenarioSettings,
    SeedOrNone,
    WorkloadOrNone,
)

if TYPE_CHECKING:
    from ascar.sharp.matching import WatchEvent

EXAMPLES = examples(
    "ascar sharp watch random-write --budget '10 min'",
    "ascar sharp watch scenario.toml --objective tp-stdev:1 --caution 1 --json",
    "ascar sharp watch --workload writers --budget '8 h'          controllers behind a message server",
)
_KINDS = {
    "observed": "features taken",
    "same": "the workload is the one that it was",
    "changed": "the workload has changed, rules are found anew",
    "none": "no rules are expected to bring a gain",
    "deployed": "rules on trial",
    "compared": "compared with none in force",
    "verified": "shown to be better, kept",
    "rolled-back": "not shown to be better, taken back",
    "checked": "checked against none",
    "doubted": "taken off until they show their gain again",
    "idle": "the clients do nothing",
    "replaced": "others have changed the rules",
}


def watch(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="A scenario file (.toml), or the name of a preset; without one: the live controllers.",
        ),
    ] = None,
    workload: WorkloadOrNone = None,
    duration: Budget = "10 min",
    objective: ObjectiveText = "throughput",
    constraints: ConstraintTexts = None,
    caution: Caution = 0.0,
    observe: Observe = "20 s",
    moved: Moved = 0.25,
    check_share: CheckShare = "5%",
    library: LibraryFile = None,
    connection: Connection = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Watch a system: observe its load, find rules in the library, try them, keep what helps.

    The system is a simulated cluster of its own, in virtual time, or, where no scenario is named, the
    controllers of a workload behind a message server.

    Rules are kept only when intervals with and without them, in turns, show that they are better; else what
    was in force before is so again. Rules that are in force already have to show their gain, too. When the
    load changes, rules are taken off and found anew. Rules that are kept are looked at on and on, and have to
    show their gain again when there is a reason to doubt it.
    """
    from ascar.cli.goals import share_of
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.library.workloads import objective_named, opened
    from ascar.cli.output import emit, people, say
    from ascar.cli.sharp.system import scenario_or_live
    from ascar.sharp.client_shares import check_bounds
    from ascar.sharp.deployment import rules_id
    from ascar.sharp.deployment.managed_system import check_objective
    from ascar.sharp.matching import Chooser, RuleWatcher, WatchOptions, watched
    from ascar.sharp.matching.results import watch_result
    from ascar.sharp.metric_bounds import bounds_of
    from ascar.study import duration as seconds_of

    wanted = objective_named(objective)
    check_objective(wanted)
    until_s = seconds_of("--budget", duration)
    pace = WatchOptions(
        observe_s=seconds_of("--observe", observe),
        check_share=share_of("--check-share", check_share),
        moved=moved,
    )
    simulated = scenario_or_live(
        scenario,
        simulated={"--seed": seed, "--set": settings},
        live={"--workload": workload, "--connection": connection},
        seed=seed,
        settings=settings,
    )
    bounds = bounds_of(constraints)
    check_bounds(bounds)
    chooser = Chooser(opened(library), wanted.text, caution)
    events: list[WatchEvent] = []

    told: list[WatchEvent] = []

    def listen(event: WatchEvent) -> None:
        events.append(event)
        still = event.kind in ("same", "idle") and bool(told) and told[-1].kind == event.kind
        if not quiet and event.kind != "observed" and not still:
            told.append(event)
            say(_line(event))

    with watched(simulated, workload, connection, pace) as system:
        try:
            RuleWatcher(system, chooser, wanted, pace, listener=listen, bounds=bounds).run(until_s)
        except KeyboardInterrupt:
            system.back()
            raise Interrupted("interrupted; rules on trial are taken back") from None
        kept, time_s = system.in_force(), system.time_s
    if json:
        emit("sharp-watch", watch_result(wanted.text, time_s, events, kept))
    else:
        text = "no rules are in force" if kept is None else f"rules {rules_id(kept)} are in force"
        people().print(f"after {time_s:g} seconds: {text}", soft_wrap=True, markup=False)
    return 0


def _line(event: WatchEvent) -> str:
    from ascar.render import percent
    from ascar.sharp.matching import Choice

    line, choice = f"{event.at_s:.0f} s: {_KINDS[event.kind]}", event.choice
    if isinstance(choice, Choice):
        line += f": {choice.rules}, made for {choice.made_for}"
        if event.kind == "deployed":
            line += f", {percent(choice.gain)} expected"
    elif choice is not None:
        line += f": {choice.rules}, in force before"
    if event.shown is not None:
        gain = "unknown" if event.shown.gain is None else event.shown.gain.words
        line += f", gain {gain} after {len(event.shown.reference)} pairs"
    if event.reason:
        line += f"; {event.reason}"
    if event.distance is not None:
        line += f", distance {event.distance:.2f}"
    return line
