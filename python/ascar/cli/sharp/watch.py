"""`ascar sharp watch`: rules found, verified and taken back while a load runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ascar.cli.options import Json, Quiet, examples
from ascar.cli.sharp.library.find import Caution, choice_ready
from ascar.cli.sharp.library.workloads import LibraryFile, ObjectiveText
from ascar.cli.sim.options import Seed, Settings

if TYPE_CHECKING:
    from ascar.sharp.library import Event

__all__ = ["EXAMPLES", "watch"]

EXAMPLES = examples(
    "ascar sharp watch random-write --for '10 min'",
    "ascar sharp watch scenario.toml --objective tp-stdev:1 --caution 1 --json",
)


def watch(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario file (.toml), or the name of a preset.")
    ],
    duration: Annotated[str, typer.Option("--for", metavar="DURATION", help="Virtual time.")] = "10 min",
    objective: ObjectiveText = "throughput",
    caution: Caution = 0.25,
    observe: Annotated[str, typer.Option(metavar="DURATION", help="That features are taken from.")] = "20 s",
    moved: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Distance of features at which a workload is another one."),
    ] = 0.25,
    library: LibraryFile = None,
    seed: Seed = None,
    settings: Settings = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Watch a simulated cluster: observe its load, find rules in the library, try them, keep what helps.

    Rules are kept only when intervals with and without them, in turns, show that they are better; else what
    was in force before is so again. When the load changes, rules are taken off and found anew.
    """
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people, say
    from ascar.cli.sharp.files import set_ready
    from ascar.cli.sharp.library.workloads import objective_named, opened
    from ascar.cli.sim.options import scenario_of
    from ascar.errors import InputError
    from ascar.sharp.library import Chooser, Pace, SimulatedSystem, Watcher
    from ascar.sharp.running import METRICS
    from ascar.study import duration as seconds_of

    wanted = objective_named(objective)
    unknown = [name for name in wanted.formula.names if name not in METRICS]
    if unknown:
        raise InputError(
            f"--objective names {unknown[0][:80]!r}; a running system tells {', '.join(sorted(METRICS))}"
        )
    until_s = seconds_of("--for", duration)
    pace = Pace(observe_s=seconds_of("--observe", observe), moved=moved)
    system = SimulatedSystem(scenario_of(scenario, None, seed, settings))
    chooser = Chooser(opened(library), wanted.text, caution)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if not quiet and event.kind != "observed":
            say(_line(event))

    watcher = Watcher(system, chooser, wanted, pace, listener=listen)
    try:
        watcher.run(until_s)
    except KeyboardInterrupt:
        system.back()
        raise Interrupted("interrupted; rules on trial are taken back") from None
    kept = system.in_force()
    if json:
        emit(
            "sharp-watch",
            {
                "objective": wanted.text,
                "virtual_seconds": system.time_s,
                "events": [_ready(one) for one in events],
                "in_force": None if kept is None else set_ready(kept.bare()),
            },
        )
    else:
        text = "no rules are in force" if kept is None else f"{len(kept.rules)} rules are in force"
        people().print(f"after {system.time_s:g} virtual seconds: {text}", soft_wrap=True, markup=False)
    return 0


def _line(event: Event) -> str:
    from ascar.cli.text import percent

    line = f"{event.at_s:.0f} s: {event.kind}"
    if event.choice is not None:
        line += f" {event.choice.rules} of {event.choice.made_for}"
    if event.kind == "deployed" and event.choice is not None:
        line += f", {percent(event.choice.gain)} expected"
    if event.shown is not None:
        low, high = event.shown.low, event.shown.high
        interval = "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"
        line += f", gain {percent(event.shown.gain)}{interval} after {event.shown.pairs} pairs"
    if event.distance is not None:
        line += f", distance {event.distance:.2f}"
    return line


def _ready(event: Event) -> dict[str, Any]:
    shown = event.shown
    return {
        "kind": event.kind,
        "at_s": event.at_s,
        "choice": None if event.choice is None else choice_ready(event.choice),
        "gain": None if shown is None else shown.gain,
        "gain_low": None if shown is None else shown.low,
        "gain_high": None if shown is None else shown.high,
        "pairs": None if shown is None else shown.pairs,
        "distance": event.distance,
    }
