"""How commands reach a message server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ascar.sharp.deployment import Roster

Connection = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A connection file; default: ASCAR_NATS_URL and ASCAR_NATS_CREDENTIALS, or the server here.",
    ),
]
Workload = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Controllers whose client runs it; default: the only one there is."),
]


def roster() -> Roster:
    """What this machine has put in force."""
    from ascar.messaging import runtime_directory
    from ascar.sharp.deployment import Roster

    return Roster(runtime_directory() / "deployments")
