"""`ascar history`: look at, take out, bring in and remove what was measured."""

import typer

from ascar.cli.history import exchange, ls, purge, show

__all__ = ["app"]

app = typer.Typer(help="Look at, export, import and purge what was measured.", no_args_is_help=False)
app.command("ls", epilog=ls.EXAMPLES)(ls.ls)
app.command("show", epilog=show.EXAMPLES)(show.show)
app.command("export", epilog=exchange.EXPORT_EXAMPLES)(exchange.export)
app.command("import", epilog=exchange.IMPORT_EXAMPLES)(exchange.import_)
app.command("purge", epilog=purge.EXAMPLES)(purge.purge)
