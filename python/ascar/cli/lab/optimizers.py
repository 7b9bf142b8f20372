"""`ascar lab optimizers`: which optimizer to trust."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.options import Json, Quiet, examples

EXAMPLES = examples(
    "ascar lab optimizers --table kyber.csv --objective read_iops --direction max --parameters a,b",
    "ascar lab optimizers --table t.csv --objective time_s --direction min --noise gaussian:0.1",
    "ascar lab optimizers --benchmark benchmarks/optimizers.toml --tables DIR --budget '1 h' --out results",
    "ascar lab optimizers --table t.csv --objective iops --direction max --optimizers genetic \\",
    "    --sweep genetic.mutation=0.01,0.02,0.04,0.08,0.16,0.32,0.64 --plots figures",
)


def optimizers(
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of measurements: CSV or Parquet.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The table's column that is optimised.")
    ] = None,
    direction: Annotated[str | None, typer.Option(metavar="min|max", help="Which way is better.")] = None,
    parameters: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that are parameters; default: all but the objective."),
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(metavar="C,D", help="Columns that are no parameters; the others are.")
    ] = None,
    seconds: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What an evaluation took, for plots over time.")
    ] = None,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="replicates (default): a row of the configuration at random; gaussian:RELATIVE_SD; none.",
        ),
    ] = None,
    restrict: Annotated[
        str | None,
        typer.Option(
            metavar="A=V,B",
            help="Compare with searches that leave these at a value (of the first row, when none is given).",
        ),
    ] = None,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=V,B=W",
            help="A configuration to begin with; repeat. Annealing, dqn, random take the first.",
        ),
    ] = None,
    benchmark: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Tables and made-up systems, checkpoints, runs, noise."),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the benchmark's tables are; default: beside it.")
    ] = None,
    problems: Annotated[
        str | None, typer.Option(metavar="A,B", help="Of the benchmark only these; default: all.")
    ] = None,
    names: Annotated[
        str, typer.Option("--optimizers", metavar="A,B", help="Optimizers, installed ones of others too.")
    ] = "random,annealing,genetic,gp,trees,dqn,auto",
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND.OPTION=V,W", help="Variants of an optimizer that differ in one option; repeat."
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Searches of each; default 100.")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="In each search; default 100.")
    ] = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(metavar="N,M", help="Judge after so many evaluations too; default 25,50,100."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the first run; default 1.")] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Begin no run later than this.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=0, max=1024, help="Processes; 0: none beside this one. Default: one a core."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Keep every run's raw results; go on from them later."
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw what the searches did; one folder a problem.")
    ] = None,
    plot_format: Annotated[str, typer.Option(metavar="svg|png", help="Of the plots.")] = "svg",
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Compare optimizers by simulated searches over recorded measurements, whose truth is known.

    Each run is one search with a seed of its own. What it recommends at each checkpoint is judged by the
    truth: the table's value, or the mean of its replicates. Regret is 0 at the best and 1 at the table's
    median. Exit status 3 when the budget ended it first; the same command with the same --out goes on.
    """
    from ascar.cli.lab.plots import check_format, draw
    from ascar.cli.lab.progress import showing_runs
    from ascar.cli.lab.request import Asked, Request
    from ascar.cli.lab.result import document, print_results
    from ascar.cli.output import emit, people
    from ascar.lab import Archive, Results, carry_out

    check_format(plot_format)
    asked = Asked(
        table, objective, direction, parameters, ignore, seconds, noise, restrict, tuple(start or ()),
        benchmark, tables, problems, names, tuple(sweep or ()), runs, evaluations, checkpoints, seed, budget,
        workers,
    )  # fmt: skip
    request = Request.of(asked)
    archive = None if out is None else Archive(out)
    with showing_runs(quiet=quiet) as each:
        done = carry_out(request.experiments(), archive, request.conduct, each)
    results = Results.of({one: done[one] for one in request.of_contenders()})
    sweeps = {
        one.name: Results.of({two: done[two] for two in request.of_sweep(one)}) for one in request.sweeps
    }
    missing = request.missing(done)
    drawn = [] if plots is None else draw(request, done, plots, plot_format)
    if json:
        emit("lab-optimizers", document(request, results, sweeps, missing, drawn))
    else:
        print_results(people(), results, sweeps, missing)
        for path in drawn:
            people().print(f"plot: {path}", soft_wrap=True)
    return 3 if missing else 0
