"""`ascar sharp`: rules made by machine, by which every client controls its own congestion."""

import typer

from ascar.cli.sharp import (
    candidates,
    contest,
    deploy,
    explain,
    learn,
    search,
    show,
    split,
    watch,
)
from ascar.cli.sharp import set as set_

__all__ = ["app"]

app = typer.Typer(help="Make congestion rules, and put them in force.", rich_markup_mode=None)


@app.callback()
def sharp() -> None:
    """Make rules by which every client controls its own congestion."""


app.command("candidates", epilog=candidates.EXAMPLES, short_help="Print a round's candidate rule sets.")(
    candidates.candidates
)
app.command("contest", epilog=contest.EXAMPLES, short_help="Compare rules with other controllers.")(
    contest.contest
)
app.command("deploy", epilog=deploy.EXAMPLES, short_help="Put rules in force.")(deploy.deploy)
app.command("explain", epilog=explain.EXAMPLES, short_help="Say in words and plots what rules do.")(
    explain.explain
)
app.command("learn", epilog=learn.EXAMPLES, short_help="Learn the numbers of rules while they run.")(
    learn.learn
)
app.command("search", epilog=search.EXAMPLES, short_help="Make rules for a workload.")(search.search)
app.command("set", epilog=set_.EXAMPLES, short_help="Change numbers of the rules in force.")(set_.set_numbers)
app.command("show", epilog=show.EXAMPLES, short_help="Show the rules in force, and their use.")(show.show)
app.command("split", epilog=split.EXAMPLES, short_help="Split a rule at what was observed.")(split.split)
app.command("down", epilog=deploy.DOWN_EXAMPLES, short_help="Take rules off.")(deploy.down)
app.command("watch", epilog=watch.EXAMPLES, short_help="Find rules for a load while it runs.")(watch.watch)
