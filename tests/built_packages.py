"""Packages of Debian and RPM, built from what is compiled already, and the fresh Debian that takes them."""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.fresh_debian import fresh_debian

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[1]


def build_packages(out: Path, *formats: str, version: str = "0.1.0", names: str = "ascar-node ascar") -> Path:
    """Build them into a directory; the node binary is the one of this environment."""
    environment = {
        **os.environ,
        "OUT": str(out),
        "VERSION": version,
        "NAMES": names,
        "ASCARD": str(find_ascard()),
    }
    built = subprocess.run(
        [ROOT / "scripts/packages", *formats],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    if built.returncode == 2 and "/usr/bin/python3 is missing" in built.stderr:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stderr
    return out


def packages_of_this_run(factory: pytest.TempPathFactory) -> Path:
    """A directory with the packages of both formats, built by the first test of a run that asks for them."""
    base = factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "packages"
    out.mkdir(exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "SHA256SUMS").exists():
            build_packages(out, "deb", "rpm")
    return out


@contextmanager
def debian_or_skip(*packages: str, machine: str = platform.machine()) -> Generator[Path]:
    """A fresh Debian; a test is skipped with the reason where there can be none."""
    with ExitStack() as ends:
        try:
            place = ends.enter_context(fresh_debian(*packages, machine=machine))
        except RuntimeError as error:
            pytest.skip(str(error))
        yield place
