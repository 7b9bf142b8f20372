"""`ascar testbed status`: how a testbed stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Json, OneTestbed

if TYPE_CHECKING:
    from rich.console import Console

    from ascar.results.testbed import TestbedStanding

EXAMPLES = examples(
    "ascar testbed status",
    "ascar testbed status contended-disk --json | jq '.nodes[] | select(.alive | not)'",
)


def status(testbed: OneTestbed = None, json: Json = False) -> int:
    """Show every node, disk, proxy and agent of a testbed: on or off, since when, and where it is reached."""
    from ascar.cli.output import emit, people
    from ascar.results.encode import extended
    from ascar.results.testbed import TestbedStatusResult
    from ascar.testbed.control import standing
    from ascar.testbed.folder import find_testbed

    found = standing(find_testbed(testbed), {"ask": "status"})
    if json:
        emit("testbed-status", extended(TestbedStatusResult, found))
    else:
        print_testbed(people(), found)
    return 0


def print_testbed(out: Console, found: TestbedStanding) -> None:
    """A testbed for people."""
    from rich.table import Table

    out.print(
        f"{found.testbed}: up since {found.started_at}, process {found.pid}", markup=False, soft_wrap=True
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("", "on", "", "since", "reached by"):
        table.add_column(heading)
    rows = [
        *(
            (f"node {one.name}", one.kind, one.alive, one.since, one.address or one.folder)
            for one in found.nodes
        ),
        *((f"disk {one.name}", one.node, one.alive, one.since, "\n".join(one.uris)) for one in found.disks),
        *(
            ("proxy", one.node, one.alive, one.since, "\n".join(one.sockets.values()))
            for one in found.proxies
        ),
        *(("agent", one.node, one.alive, one.since, f"session {found.testbed}") for one in found.agents),
    ]
    for name, where, alive, since, reached in rows:
        table.add_row(name, where, "on" if alive else "off", since, reached, style="" if alive else "red")
    out.print(table, soft_wrap=True)
