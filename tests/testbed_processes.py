"""Processes that belong to testbeds, and the load that their benches start."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks
from ascar.sharp.trials.testbed_bench import check_fio


def fio_or_skip() -> None:
    """Skip the test where fio is missing, or cannot do what a bench needs."""
    try:
        check_fio()
    except EnvironmentLacks as lack:
        pytest.skip(lack.message)


def belonging_to(folder: Path) -> list[str]:
    """Command lines of processes that carry the mark of a testbed below a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"ASCAR_TESTBED={folder}/".encode() in (path / "environ").read_bytes():
                found.append((path / "cmdline").read_text().replace("\0", " "))
        except OSError:
            pass
    return found
