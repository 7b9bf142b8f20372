"""`ascar sharp`: rules made by machine, by which every client controls its own congestion."""

import typer

from ascar.cli.sharp import candidates, search, split

__all__ = ["app"]

app = typer.Typer(help="Make congestion rules.", rich_markup_mode=None)


@app.callback()
def sharp() -> None:
    """Make rules by which every client controls its own congestion."""


app.command("candidates", epilog=candidates.EXAMPLES, short_help="Print a round's candidate rule sets.")(
    candidates.candidates
)
app.command("search", epilog=search.EXAMPLES, short_help="Make rules for a workload.")(search.search)
app.command("split", epilog=split.EXAMPLES, short_help="Split a rule at what was observed.")(split.split)
