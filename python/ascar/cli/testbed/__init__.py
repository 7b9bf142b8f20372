"""`ascar testbed`: servers, disks and clients on this machine."""

import typer

from ascar.cli.testbed import boot, cut, down, status, up
from ascar.cli.testbed import exec as exec_

__all__ = ["app"]

app = typer.Typer(help="Start servers, disks and clients on this machine.", rich_markup_mode=None)


@app.callback()
def testbed() -> None:
    """Start servers, disks and clients on this machine, and end all of them."""


app.command("up", epilog=up.EXAMPLES, short_help="Start a testbed.")(up.up)
app.command("status", epilog=status.EXAMPLES, short_help="How a testbed stands.")(status.status)
app.command("exec", epilog=exec_.EXAMPLES, short_help="Run a command on a node.")(exec_.execute)
app.command("cut", epilog=cut.EXAMPLES, short_help="Cut the power of a node.")(cut.cut)
app.command("boot", epilog=boot.EXAMPLES, short_help="Boot a node that was cut.")(boot.boot)
app.command("down", epilog=down.EXAMPLES, short_help="End a testbed.")(down.down)
