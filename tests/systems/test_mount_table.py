"""The kernel's table of mounts, and what is found by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError
from ascar.systems import mount_table
from ascar.systems.mount_table import mounts_here, mounts_in
from ascar.systems.place import Place

if TYPE_CHECKING:
    from pathlib import Path

LINE = "30 20 8:1 / {place} rw,relatime shared:1 - ext4 /dev/sda1 rw,discard\n"


def test_a_line_is_read_whole() -> None:
    (mount,) = mounts_in(LINE.format(place=r"/mnt/my\040data"))
    assert (mount.id, mount.below, mount.device) == ("30", "20", "8:1")
    assert (mount.place, mount.kind, mount.source) == ("/mnt/my data", "ext4", "/dev/sda1")
    assert mount.options == ("rw", "relatime", "discard")


@pytest.mark.parametrize(
    ("root", "options", "is_bound"),
    [
        ("/", "rw", False),
        ("/srv", "rw", True),
        ("/@home", "rw,subvolid=256,subvol=/@home", False),
        (r"/my\040data", r"rw,subvol=/my\040data", False),
        ("/@home/me", "rw,subvolid=256,subvol=/@home", True),
        ("/", "rw,subvolid=5,subvol=/", False),
    ],
)
def test_a_bind_mount_shows_another_directory_than_its_file_system(
    root: str, options: str, is_bound: bool
) -> None:
    (mount,) = mounts_in(f"30 20 8:1 {root} /mnt rw - btrfs /dev/sda1 {options}\n")
    assert mount.is_bound is is_bound


def test_this_machine_has_a_root() -> None:
    assert "/" in [one.place for one in mounts_here()]


def test_a_kernel_that_does_not_tell_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount_table, "MOUNTINFO", str(tmp_path / "none"))
    assert mounts_here() == []


@pytest.mark.parametrize("name", ["données", "my data", "form\x0cfeed", "line\u2028"])
def test_a_mount_point_of_any_name_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name
    place.mkdir()
    table = tmp_path / "mountinfo"
    escaped = str(place).replace(" ", r"\040")
    table.write_text(LINE.format(place=escaped).replace("/dev/sda1", "tank/data"), "utf-8")
    monkeypatch.setattr(mount_table, "MOUNTINFO", str(table))
    with pytest.raises(InputError, match="holds a ext4, which is not on a block device"):
        Place.named(None, place)
