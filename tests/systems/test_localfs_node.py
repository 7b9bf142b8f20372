"""The local file system in a node of user-mode Linux: refusals, deaths, kills, Cao's spaces whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import create_autospec

import numpy as np
import pytest

from ascar.errors import AscarError, EnvironmentLacks, StageFailed, StudyError
from ascar.prepared_study import PreparedStudy
from ascar.program import Program, run_program
from ascar.space import Guarantee
from ascar.study import Study
from ascar.systems import open_target
from ascar.systems.keeper import Keeper
from ascar.systems.localfs_node import NodeFileSystem, _image
from ascar.systems.published_spaces import published_space
from ascar.testbed import user_mode
from ascar.testing.systems import TargetContract
from ascar.workloads import open_workload
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from ascar.results.measurement import Series
    from ascar.space import Configuration
    from ascar.systems import Target
    from ascar.systems.localfs import LocalFileSystem

PUBLISHED = {"storage-v1": 2074, "storage-v2": 6222, "storage-v3": 3888, "storage-v4": 5184}
WHOLE = "40 GiB"
CONFIGURATIONS = 5
LOAD = {
    "kind": "fio",
    "options": {"rw": "randrw", "bs": "4k", "size": "1m", "nrfiles": 3, "fsync": 8},
}
READ_BACK = """
set -e
cd /run/ascar/mnt/*/load
head -c 100000 /dev/urandom >/run/written
cp /run/written read-back
sync -f .
echo 3 >/proc/sys/vm/drop_caches
cmp read-back /run/written
"""
LACK = user_mode.missing()
IN_NODE = [
    pytest.mark.slow,
    pytest.mark.skipif(LACK is not None, reason=str(LACK)),
]
STUDY = """
[study]
name = "{name}"
objective = "maximize throughput_ops_per_s"
budget = "{budget}"
[target]
kind = "localfs"
kernel = "user-mode"
image = "{image}"
size = "{size}"
preset = "{name}"
step_limit = "5 min"
[workload]
kind = "fio"
preset = "small-files-fsync"
scale = 0.1
[measurement]
load_min = "400 ms"
load_max = "800 ms"
reading = "100 ms"
[optimizer]
kind = "random"
[stop]
trials = {trials}
[verify]
runs_min = 2
runs_max = 2
"""


def in_node(**options: Any) -> NodeFileSystem:
    target = open_target({"kind": "localfs", "kernel": "user-mode", "size": "640 MiB", **options})
    assert isinstance(target, NodeFileSystem)
    return target


def timing(load_s: float = 0.3, may_end: Any = lambda _: False) -> LoadTiming:
    return LoadTiming(load_s, load_s, 0.1, may_end, ask_from_s=0.0)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path for what is temporary."""
    with tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as name:
        yield Path(name)


def processes_of(place: Path) -> list[int]:
    """Processes whose command line names a folder."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"{place}/".encode() in line.read_bytes():
                found.append(int(line.parent.name))
        except OSError:
            continue
    return found


def settles(place: Path, image: Path, within_s: float = 30.0) -> bool:
    """Whether nothing of a node is left within a time."""
    end_s = time.monotonic() + within_s
    while processes_of(place) or any(place.iterdir()) or image.exists():
        if time.monotonic() > end_s:
            print(processes_of(place), list(place.iterdir()), image.exists())  # noqa: T201
            return False
        time.sleep(0.1)
    return True


# What needs no node.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": "vmlinuz"}, "target.kernel = 'vmlinuz'"),
        ({"kernel": "user-mode", "device": "/dev/sdx"}, "target.device: cannot be given together with"),
        ({"kernel": "user-mode", "state": "restored"}, "target.state = 'restored'"),
        ({"kernel": "user-mode", "iops": 3000}, "target.iops = 3000"),
        ({"kernel": "user-mode", "size": "1 MiB"}, "target.size = '1 MiB'"),
        ({"kernel": "user-mode", "file_systems": ["jfs"]}, "target.file_systems: 'jfs'"),
    ],
)
def test_mistakes_are_named(options: Mapping[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        open_target({"kind": "localfs", **options})
    assert words in caught.value.message


def test_without_the_kernel_s_package_it_is_refused_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "user-mode Linux needs the Debian packages user-mode-linux, kmod and iproute2; install them"
    monkeypatch.setattr(user_mode, "missing", lambda: said)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    target = in_node(image=str(tmp_path / "disk.img"))
    with pytest.raises(EnvironmentLacks) as caught, target:
        pass
    assert caught.value.message == f"target.kernel = 'user-mode': {said}"
    assert list(tmp_path.iterdir()) == []
    assert [need.found for need in NodeFileSystem.needs() if need.name == "user-mode Linux"] == [None]


def test_a_folder_that_no_kernel_can_be_told_of_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a,b"
    place.mkdir()
    monkeypatch.setattr(user_mode, "missing", lambda: None)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with pytest.raises(EnvironmentLacks, match="set TMPDIR to another"), in_node(image=f"{tmp_path}/disk"):
        pass
    assert list(place.iterdir()) == []
    assert not (tmp_path / "disk").exists()


def test_somebody_s_file_is_not_taken_for_an_image(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_text("theirs")
    with pytest.raises(AscarError), in_node(image=str(image)):
        pass
    assert image.read_text() == "theirs"


def test_somebody_s_file_is_at_no_time_noted_for_removal(tmp_path: Path) -> None:
    """A study that is killed at that moment has its notes carried out."""
    image, keeper = tmp_path / "disk.img", create_autospec(Keeper, instance=True)
    image.write_text("theirs")
    settings = in_node(image=str(image)).settings
    with pytest.raises(StudyError, match="File exists"), _image(keeper, settings, tmp_path / "link"):
        pass
    assert keeper.undo_command.mock_calls == []
    assert image.read_text() == "theirs"


def test_a_session_does_not_take_it() -> None:
    with pytest.raises(StudyError, match="target.kernel"):
        NodeFileSystem.for_session({"kernel": "user-mode"})


def test_no_root_is_needed_and_mkfs_is_named() -> None:
    names = {need.name for need in NodeFileSystem.needs()}
    assert {"user-mode Linux", "ascard", "mkfs.ext4", "mkfs.nilfs2", "mkreiserfs", "fio"} <= names
    assert "root" not in names


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_all_that_was_published_can_be_made_on_a_large_image(
    name: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ("ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs")
    monkeypatch.setattr("ascar.systems.localfs_space.available_file_systems", lambda: every)
    assert in_node(preset=name, size=WHOLE).space.count() == count
    assert published_space(name).permit_weaker(Guarantee).count() == count


def test_a_load_that_works_on_files_of_this_machine_is_refused(tmp_path: Path) -> None:
    file = study_of(tmp_path, "storage-v1")
    file.write_text(
        file.read_text().replace(
            'kind = "fio"\npreset = "small-files-fsync"\nscale = 0.1', 'kind = "pgbench"'
        )
    )
    with pytest.raises(
        StudyError, match=r"workload\.kind = 'pgbench': must be one of command, filebench, fio"
    ):
        PreparedStudy.open(Study.read(file))


def test_a_study_has_its_load_where_its_target_is(tmp_path: Path) -> None:
    study = Study.read(study_of(tmp_path, "storage-v1"))
    prepared = PreparedStudy.open(study)
    assert isinstance(prepared.target, NodeFileSystem)
    assert prepared.workload.describe()["preset"] == "small-files-fsync"
    assert not (tmp_path / "disk.img").exists()


# In a node.


def some_kinds(image: Path) -> NodeFileSystem:
    return in_node(preset="storage-v2", file_systems=["ext4", "nilfs2", "reiserfs"], image=str(image))


@pytest.fixture(scope="class")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeFileSystem]:
    """A target for several tests, with whatever configuration the one before has left in force."""
    with some_kinds(tmp_path_factory.mktemp("kept") / "image") as entered:
        yield entered


@IN_NODE[0]
@IN_NODE[1]
class TestContract(TargetContract):
    @pytest.fixture(autouse=True)
    def _made(self, tmp_path: Path, kept: NodeFileSystem) -> None:
        self.image, self.kept = tmp_path / "image", kept

    def make(self) -> Target:
        return some_kinds(self.image)

    def entered(self) -> AbstractContextManager[Target]:
        return nullcontext(self.kept)

    def options(self) -> Mapping[str, Any]:
        return {"kernel": "user-mode", "preset": "storage-v2"}


@IN_NODE[0]
@IN_NODE[1]
def test_in_a_node_there_is_all_that_was_published(tmp_path: Path) -> None:
    assert {name: in_node(preset=name, size=WHOLE).space.count() for name in PUBLISHED} == PUBLISHED
    image = tmp_path / "disk.img"
    with in_node(preset="storage-v2", size=WHOLE, image=str(image)) as target:
        assert target.space.count() == PUBLISHED["storage-v2"]
        about = dict(target.describe())
        assert about["kernel"] != about["host_kernel"]
        assert image.stat().st_size == 40 * 2**30
    assert not image.exists()


@IN_NODE[0]
@IN_NODE[1]
@pytest.mark.skipif(not os.access("/var/lib", os.W_OK), reason="needs to write to /var/lib")
def test_a_study_of_a_service_s_account_sees_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Homes of such accounts are below /var/lib, where the node has a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="ascar-test-", dir="/var/lib") as home:
        monkeypatch.chdir(home)
        Path("job.fio").write_text("[job]\nrw=write\nsize=1m\n")
        with in_node(preset="storage-v2", image=str(tmp_path / "image")) as target:
            assert target._node is not None
            seen = target._node.run(["cat", f"{home}/job.fio"], 20)
            assert seen.out == Path("job.fio").read_bytes()


@IN_NODE[0]
@IN_NODE[1]
def test_a_load_has_its_account_and_its_memory_and_leaves_nothing(tmp_path: Path) -> None:
    with in_node(user="nobody", image=str(tmp_path / "image")) as target:
        node = target._node
        assert node is not None
        ratio = node.run(["cat", "/proc/sys/vm/dirty_ratio"], 20)
        assert target.space["vm_dirty_ratio"].default == int(ratio.out)
        target.apply(target.space.default())
        rows = open_workload({"kind": "sqlite-transactions", "rows": 1000})
        rows.prepare(replace(target.workspace, user=None))
        target.settle()
        heard: list[bytes] = []
        script = "id -un; touch mine; setsid sleep 1000 >/dev/null 2>&1 & cat /proc/self/cgroup"
        program = Program("load", ["sh", "-c", script], 60.0)
        ended = run_program(program, target.workspace, lambda chunk, _: heard.append(chunk) is not None)
        assert ended.status == 0, ended.stderr
        assert b"nobody" in b"".join(heard)
        assert b"/ascar-" in b"".join(heard)
        assert node.run(["pidof", "sleep"], 20).status == 1
        readings = rows.run(replace(target.workspace, user=None), timing())
        assert readings.metrics["throughput_ops_per_s"] > 0
        assert target.cycle_s(target.space.default(), {}) > 0


def tried(target: NodeFileSystem, configuration: Configuration) -> None:
    target.apply(configuration)
    open_workload(LOAD).prepare(target.workspace)
    target.settle()
    assert open_workload(LOAD).run(target.workspace, timing()).metrics["throughput_ops_per_s"] > 0
    assert target.sample().counters["device_write_bytes"] > 0
    target.drain(60)
    assert target._node is not None
    done = target._node.run(["sh", "-c", READ_BACK], 60)
    assert done.status == 0, done.err


def said(target: LocalFileSystem, configuration: Configuration) -> str:
    changed = target.space.departures(configuration)
    return ", ".join(f"{name} = {configuration[name]}" for name in ("fs", *changed))


@IN_NODE[0]
@IN_NODE[1]
@pytest.mark.parametrize("name", PUBLISHED)
def test_configurations_drawn_at_random_are_made_mounted_and_loaded_in_a_node(
    name: str, tmp_path: Path, seed: int, figures: Counter[str]
) -> None:
    size = WHOLE if name == "storage-v4" else "2560 MiB"  # ext's tables of inodes are written
    refused: list[str] = []
    with in_node(preset=name, image=str(tmp_path / "image"), size=size, step_limit="5 min") as target:
        for configuration in target.space.sample(np.random.default_rng(seed), CONFIGURATIONS):
            try:
                tried(target, configuration)
                figures[f"of {configuration['fs']}"] += 1
            except StageFailed as failure:
                refused.append(f"{said(target, configuration)}: {failure.message} {failure.stderr}")
    assert list(tmp_path.iterdir()) == []
    assert target.restored is not None
    assert target.restored.failed == ()
    assert not refused, refused


LACKED: tuple[Mapping[str, Any], ...] = (
    {"fs": "nilfs2", "block_size_k": 1, "block_group": 8, "journal_option": "order=strict"},
    {"fs": "reiserfs", "journal_option": "data=journal", "special_option": "notail"},
    {"fs": "xfs", "inode_size_bytes": 256},
)


@IN_NODE[0]
@IN_NODE[1]
def test_what_the_machine_s_kernel_lacks_is_made_and_mounted_as_asked(tmp_path: Path) -> None:
    given = {"inode_size_bytes": "n/a", "block_group": "n/a", "journal_option": "n/a"}
    with in_node(preset="storage-v1", image=str(tmp_path / "image")) as target:
        for wanted in LACKED:
            configuration = target.space.nearest({**target.space.default(), **given, **wanted})
            assert {name: configuration[name] for name in wanted} == wanted
            tried(target, configuration)
            assert target._node is not None
            mounts = target._node.run(["grep", "/dev/ubda", "/proc/mounts"], 20).out.decode()
            fields = mounts.split()
            assert fields[2] == wanted["fs"]
            options = fields[3].split(",")
            assert wanted.get("journal_option") in (None, *options), fields
            assert "special_option" not in wanted or "notail" in options, fields


@IN_NODE[0]
@IN_NODE[1]
def test_a_node_that_dies_in_a_trial_fails_it_by_name_and_the_next_goes_on(tmp_path: Path) -> None:
    with in_node(preset="storage-v1", image=str(tmp_path / "image")) as target:
        configuration = target.space.nearest({**target.space.default(), "fs": "nilfs2"})
        node = target._node
        assert node is not None
        target.apply(configuration)
        open_workload(LOAD).prepare(target.workspace)
        target.settle()

        def cut(_: Mapping[str, Series]) -> bool:
            os.killpg(node._kernel.process.pid, signal.SIGKILL)
            return False

        with pytest.raises(StageFailed, match="load: node localfs: it is gone") as caught:
            open_workload(LOAD).run(target.workspace, timing(5.0, cut))
        assert caught.value.stage == "load"
        with pytest.raises(StageFailed, match="sample: node localfs: it is gone"):
            target.sample()
        tried(target, configuration)  # on a disk that had been the dead one's
        os.killpg(node._kernel.process.pid, signal.SIGKILL)
        while node.alive:  # between two trials
            time.sleep(0.01)
        tried(target, target.space.default())
    assert list(tmp_path.iterdir()) == []


def study_of(folder: Path, name: str, **more: Any) -> Path:
    size = WHOLE if name == "storage-v4" else "2560 MiB"
    values = {"budget": "10 min", "trials": 2, "size": size, **more}
    file = folder / "study.toml"
    file.write_text(STUDY.format(name=name, image=folder / "disk.img", **values))
    return file


def tuning(study: Path, place: Path, state: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(place), "XDG_STATE_HOME": str(state)}
    words = [sys.executable, "-m", "ascar", "tune", str(study), "--json"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@IN_NODE[0]
@IN_NODE[1]
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["storage-v2", "storage-v4"])
def test_a_study_comes_to_a_verdict(name: str, tmp_path: Path, place: Path) -> None:
    process = tuning(study_of(tmp_path, name), place, tmp_path / "state")
    out, err = process.communicate(timeout=590)
    assert process.returncode in (0, 3), err
    document = json.loads(out)
    assert document["machine"]["target"] == "localfs"
    assert document["machine"]["kernel"] != document["machine"]["host_kernel"]
    assert document["counts"].get("complete", 0) >= 4
    assert settles(place, tmp_path / "disk.img", 1.0)


@IN_NODE[0]
@IN_NODE[1]
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_study_that_is_killed_leaves_nothing(
    number: signal.Signals, tmp_path: Path, place: Path, seed: int
) -> None:
    study = study_of(tmp_path, "storage-v1", budget="2 h", trials=1000, size="640 MiB")
    process = tuning(study, place, tmp_path / "state")
    assert process.stderr is not None
    chance = np.random.default_rng(seed)
    for line in process.stderr:
        if line.startswith("trial "):
            break
        assert not line.startswith("error: "), line
    assert processes_of(place)
    time.sleep(chance.uniform(0, 3))
    process.send_signal(number)
    process.communicate(timeout=120)
    assert settles(place, tmp_path / "disk.img")
    with Keeper("after", user=True, state_dir=tmp_path / "state/ascar/journal"):
        pass
    assert settles(place, tmp_path / "disk.img", 1.0)
