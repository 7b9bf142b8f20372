"""Settings of the kernel as a target: read, set, put back, refused."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ascar.catalogues import DEVICE_MARK, linux
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.space import Range, identifier
from ascar.systems.disk_activity import METRICS, DiskActivity
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.kernel_parameters import Devices, all_here, file_of, parameter_here
from ascar.systems.linux import Linux
from ascar.testing import TargetContract
from ascar.workspace import LoadTiming, Workspace
from volumes import volume_that_reads_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SETTINGS = ("vm.vfs_cache_pressure", "vm.page-cluster")


def values() -> list[str]:
    return [Path("/proc/sys", name.replace(".", "/")).read_text() for name in SETTINGS]


@pytest.mark.root
@pytest.mark.machine
class TestLinuxContract(TargetContract):
    def make(self) -> Linux:
        target = Linux(self.options())
        narrow = {"vm_vfs_cache_pressure": (50, 200), "vm_page_cluster": (1, 5)}
        for name, (low, high) in narrow.items():
            target.space = target.space._with(target.space[name].with_domain(Range(low, high, integer=True)))
        return target

    def options(self) -> Mapping[str, Any]:
        return {"settings": list(SETTINGS)}


@pytest.mark.root
@pytest.mark.machine
def test_everything_is_put_back_whatever_happens() -> None:
    before = values()
    with pytest.raises(ZeroDivisionError), Linux({"settings": list(SETTINGS)}) as target:
        default = target.space.default()
        target.apply(
            target.space.validate({**default, "vm_page_cluster": 1 + default["vm_page_cluster"] % 5})
        )
        assert values() != before
        raise ZeroDivisionError
    assert values() == before


def test_every_setting_of_this_machine_can_be_a_parameter() -> None:
    found = 0
    for setting in linux().values():
        if DEVICE_MARK in setting.name or not Path(setting.path).exists():
            continue
        parameter = parameter_here(setting.name, Devices(), KernelFiles())
        assert parameter.name == identifier(setting.name) == re.sub(r"\W", "_", setting.name)
        assert parameter.native == setting.name
        assert not parameter.weakens(parameter.default), "what the machine does is no weaker than itself"
        found += 1
    assert found > 10


def test_a_device_s_settings_have_the_device_in_their_files_alone() -> None:
    disks = [one.name for one in Path("/sys/block").iterdir() if (one / "queue/read_ahead_kb").exists()]
    if not disks:
        pytest.skip("no block device with a queue")
    name = min(disks)
    target = Linux({"settings": ["block.DEV.read_ahead_kb", "block.DEV.scheduler"], "device": name})
    assert target.space.names == ("block_read_ahead_kb", "block_scheduler")
    default = target.space.default()
    assert (
        str(default["block_read_ahead_kb"])
        == Path(f"/sys/block/{name}/queue/read_ahead_kb").read_text().strip()
    )
    lines = target.commands(default, ("block_read_ahead_kb",))
    amount = default["block_read_ahead_kb"]
    assert lines["shell"] == [f"echo {amount} > /sys/block/{name}/queue/read_ahead_kb"]
    which = f'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="{name}"'
    assert lines["udev"] == [f'{which}, ATTR{{queue/read_ahead_kb}}="{amount}"']
    (rule,) = target.commands(default, target.space.names)["udev"]
    assert rule.index("queue/scheduler") < rule.index("queue/read_ahead_kb"), "the scheduler resets the queue"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"settings": []}, "names 0; must name 1 to 100"),
        ({"settings": ["vm.dirty_ratio"] * 2}, "'vm.dirty_ratio' is named twice"),
        ({"settings": ["vm.page-cluster", "vm.page_cluster"]}, "did you mean 'vm.page-cluster'"),
        ({"settings": ["kernel.core_pattern"]}, "is not a setting of the kernel that the keeper may change"),
        ({"settings": ["../../etc/passwd"]}, "is not a setting of the kernel"),
        ({"settings": ["block.DEV.scheduler"]}, "target.device: missing"),
        ({"settings": ["block.DEV.scheduler"], "device": "../sda"}, "target.device = '../sda'"),
        ({"settings": ["block.DEV.scheduler"], "device": ""}, "target.device = ''"),
        ({"settings": "vm.dirty_ratio"}, "target.settings"),
        ({"settings": [], "path": "/"}, "names 0; must name 1 to 100"),
        ({"parameters": "all"}, "target.parameters"),
        ({"path": "srv"}, "target.path = 'srv': must be the absolute path of a directory"),
        ({"path": "/no/such"}, "target.path = '/no/such': must be the absolute path of a directory"),
        ({"path": "/etc/passwd"}, "target.path = '/etc/passwd': must be the absolute path"),
        ({"path": "/a\0b"}, "must be the absolute path of a directory"),
        ({"path": "/", "device": "sda"}, "target.device = 'sda': the device of target.path is tuned"),
        ({"path": "/", "node": {"host": "server1"}}, "target.path = '/': must be of this machine"),
        ({"settings": ["vm.dirty_ratio"], "node": {"host": "a b"}}, "node.host = 'a b'"),
        ({"settings": ["vm.dirty_ratio"], "node": {"kind": "rsh"}}, "node.kind = 'rsh'"),
    ],
)
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        Linux(options)
    assert words in caught.value.message, caught.value.message


def test_a_setting_that_this_machine_lacks_is_named() -> None:
    with pytest.raises(EnvironmentLacks, match=r"the machine does not have it \(/sys/block/none9/"):
        Linux({"settings": ["block.DEV.read_ahead_kb"], "device": "none9"})


@pytest.mark.root
@pytest.mark.machine
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", tmp_path], check=True)
    try:
        target = Linux({"path": str(tmp_path), "settings": ["vm.dirty_expire_centisecs"]})
        with pytest.raises(StudyError, match=r"target\.path = .*: No space left on device") as told, target:
            pass
        assert "\n" not in told.value.message
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.root
@pytest.mark.machine
def test_dirty_pages_of_the_machine_are_deferred_work_and_the_cycle_is_their_age() -> None:
    with Linux({"settings": ["vm.dirty_expire_centisecs", "vm.dirty_writeback_centisecs"]}) as target:
        assert target.sample().deferred["dirty_bytes"] >= 0
        default = target.space.default()
        wanted = {"vm_dirty_expire_centisecs": 60000, "vm_dirty_writeback_centisecs": 500}
        assert target.cycle_s(default.replaced(**wanted), {}) == 605


def test_a_sync_that_does_not_end_in_time_fails_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "sync"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    target = Linux({"settings": ["vm.dirty_ratio"]})
    with pytest.raises(StageFailed, match=r"sync does not end within 0.3 s"):
        target.drain(0.3)
    slow.write_text("#!/bin/sh\necho 'sync: no space' >&2; exit 1\n")
    with pytest.raises(StageFailed, match=r"node local: sync: sync: no space"):
        target.drain(30)


class FilesOfNfs(KernelFiles):
    """A machine that has the NFS client's settings and no others."""

    def text(self, path: Path) -> str:
        if "sunrpc" in path.parts or "nfs" in path.parts:
            return "64\n"
        raise EnvironmentLacks(f"{path}: none")

    def can_be_written(self, path: Path) -> bool:
        return True


def test_what_acts_on_new_mounts_alone_is_searched_where_a_study_names_it() -> None:
    files, nothing = FilesOfNfs(), Devices()
    assert parameter_here("nfs.max_session_slots", nothing, files).default == 64
    assert all_here(nothing, files, wide=True) == ()


def test_an_expert_searches_what_this_machine_has_and_no_more() -> None:
    without, here = Linux({}).space, Linux({"path": "/"}).space
    wide = Linux({"path": "/", "parameters": "wide"}).space
    assert all(one.native.startswith("vm.") for one in without.parameters)
    assert set(without.names) <= set(here.names) < set(wide.names)
    # Of two settings that replace each other, one is searched.
    assert len({"vm_dirty_ratio", "vm_dirty_bytes"} & set(wide.names)) == 1
    assert not [name for name in wide.names if "iops_max" in name or "iosched" in name]
    for name, value in here.default().items():
        path = file_of(here[name].native, None)
        assert str(value) == KernelFiles().in_force(path), name


def test_what_applications_get_of_a_disk_is_told_by_the_kernel_s_totals() -> None:
    class Files(KernelFiles):
        lines = (
            "100 5 800 50 10 0 80 40 0 1 1 0 0 0 0 0 0\n",
            "300 5 8800 150 60 0 480 540 2 1 1 0 0 0 0 0 0\n",
        )

        def text(self, path: Path) -> str:
            assert path == Path("/sys/block/sda/stat")
            return Files.lines[0]

    activity = DiskActivity("sda", Files())
    before = activity.totals()
    Files.lines = Files.lines[1:]
    now = replace(activity.totals(), counted_s=before.counted_s + 2)
    assert now.since(before) == {
        "throughput_ops_per_s": 125,
        "throughput_bytes_per_s": (8000 + 400) * 512 / 2,
        "latency_ms_mean": 600 / 250,
        "latency_ms_mean_read": 0.5,
        "latency_ms_mean_write": 10,
    }
    assert set(now.since(before)) == METRICS == Linux({}).reported
    Files.lines = ("1 2 3\n",)
    with pytest.raises(StageFailed, match="has 3 fields; must have 11"):
        activity.totals()
    with pytest.raises(StageFailed, match="/sys/block/none9/stat: cannot be read; is the disk gone"):
        DiskActivity("none9", KernelFiles()).totals()


def test_applications_are_no_load_where_no_disk_is_named(tmp_path: Path) -> None:
    target = Linux({"settings": ["vm.dirty_ratio"]})
    pace = LoadTiming(0.2, 0.4, 0.1, lambda _: False)
    with pytest.raises(StageFailed, match=r"name target\.path or target\.device"):
        target.run(Workspace(tmp_path), pace)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    with volume_that_reads_ahead(tmp_path, read_ahead_kb=4) as place:
        yield place


@pytest.mark.root
@pytest.mark.machine
def test_the_disk_and_the_file_system_below_a_path_are_tuned_and_put_back(mounted: Path) -> None:
    (mounted / "data").write_text("the application's")
    with Linux({"path": str(mounted)}) as target:
        devices = Devices.below(mounted)
        assert devices.file_system == "ext4"
        queue = Path("/sys/block", str(devices.disk), "queue")
        before = {one: (queue / one).read_text() for one in ("scheduler", "nr_requests", "max_sectors_kb")}
        assert target.workspace.directory.parent == mounted
        assert {"block_read_ahead_kb", "ext4_mb_stream_req"} <= set(target.space.names)
        default = target.space.default()
        assert default["block_read_ahead_kb"] == 4
        other = next(word for word in ("mq-deadline", "none", "kyber") if word != default["block_scheduler"])
        wanted = default.replaced(block_scheduler=other, block_read_ahead_kb=512)
        change = target.apply(wanted)
        assert set(change.parameters) == {"block_scheduler", "block_read_ahead_kb"}
        assert target.read(target.space.names) == dict(wanted), "also what the scheduler had reset"
        assert set(target.sample().counters) == target.sampled
        place = target.workspace.directory
    assert not place.exists()
    assert {one: (queue / one).read_text() for one in before} == before
    assert [one.name for one in mounted.iterdir() if one.name != "lost+found"] == ["data"]


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize("parameters", ["expert", "wide"])
def test_configurations_drawn_at_random_can_be_put_in_force(
    mounted: Path, parameters: str, seed: int
) -> None:
    with Linux({"path": str(mounted), "parameters": parameters}) as target:
        for wanted in target.space.sample(np.random.default_rng(seed), 8):
            target.apply(wanted)
            shown = target.read(target.space.names)
            assert {name: shown[name] for name in wanted if shown[name] != wanted[name]} == {}


@pytest.mark.root
@pytest.mark.machine
def test_a_limit_of_a_queue_leaves_its_read_ahead_as_it_is(mounted: Path) -> None:
    """Linux 6.18 computes the read-ahead anew with every limit of the queue."""
    with Linux({"path": str(mounted)}) as target:
        default = target.space.default()
        target.apply(default.replaced(block_max_sectors_kb=64))
        assert target.read(["block_read_ahead_kb"]) == {"block_read_ahead_kb": 4}
        lines = target.commands(default.replaced(block_max_sectors_kb=64), ["block_max_sectors_kb"])["shell"]
        assert [line.split("/")[-1] for line in lines] == ["max_sectors_kb", "read_ahead_kb"]


@pytest.mark.root
@pytest.mark.machine
def test_after_a_refused_value_the_next_configuration_is_in_force_as_a_whole(mounted: Path) -> None:
    device = str(Devices.below(mounted).disk)
    queue = ["block.DEV.scheduler", "block.DEV.nr_requests", "block.DEV.nomerges"]
    with Linux({"settings": queue, "device": device}) as target:
        default = target.space.default()
        target.apply(default.replaced(block_scheduler="mq-deadline", block_nr_requests=200))
        with pytest.raises(StageFailed, match="the kernel refuses it"):
            target.apply(
                default.replaced(block_scheduler="none", block_nr_requests=100_000, block_nomerges=2)
            )
        wanted = default.replaced(block_scheduler="mq-deadline", block_nr_requests=200)
        target.apply(wanted)
        assert target.read(target.space.names) == dict(wanted)


@pytest.mark.root
@pytest.mark.machine
def test_without_a_scheduler_there_are_no_more_requests_than_the_device_holds(mounted: Path) -> None:
    device = str(Devices.below(mounted).disk)
    held = int(Path("/sys/block", device, "mq/0/nr_tags").read_text())
    queue = ["block.DEV.scheduler", "block.DEV.nr_requests"]
    with Linux({"settings": queue, "device": device}) as target:
        more = target.space.default().replaced(block_nr_requests=held + 1)
        assert target.space.is_valid(more.replaced(block_scheduler="mq-deadline"))
        assert not target.space.is_valid(more.replaced(block_scheduler="none"))


@pytest.mark.root
@pytest.mark.machine
def test_a_setting_that_the_kernel_only_shows_is_left_out_and_refused_by_name(mounted: Path) -> None:
    path = Path("/sys/fs/ext4", str(Devices.below(mounted).volume), "max_writeback_mb_bump")
    if not path.exists() or path.stat().st_mode & 0o200:
        pytest.skip(f"{path} can be written, or there is none")
    assert "ext4_max_writeback_mb_bump" not in Linux({"path": str(mounted), "parameters": "wide"}).space.names
    with pytest.raises(EnvironmentLacks, match="max_writeback_mb_bump'.* is read-only on this kernel"):
        Linux({"path": str(mounted), "settings": ["ext4.DEV.max_writeback_mb_bump"]})
