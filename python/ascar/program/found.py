"""Where a program is."""

from __future__ import annotations

import os
import shutil

_ADMIN_PATH = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # an ordinary user's PATH often lacks them


def find_program(name: str) -> str | None:
    """Where a program is, in PATH or where administrators' programs are."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *_ADMIN_PATH)))
