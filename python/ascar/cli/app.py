"""All commands, in the order of their use. Their modules import what they need when they run, not before."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import typer

from ascar.cli.front_page import COMMANDS, EXAMPLES, PURPOSE, front_page
from ascar.cli.lazy import LazyGroup


class Commands(LazyGroup):
    """All commands, in the order of their use."""

    summaries: ClassVar = COMMANDS

    def get_help(self, ctx: Any) -> str:  # noqa: ARG002
        """The help page, which `ascar.cli.main` shows without this module."""
        return front_page()


app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the boxes take longer to import than all the rest of a help page
    invoke_without_command=True,
)


@app.callback(help=PURPOSE, epilog=EXAMPLES)
def ascar(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("-V", "--version", help="Print the version, and what is installed.")
    ] = False,
) -> int:
    """Print the version or the help page, where no command is given."""
    if version:
        from ascar.cli.installation import installation_lines

        typer.echo("\n".join(installation_lines()))
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    return 0
