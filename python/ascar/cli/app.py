"""All commands, in the order of their use. Their modules import what they need when they run, not before."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli import (
    analyze,
    apply,
    capes,
    compare,
    doctor,
    explore,
    export,
    history,
    importance,
    init,
    lab,
    measure,
    report,
    restore,
    sharp,
    sim,
    space,
    sweep,
    tune,
    variation,
    watch,
    workload,
)
from ascar.cli.options import examples

__all__ = ["app"]

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the boxes take longer to import than all the rest of a help page
    invoke_without_command=True,
)

_COMMANDS = (
    (init.init, init.EXAMPLES, "Write a commented study file to start from."),
    (doctor.doctor, doctor.EXAMPLES, "Say what this machine can tune, and what is missing."),
    (space.space, space.EXAMPLES, "Show parameters, change costs, valid configurations."),
    (measure.measure, measure.EXAMPLES, "Run a command until its result can be trusted."),
    (analyze.analyze, analyze.EXAMPLES, "Recorded readings: a mean with an honest interval."),
    (compare.compare, compare.EXAMPLES, "Which command, or which recording, is better."),
    (watch.watch, watch.EXAMPLES, "Readings over days: has the mean shifted, and since when?"),
    (tune.tune, tune.EXAMPLES, "Search for the best configuration, and verify it."),
    (apply.apply, apply.EXAMPLES, "Put a configuration in force."),
    (restore.restore, restore.EXAMPLES, "Put back what was there before."),
    (export.export, export.EXAMPLES, "Print a configuration for an administrator."),
    (sweep.sweep, sweep.EXAMPLES, "Measure every configuration: make a dataset."),
    (importance.importance, importance.EXAMPLES, "Which parameters matter, and how sure the order is."),
    (variation.variation, variation.EXAMPLES, "How much runs of one configuration differ, and why."),
    (explore.explore, explore.EXAMPLES, "Look at what was measured, in the browser."),
    (report.report, report.EXAMPLES, "Write one page with the numbers and the plots."),
)
for _command, _examples, _summary in _COMMANDS:
    app.command(_command.__name__, epilog=_examples, short_help=_summary)(_command)
app.add_typer(capes.app, name="capes")
app.add_typer(history.app, name="history")
app.add_typer(lab.app, name="lab")
app.add_typer(sharp.app, name="sharp")
app.add_typer(sim.app, name="sim")
app.add_typer(workload.app, name="workload")


@app.callback(
    epilog=examples(
        "ascar doctor                       what this machine can tune",
        "ascar init localfs -o study.toml   a commented study file",
        "ascar tune study.toml              search, then verify against the default",
    )
)
def ascar(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    """Find good settings for storage systems, and believe only numbers that can be defended.

    Exit status: 0 done, 1 the work failed, 2 bad input (nothing was touched), 3 stopped early with partial
    results kept, 130 interrupted with everything put back.
    """
    if version:
        from ascar import __version__

        typer.echo(f"ascar {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    return 0
