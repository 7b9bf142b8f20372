"""`ascar sim sweep`: how throughput depends on window and gap."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli.options import Json, Quiet, examples
from ascar.cli.sim.options import Plot, PlotFormat, Seconds, Seed, Seeds, Settings, Threads

EXAMPLES = examples(
    "ascar sim sweep random-write",
    "ascar sim sweep random-write --window 4,8,16,32 --tau-us 0,10000,20000 --seeds 10",
    "ascar sim sweep random-write random-read sequential-write --plot figures",
)


def sweep(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="Scenario files (.toml), or names of presets."),
    ],
    window: Annotated[
        str, typer.Option(metavar="N,M", help="Windows: requests that a stream keeps in flight.")
    ] = "1,2,4,8,16,32,64,128",
    tau_us: Annotated[str, typer.Option(metavar="N,M", help="Least gaps between a stream's requests.")] = "0",
    figure: Annotated[
        str, typer.Option(metavar="NAME", help="What is compared, e.g. throughput_while_active_mb_per_s.")
    ] = "throughput_mb_per_s",
    seconds: Seconds = None,
    seed: Seed = None,
    seeds: Seeds = 4,
    settings: Settings = None,
    threads: Threads = None,
    plot: Plot = None,
    plot_format: PlotFormat = "svg",
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Run scenarios with every one of several static windows and gaps: the curve, and what its best is worth.

    The gain of the best over the scenario as it is comes from seeds of its own: the best of many is also the
    luckiest.
    """
    import time

    from ascar.cli.output import emit, people
    from ascar.cli.sim.options import check_plots, numbers, scenario_of
    from ascar.cli.sim.plots import draw_sweep
    from ascar.cli.sim.progress import showing
    from ascar.cli.sim.swept import document, print_sweep
    from ascar.simulation import Grid, Swept
    from ascar.simulation import sweep as sweep_grid

    check_plots(plot, plot_format)
    grid = Grid(numbers("--window", window), numbers("--tau-us", tau_us), seeds, figure)
    wanted = [scenario_of(one, seconds, seed, settings) for one in scenarios]
    begun_s = time.perf_counter()
    found: list[Swept] = []
    for one in wanted:
        with showing(quiet=quiet, what=one.name) as listener:
            found.append(sweep_grid(one, grid, threads=threads, listener=listener))
    wall_s = time.perf_counter() - begun_s
    drawn = [] if plot is None else draw_sweep(found, figure, plot, plot_format)
    if json:
        emit("sim-sweep", document(found, grid, wall_s, drawn))
    else:
        print_sweep(people(), found, grid, wall_s)
        for path in drawn:
            people().print(f"plot: {path}", soft_wrap=True)
    return 0
