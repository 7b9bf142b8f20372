"""`ascar lab optimizers`: which optimizer to trust."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Benchmark,
    BudgetOrNone,
    Checkpoints,
    Direction,
    DurationColumn,
    EvaluationsOrNone,
    Ignore,
    Json,
    Noise,
    ObjectiveTextOrNone,
    Optimizers,
    Parameters,
    PlotFormat,
    Plots,
    Problems,
    Quiet,
    Restrict,
    Results,
    RunsOrNone,
    SeedOrNone,
    Starts,
    TableFile,
    TablesFolder,
    Variants,
    Workers,
)

EXAMPLES = examples(
    "ascar lab optimizers --table kyber.csv --objective read_iops --direction max --parameters a,b",
    "ascar lab optimizers --table t.csv --objective time_s --direction min --noise gaussian:0.1",
    "ascar lab optimizers --benchmark benchmarks/optimizers.toml --tables DIR --budget '1 h' --results DIR",
    "ascar lab optimizers --table t.csv --objective iops --direction max --optimizers genetic \\",
    "    --sweep genetic.mutation=0.01,0.02,0.04,0.08,0.16,0.32,0.64 --plots figures",
)


def optimizers(
    table: TableFile = None,
    objective: ObjectiveTextOrNone = None,
    direction: Direction = None,
    parameters: Parameters = None,
    ignore: Ignore = None,
    seconds: DurationColumn = None,
    noise: Noise = None,
    restrict: Restrict = None,
    start: Starts = None,
    benchmark: Benchmark = None,
    tables: TablesFolder = None,
    problems: Problems = None,
    names: Optimizers = "random,annealing,genetic,gp,trees,dqn,auto",
    sweep: Variants = None,
    runs: RunsOrNone = None,
    evaluations: EvaluationsOrNone = None,
    checkpoints: Checkpoints = None,
    seed: SeedOrNone = None,
    budget: BudgetOrNone = None,
    workers: Workers = None,
    out: Results = None,
    plots: Plots = None,
    plot_format: PlotFormat = "svg",
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
    from ascar.cli.lab.result import print_results, result_of
    from ascar.cli.output import emit, people
    from ascar.cli.statuses import decided
    from ascar.lab import Archive, Results, carry_out
    from ascar.lab.request import Asked, Request

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
        emit("lab-optimizers", result_of(request, results, sweeps, missing, drawn))
    else:
        print_results(people(), results, sweeps, missing)
        for path in drawn:
            people().print(f"plot: {path}", soft_wrap=True)
    return decided(not missing)
