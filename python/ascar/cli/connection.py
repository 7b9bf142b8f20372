"""How commands reach a message server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.sharp.deployment import Roster


def roster() -> Roster:
    """What this machine has put in force."""
    from ascar.messaging import runtime_directory
    from ascar.sharp.deployment import Roster

    return Roster(runtime_directory() / "deployments")
