"""What a system needs of a machine, looked up: programs, and text files of the kernel."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks
from ascar.program.found import find_program
from ascar.program.node_binary import find_ascard, way_to_root
from ascar.results.machine import Need
from ascar.systems.keeper_process import command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def keeper_needs(kinds: tuple[str, ...]) -> tuple[Need, ...]:
    """What changes the machine as root and puts it back.

    Args:
        kinds: the kinds of systems that cannot do without it.
    """
    return _root(kinds), _keeper(kinds)


def program_need(name: str, purpose: str, package: tuple[str, str], kinds: tuple[str, ...] = ()) -> Need:
    """A program in PATH, or where administrators' programs are.

    Args:
        name: the name of the program.
        purpose: the purpose of the program.
        package: the packages of Debian and of Fedora that contain it.
        kinds: the kinds of systems that cannot do without it.
    """
    return Need(name, purpose, find_program(name), kinds, *package)


def found_by(find: Callable[[], str]) -> str | None:
    """What a look-up finds; None: nothing."""
    try:
        return find()
    except EnvironmentLacks:
        return None


def text_of(path: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _root(kinds: tuple[str, ...]) -> Need:
    found = "yes" if os.geteuid() == 0 else "through sudo" if _sudo_works() else None
    remedy = f"run as root (sudo ascar ...), or {way_to_root()}; sqlite needs no root"
    return Need("root", "format, mount, change kernel settings", found, kinds, remedy=remedy)


def _sudo_works() -> bool:
    """Whether sudo starts the keeper, and asks for no password: nobody could type one. Nothing is started."""
    try:
        _sudo, *options, _end, keeper, role = command(None)
        listed = [_sudo, *options, "--list", "--", keeper, role]
        return subprocess.run(listed, capture_output=True, timeout=5, check=False).returncode == 0
    except (EnvironmentLacks, OSError, subprocess.TimeoutExpired):
        return False


def _keeper(kinds: tuple[str, ...]) -> Need:
    found = found_by(lambda: str(find_ascard()))
    remedy = "`pip install ascard` or `make setup` puts it beside ascar"
    return Need("ascard", "the keeper: changes the machine, puts it back", found, kinds, remedy=remedy)
