"""localfs for real: it formats, mounts, fills, loads, is killed, and puts everything back."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from localfs_support import ROOT, SIZE, entered, run, traces

from ascar.capes.session.parameters import session_parameters
from ascar.errors import KeeperLost, Refused, StageFailed, StudyError
from ascar.space import ChangeCost
from ascar.systems import Reusing
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_device import DeviceSteps
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming
from ascar.workloads.command import Command
from ascar.workloads.fio import Fio
from waiting import until

pytestmark = [*ROOT, pytest.mark.machine]

MIB = 2**20
PACE = LoadTiming(0.3, 0.5, 0.1, lambda series: False)
LOAD = {"scale": 0.05}


def knob(name: str) -> str:
    return Path("/proc/sys/vm", name).read_text().strip()


def mount_options(place: Path) -> set[str]:
    mountpoint = place.parent
    for line in Path("/proc/self/mounts").read_text().splitlines():
        fields = line.split()
        if fields[1] == str(mountpoint):
            return {*fields[3].split(","), fields[2]}
    raise AssertionError(f"{mountpoint} is not mounted")


def trial(target, configuration, load):
    change = target.apply(configuration)
    if not change.filled:
        load.prepare(target.workspace)
    settled = target.settle()
    return change, settled, load.run(target.workspace, PACE)


class TestLocalFileSystemContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _images(self, tmp_path):
        self.image = tmp_path / "image"

    def make(self):
        return entered(image=str(self.image))


def test_each_file_system_is_made_filled_loaded_and_left_without_a_trace(tmp_path):
    load = Fio(LOAD)
    with entered(image=str(tmp_path / "image")) as target:
        assert knob("dirty_ratio") != "60"
        default = target.space.default().replaced(vm_dirty_ratio=60)
        for fs in ("ext4", "xfs", "btrfs", "ext3", "ext2"):
            change, settled, readings = trial(target, target.space.nearest({**default, "fs": fs}), load)
            assert fs in mount_options(target.workspace.directory)
            assert readings.metrics["throughput_ops_per_s"] > 0
            assert {"format", "mount"} <= set(change.step_s)
            assert {"unmount", "mount", "drop caches"} <= set(settled)
        assert traces(tmp_path) != []
        assert knob("dirty_ratio") == "60"
    assert traces(tmp_path) == []
    assert target.restored is not None
    assert target.restored.failed == ()
    assert target.restored.left_alone == ()
    assert "vm.dirty_ratio" in target.restored.restored


def test_what_a_configuration_says_is_in_force(tmp_path):
    with entered(image=str(tmp_path / "image")) as target:
        wanted = {
            **target.space.default(),
            "ext_journal_mode": "journal",
            "ext_commit_interval_s": 15,
            "atime": "noatime",
            "block_scheduler": "bfq",
            "block_nr_requests": 64,
            "block_read_ahead_kb": 16,
            "ext4_inode_readahead_blks": 8,
            "vm_dirty_ratio": 60,
            "vm_dirty_background_ratio": 1,
            "block_size_bytes": 1024,
        }
        configuration = target.space.validate(
            {name: value for name, value in wanted.items() if name != "ext4_delayed_allocation"}
        )
        target.apply(configuration)
        Fio(LOAD).prepare(target.workspace)
        target.settle()
        assert {"ext4", "noatime", "data=journal", "commit=15"} <= mount_options(target.workspace.directory)
        name = target.describe()["device"]["name"]
        queue = Path("/sys/block", name, "queue")
        assert "[bfq]" in (queue / "scheduler").read_text()
        assert (queue / "nr_requests").read_text().strip() == "64"
        assert (queue / "read_ahead_kb").read_text().strip() == "16"
        # Set again after the settling mount, which resets it.
        assert Path("/sys/fs/ext4", name, "inode_readahead_blks").read_text().strip() == "8"
        assert (knob("dirty_ratio"), knob("dirty_background_ratio")) == ("60", "1")
        assert "Block size:               1024" in run("dumpe2fs", "-h", f"/dev/{name}", stderr=None)


def test_dirty_ratios_never_cross_on_their_way(tmp_path):
    with entered(image=str(tmp_path / "image")) as target:
        default, seen = target.space.default(), []
        for background, ratio in ((20, 60), (1, 10), (10, 40), (5, 10), (10, 20)):
            values = {"vm_dirty_background_ratio": background, "vm_dirty_ratio": ratio}
            target.apply(target.space.validate({**default, **values}))
            seen.append((int(knob("dirty_background_ratio")), int(knob("dirty_ratio"))))
        assert seen == [(20, 60), (1, 10), (10, 40), (5, 10), (10, 20)]


def test_a_scheduler_change_keeps_the_queue_depth(tmp_path):
    with entered(image=str(tmp_path / "image")) as target:
        default = {**target.space.default(), "block_nr_requests": 128}
        for scheduler in ("none", "mq-deadline", "none"):
            target.apply(target.space.validate({**default, "block_scheduler": scheduler}))
            queue = Path("/sys/block", target.describe()["device"]["name"], "queue")
            assert f"[{scheduler}]" in (queue / "scheduler").read_text()
            assert (queue / "nr_requests").read_text().strip() == "128"


def test_each_trial_starts_alike(tmp_path):
    """The same files in the same blocks, twice: fixed hash seed, nothing lazy (Cao 6.6.2)."""

    def blocks(directory):
        words = run("filefrag", "-v", *sorted(str(path) for path in directory.iterdir()))
        return [line for line in words.splitlines() if line.strip()[:1].isdigit()]

    load = Fio(
        {"options": {"rw": "randwrite", "bs": "4k", "nrfiles": 20, "filesize": "16k", "overwrite": True}}
    )
    seen = []
    with entered(image=str(tmp_path / "image"), state="fresh") as target:
        for _ in range(2):
            target.apply(target.space.default())
            assert list(target.workspace.directory.iterdir()) == []
            load.prepare(target.workspace)
            target.settle()
            seen.append(blocks(target.workspace.directory))
    assert seen[0] == seen[1]


def test_a_restored_image_holds_the_files_as_they_were(tmp_path):
    with entered(image=str(tmp_path / "image"), state="restored") as target:
        default = target.space.default()
        assert not target.apply(default).filled
        (target.workspace.directory / "file").write_text("as filled")
        assert "save" in target.settle()
        (target.workspace.directory / "file").write_text("as the load left it")
        (target.workspace.directory / "more").write_text("x")
        # A knob is not a part of the layout, so the same image serves.
        change = target.apply(default.replaced(vm_dirty_ratio=40))
        assert change.filled
        assert "restore" in change.step_s
        assert "format" not in change.step_s
        assert (target.workspace.directory / "file").read_text() == "as filled"
        assert not (target.workspace.directory / "more").exists()
        target.settle()
        assert not target.apply(target.space.nearest({**default, "fs": "xfs"})).filled
    assert traces(tmp_path) == []


def test_saved_images_take_bounded_space(tmp_path):
    with entered(image=str(tmp_path / "image"), state="restored", saved="90 MiB") as target:
        default = target.space.default()
        for fs in ("ext4", "ext3", "xfs", "ext2"):
            target.apply(target.space.nearest({**default, "fs": fs}))
            (target.workspace.directory / "file").write_text("x")
            target.settle()
            kept = [path for path in tmp_path.iterdir() if "filled" in path.name]
            assert sum(path.stat().st_blocks * 512 for path in kept) <= 90 * MIB


def test_reuse_formats_only_where_it_must(tmp_path):
    with entered(image=str(tmp_path / "image"), state="reuse") as target:
        default = target.space.default()
        first = target.apply(default)
        assert not first.filled
        (target.workspace.directory / "file").write_text("x")
        target.settle()

        def change(**values):
            nonlocal default
            default = target.space.nearest({**default, **values})
            done = target.apply(default)
            target.settle()
            return done

        knobs = change(vm_dirty_ratio=40)
        assert (knobs.category, knobs.filled, set(knobs.step_s) - {"end load"}) == (0, True, {"knobs"})
        remount = change(atime="noatime", ext_commit_interval_s=1)
        assert (remount.category, remount.filled) == (1, True)
        assert set(remount.step_s) - {"end load"} == {"remount"}
        assert {"noatime", "commit=1"} <= mount_options(target.workspace.directory)
        assert "noatime" not in (change(atime="relatime"), mount_options(target.workspace.directory))[1]
        again = change(ext_journal_mode="journal")
        assert {"unmount", "mount"} <= set(again.step_s)
        assert "format" not in again.step_s
        assert (target.workspace.directory / "file").read_text() == "x"
        formatted = change(ext_inode_size_bytes=512)
        assert (formatted.category, formatted.filled) == (3, False)
        assert not (target.workspace.directory / "file").exists()


def test_a_reusing_target_can_be_made_to_start_afresh(tmp_path):
    with entered(image=str(tmp_path / "image"), state="reuse") as target:
        assert isinstance(target, Reusing)
        assert target.reuses_state
        for afresh in (False, True, False):
            if afresh:
                target.start_afresh()
            change = target.apply(target.space.default())
            assert change.filled is (not afresh and (target.workspace.directory / "file").exists())
            (target.workspace.directory / "file").write_text("x")
            target.settle()
        assert change.filled
    assert not LocalFileSystem({}).reuses_state


def test_reuse_takes_btrfs_options_back(tmp_path):
    with entered(image=str(tmp_path / "image"), state="reuse") as target:
        base = target.space.nearest({**target.space.default(), "fs": "btrfs"})
        steps = [
            {"btrfs_data_mode": "nodatacow"},
            {"btrfs_data_mode": "datacow"},
            {"btrfs_compression": "lzo"},
            {},
        ]
        seen = []
        for values in steps:
            target.apply(target.space.nearest({**base, **values}))
            target.settle()
            seen.append(mount_options(target.workspace.directory))
        assert {"nodatacow", "nodatasum"} <= seen[0]
        assert not {"nodatacow", "nodatasum"} & seen[1]
        assert "compress=lzo" in seen[2]
        assert not any(option.startswith("compress") for option in seen[3])


def test_a_configuration_that_fails_leaves_the_next_one_alone(tmp_path):
    with entered(image=str(tmp_path / "image")) as target:
        default = target.space.default()
        target.apply(default)
        # mkfs.xfs and mke2fs refuse these; the space would not propose them.
        for broken in (
            default.replaced(ext_journal_size_mib=4096),
            default.replaced(block_size_bytes=65536),
            default.replaced(block_nr_requests=100_000),
            default.replaced(block_scheduler="no-such-scheduler"),
            default.replaced(ext_journal_mode="no-such-mode"),
        ):
            with pytest.raises(StageFailed):
                target.apply(broken)
            change = target.apply(default)
            assert set(default) == set(change.parameters)  # after a failure, nothing is known to be in force
            (target.workspace.directory / "file").write_text("x")
            target.settle()
    assert traces(tmp_path) == []


def test_a_step_that_takes_too_long_fails_and_the_next_trial_goes_on(tmp_path):
    with entered(image=str(tmp_path / "image"), step_limit="1 ms") as target:
        with pytest.raises(StageFailed) as failed:
            for _ in range(5):
                target.apply(target.space.default())
        assert failed.value.message
        target._entered()._limit_s = 60
        target.apply(target.space.default())
    assert traces(tmp_path) == []


def test_the_load_is_held_to_its_memory_and_the_fill_is_not(tmp_path):
    script = "import sys; x = bytearray(200 * 2**20); print('held', len(x))"
    hungry = Command({"argv": [sys.executable, "-c", script], "metrics": {"held": r"regex:held (\d+)"}})
    unhurried = LoadTiming(0.3, 60.0, 0.1, lambda series: False)  # it ends by itself, on a busy machine late
    with entered(image=str(tmp_path / "image"), memory="64 MiB") as target:
        target.apply(target.space.default())
        assert target.workspace.admit is None
        target.settle()
        assert target.workspace.memory_bytes == 64 * MIB
        with pytest.raises(StageFailed, match="was killed by SIGKILL"):
            hungry.run(target.workspace, unhurried)
        _, _, readings = trial(target, target.space.default(), Fio(LOAD))
        assert readings.metrics["operations"] > 0
    with entered(image=str(tmp_path / "image"), memory="none") as target:
        target.apply(target.space.default())
        target.settle()
        assert target.workspace.admit is None
        assert hungry.run(target.workspace, unhurried).metrics["held"] == 200 * MIB


def test_memory_follows_the_data_where_the_study_says_so(tmp_path):
    with entered(image=str(tmp_path / "image"), dataset_to_memory=2.5) as target:
        assert target.describe()["memory_bytes"] is None
        target.apply(target.space.default())
        (target.workspace.directory / "file").write_bytes(bytes(100 * MIB))
        target.settle()
        assert target.describe()["memory_bytes"] == 40 * MIB
        assert target.describe()["dataset_bytes"] == 100 * MIB
        assert target.workspace.admit is not None
    with entered(image=str(tmp_path / "image"), dataset_to_memory=2.5) as target:
        target.apply(target.space.default())
        (target.workspace.directory / "file").write_bytes(bytes(MIB))
        with pytest.raises(StudyError, match=r"target.dataset_to_memory = 2\.5: with 1 MiB of data"):
            target.settle()


def test_the_load_runs_as_the_studys_user(tmp_path):
    with entered(image=str(tmp_path / "image"), user="nobody") as target:
        target.apply(target.space.default())
        load = Fio(LOAD)
        load.prepare(target.workspace)
        owners = {path.stat().st_uid for path in target.workspace.directory.iterdir()}
        assert owners == {pwd.getpwnam("nobody").pw_uid}
        target.settle()
        assert load.run(target.workspace, PACE).metrics["operations"] > 0


def test_counters_see_the_loads_traffic(tmp_path):
    with entered(image=str(tmp_path / "image")) as target:
        load = Fio(LOAD)
        target.apply(target.space.default())
        load.prepare(target.workspace)
        target.settle()
        before = target.sample().counters
        readings = load.run(target.workspace, PACE)
        after = target.sample().counters
        assert (
            after["device_write_bytes"] - before["device_write_bytes"]
            >= 4096 * readings.metrics["operations"] / 2
        )
        assert after["device_flush_ios"] > before["device_flush_ios"]
        assert after["cpu_busy_s"] > before["cpu_busy_s"]


def test_processes_that_a_load_left_do_not_hold_up_the_next_trial(tmp_path):
    with entered(image=str(tmp_path / "image")) as target:
        target.apply(target.space.default())
        target.settle()
        # Without the mark that loads carry, in a session of its own, with a file open on the file system.
        clean = {"PATH": os.environ["PATH"]}
        argv = ["/bin/sh", "-c", "read _; exec sleep 60 > held"]
        left = subprocess.Popen(
            argv, cwd=target.workspace.directory, env=clean, start_new_session=True, stdin=subprocess.PIPE
        )
        assert target.workspace.admit is not None
        assert left.stdin is not None
        target.workspace.admit(left.pid)
        left.stdin.write(b"\n")
        left.stdin.close()
        target.apply(target.space.default())
        assert left.wait(60) == -signal.SIGKILL


def test_a_device_of_the_machine_is_used_when_confirmed_and_left_blank_of_mounts(tmp_path):
    backing = tmp_path / "backing"
    with backing.open("wb") as file:
        file.truncate(400 * MIB)
    device = run("losetup", "--find", "--show", str(backing)).strip()
    try:
        with entered(device=device, confirmed_device=device, file_systems=["ext4"]) as target:
            _, _, readings = trial(target, target.space.default(), Fio(LOAD))
            assert readings.metrics["operations"] > 0
            assert target.describe()["device"]["kind"] == "block device"
        assert device not in Path("/proc/self/mounts").read_text()
        run("wipefs", "-a", device)
        run("mkfs.ext2", "-q", device)
        place = tmp_path / "place"
        place.mkdir()
        run("mount", device, str(place))
        try:
            # In use: refused, and nothing happens to what is on it.
            (place / "precious").write_text("data")
            with pytest.raises(Refused, match=device), entered(device=device, confirmed_device=device):
                pass
            assert (place / "precious").read_text() == "data"
        finally:
            run("umount", str(place))
        # Not in use, but somebody's.
        with pytest.raises(Refused, match=device), entered(device=device, confirmed_device=device):
            pass
    finally:
        run("losetup", "--detach", device)


@pytest.fixture
def two_disks(tmp_path):
    devices = []
    for name in ("one", "two"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(400 * MIB)
        devices.append(run("losetup", "--find", "--show", str(tmp_path / name)).strip())
    yield devices
    for device in devices:
        run("losetup", "--detach", device)


def mounted() -> set[str]:
    return {line.split()[0] for line in Path("/proc/self/mounts").read_text().splitlines()}


def read_ahead_kb(device: str) -> int:
    return int(Path("/sys/block", Path(device).name, "queue/read_ahead_kb").read_text())


def written_bytes(device: str) -> int:
    return 512 * int(Path("/sys/block", Path(device).name, "stat").read_text().split()[6])


def test_several_devices_are_a_parameter_and_what_is_tried_is_on_the_one_that_is_named(two_disks):
    """Cao, Table 9.1: hardware-change."""
    first, second = two_disks
    before = [read_ahead_kb(device) for device in two_disks]
    with entered(device=two_disks, confirmed_device=two_disks, file_systems=["ext4"]) as target:
        assert target.space["device"].cost is ChangeCost.HARDWARE_CHANGE
        default = target.space.default()
        assert default["device"] == first
        trial(target, default, Fio(LOAD))
        assert {first, second} & mounted() == {first}

        other = default.replaced(device=second, block_read_ahead_kb=4096)
        change, _, _ = trial(target, other, Fio(LOAD))
        assert set(change.parameters) == {"device", "block_read_ahead_kb"}
        assert change.category == 3
        assert {first, second} & mounted() == {second}
        assert [read_ahead_kb(device) for device in two_disks] == [before[0], 4096]
        # The traffic that is told is that of the device in use.
        low = written_bytes(second)
        assert low <= target.sample().counters["device_write_bytes"] <= written_bytes(second)
        assert low != written_bytes(first)
        assert target.describe()["device"]["path"] == f"{first}, {second}"

        trial(target, default, Fio(LOAD))
        assert {first, second} & mounted() == {first}
    assert not {first, second} & mounted()
    assert [read_ahead_kb(device) for device in two_disks] == before


def test_where_a_trial_finds_what_the_one_before_left_another_device_is_still_made_anew(two_disks):
    with entered(
        device=two_disks, confirmed_device=two_disks, file_systems=["ext4"], state="reuse"
    ) as target:
        default = target.space.default()
        for device in (*two_disks, two_disks[0]):
            change = target.apply(default.replaced(device=device))
            assert not change.filled
            assert "format" in change.step_s
        assert "format" not in target.apply(default).step_s
        assert {*two_disks} & mounted() == {two_disks[0]}


def test_a_device_that_fails_does_not_end_the_study_of_the_other(two_disks):
    """The second one loses its disk while it is in use; the next trial is on the first one."""
    first, second = two_disks
    with entered(device=two_disks, confirmed_device=two_disks, file_systems=["ext4"]) as target:
        default = target.space.default()
        with Path("/sys/block", Path(second).name, "loop/backing_file").open() as file:
            os.truncate(file.read().strip(), 0)
        with pytest.raises(StageFailed):
            target.apply(default.replaced(device=second))
        _, _, readings = trial(target, default, Fio(LOAD))
        assert readings.metrics["operations"] > 0
        assert {first, second} & mounted() == {first}


def test_a_second_study_is_refused_and_told_who_holds_the_machine(tmp_path):
    with entered(image=str(tmp_path / "one")):
        second = LocalFileSystem({"size": SIZE, "image": str(tmp_path / "two")})
        with pytest.raises(Refused, match="is locked by"):
            second.__enter__()
        assert not (tmp_path / "two").exists()


ORDINARY = """
import os, sys
sys.path.insert(0, {tests!r})
from localfs_support import LocalFileSystem
from ascar.errors import AscarError
target = LocalFileSystem({{"image": {image!r}}})
os.setgid(65534)
os.setuid(65534)
try:
    target.__enter__()
except AscarError as error:
    print(error.exit_status, type(error).__name__, error.message)
"""


@pytest.mark.parametrize("place", ["/dev/shm", "/root/closed"])
def test_an_ordinary_user_is_told_what_is_missing(place, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
    script = ORDINARY.format(tests=str(Path(__file__).parent), image=f"{place}/ascar-nobodys-image")
    said = run(sys.executable, "-c", script)
    assert said.startswith("2 ")
    assert len(said.splitlines()) == 1
    if place == "/dev/shm":
        assert "EnvironmentLacks target.kind = 'localfs': " in said
        assert "the kind 'sqlite' needs no root" in said
    else:
        assert "EnvironmentLacks" in said or "Permission denied; name another place in target.image" in said


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from localfs_support import entered
from ascar.workloads import LoadTiming
from ascar.workloads.fio import Fio
with entered(image={image!r}) as target:
    load = Fio({{"scale": 0.05}})
    print(target.space["vm_dirty_ratio"].default, flush=True)
    while True:
        if not target.apply(target.space.default().replaced(vm_dirty_ratio=60)).filled:
            load.prepare(target.workspace)
        target.settle()
        load.run(target.workspace, LoadTiming(0.2, 0.4, 0.1, lambda series: False))
"""


@pytest.mark.slow
def test_killed_at_any_moment_everything_is_put_back(tmp_path, seed):
    chance = np.random.default_rng(20 + seed)
    for _ in range(3):
        script = KILLED.format(tests=str(Path(__file__).parent), image=str(tmp_path / "image"))
        study = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True
        )
        assert study.stdout is not None
        before = study.stdout.readline().decode().strip()
        delay_s = float(chance.uniform(0, 1.5))
        time.sleep(delay_s)
        study.send_signal(signal.SIGKILL)
        study.wait(100)
        study.stdout.close()
        deadline_s = time.monotonic() + 100
        while time.monotonic() < deadline_s and (traces(tmp_path) or knob("dirty_ratio") != before):
            time.sleep(0.05)
        assert traces(tmp_path) == [], f"killed after {delay_s} s"
        assert knob("dirty_ratio") == before


def test_an_administrators_lines_make_the_same_file_system(tmp_path):
    """Printed mkfs and mount lines, run on a loop device: the same geometry, features and options."""
    backing, place = tmp_path / "backing", tmp_path / "place"
    place.mkdir()
    with backing.open("wb") as file:
        file.truncate(640 * MIB)
    device = run("losetup", "--find", "--show", str(backing)).strip()
    try:
        with entered(image=str(tmp_path / "image")) as target:
            space, rng = target.space, np.random.default_rng(7)
            for fs in ("ext2", "ext3", "ext4", "xfs", "btrfs"):
                for configuration in [space.nearest({"fs": fs}), *space.pin({"fs": fs}).sample(rng, 2)]:
                    target.apply(configuration)
                    target.settle()
                    mkfs, mount = target.commands(configuration, space.names)["shell"][:2]
                    until(lambda: is_wiped(device), 20, "nobody else looks at it")
                    run(*mkfs.replace("/dev/DEVICE", device).split())
                    run(*mount.replace("/dev/DEVICE", device).replace("/MOUNTPOINT", str(place)).split())
                    try:
                        ours = f"/dev/{target.describe()['device']['name']}"
                        assert geometry(fs, device, place) == geometry(
                            fs, ours, target.workspace.directory.parent
                        )
                        assert options_of(place) == options_of(target.workspace.directory.parent)
                    finally:
                        run("umount", str(place))
    finally:
        run("losetup", "--detach", device)


def is_wiped(device: str) -> bool:
    """Whether nothing is on a device any more; wipefs fails while another process has it open exclusively."""
    return subprocess.run(["wipefs", "-a", "-q", device], check=False).returncode == 0


def geometry(fs: str, device: str, mountpoint: Path) -> list[str]:
    """What a file system says of itself, but for what differs by nature (names, times, counts of use)."""
    if fs == "xfs":
        return [line.partition("isize")[2] or line for line in run("xfs_info", str(mountpoint)).splitlines()]
    if fs == "btrfs":
        run("sync", "-f", str(mountpoint))  # some flags of the super block are written with the first commit
        wanted = ("nodesize", "sectorsize", "csum_type", "compat_ro_flags", "incompat_flags")
        words = run("btrfs", "inspect-internal", "dump-super", device).splitlines()
        profiles = run("btrfs", "filesystem", "df", str(mountpoint)).splitlines()
        return [
            *(line for line in words if line.startswith(wanted)),
            *(line.partition(":")[0] for line in profiles),
        ]
    wanted = (
        *("Filesystem features", "Default mount options", "Required extra isize", "Reserved block count"),
        *("Inode count", "Inode size", "Inodes per group", "Flex block group size"),
        *("Block count", "Block size", "Blocks per group", "Journal size", "Total journal size"),
    )
    words = run("dumpe2fs", "-h", device).splitlines()
    return [line.replace(" needs_recovery", "") for line in words if line.startswith(wanted)]


def options_of(mountpoint: Path) -> set[str]:
    """Mount options in force, without those that guard a device which is not trusted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        fields = line.split()
        if fields[1] == str(mountpoint):
            return set(fields[3].split(",")) - {"nosuid", "nodev"}
    raise AssertionError(f"{mountpoint} is not mounted")


def test_a_killed_keeper_is_made_good_by_the_study_that_lives(tmp_path, caplog):
    with pytest.raises(KeeperLost, match="it is gone"), entered(image=str(tmp_path / "image")) as target:
        target.apply(target.space.default())
        assert target._keeper is not None
        os.kill(target._keeper.pid, signal.SIGKILL)
        target.settle()
    assert traces(tmp_path) == []
    assert target.restored is not None
    assert target.restored.restored
    assert "another one undid" in caplog.text


@pytest.mark.parametrize("state", ["fresh", "reuse"])
def test_a_disk_that_comes_under_the_name_of_one_that_went_keeps_what_is_on_it(two_disks, tmp_path, state):
    first, second = two_disks
    run("mkfs.ext4", "-q", "-L", "precious", second)
    with entered(device=first, confirmed_device=first, file_systems=["ext4"], state=state) as target:
        default = target.space.default()
        target.apply(default)
        target._entered().unmount(DeviceSteps())
        run("losetup", "--detach", first)
        run("losetup", first, str(tmp_path / "two"))
        with pytest.raises(Refused, match="became another device"):
            target.apply(default)
    assert "precious" in run("blkid", "-p", first)


def test_a_disk_goes_from_each_file_system_to_each_other(two_disks):
    disk, kinds = two_disks[0], ["ext4", "xfs", "btrfs"]
    with entered(device=disk, confirmed_device=disk, file_systems=kinds) as target:
        for kind in ("ext4", "xfs", "btrfs", "ext4", "btrfs", "xfs", "ext4"):
            target.apply(target.space.nearest({**target.space.default(), "fs": kind}))
            assert kind in mount_options(target.workspace.directory)


def test_what_somebody_has_made_of_the_disk_meanwhile_is_not_overwritten(two_disks):
    disk = two_disks[0]
    with entered(device=disk, confirmed_device=disk, file_systems=["ext4"]) as target:
        default = target.space.default()
        target.apply(default)
        target._entered().unmount(DeviceSteps())
        run("mkfs.ext4", "-q", "-F", "-L", "precious", disk)
        with pytest.raises(Refused, match="carries TYPE=ext4 LABEL=precious"):
            target.apply(default)
    assert "precious" in run("blkid", "-p", disk)


def test_a_disk_that_may_only_be_read_is_refused_before_anything_is_tried(two_disks):
    disk = two_disks[0]
    run("blockdev", "--setro", disk)
    try:
        with (
            pytest.raises(Refused, match="is read-only.*--setrw"),
            entered(device=disk, confirmed_device=disk),
        ):
            pass
    finally:
        run("blockdev", "--setrw", disk)


def test_a_partition_has_the_queue_of_its_disk(two_disks):
    disk = two_disks[0]
    before = read_ahead_kb(disk)
    run("addpart", disk, "1", "2048", str(390 * MIB // 512))
    part = f"{disk}p1"
    try:
        with entered(device=part, confirmed_device=part, file_systems=["ext4"]) as target:
            default = target.space.default()
            assert default["block_read_ahead_kb"] == before
            trial(target, default.replaced(block_read_ahead_kb=4096), Fio(LOAD))
            assert part in mounted()
            assert read_ahead_kb(disk) == 4096
            of_session = session_parameters(target, target.space, target.device)
            (key,) = (one.key for one in of_session if one.parameter.name == "block_read_ahead_kb")
            assert key == f"block.{Path(disk).name}.read_ahead_kb"
            assert target._keeper.knob_read(key).value == 4096, "the keeper of a session's agent finds it"
        assert read_ahead_kb(disk) == before
        with (
            pytest.raises(StudyError, match="target.iops = 1000: limits a whole disk"),
            entered(device=part, confirmed_device=part, iops=1000),
        ):
            pass
    finally:
        run("delpart", disk, "1")


@pytest.fixture
def ram_disk():
    """A device without a queue, as volumes of the device mapper are."""
    size = Path("/sys/block/zram0/disksize")
    if not size.exists() or size.read_text().strip() != "0":
        pytest.skip("needs a zram0 that nobody uses")
    size.write_text(str(400 * MIB))
    yield "/dev/zram0"
    size.with_name("reset").write_text("1")


def test_a_volume_without_a_queue_has_the_settings_that_are_left(ram_disk, two_disks):
    with entered(device=ram_disk, confirmed_device=ram_disk, file_systems=["ext4"]) as target:
        assert {"block_scheduler", "block_nr_requests"}.isdisjoint(target.space.names)
        default = target.space.default()
        trial(target, default.replaced(block_read_ahead_kb=4096), Fio(LOAD))
        assert "mkfs" in "".join(target.commands(default, target.space.names)["shell"])
    both = [two_disks[0], ram_disk]
    with entered(device=both, confirmed_device=both, file_systems=["ext4"]) as target:
        assert "block_scheduler" not in target.space.names
        for device in both:
            target.apply(target.space.default().replaced(device=device))
