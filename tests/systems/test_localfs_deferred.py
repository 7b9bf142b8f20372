"""What a load leaves undone on a file system: counted, drained at the volume's pace, charged to the trial."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from localfs_support import ROOT, entered

from ascar.errors import StageFailed
from ascar.systems.asking import drain_checked, sample_checked
from ascar.systems.dirty_pages import write_back_cycle_s

pytestmark = [*ROOT, pytest.mark.machine]

MIB = 2**20
IOPS = 200
PAGES = 300
THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")


def write_pages(directory: Path, pages: int) -> None:
    """Change every fourth page of a file, so that no two of them are one write to the device."""
    with (directory / "data").open("r+b") as file:
        for page in range(pages):
            file.seek(page * 4 * 4096)
            file.write(os.urandom(4096))


def filled(directory: Path) -> None:
    with (directory / "data").open("wb") as file:
        file.write(bytes(PAGES * 4 * 4096))


@pytest.fixture
def settled(tmp_path):
    if not THROTTLE.exists():
        pytest.skip("needs the control group blkio, version 1")
    options = {"image": str(tmp_path / "image"), "iops": IOPS, "memory": "none", "file_systems": ["ext4"]}
    with entered(**options, machine_wide=False) as target:
        target.apply(target.space.default())
        filled(target.workspace.directory)
        target.settle()
        yield target


def test_dirty_pages_are_counted_and_drained_at_the_pace_of_the_volume(settled):
    write_pages(settled.workspace.directory, PAGES)
    before = sample_checked(settled)
    start_s = time.monotonic()
    drain_checked(settled, 60)
    took_s = time.monotonic() - start_s
    after = sample_checked(settled)
    written = after.counters["device_write_ios"] - before.counters["device_write_ios"]
    # Somebody else may have had everything written back meanwhile (sync), but then nothing is left to do.
    assert took_s >= 0.7 * (written - IOPS) / IOPS
    assert took_s < 60
    start_s = time.monotonic()
    drain_checked(settled, 60)
    assert time.monotonic() - start_s < max(0.5, took_s), "there is nothing left to do"


def test_a_drain_that_takes_too_long_fails_by_name_and_the_next_trial_goes_on(settled):
    write_pages(settled.workspace.directory, PAGES)
    with pytest.raises(
        StageFailed, match=r"dirty pages were left 0.2 s after the load.*charge_deferred = false"
    ):
        settled.drain(0.2)
    settled.apply(settled.space.default())
    assert settled.workspace.directory.is_dir()


def test_the_cycle_is_the_longest_of_the_configuration(tmp_path):
    with entered(image=str(tmp_path / "image"), file_systems=["ext4"], memory="none") as target:
        default = target.space.default()
        assert target.cycle_s(default, {}) == pytest.approx(
            max(write_back_cycle_s(default), default["ext_commit_interval_s"])
        )
        assert target.cycle_s(default.replaced(ext_commit_interval_s=60), {}) >= 60
