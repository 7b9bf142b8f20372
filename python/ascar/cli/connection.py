"""How commands reach a message server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.sharp.deployment import Deployments, Roster


def roster() -> Roster:
    """What this machine has put in force."""
    from ascar.messaging import runtime_directory
    from ascar.sharp.deployment import Roster

    return Roster(runtime_directory() / "deployments")


def deployments(connection: Path | None) -> Deployments:
    """Rules on controllers, reached as --connection says."""
    from ascar.messaging import find_settings
    from ascar.sharp.deployment import Deployments

    return Deployments(find_settings("manager", connection), roster())
