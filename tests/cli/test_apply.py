"""Putting a configuration in force on a real disk (a loop device that stands for one), and back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from applied_disk import ascar, disk, keep, queue_of
from ascar.systems.keeper import Keeper

__all__ = ["ascar", "disk", "keep"]  # fixtures

pytestmark = pytest.mark.machine


@pytest.fixture
def expire() -> int:
    """A value that is not in force now."""
    present = Path("/proc/sys/vm/dirty_expire_centisecs").read_text().strip()
    return 1500 if present == "500" else 500


@pytest.mark.root
def test_a_dry_run_says_what_would_be_run(ascar, keep, disk, expire):
    keep(
        block_scheduler="kyber",
        block_nr_requests=64,
        vm_dirty_expire_centisecs=expire,
        ext4_inode_readahead_blks=128,
    )
    device, mountpoint = disk
    before = queue_of(device)
    document = ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint, "--json").document
    assert document["dry_run"]
    commands = [setting["command"] for setting in document["settings"]]
    assert commands == [
        f"echo kyber > /sys/block/{device.name}/queue/scheduler",
        f"echo 64 > /sys/block/{device.name}/queue/nr_requests",
        f"sysctl -w vm.dirty_expire_centisecs={expire}",
        f"echo 128 > /sys/fs/ext4/{device.name}/inode_readahead_blks",
    ]
    assert document["settings"][0]["before"] == before["scheduler"]
    assert document["left_to_you"] == []
    assert document["warnings"] == []
    text = ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint).out
    assert "would be set:" in text
    assert commands[0] in text
    assert queue_of(device) == before


def test_what_needs_a_place_says_so(ascar, keep, expire):
    keep(block_scheduler="bfq", vm_dirty_expire_centisecs=expire, atime="noatime")
    document = ascar("apply", "disk", "--dry-run", "--json").document
    assert [setting["parameter"] for setting in document["settings"]] == ["vm_dirty_expire_centisecs"]
    homeless, remount = document["left_to_you"]
    assert set(homeless["parameters"]) == {"block_scheduler", "block_nr_requests"}
    assert "--mountpoint" in homeless["why"]
    assert remount["commands"][0].startswith("mount -o remount,")
    assert any("none was named" in warning for warning in document["warnings"])


@pytest.mark.root
def test_a_new_file_system_is_printed_and_never_made(ascar, keep, disk):
    keep(fs="xfs", block_scheduler="kyber")
    device, mountpoint = disk
    (mountpoint / "precious").write_text("data")
    document = ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint, "--json").document
    (left,) = document["left_to_you"]
    assert "fs" in left["parameters"]
    assert "lost" in left["why"]
    assert left["commands"][0].startswith("mkfs.xfs ")
    assert left["commands"][0].endswith(str(device))
    assert left["commands"][1].startswith("mount -t xfs ")
    assert any("never measured together" in warning for warning in document["warnings"])
    assert (mountpoint / "precious").read_text() == "data"


@pytest.mark.root
def test_mount_options_are_printed(ascar, keep, disk):
    device, mountpoint = disk
    keep(ext_journal_mode="journal")
    (left,) = ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint, "--json").document[
        "left_to_you"
    ]
    assert left["commands"][0] == f"umount '{mountpoint}'"
    assert "data=journal" in left["commands"][1]
    keep(atime="noatime")
    (left,) = ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint, "--json").document[
        "left_to_you"
    ]
    assert left["parameters"] == ["atime"]
    assert left["commands"][0] == f"mount -o remount,noatime '{mountpoint}'"
    where = str(mountpoint).replace(" ", "\\040")
    assert left["commands"][-1] == f"# /etc/fstab: {device} {where} ext4 noatime 0 2"


@pytest.mark.root
def test_a_mounted_device_is_said_to_be_in_use(ascar, keep, disk):
    device, mountpoint = disk
    keep(fs="xfs")
    (left,) = ascar("apply", "disk", "--dry-run", "--device", device, "--json").document["left_to_you"]
    assert left["parameters"] == ["fs"]
    assert f"{device} is in use, mounted at {mountpoint}" in left["why"]


@pytest.mark.root
def test_a_mount_point_in_memory_has_no_device(ascar, keep, tmp_path):
    keep(block_read_ahead_kb=512)
    place = tmp_path / "memory"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
    try:
        done = ascar("apply", "disk", "--dry-run", "--mountpoint", place)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert done.status == 2
    assert "holds a tmpfs, which is not on a block device" in done.error


def test_an_export_speaks_of_what_was_chosen(ascar, keep):
    keep(block_read_ahead_kb=512)
    document = ascar("export", "disk", "--json").document
    assert document["chosen"] == ["block_read_ahead_kb"]
    assert document["lines"] == ["echo 512 > /sys/block/DEVICE/queue/read_ahead_kb"]
    assert ascar("export", "disk", "--as", "sysctl").out.startswith("# nothing in this configuration")
    assert (
        ascar("export", "disk", "--trial", "1").out == "# nothing to set: this is the default configuration\n"
    )
    assert ascar("export", "disk", "--trial", "1", "--json").document["lines"] == []


def test_another_machine_is_warned_of(ascar, keep, expire):
    known = {"kernel": "2.6.32", "cpus": 4096, "device": {"kind": "image", "iops_max": 500}}
    keep(machine=known, vm_dirty_expire_centisecs=expire)
    done = ascar("apply", "disk", "--dry-run")
    assert "warning: kernel: the result is valid for 2.6.32, this machine has " in done.out
    assert "number of processors" in done.out
    assert "valid for a volume limited to 500 reads and writes a second" in done.out


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--device", "/dev/null", "is not a block device"),
        ("--device", "/dev/nosuch", "/dev/nosuch"),
        ("--mountpoint", "/usr/share", "nothing is mounted there"),
        ("--trial", "17", "it has 2"),
    ],
)
def test_a_place_that_is_none(ascar, keep, option, value, named):
    keep(block_scheduler="kyber")
    done = ascar("apply", "disk", option, value)
    assert done.status == 2
    assert named in done.error


@pytest.mark.root
def test_a_device_that_is_not_mounted_there(ascar, keep, disk):
    keep(block_scheduler="kyber")
    done = ascar("apply", "disk", "--dry-run", "--mountpoint", disk[1], "--device", "/dev/zero")
    assert done.status == 2
    assert "--device" in done.error


@pytest.mark.root
def test_it_stays_until_it_is_restored(ascar, keep, disk):
    device, mountpoint = disk
    keep(
        block_scheduler="kyber", block_nr_requests=64, block_read_ahead_kb=512, ext4_inode_readahead_blks=128
    )
    before = queue_of(device)
    readahead = Path("/sys/fs/ext4", device.name, "inode_readahead_blks")
    document = ascar("apply", "disk", "--mountpoint", mountpoint, "--json").document
    assert not document["dry_run"]
    assert queue_of(device) == {"scheduler": "kyber", "nr_requests": "64", "read_ahead_kb": "512"}
    assert readahead.read_text().strip() == "128"
    again = ascar("apply", "disk", "--mountpoint", mountpoint)
    assert "nothing to set" in again.out
    # A study that runs meanwhile puts back what was applied, and a crash's clean-up leaves it.
    with Keeper("another") as keeper:
        keeper.knob_write(f"block.{device.name}.read_ahead_kb", 64)
    assert queue_of(device)["read_ahead_kb"] == "512"
    assert ascar("restore", "--keep-applied", "--json").document["failed"] == []
    assert queue_of(device)["read_ahead_kb"] == "512"
    restored = ascar("restore", "--json").document
    assert len(restored["restored"]) >= 4
    assert queue_of(device) == before
    assert readahead.read_text().strip() == "32"


@pytest.mark.root
def test_applying_twice_and_restoring_leads_back_to_the_start(ascar, keep, disk):
    device, mountpoint = disk
    before = queue_of(device)
    first = keep(block_read_ahead_kb=512)
    second = keep(block_read_ahead_kb=2048)
    assert ascar("apply", first, "--mountpoint", mountpoint).status == 0
    assert ascar("apply", second, "--mountpoint", mountpoint).status == 0
    assert queue_of(device)["read_ahead_kb"] == "2048"
    document = ascar("restore", "--json").document
    assert document["left_alone"] == []
    assert queue_of(device) == before


@pytest.mark.root
def test_what_somebody_else_changed_since_is_left_alone_and_named(ascar, keep, disk):
    device, mountpoint = disk
    keep(block_read_ahead_kb=512)
    assert ascar("apply", "disk", "--mountpoint", mountpoint).status == 0
    Path("/sys/block", device.name, "queue", "read_ahead_kb").write_text("96")
    done = ascar("restore", "--json")
    assert done.status == 0
    (left,) = [left for left in done.document["left_alone"] if device.name in left["target"]]
    assert (left["expected"], left["found"]) == ("512", "96")
    assert queue_of(device)["read_ahead_kb"] == "96"


@pytest.mark.root
def test_a_knob_that_a_running_study_holds_is_refused_and_nothing_is_set(ascar, keep, disk):
    device, mountpoint = disk
    keep(block_scheduler="kyber", block_nr_requests=64, block_read_ahead_kb=512)
    before = queue_of(device)
    with Keeper("the other study") as keeper:
        keeper.lock(f"block.{device.name}.read_ahead_kb")
        done = ascar("apply", "disk", "--mountpoint", mountpoint)
        assert done.status == 2
        assert "the other study" in done.error
    assert queue_of(device) == before


@pytest.mark.root
def test_a_trials_values_are_not_taken_for_the_machines(ascar, keep, disk):
    """While a study runs, what is in force is a trial's: even a dry run names the study instead."""
    device, mountpoint = disk
    keep(block_scheduler="kyber", block_nr_requests=64, block_read_ahead_kb=512)
    with Keeper("study 'nightly'") as keeper:
        keeper.knob_write(f"block.{device.name}.scheduler", "kyber")
        done = ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint)
        assert done.status == 2
        assert "study 'nightly'" in done.error
        assert "trial" in done.error
    assert ascar("apply", "disk", "--dry-run", "--mountpoint", mountpoint).status == 0


@pytest.mark.root
def test_restoring_when_there_is_nothing_to_restore(ascar):
    done = ascar("restore", "--json")
    assert done.status == 0
    assert done.document["failed"] == []
