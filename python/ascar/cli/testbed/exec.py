"""`ascar testbed exec`: run a command on a node of a testbed."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import NodeOfTestbed, OfTestbed

EXAMPLES = examples(
    "ascar testbed exec server1 -- hostname",
    "ascar testbed exec client1 -- nbdinfo 'nbd+unix:///disk1?socket=disk1.sock'",
)
_Words = Annotated[
    list[str],
    typer.Argument(metavar="-- COMMAND...", help="The command and its arguments; no shell reads them."),
]


def execute(node: NodeOfTestbed, words: _Words, testbed: OfTestbed = None) -> int:
    """Run a command on a node of a testbed, with this command's input, output and environment.

    It begins in the node's folder, where the sockets of its proxy are.

    Exit status: that of the command; 128 and the signal's number if a signal ended it; 255 if the node is
    off, or is cut meanwhile; 127 if there is no such program.
    """
    import subprocess

    from ascar.nodes.process import ends_with_us
    from ascar.testbed.control import ask
    from ascar.testbed.folder import find_testbed

    found = ask(find_testbed(testbed), {"ask": "words", "node": node, "words": words})
    with subprocess.Popen([*ends_with_us(), *found]) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
    return status if status >= 0 else 128 - status
