"""`ascar lab`: try things out where the truth is known."""

import typer

from ascar.cli.lab import optimizers

__all__ = ["app"]

app = typer.Typer(help="Try optimizers out where the truth is known.", rich_markup_mode=None)


@app.callback()
def lab() -> None:
    """Try optimizers out where the truth is known."""


app.command("optimizers", epilog=optimizers.EXAMPLES, short_help="Compare optimizers by simulated searches.")(
    optimizers.optimizers
)
