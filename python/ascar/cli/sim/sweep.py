"""`ascar sim sweep`: how throughput depends on window and gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    DurationOrNone,
    Figure,
    Json,
    PlotFormat,
    Plots,
    Quiet,
    Runs,
    ScenarioSettings,
    SeedOrNone,
    TausUs,
    Threads,
    Windows,
)

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = examples(
    "ascar sim sweep random-write",
    "ascar sim sweep random-write --windows 4,8,16,32 --taus-us 0,10000,20000 --runs 10",
    "ascar sim sweep random-write random-read sequential-write --plots figures",
)


def sweep(
    scenarios: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO...", help="Scenario files (.toml), or names of presets."),
    ],
    window: Windows = "1,2,4,8,16,32,64,128",
    tau_us: TausUs = "0",
    figure: Figure = "throughput_mb_per_s",
    seconds: DurationOrNone = None,
    seed: SeedOrNone = None,
    seeds: Runs = 4,
    settings: ScenarioSettings = None,
    threads: Threads = None,
    plot: Plots = None,
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
    from ascar.cli.sim.progress import showing
    from ascar.cli.sim.swept import print_sweep, result_of
    from ascar.simulation import Grid, Swept
    from ascar.simulation import sweep as sweep_grid

    check_plots(plot, plot_format)
    grid = Grid(numbers("--windows", window), numbers("--taus-us", tau_us), seeds, figure)
    wanted = [scenario_of(one, seconds, seed, settings) for one in scenarios]
    begun_s = time.perf_counter()
    found: list[Swept] = []
    for one in wanted:
        with showing(quiet=quiet, what=one.name) as listener:
            found.append(sweep_grid(one, grid, threads=threads, listener=listener))
    wall_s = time.perf_counter() - begun_s
    drawn: list[Path] = []
    if plot is not None:
        from ascar.cli.sim.plots import draw_sweep

        drawn = draw_sweep(found, figure, plot, plot_format)
    if json:
        emit("sim-sweep", result_of(found, grid, wall_s, drawn))
    else:
        print_sweep(people(), found, grid, wall_s)
        for path in drawn:
            people().print(f"plot: {path}", soft_wrap=True)
    return 0
