"""All commands, in the order of their use. Their modules import what they need when they run, not before."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli import apply, doctor, export, history, init, report, restore, space, sweep, tune
from ascar.cli.options import examples

__all__ = ["app"]

app = typer.Typer(
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    invoke_without_command=True,
)

app.command("init", epilog=init.EXAMPLES)(init.init)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.command("space", epilog=space.EXAMPLES)(space.space)
app.command("tune", epilog=tune.EXAMPLES)(tune.tune)
app.command("apply", epilog=apply.EXAMPLES)(apply.apply)
app.command("restore", epilog=restore.EXAMPLES)(restore.restore)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("sweep", epilog=sweep.EXAMPLES)(sweep.sweep)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.add_typer(history.app, name="history")


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
