"""All commands, in the order of their use. Their modules import what they need when they run, not before."""

from __future__ import annotations

from typing import Annotated, ClassVar

import typer

from ascar.cli.epilog import examples
from ascar.cli.lazy import LazyGroup


class Commands(LazyGroup):
    """All commands, in the order of their use."""

    summaries: ClassVar = {
        "init": "Write a commented study file to start from.",
        "doctor": "Say what this machine can tune, and what is missing.",
        "space": "Show parameters, change costs, valid configurations.",
        "check": "Try a study out: the load once, every parameter once.",
        "adapter": "Set a system's parameters for an agent, by lines of JSON.",
        "measure": "Run a command until its result can be trusted.",
        "analyze": "Recorded readings: a mean with an honest interval.",
        "compare": "Which command, or which recording, is better.",
        "watch": "Readings over days: has the mean shifted, and since when?",
        "tune": "Search for the best configuration, and verify it.",
        "verify": "Compare a configuration of a run with the default again.",
        "apply": "Put a configuration in force.",
        "restore": "Put back what was there before.",
        "export": "Print a configuration for an administrator.",
        "sweep": "Measure every configuration: make a dataset.",
        "importance": "Which parameters matter, and how sure the order is.",
        "variation": "How much runs of one configuration differ, and why.",
        "explore": "Look at what was measured, in the browser.",
        "report": "Write one page with the numbers and the plots.",
        "capes": "Keep tuning a working system.",
        "history": "Look at, export, import and purge what was measured.",
        "library": "Keep what helped which workload, and find it again.",
        "lab": "Try optimizers out where the truth is known.",
        "sharp": "Make congestion rules, and put them in force.",
        "sim": "Simulate a storage cluster.",
        "workload": "Record a workload, and write a short one that stands for it.",
    }


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the boxes take longer to import than all the rest of a help page
    invoke_without_command=True,
)


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

    Exit status: 0 done, 1 the work failed, 2 bad input (nothing was touched), 3 no decision or stopped early
    (results are kept), 130 interrupted (everything was put back).
    """
    if version:
        from ascar import __version__

        typer.echo(f"ascar {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    return 0
