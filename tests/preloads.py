"""Libraries that are loaded before a program's own: the faults of a machine, on request."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def preload(source: Path, folder: Path) -> Path:
    """The library of a C file, made in a folder."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler: install gcc")
    library = folder / f"{source.stem}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)
    return library
