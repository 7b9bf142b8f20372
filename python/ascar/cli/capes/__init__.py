"""`ascar capes`: tuning that goes on while the system works."""

import typer

from ascar.cli.capes import game, train

__all__ = ["app"]

app = typer.Typer(help="Keep tuning a working system.", rich_markup_mode=None)


@app.callback()
def capes() -> None:
    """Keep tuning a working system."""


app.command("game", epilog=game.EXAMPLES, short_help="See how soon a learner converges, in a simulation.")(
    game.game
)
app.command("train", epilog=train.EXAMPLES, short_help="The learner of a running system.")(train.train)
