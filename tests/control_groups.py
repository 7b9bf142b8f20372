"""Control groups for tests: real ones with a process in them, and recorded ones."""

from __future__ import annotations

import secrets
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOTS = {one: Path("/sys/fs/cgroup", one) for one in ("memory", "cpu", "blkio")}
FILES = (
    "memory/memory.soft_limit_in_bytes",
    "memory/memory.swappiness",
    "cpu/cpu.shares",
    "cpu/cpu.cfs_quota_us",
)
SETTINGS = [f"cgroup.{one.partition('/')[2]}" for one in FILES]
# As Linux 6.18 shows them below systemd 257; of a service on a machine with one disk.
UNIFIED = {
    "cgroup.controllers": "cpu io memory pids",
    "cgroup.events": "populated 1\nfrozen 0",
    "cgroup.procs": "4711",
    "cpu.weight": "100",
    "cpu.max": "max 100000",
    "io.weight": "default 100",
    "io.bfq.weight": "default 100",
    "io.latency": "",
    "io.max": "",
    "memory.current": "104857600",
    "memory.stat": "anon 41943040\nfile 62914560\ninactive_file 20971520\nactive_file 41943040",
    "memory.high": "max",
    "memory.low": "0",
    "memory.max": "max",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0",
}


@dataclass
class Group:
    """A control group of version 1 with a process.

    Attributes:
        name: its path below the hierarchies.
        process: the process.
        words: what it is started with.
    """

    name: str
    process: subprocess.Popen[bytes]
    words: Sequence[str] = ("sleep", "1000")

    def file(self, name: str) -> Path:
        """A file of it, by its controller and name."""
        controller, _, file = name.partition("/")
        return ROOTS[controller] / self.name / file

    def state(self) -> list[str]:
        """What a change would change."""
        return [self.file(name).read_text() for name in FILES]

    def make(self) -> None:
        """Make its directories."""
        for root in ROOTS.values():
            (root / self.name).mkdir()

    def start(self) -> None:
        """Start a process in it."""
        self.process = subprocess.Popen(self.words)
        for root in ROOTS.values():
            (root / self.name / "cgroup.procs").write_text(str(self.process.pid))

    def end(self) -> None:
        """End its process."""
        self.process.kill()
        self.process.wait()

    def remove(self) -> None:
        """End its process and remove it."""
        self.end()
        for directory in (root / self.name for root in ROOTS.values()):
            end_s = time.monotonic() + 10
            while directory.exists():
                try:
                    directory.rmdir()
                except OSError:  # the kernel has not noticed yet
                    assert time.monotonic() < end_s, directory
                    time.sleep(0.01)


@contextmanager
def real_group(words: Sequence[str] = ("sleep", "1000")) -> Iterator[Group]:
    """A group with a process, where the hierarchies are of version 1."""
    if not all((root / "cgroup.procs").exists() for root in ROOTS.values()):
        pytest.skip("control groups are not of version 1")
    group = Group(f"ascar-test-{secrets.token_hex(6)}", subprocess.Popen(["true"]), words)
    group.process.wait()
    group.make()
    try:
        group.start()
        yield group
    finally:
        group.remove()


def recorded_group(folder: Path, name: str = "system.slice/my.service", **changes: str | None) -> Path:
    """The directory of a group of version 2 as a kernel has shown it; changes are of files, "_" for a dot."""
    root = folder / "unified"
    directory = root / name
    directory.mkdir(parents=True)
    for place in (root, *(one for one in directory.parents if one.is_relative_to(root))):
        (place / "cgroup.controllers").write_text(UNIFIED["cgroup.controllers"] + "\n")
    for file, text in (UNIFIED | {one.replace("_", "."): text for one, text in changes.items()}).items():
        if text is not None:
            (directory / file).write_text(text + "\n" if text else "")
    return directory
