"""`ascar testbed cut`: cut the power of a node."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, NodeOfTestbed, OfTestbed, Quiet

EXAMPLES = examples("ascar testbed cut server1", "ascar testbed cut server1 --testbed contended-disk --json")


def cut(node: NodeOfTestbed, testbed: OfTestbed = None, quiet: Quiet = False, json: Json = False) -> int:
    """Cut the power of a node: all of its processes are killed at once.

    Its disks, its proxy and its agent go with it: what a disk had not written to its file is lost, and
    connections end.
    One that is off stays off.
    """
    from ascar.cli.output import emit, say
    from ascar.results.encode import extended
    from ascar.results.testbed import TestbedCutResult
    from ascar.testbed.control import standing
    from ascar.testbed.folder import find_testbed

    found = standing(find_testbed(testbed), {"ask": "cut", "node": node})
    if json:
        emit("testbed-cut", extended(TestbedCutResult, found))
    elif not quiet:
        say(f"{found.testbed}: {node} was cut")
    return 0
