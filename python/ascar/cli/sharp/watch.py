"""`ascar sharp watch`: rules found, verified and taken back while a load runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Budget,
    Caution,
    Connection,
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
from ascar.cli.sharp.library.find import choice_result

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from ascar.results.sharp import WatchedEvent
    from ascar.sharp.library import WatchEvent, WatchOptions
    from ascar.sharp.library.simulated_system import System

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
    caution: Caution = 0.0,
    observe: Observe = "20 s",
    moved: Moved = 0.25,
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
    was in force before is so again. When the load changes, rules are taken off and found anew.
    """
    from contextlib import ExitStack

    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people, say
    from ascar.cli.sharp.library.workloads import objective_named, opened
    from ascar.errors import InputError
    from ascar.results.sharp import SharpWatchResult
    from ascar.sharp.deployment import rules_id
    from ascar.sharp.deployment.managed_system import METRICS
    from ascar.sharp.library import Chooser, RuleWatcher, WatchOptions
    from ascar.sharp.rule_results import rule_set_result
    from ascar.study import duration as seconds_of

    wanted = objective_named(objective)
    unknown = [name for name in wanted.formula.names if name not in METRICS]
    if unknown:
        raise InputError(
            f"--objective names {unknown[0][:80]!r}; a running system tells {', '.join(sorted(METRICS))}"
        )
    until_s = seconds_of("--budget", duration)
    pace = WatchOptions(observe_s=seconds_of("--observe", observe), moved=moved)
    if scenario is None and (seed is not None or settings):
        raise InputError("--seed and --set: need a SCENARIO")
    if scenario is not None and (workload is not None or connection is not None):
        raise InputError("--workload and --connection: apply only to live controllers; leave SCENARIO out")
    chooser = Chooser(opened(library), wanted.text, caution)
    events: list[WatchEvent] = []

    told: list[WatchEvent] = []

    def listen(event: WatchEvent) -> None:
        events.append(event)
        still = event.kind == "same" and bool(told) and told[-1].kind == "same"
        if not quiet and event.kind != "observed" and not still:
            told.append(event)
            say(_line(event))

    with ExitStack() as stack:
        if scenario is None:
            system = _there(stack, workload, connection, pace)
        else:
            system = _simulated(scenario, seed, settings)
        try:
            RuleWatcher(system, chooser, wanted, pace, listener=listen).run(until_s)
        except KeyboardInterrupt:
            system.back()
            raise Interrupted("interrupted; rules on trial are taken back") from None
        kept, time_s = system.in_force(), system.time_s
    if json:
        result = SharpWatchResult(
            objective=wanted.text,
            virtual_seconds=time_s,
            events=tuple(_result(one) for one in events),
            in_force=None if kept is None else rule_set_result(kept.bare()),
        )
        emit("sharp-watch", result)
    else:
        text = "no rules are in force" if kept is None else f"rules {rules_id(kept)} are in force"
        people().print(f"after {time_s:g} seconds: {text}", soft_wrap=True, markup=False)
    return 0


def _simulated(scenario: str, seed: int | None, settings: list[str] | None) -> System:
    from ascar.cli.sim.options import scenario_of
    from ascar.sharp.library import SimulatedClusterSystem

    return SimulatedClusterSystem(scenario_of(scenario, None, seed, settings))


def _there(stack: ExitStack, workload: str | None, connection: Path | None, pace: WatchOptions) -> System:
    """The controllers behind the message server; what is on trial at the end is taken back."""
    from ascar.messaging import Background, find_settings
    from ascar.sharp.library import WatchedSystem

    settings = find_settings("manager", connection)
    background = stack.enter_context(Background())
    trial_s = min(3_600.0, 3 * (pace.settle_s + pace.measure_s) + 30)
    system = WatchedSystem(background, settings, workload, trial_s=trial_s)
    stack.callback(system.close)
    return system


def _line(event: WatchEvent) -> str:
    from ascar.render import percent

    line = f"{event.at_s:.0f} s: {_KINDS[event.kind]}"
    if event.choice is not None:
        line += f": {event.choice.rules}, made for {event.choice.made_for}"
    if event.kind == "deployed" and event.choice is not None:
        line += f", {percent(event.choice.gain)} expected"
    if event.shown is not None:
        gain = "unknown" if event.shown.gain is None else event.shown.gain.words
        line += f", gain {gain} after {len(event.shown.reference)} pairs"
    if event.distance is not None:
        line += f", distance {event.distance:.2f}"
    return line


def _result(event: WatchEvent) -> WatchedEvent:
    from ascar.cli.sharp.files import estimates_of
    from ascar.results.sharp import WatchedEvent

    shown, estimates = event.shown, estimates_of(event.shown)
    return WatchedEvent(
        kind=event.kind,
        at_s=event.at_s,
        choice=None if event.choice is None else choice_result(event.choice),
        gain=estimates.pop("gain_relative"),
        **estimates,
        pairs=None if shown is None else len(shown.reference),
        distance=event.distance,
    )
