"""`ascar sharp`: rules made by machine, by which every client controls its own congestion."""

import typer

from ascar.cli.sharp import candidates, deploy, explain, refine, search, show, split

__all__ = ["app"]

app = typer.Typer(help="Make congestion rules, and put them in force.", rich_markup_mode=None)


@app.callback()
def sharp() -> None:
    """Make rules by which every client controls its own congestion."""


app.command("candidates", epilog=candidates.EXAMPLES, short_help="Print a round's candidate rule sets.")(
    candidates.candidates
)
app.command("deploy", epilog=deploy.EXAMPLES, short_help="Put rules in force.")(deploy.deploy)
app.command("explain", epilog=explain.EXAMPLES, short_help="Say in words and plots what rules do.")(
    explain.explain
)
app.command("refine", epilog=refine.EXAMPLES, short_help="Improve a rule while it runs.")(refine.refine)
app.command("search", epilog=search.EXAMPLES, short_help="Make rules for a workload.")(search.search)
app.command("show", epilog=show.EXAMPLES, short_help="Show the rules in force, and their use.")(show.show)
app.command("split", epilog=split.EXAMPLES, short_help="Split a rule at what was observed.")(split.split)
app.command("stop", epilog=deploy.STOP_EXAMPLES, short_help="Take rules off.")(deploy.stop)
