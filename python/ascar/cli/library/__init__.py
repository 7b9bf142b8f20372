"""`ascar library`: what helped which workload."""

import typer

from ascar.cli.library import add, bootstrap, find, ls, predict, show

__all__ = ["app"]

app = typer.Typer(help="Keep what helped which workload, and find it again.", rich_markup_mode=None)
app.command("add", epilog=add.EXAMPLES, short_help="Add a workload and its rules.")(add.add)
app.command("bootstrap", epilog=bootstrap.EXAMPLES, short_help="Make rules for the common workloads.")(
    bootstrap.bootstrap
)
app.command("find", epilog=find.EXAMPLES, short_help="Find rules for a workload.")(find.find)
app.command("ls", epilog=ls.EXAMPLES, short_help="List workloads, rules and configurations.")(ls.ls)
app.command("predict", epilog=predict.EXAMPLES, short_help="Say what rules would gain on a workload.")(
    predict.predict
)
app.command("show", epilog=show.EXAMPLES, short_help="Show one entry, or what was learned.")(show.show)
