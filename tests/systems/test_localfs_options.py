"""localfs: what a newcomer can get wrong, found before anything is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks, InputError, Refused, StudyError
from ascar.space import Choices
from ascar.starter.keys import options_of
from ascar.systems import open_target
from ascar.systems.catalogue import check_known
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_options import LocalFileSystemOptions
from ascar.systems.place import Place

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
        ({"size": "big"}, "target.size = 'big': is not a size"),
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
        ({"device": []}, r"target.device = \[\]: must name at least one block device"),
        ({"device": ["/dev/x", "sdb"]}, "target.device = 'sdb': must be a path below /dev"),
        ({"device": ["/dev/x", 3]}, r"target.device.* = .*: must be text"),
        ({"device": ["/dev/x", "/dev/x"]}, "target.device = '/dev/x': is named twice; name it once"),
        (
            {"device": [f"/dev/x{n}" for n in range(65)]},
            "target.device: names 65 devices; must be at most 64",
        ),
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
    from ascar.program import found

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(found, "_ADMIN_PATH", ())
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
        link = tmp_path / "link"
        link.symlink_to(device)
        both = [device, f"/dev/../{link}"]
        same = f"target.device = '.*{link}': is the same device as '{device}'; name it once"
        refused(StudyError, same, device=both, confirmed_device=both)


def test_of_several_devices_each_needs_its_confirmation():
    blocks = [str(path) for path in Path("/dev").glob("loop[0-9]*") if path.is_block_device()][:2]
    if len(blocks) < 2:
        pytest.skip("needs two loop devices to name")
    one, other = blocks
    problem = f"target.device = '{other}': everything .* lost; confirm with --format-device {other}"
    refused(Refused, problem, device=blocks, confirmed_device=one)
    refused(Refused, problem, device=blocks, confirmed_device=[one])


def test_several_devices_are_a_parameter_that_only_their_study_has():
    devices = ["/dev/no-such-1", "/dev/no-such-2"]
    space = LocalFileSystem({"device": devices}).space
    assert values(space, "device") == devices
    assert "device" not in LocalFileSystem({"device": devices[:1]}).space
    check_known({"kind": "localfs", "device": devices}, space)
    with pytest.raises(InputError, match="parameter 'device': a target of kind 'localfs' has none"):
        check_known({"kind": "localfs"}, space)


def test_a_session_tunes_one_device():
    with pytest.raises(StudyError, match=r"target.device = .*: a session tunes one device .*: name one"):
        LocalFileSystem.for_session({"device": ["/dev/x", "/dev/y"]})


def test_the_best_device_is_told_with_the_commands_that_make_its_file_system():
    devices = ["/dev/no-such-1", "/dev/no-such-2"]
    target = LocalFileSystem({"device": devices})
    chosen = target.space.default().replaced(device=devices[1])
    shell = target.commands(chosen, ["device"])["shell"]
    assert shell[0] == "# Measured on /dev/no-such-2."
    assert shell[1].startswith("mkfs.ext4 ")
    assert shell[2].startswith("mount -t ext4 ")
    placement = target.placement({}, target.space, chosen, Place(device="/dev/no-such-3"))
    (left,) = placement.left
    assert left.parameters == ("device",)
    assert any(line.startswith("mkfs.ext4") and line.endswith("/dev/no-such-3") for line in left.commands)
    assert "device: the result is valid for /dev/no-such-2, not for /dev/no-such-3" in placement.warnings


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
