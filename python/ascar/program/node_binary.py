"""The node binary, `ascard`, on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from ascar.errors import EnvironmentLacks


def find_ascard() -> Path:
    """The `ascard` beside this Python, or in PATH.

    Raises:
        EnvironmentLacks: there is none.
    """
    beside = Path(sys.executable).parent / "ascard"
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("ascard")
    if found is None:
        raise EnvironmentLacks(f"ascard: is neither {beside} nor in PATH: build it with `make setup`")
    return Path(found)
