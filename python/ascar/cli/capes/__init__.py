"""`ascar capes`: tuning that goes on while the system works."""

import typer

from ascar.cli.capes import game

__all__ = ["app"]

app = typer.Typer(help="Keep tuning a working system.", rich_markup_mode=None)


@app.callback()
def capes() -> None:
    """Keep tuning a working system."""


app.command("game", epilog=game.EXAMPLES, short_help="See how soon a learner converges, in a simulation.")(
    game.game
)
