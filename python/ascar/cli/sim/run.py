"""`ascar sim run`: a scenario to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.options import Json, Quiet, examples
from ascar.cli.sim.options import Plot, PlotFormat, Seconds, Seed, Seeds, Settings, Threads

EXAMPLES = examples(
    "ascar sim run random-write                          a scenario that comes with ascar",
    "ascar sim run scenario.toml --seeds 20              with intervals",
    "ascar sim run random-write --window 13 --set clients.count=10",
    "ascar sim run random-write --rules best.rules --streams --plot figures",
)


def run(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario file (.toml), or the name of a preset.")
    ],
    seconds: Seconds = None,
    seed: Seed = None,
    seeds: Seeds = 1,
    window: Annotated[
        float | None, typer.Option(metavar="N", help="Requests that a stream keeps in flight, at first.")
    ] = None,
    tau_us: Annotated[
        float | None, typer.Option(metavar="N", help="Least gap between a stream's requests, at first.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Control all streams by this rule set.")
    ] = None,
    settings: Settings = None,
    streams: Annotated[
        bool, typer.Option("--streams", help="Keep a series of each stream (a client and a server).")
    ] = False,
    threads: Threads = None,
    plot: Plot = None,
    plot_format: PlotFormat = "svg",
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Run a simulated storage cluster, and say how fast, how evenly and how fairly it served its clients.

    A seed decides every random draw: the same scenario and seed give the same figures on every machine. With
    --seeds the figures are means over runs that differ in their seed alone.
    """
    import time

    import msgspec

    from ascar.cli.output import emit, people
    from ascar.cli.sim.options import check_plots, scenario_of
    from ascar.cli.sim.plots import draw_run
    from ascar.cli.sim.progress import showing
    from ascar.cli.sim.result import document, print_run
    from ascar.simulation import run_many, seeded, with_control, with_rules

    check_plots(plot, plot_format)
    wanted = scenario_of(scenario, seconds, seed, settings)
    if rules is not None:
        wanted = with_rules(wanted, rules)
    wanted = with_control(wanted, window=window, tau_us=tau_us)
    if streams:
        wanted = msgspec.structs.replace(wanted, record_streams=True)
    begun_s = time.perf_counter()
    with showing(quiet=quiet) as listener:
        outcomes = run_many(seeded(wanted, seeds), threads=threads, listener=listener)
    wall_s = time.perf_counter() - begun_s
    drawn = [] if plot is None else draw_run(wanted, outcomes, plot, plot_format)
    if json:
        emit("sim-run", document(wanted, outcomes, wall_s, drawn))
    else:
        print_run(people(), wanted, outcomes, wall_s)
        for path in drawn:
            people().print(f"plot: {path}", soft_wrap=True)
    return 0
