"""A machine of a test's own, as far as knobs go: a knob, locks and a journal in a namespace of mounts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT = 3
# Ends with whoever has made it: its standard input is closed then.
HOLD = """
mkdir -p /run/ascar /var/lib/ascar &&
mount -t tmpfs none /run/ascar && mount -t tmpfs none /var/lib/ascar &&
mount --bind "$1" /proc/sys/vm/page-cluster && echo ready && exec cat
"""


class OwnMachine:
    """Where `vm.page-cluster` is a file of the test's, and nobody else's locks and journals are seen."""

    name = "vm.page-cluster"
    default = DEFAULT

    def __init__(self, folder: Path) -> None:
        self._file = folder / "page-cluster"
        self._file.write_text(f"{DEFAULT}\n")
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", HOLD, "sh", self._file]
        self._holder = subprocess.Popen(
            [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"ready\n":
            pytest.skip(f"no namespaces of mounts here: {self._holder.communicate()[1].decode()}")

    def words(self, *command: object) -> list[str]:
        """What makes a command run on it, as the process that is started."""
        inside = ["nsenter", f"--target={self._holder.pid}", "--mount", f"--wd={Path.cwd()}", "--"]
        return [str(word) for word in (*inside, *command)]

    def read(self) -> int:
        """The knob."""
        return int(self._file.read_text())

    def end(self) -> None:
        self._holder.communicate()


@pytest.fixture
def own_machine(tmp_path: Path) -> Iterator[OwnMachine | None]:
    """One a test, which has its end after all that runs on it; None where the user is not root."""
    if os.geteuid() != 0:
        yield None
        return
    machine = OwnMachine(tmp_path)
    yield machine
    machine.end()
