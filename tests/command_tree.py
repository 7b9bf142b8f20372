"""Every command of `ascar`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ascar.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = typer.main.get_command(app)


def _commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(f"{path} {name}", command)
        else:
            yield f"{path} {name}", command


COMMANDS = dict(_commands("ascar", COMMAND))
"""Every command by its whole name, such as `ascar history show`."""
