"""When a block device of the machine may be written."""

from __future__ import annotations

import binascii
import os
import struct
from pathlib import Path

import pytest

from ascar.errors import InputError, Refused
from ascar.systems.keeper import Keeper

MIB = 1 << 20


def write(device: Path, offset: int, content: bytes) -> None:
    with device.open("r+b", buffering=0) as file:
        file.seek(offset)
        file.write(content)
        os.fsync(file.fileno())


def lvm_label() -> bytes:
    """The label of an LVM physical volume, with the checksum that blkid looks at."""
    body = struct.pack("<I", 32) + b"LVM2 001" + b"0123456789abcdef0123456789abcdef"
    body = body.ljust(512 - 20, b"\0")
    seed = 0xF597A6CF
    checksum = binascii.crc32(body, seed ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return b"LABELONE" + struct.pack("<QI", 1, checksum) + body


def raid_superblock() -> bytes:
    head = struct.pack("<IIII", 0xA92B4EFC, 1, 0, 0) + bytes(range(16)) + b"host:0".ljust(32, b"\0")
    return head.ljust(144, b"\0") + struct.pack("<Q", 8).ljust(368, b"\0")


def test_a_blank_device_is_taken_when_confirmed(keeper, state, loop):
    with pytest.raises(Refused, match="confirm it explicitly"):
        keeper.device_claim(loop, confirmed=False)
    claimed = keeper.device_claim(loop, confirmed=True)
    assert (claimed.device, claimed.name, claimed.size_bytes) == (loop, loop.name, 64 * MIB)
    keeper.format("ext4")
    place = keeper.mount("ext4").mountpoint
    (place / "file").write_text("content")
    assert keeper.restore().failed == ()
    assert not place.exists()
    with (
        Keeper("next", state_dir=state) as other,
        pytest.raises(Refused, match="is locked by"),
    ):
        other.device_claim(loop, confirmed=True)


def test_our_own_file_system_may_be_overwritten(state, loop):
    for _ in range(2):
        with Keeper("again", state_dir=state) as keeper:
            keeper.device_claim(loop, confirmed=True)
            keeper.format("ext4")


@pytest.mark.parametrize(
    ("name", "offset", "content"),
    [
        ("LVM2_member", 512, lvm_label()),
        ("linux_raid_member", 4096, raid_superblock()),
        ("ceph_bluestore", 0, b"bluestore block device\n"),
        ("oracleasm", 32, b"ORCLDISK"),
        ("crypto_LUKS", 0, b"LUKS\xba\xbe\x00\x01".ljust(592, b"\0")),
        (
            "PTTYPE=dos",
            0,
            b"\0" * 446 + b"\x00\0\0\0\x83\0\0\0" + struct.pack("<II", 2048, 4096) + b"\0" * 48 + b"\x55\xaa",
        ),
    ],
)
def test_what_carries_a_signature_is_refused_by_its_name(keeper, loop, name, offset, content):
    write(loop, offset, content)
    with pytest.raises(Refused, match=f"carries .*{name}.*wipefs -a"):
        keeper.device_claim(loop, confirmed=True)
    with loop.open("rb", buffering=0) as file:
        file.seek(offset)
        assert file.read(len(content)) == content


@pytest.mark.parametrize("label", ["", "ascar", "ascarx", "backup"])
def test_a_label_alone_does_not_make_it_ours(keeper, loop, run, label):
    run("mke2fs", "-q", "-F", "-L", label, str(loop))
    with pytest.raises(Refused, match="carries TYPE=ext2"):
        keeper.device_claim(loop, confirmed=True)


def test_swap_space_is_refused(keeper, loop, run):
    run("mkswap", str(loop))
    with pytest.raises(Refused, match="carries TYPE=swap"):
        keeper.device_claim(loop, confirmed=True)


def test_a_mounted_device_is_refused_with_its_place(keeper, loop, run, tmp_path):
    place = tmp_path / "mounted here"
    place.mkdir()
    run("mke2fs", "-q", "-F", str(loop))
    run("mount", str(loop), str(place))
    try:
        with pytest.raises(Refused, match=f"is mounted at {place}"):
            keeper.device_claim(loop, confirmed=True)
    finally:
        run("umount", str(place))


def test_a_device_that_somebody_has_for_himself_is_refused(keeper, loop):
    held = os.open(loop, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(Refused, match="is in use"):
            keeper.device_claim(loop, confirmed=True)
    finally:
        os.close(held)


def test_a_claimed_device_that_is_taken_meanwhile_is_not_formatted(keeper, loop):
    keeper.device_claim(loop, confirmed=True)
    held = os.open(loop, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(Refused, match="is in use"):
            keeper.format("ext4")
    finally:
        os.close(held)
    keeper.format("ext4")


def test_only_block_devices_are_devices(keeper, tmp_path):
    file = tmp_path / "file"
    file.write_text("data")
    for path in (file, tmp_path, Path("/dev/null"), Path("/nowhere"), Path("relative")):
        with pytest.raises(InputError, match="path"):
            keeper.device_claim(path, confirmed=True)
    assert file.read_text() == "data"


def test_what_was_not_claimed_is_not_formatted(keeper, loop):
    with pytest.raises(InputError, match="has no device"):
        keeper.format("ext4")
    with pytest.raises(Refused, match="is not this session's"):
        keeper.format("ext4", device=loop)
