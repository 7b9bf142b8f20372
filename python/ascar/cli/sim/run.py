"""`ascar sim run`: a scenario to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Arrivals,
    DurationOrNone,
    Json,
    PlotFormat,
    Plots,
    Quiet,
    RulesOrNone,
    Runs,
    ScenarioName,
    ScenarioSettings,
    SeedOrNone,
    Streams,
    TauUs,
    Threads,
    Window,
)

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = examples(
    "ascar sim run random-write                          a scenario that comes with ascar",
    "ascar sim run scenario.toml --runs 20              with intervals",
    "ascar sim run random-write --window 13 --set clients.count=10",
    "ascar sim run random-write --arrivals 0.9 --rules best.rules       latencies of an open loop",
    "ascar sim run random-write --rules best.rules --streams --plots figures",
)


def run(
    scenario: ScenarioName,
    seconds: DurationOrNone = None,
    seed: SeedOrNone = None,
    seeds: Runs = 1,
    window: Window = None,
    tau_us: TauUs = None,
    arrivals: Arrivals = None,
    rules: RulesOrNone = None,
    settings: ScenarioSettings = None,
    streams: Streams = False,
    threads: Threads = None,
    plot: Plots = None,
    plot_format: PlotFormat = "svg",
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Run a simulated storage cluster, and say how fast, how evenly and how fairly it served its clients.

    A seed decides every random draw: the same scenario and seed give the same figures on every machine. With
    --runs the figures are means over runs that differ in their seed alone. With --arrivals the latency of
    operations counts from their arrival; the capacity is what the scenario does in a closed loop under its
    own control, whatever is tried.
    """
    import time

    import msgspec

    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import located
    from ascar.cli.sim.options import check_plots, scenario_of
    from ascar.cli.sim.progress import showing
    from ascar.cli.sim.result import print_run, result_of
    from ascar.errors import InputError
    from ascar.simulation import run_many, seeded, with_arrivals, with_control, with_rules
    from ascar.simulation.arrivals import SHARE_MAX

    check_plots(plot, plot_format)
    wanted = scenario_of(scenario, seconds, seed, settings)
    if arrivals is not None:
        if not 0 < arrivals <= SHARE_MAX:
            raise InputError(f"--arrivals = {arrivals!r}: must be above 0 and at most {SHARE_MAX:g}")
        wanted = with_arrivals(wanted, arrivals, runs=seeds)
    if rules is not None:
        wanted = with_rules(wanted, located(rules))
    wanted = with_control(wanted, window=window, tau_us=tau_us)
    if streams:
        wanted = msgspec.structs.replace(wanted, record_streams=True)
    begun_s = time.perf_counter()
    with showing(quiet=quiet) as listener:
        outcomes = run_many(seeded(wanted, seeds), threads=threads, listener=listener)
    wall_s = time.perf_counter() - begun_s
    drawn: list[Path] = []
    if plot is not None:
        from ascar.cli.sim.plots import draw_run

        drawn = draw_run(wanted, outcomes, plot, plot_format)
    if json:
        emit("sim-run", result_of(wanted, outcomes, wall_s, drawn))
    else:
        print_run(people(), wanted, outcomes, wall_s)
        for path in drawn:
            people().print(f"plot: {path}", soft_wrap=True)
    return 0
