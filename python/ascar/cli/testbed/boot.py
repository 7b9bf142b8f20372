"""`ascar testbed boot`: boot a node that was cut."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, NodeOfTestbed, OfTestbed, Quiet

EXAMPLES = examples(
    "ascar testbed boot server1", "ascar testbed boot server1 --testbed contended-disk --json"
)


def boot(node: NodeOfTestbed, testbed: OfTestbed = None, quiet: Quiet = False, json: Json = False) -> int:
    """Boot a node that is off, with its disks, its proxy and its agent; back when they serve.

    One that is on stays as it is; a disk, a proxy or an agent that has ended there is started again.
    """
    from ascar.cli.output import emit, say
    from ascar.results.encode import extended
    from ascar.results.testbed import TestbedBootResult
    from ascar.testbed.control import standing
    from ascar.testbed.folder import find_testbed

    found = standing(find_testbed(testbed), {"ask": "boot", "node": node})
    if json:
        emit("testbed-boot", extended(TestbedBootResult, found))
    elif not quiet:
        say(f"{found.testbed}: {node} is on")
    return 0
