"""The testbed file: what it gives, and the one line that each mistake gets."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ascar.errors import StudyError
from ascar.testbed import file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "testbed"
GOOD = """
version = 1
[testbed]
name = "bed"
[[node]]
name = "server1"
kind = "namespace"
[[node]]
name = "client1"
kind = "namespace"
link = { rate_mbit_per_s = 100, delay_ms = 0.5, loss_percent = 1 }
[[node]]
name = "here"
[[disk]]
name = "disk1"
node = "server1"
scenario = "slow.toml"
size = "1GiB"
exports = ["a", "b"]
file = "disk1.img"
[[proxy]]
node = "client1"
disks = ["disk1"]
window = 8
"""


def read(text: str, folder: Path = Path("/somewhere")) -> Any:
    return file.testbed_of(tomllib.loads(text), folder)


def test_all_of_it_is_read() -> None:
    bed = read(GOOD)
    assert (bed.name, [node.kind for node in bed.node]) == ("bed", ["namespace", "namespace", "process"])
    assert bed.node[1].link.rate_mbit_per_s == 100
    (disk,) = bed.disk
    assert (disk.scenario, disk.file) == ("/somewhere/slow.toml", "/somewhere/disk1.img")
    assert disk.exported == ("a", "b")
    assert bed.proxy[0].disks == ("disk1",)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_examples_are_read(path: Path) -> None:
    assert file.read_testbed(path).name == path.stem


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version = 1", "version = 2", "version = 2: must be 1"),
        ('name = "bed"', 'name = "Bed"', "testbed.name = 'Bed': must be 1 to 32 lower-case letters"),
        ('name = "bed"', 'nam = "bed"', "testbed.nam: unknown key; allowed here: name"),
        ('name = "client1"', 'name = "server1"', "node[1].name = 'server1': is another node's"),
        (
            'name = "client1"',
            'name = "switch"',
            "node[1].name = 'switch': must not be one of localhost, switch",
        ),
        ('kind = "namespace"', 'kind = "cloud"', "must be one of 'kernel', 'namespace', 'process'"),
        (
            "rate_mbit_per_s = 100",
            "rate_mbit_per_s = 0",
            "node[1].link.rate_mbit_per_s = 0.0: must be from 0.001 to 1e+06",
        ),
        ("delay_ms = 0.5", "delay_ms = -1", "node[1].link.delay_ms = -1.0: must be from 0 to 60000"),
        ("loss_percent = 1", "loss_percent = nan", "link.loss_percent = nan: must be from 0 to 100"),
        ("loss_percent = 1", "loss = 1", "loss: unknown key; allowed here: rate_mbit_per_s, delay_ms"),
        (
            'name = "here"',
            'name = "here"\nlink = { delay_ms = 1 }',
            "node[2].link: applies only to kind = 'namespace' and 'kernel', not to 'process'",
        ),
        ('node = "server1"', 'node = "server2"', "disk[0].node = 'server2': must be the name of a [[node]]"),
        ('size = "1GiB"', 'size = "1 cup"', "disk[0].size = '1 cup': unknown unit"),
        ('size = "1GiB"', 'size = "0"', "disk[0].size = '0': must be at least 1 B"),
        ('["a", "b"]', '["a", "a"]', "disk[0].exports: 'a' is there twice"),
        ('["a", "b"]', '["a,b"]', "disk[0].exports = 'a,b': must be 1 to 64 letters"),
        ('size = "1GiB"', "raid = 6", "raid = 6: must be one of 0, 1, 5"),
        ('disks = ["disk1"]', "disks = []", "proxy[0].disks = []: must name at least one"),
        (
            'disks = ["disk1"]',
            'disks = ["x"]',
            "proxy[0].disks = 'x': must be the name of a [[disk]]; there are disk1",
        ),
        (
            'node = "client1"',
            'node = "here"',
            "is on a node of kind 'namespace', must be on one of kind 'process'",
        ),
        ("window = 8", "window = 0", "proxy[0].window = 0: must be from 1 to 256"),
        ("window = 8", 'workload = "a b"', "proxy[0].workload = 'a b': must be 1 to 64 letters"),
        (
            "window = 8",
            '[[proxy]]\nnode = "client1"\ndisks = ["disk1"]',
            "proxy[1].node = 'client1': has a proxy",
        ),
    ],
)
def test_a_mistake_is_named_by_its_key(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(StudyError) as caught:
        read(GOOD.replace(old, new, 1))
    assert said in caught.value.message
    assert "\n" not in caught.value.message


KERNELS = """
[testbed]
name = "bed"
[[node]]
name = "server1"
kind = "kernel"
visible = ["seen"]
nfs = { exports = [{ name = "disk1" }] }
[[node]]
name = "client1"
kind = "kernel"
kept = "kept"
mounts = [{ server = "server1", export = "disk1" }]
attach = [{ server = "server1", port = 10810 }]
[[disk]]
name = "disk1"
node = "server1"
scenario = "read-ahead-cliff"
size = "64MiB"
file_system = "ext4"
[[disk]]
name = "disk2"
node = "server1"
scenario = "read-ahead-cliff"
"""


def test_directories_of_kernels_start_at_the_folder_of_the_file() -> None:
    bed = read(KERNELS)
    assert (bed.node[0].visible, bed.node[1].kept) == (("/somewhere/seen",), "/somewhere/kept")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"64MiB"', '"5000"', "disk[0].size = '5000': must be from '1MiB' to '64TiB', and a multiple of"),
        ('"ext4"', '"zfs"', "disk[0].file_system = 'zfs': must be one of ext4, xfs, btrfs"),
        ('"ext4"', '"ext4"\nplace = "/etc"', "disk[0].place = '/etc': must be a directory of /srv or /mnt"),
        ('file_system = "ext4"', 'place = "/srv/x"', "disk[0].place: is where a file system is mounted; set"),
        ('kept = "kept"', 'kept = "a\\u0000b"', "node[1].kept = 'a\\x00b': must be the path of a directory"),
        ('["seen"]', '[""]', "node[0].visible = '': must be the path of a directory"),
        ('kept = "kept"', "memory_mib = 1", "node[1].memory_mib = 1: must be from 64 to"),
        (
            'mounts = [{ server = "server1"',
            'mounts = [{ server = "server2"',
            "node[1].mounts.server = 'server2': must be a node of kind 'kernel', or an address; "
            "there are server1, client1",
        ),
        (
            '", export = "disk1" }',
            '", export = "disk3" }',
            "mounts.export = 'disk3': must be one that node 'server1' exports by nfs; there are disk1",
        ),
        ("10810", "10809", "node[1].attach.port = 10809: must be that of a disk without file_system"),
        (
            'exports = [{ name = "disk1" }]',
            'exports = [{ name = "disk1" }, { name = "disk1" }]',
            "node[0].nfs.exports: 'disk1' is there twice",
        ),
        (
            'kept = "kept"',
            "".join(f'[[node]]\nname = "more{at}"\nkind = "kernel"\n' for at in range(10)),
            "node: there are 12 of kind 'kernel'; at most 11 are allowed",
        ),
    ],
)
def test_what_kernels_could_not_boot_with_is_named_by_its_key(old: str, new: str, said: str) -> None:
    assert old in KERNELS
    with pytest.raises(StudyError) as caught:
        read(KERNELS.replace(old, new, 1))
    assert said in caught.value.message


AGENTS = (
    KERNELS
    + """
[[agent]]
node = "client1"
contact_s = 5
knobs = [{ name = "vm.dirty_ratio", minimum = 5, maximum = 60 }]
windows = { devices = ["nbd15"], maximum = 64 }
"""
)
PROXY = '[[proxy]]\nnode = "client1"\ndisks = ["disk2"]\n'


def test_agents_of_kernels_are_read() -> None:
    (agent,) = read(AGENTS).agent
    assert agent.knobs[0].name == "vm.dirty_ratio"
    assert (agent.windows.devices, agent.windows.minimum, agent.windows.workload) == (("nbd15",), 4, "blocks")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'node = "client1"\ncontact',
            'node = "client2"\ncontact',
            "agent[0].node = 'client2': must be a node of kind 'kernel', whose kernel is its own; "
            "there are server1, client1",
        ),
        (
            "[[agent]]",
            '[[node]]\nname = "here"\n[[agent]]\nnode = "here"\n[[agent]]',
            "agent[0].node = 'here': must be a node of kind 'kernel'",
        ),
        (
            "[[agent]]",
            '[[agent]]\nnode = "client1"\n[[agent]]',
            "agent[1].node = 'client1': has an agent already",
        ),
        ("[[agent]]", PROXY + "[[agent]]", "agent[0].windows: node 'client1' has a proxy"),
        ("contact_s = 5", "contact_s = 2", "agent[0].contact_s = 2.0: must be from 3 to 86400"),
        ("contact_s = 5", "interval_s = 0", "agent[0].interval_s = 0.0: must be from 0.05 to 3600"),
        ("contact_s = 5", 'collectors = ["disk"]', "collectors"),
        ('["nbd15"]', "[]", "agent[0].windows.devices = []: must be 1 to 16 devices"),
        ('["nbd15"]', '["nbd15", "nbd15"]', "must be 1 to 16 devices, each once"),
        ('["nbd15"]', '["../x"]', "agent[0].windows.devices = '../x': must be a block device"),
        ("maximum = 64", "maximum = 257", "agent[0].windows.maximum = 257: must be from 4 to 256"),
        ("maximum = 64", "minimum = 3", "agent[0].windows.minimum = 3: must be from 4 to 256"),
        ("maximum = 64", "minimum = 9, maximum = 8", "agent[0].windows.maximum = 8: must be from 9 to 256"),
        ("maximum = 64", 'workload = "a b"', "agent[0].windows.workload = 'a b': must be 1 to 64 letters"),
        ("maximum = 64", "window = 2", "unknown key"),
    ],
)
def test_what_agents_could_not_do_is_named_by_its_key(old: str, new: str, said: str) -> None:
    assert old in AGENTS
    with pytest.raises(StudyError) as caught:
        read(AGENTS.replace(old, new, 1))
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_very_many_names_are_refused_at_once() -> None:
    exports = ", ".join(f'"{number:x}"' for number in range(200_000))
    with pytest.raises(StudyError, match="there are 200000; at most 256 are allowed"):
        read(GOOD.replace('"a", "b"', exports))
    disks = ", ".join(['"disk1"'] * 100_000)
    with pytest.raises(StudyError, match="'disk1' is there twice"):
        read(GOOD.replace('disks = ["disk1"]', f"disks = [{disks}]"))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="none.toml"):
        file.read_testbed(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("version = ")
    with pytest.raises(StudyError, match="is not TOML"):
        file.read_testbed(tmp_path / "bad.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(StudyError, match="testbed: missing"):
        file.read_testbed(tmp_path / "empty.toml")
