"""Of all tests: signals mean what they mean at a terminal; those that share the machine run one at a time."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

# As `ascar tune` has it: threads that wait by spinning make small matrices far slower on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

# They change or count what there is one of: knobs, mounts, loop devices, control groups, traced processes.
# With several workers (`--numprocesses`) one of them runs all of these, in order.
OF_THE_MACHINE = (
    "cli/test_apply.py",
    "cli/test_doctor.py",
    "cli/test_interrupts.py",
    "cli/test_localfs.py",
    "cli/test_study_errors.py",
    "cli/test_workload.py",
    "features",
    "keeper",
    "load",
    "space/test_storage_v5_for_real.py",
    "targets",
    "test_tune.py",
    "workloads",
)


def pytest_configure() -> None:
    """Undo what `nohup` and a shell's `&` do: programs that tests interrupt would inherit deafness to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Keep the tests of the machine together."""
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).as_posix()
        if item.get_closest_marker("root") or place.startswith(OF_THE_MACHINE):
            item.add_marker(pytest.mark.xdist_group("machine"))
