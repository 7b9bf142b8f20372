"""`ascar testbed down`: end a testbed."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, OneTestbed, Quiet

EXAMPLES = examples("ascar testbed down", "ascar testbed down contended-disk")


def down(testbed: OneTestbed = None, quiet: Quiet = False, json: Json = False) -> int:
    """End a testbed, and wait until its processes, networks, sockets and folders are gone.

    Disks write their caches first; files that the testbed file names for data stay. What a killed run has
    left is removed, where the testbed is named.
    """
    from ascar.cli.output import emit, say
    from ascar.results.testbed import TestbedDownResult
    from ascar.testbed.control import end_testbed
    from ascar.testbed.folder import find_testbed

    folder = find_testbed(testbed)
    pid = end_testbed(folder)
    if json:
        emit("testbed-down", TestbedDownResult(testbed=folder.path.name, pid=pid))
    elif not quiet:
        ended = "ended" if pid is not None else "was killed before; what it left is removed"
        say(f"{folder.path.name}: {ended}")
    return 0
