"""localfs: what a newcomer can get wrong, found before anything is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks, Refused, StudyError
from ascar.space import Choices
from ascar.starter.keys import options_of
from ascar.systems import open_target
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_options import LocalFileSystemOptions

MIB = 2**20


def values(space, name):
    domain = space[name].domain
    assert isinstance(domain, Choices)
    return list(domain.values)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"imag": "x"}, "target.imag: unknown key; allowed here: image, size"),
        ({"size": 5}, "target.size = 5: must be text"),
        ({"size": "big"}, "target.size = 'big'"),
        ({"size": "100 MiB"}, "target.size = '100 MiB': must be at least 320 MiB"),
        ({"size": "400000001"}, "in multiples of 4096 bytes"),
        ({"memory": "1 MiB"}, "target.memory = '1 MiB': must be at least 32 MiB, or 'none'"),
        ({"memory": "lots"}, "target.memory = 'lots'"),
        (
            {"memory": "1 GiB", "dataset_to_memory": 2.5},
            "target.memory: cannot be given together with target.dataset_to_memory",
        ),
        ({"dataset_to_memory": 0.0}, "target.dataset_to_memory = 0.0: must be from 0.01 to 1000"),
        ({"dataset_to_memory": float("nan")}, "target.dataset_to_memory = nan"),
        ({"state": "clean"}, "target.state = 'clean': "),
        ({"saved": "x"}, "target.saved = 'x'"),
        ({"step_limit": "never"}, "target.step_limit = 'never'"),
        ({"step_limit": "2 h"}, "target.step_limit = '2 h': must be at most one hour"),
        (
            {"file_systems": ["zfs"]},
            "target.file_systems: 'zfs': must be some of ext2, ext3, ext4, xfs, btrfs",
        ),
        ({"file_systems": []}, r"target.file_systems = \[\]: must name at least one of"),
        ({"file_systems": "ext4"}, "target.file_systems = 'ext4'"),
        ({"image": ""}, "target.image = '': must be a path"),
        ({"image": "a\0b"}, "target.image = .*: must be a path"),
        ({"image": "/x", "device": "/dev/x"}, "target.image: cannot be given together with target.device"),
        ({"device": "sdb"}, "target.device = 'sdb': must be a path below /dev"),
        ({"device": "/dev/x", "state": "restored"}, "target.state = 'restored': needs an image"),
        ({"confirmed_device": "/dev/x"}, "target.confirmed_device = '/dev/x': confirms nothing"),
    ],
)
def test_mistakes_are_named_at_once(options, problem):
    with pytest.raises(StudyError, match=problem) as error:
        LocalFileSystem(options)
    assert "\n" not in error.value.message


def test_constructing_touches_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    LocalFileSystem({})
    LocalFileSystem({"image": str(tmp_path / "nowhere" / "image")})
    LocalFileSystem({"device": "/dev/no-such-device"})
    assert list(tmp_path.iterdir()) == []


def test_every_option_is_explained():
    assert options_of(LocalFileSystem) is LocalFileSystemOptions
    assert isinstance(open_target({"kind": "localfs"}), LocalFileSystem)


def refused(kind, problem, **options):
    target = LocalFileSystem({"size": "320 MiB", **options})
    with pytest.raises(kind, match=problem) as error:
        target.__enter__()
    assert "\n" not in error.value.message
    assert target.restored is None  # not even a keeper was started


def test_a_missing_directory_is_named(tmp_path):
    place = tmp_path / "nowhere"
    refused(
        StudyError,
        f"target.image = '{place}/x': there is no directory '{place}'; make it",
        image=f"{place}/x",
    )


def test_an_existing_image_is_not_overwritten(tmp_path):
    (tmp_path / "image").write_text("precious")
    refused(StudyError, "exists already; remove it, or name another file", image=str(tmp_path / "image"))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    refused(StudyError, "exists already", image=str(tmp_path / "dangling"))
    assert (tmp_path / "image").read_text() == "precious"


def test_a_full_disk_is_named(tmp_path):
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    size = f"{free // 2**20 + 4096} MiB"
    refused(EnvironmentLacks, f"target.size = '{size}': only .* are free in '{tmp_path}'", size=size,
            image=str(tmp_path / "image"))  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_named():
    refused(StudyError, "its directory cannot be written", image="/usr/ascar-image")


def test_a_missing_program_is_named_with_its_packages(tmp_path, monkeypatch):
    from ascar.systems import machine

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(machine, "_ADMIN_PATH", ())
    image = str(tmp_path / "image")
    refused(EnvironmentLacks, "the program blkid is missing: Debian `apt install util-linux`", image=image)
    with pytest.raises(
        EnvironmentLacks, match=r"file_systems: xfs: the program mkfs.xfs is missing.*xfsprogs"
    ):
        LocalFileSystem({"file_systems": ["xfs"]})


def test_a_device_must_be_there_be_one_and_be_confirmed(tmp_path):
    refused(StudyError, "target.device = '/dev/no-such': No such file", device="/dev/no-such")
    refused(StudyError, "target.device = '/dev/null': is not a block device", device="/dev/null")
    blocks = [path for path in Path("/dev").glob("loop[0-9]*") if path.is_block_device()]
    if blocks:
        device = str(blocks[0])
        problem = f"target.device = '{device}': everything .* lost; confirm with --format-device {device}"
        refused(Refused, problem, device=device)
        refused(Refused, problem, device=device, confirmed_device=device + "1")


def test_an_unknown_account_is_named(tmp_path):
    refused(StudyError, "target.user = 'nobody-at-all': there is no such account", user="nobody-at-all",
            image=str(tmp_path / "image"))  # fmt: skip


def test_the_space_fits_the_device():
    small = LocalFileSystem({"size": "400 MiB"}).space
    assert values(small, "xfs_allocation_groups") == [2, 4]
    assert values(small, "ext_journal_size_mib") == [0, 16, 64]
    assert values(LocalFileSystem({}).space, "xfs_allocation_groups") == [2, 4, 8, 16, 32]


def test_file_systems_can_be_chosen():
    assert values(LocalFileSystem({"file_systems": ["ext4", "ext2"]}).space, "fs") == ["ext2", "ext4"]
    only_xfs = LocalFileSystem({"file_systems": ["xfs"]}).space
    assert only_xfs.default()["fs"] == "xfs"


def test_the_machines_own_settings_are_the_default():
    default = LocalFileSystem({}).space.default()
    present = int(Path("/proc/sys/vm/dirty_expire_centisecs").read_text())
    assert default["vm_dirty_expire_centisecs"] == present
