"""`ascar sim`: a storage cluster in virtual time."""

import typer

from ascar.cli.sim import run, serve, sweep

__all__ = ["app"]

app = typer.Typer(help="Simulate a storage cluster.", rich_markup_mode=None)


@app.callback()
def sim() -> None:
    """Simulate a storage cluster in virtual time."""


app.command("run", epilog=run.EXAMPLES, short_help="Run a scenario.")(run.run)
app.command("serve", epilog=serve.EXAMPLES, short_help="Run on, with controllers that take rules.")(
    serve.serve
)
app.command("sweep", epilog=sweep.EXAMPLES, short_help="Throughput against window and gap.")(sweep.sweep)
