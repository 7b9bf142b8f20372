"""Of all tests: signals mean what they mean at a terminal, programs start as fast as they do there, and what
is drawn is the same in every run."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ascar.cli.threads import compute_on_one_thread

MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 2 << 30
BYTECODE = Path(__file__).resolve().parents[1] / "build" / "bytecode"

# The same examples everywhere, however slow the machine: a test that fails, fails for everybody. To look for
# new ones: pytest --hypothesis-profile=search.
settings.register_profile(
    "same", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


def pytest_configure() -> None:
    """Undo what `nohup` and a shell's `&` do: programs that tests interrupt would inherit deafness to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    _keep_bytecode()
    # As the program does: several threads on small matrices wait for each other, beside a load for minutes.
    compute_on_one_thread()


def _keep_bytecode() -> None:
    """Compile modules once for all programs that tests start, even where the environment keeps no bytecode.

    Else each of some hundred `ascar` would compile a thousand modules anew: half of what it takes to start.
    """
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(BYTECODE)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)


@pytest.fixture(scope="session")
def in_memory() -> Path | None:
    """Where files cost no wait for a disk, if there is room; None: where temporary files go anyway."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < MEMORY_BYTES_MIN:
        return None
    return MEMORY
