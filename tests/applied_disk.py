"""A disk that a configuration is put in force on: a loop device for one, and runs in the history."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from ascar.space import preset
from ascar.study import Study
from ascar.systems.machine import describe_machine

STUDY = """
[study]
name = "disk"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "localfs"
"""


@pytest.fixture
def keep(keep_run):
    """Keep a finished run that recommends a configuration."""

    def make(machine=None, **changed):
        study = Study.parse(STUDY)
        space = preset("storage-v5").permit_weaker([])
        default = space.default()
        best = space.nearest({**default, **changed})
        machine = {"target": "localfs", **describe_machine(), **(machine or {})}
        return keep_run(study, space, best, machine)

    return make


@pytest.fixture
def ascar(ascar):
    """Run a command; again while a study on this machine, of another test, holds what it needs."""

    def patiently(*arguments):
        deadline = time.monotonic() + 100
        while True:
            done = ascar(*arguments)
            held = re.search(r"is (held|locked) by ['\"]study \w+, process", done.err)
            if held is None or time.monotonic() > deadline:
                return done
            time.sleep(0.3)

    return patiently


@pytest.fixture
def disk(tmp_path):
    """A loop device with ext4, mounted: device name and mount point."""
    backing, mountpoint = tmp_path / "backing", tmp_path / "a mount point"
    with backing.open("wb") as file:
        file.truncate(64 * 2**20)
    mountpoint.mkdir()
    made = subprocess.run(
        ["losetup", "--find", "--show", str(backing)], capture_output=True, text=True, check=True
    )
    device = Path(made.stdout.strip())
    queue = Path("/sys/block", device.name, "queue")
    before = {name: shown(queue / name) for name in ("scheduler", "nr_requests", "read_ahead_kb")}
    # Whatever this machine's rules give to a new device: none of what is applied is in force yet.
    for name, value in (("scheduler", "none"), ("read_ahead_kb", "128")):
        (queue / name).write_text(value)
    subprocess.run(["mkfs.ext4", "-q", str(device)], check=True)
    subprocess.run(["mount", str(device), str(mountpoint)], check=True)
    yield device, mountpoint
    subprocess.run(["umount", str(mountpoint)], check=True)
    for name, value in before.items():  # a detached loop device keeps them for its next user
        (queue / name).write_text(value)
    subprocess.run(["losetup", "--detach", str(device)], check=True)


def shown(path: Path) -> str:
    text = path.read_text().strip()
    return text.partition("[")[2].partition("]")[0] or text


def queue_of(device: Path) -> dict[str, str]:
    names = ("scheduler", "nr_requests", "read_ahead_kb")
    return {name: shown(Path("/sys/block", device.name, "queue", name)) for name in names}
