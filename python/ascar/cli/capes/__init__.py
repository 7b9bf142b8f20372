"""`ascar capes`: tuning that goes on while the system works."""

import typer

from ascar.cli.capes import contest, control, down, game, prove, status, train, up

__all__ = ["app"]

app = typer.Typer(help="Keep tuning a working system.", rich_markup_mode=None)


@app.callback()
def capes() -> None:
    """Keep tuning a working system."""


app.command("game", epilog=game.EXAMPLES, short_help="See how soon a learner converges, in a simulation.")(
    game.game
)
app.command("contest", epilog=contest.EXAMPLES, short_help="Compare learners on the same games.")(
    contest.contest
)
app.command("train", epilog=train.EXAMPLES, short_help="The learner of a running system.")(train.train)
app.command("up", epilog=up.EXAMPLES, short_help="Tune this machine while it works.")(up.up)
app.command("status", epilog=status.EXAMPLES, short_help="How a session stands.")(status.status)
app.command("control", epilog=control.EXAMPLES, short_help="Kill switch, modes, approval, workloads.")(
    control.control
)
app.command("prove", epilog=prove.EXAMPLES, short_help="What a session gains, with its interval.")(
    prove.prove
)
app.command("down", epilog=down.EXAMPLES, short_help="End a session that runs.")(down.down)
