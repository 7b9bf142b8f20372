"""`ascar history`: look at, take out, bring in and remove what was measured."""

import typer

from ascar.cli.history import check, exchange, ls, pareto, purge, show

__all__ = ["app"]

app = typer.Typer(help="Look at, export, import and purge what was measured.", rich_markup_mode=None)
app.command("ls", epilog=ls.EXAMPLES)(ls.ls)
app.command("show", epilog=show.EXAMPLES, short_help="Show a run and its best trials.")(show.show)
app.command("pareto", epilog=pareto.EXAMPLES, short_help="Show what several objectives leave open.")(
    pareto.pareto
)
app.command("export", epilog=exchange.EXPORT_EXAMPLES, short_help="Write runs to a file.")(exchange.export)
app.command("import", epilog=exchange.IMPORT_EXAMPLES, short_help="Add a file's runs.")(exchange.import_)
app.command("check", epilog=check.EXAMPLES, short_help="Find what is damaged.")(check.check)
app.command("purge", epilog=purge.EXAMPLES, short_help="Remove runs for good.")(purge.purge)
