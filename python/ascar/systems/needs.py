"""What a system needs of a machine, looked up: programs, and text files of the kernel."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from ascar.results.machine import Need

if TYPE_CHECKING:
    from pathlib import Path

_PATH_EXTRA = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # an ordinary user's PATH often lacks them


def program_need(name: str, purpose: str, package: tuple[str, str], kinds: tuple[str, ...] = ()) -> Need:
    """A program in PATH, or where administrators' programs are.

    Args:
        name: the name of the program.
        purpose: the purpose of the program.
        package: the packages of Debian and of Fedora that contain it.
        kinds: the kinds of systems that cannot do without it.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_PATH_EXTRA))
    return Need(name, purpose, shutil.which(name, path=path), kinds, *package)


def text_of(path: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
