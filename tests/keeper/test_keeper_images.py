"""Image files and loop devices."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascar.errors import InputError, Refused, StageFailed
from ascar.systems.keeper import Keeper

MIB = 1 << 20


def test_an_image_is_sparse_and_roots_alone(keeper, images):
    image = keeper.image_create(images / "image", 64 * MIB)
    assert (image.path, image.size_bytes) == (images / "image", 64 * MIB)
    state = image.path.stat()
    assert state.st_size == 64 * MIB
    assert state.st_blocks == 0
    assert state.st_mode & 0o777 == 0o600
    assert keeper.restore().restored == (f"file {image.path}",)
    assert not image.path.exists()


def test_what_is_there_is_never_overwritten(keeper, images, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("data")
    (images / "image").symlink_to(precious)
    (images / "dangling").symlink_to(tmp_path / "nowhere")
    (images / "file").write_text("data")
    for name in ("image", "dangling", "file"):
        with pytest.raises(Refused, match="exists already"):
            keeper.image_create(images / name, 64 * MIB)
    assert precious.read_text() == "data"
    assert (images / "file").read_text() == "data"
    assert not (tmp_path / "nowhere").exists()
    keeper.restore()
    assert {path.name for path in images.iterdir()} == {"image", "dangling", "file"}


@pytest.mark.parametrize("size_bytes", [0, 4095, MIB - 4096, MIB + 1, 1 << 53, (1 << 64) - 1])
def test_impossible_sizes_are_refused(keeper, images, size_bytes):
    with pytest.raises(InputError, match="size_bytes"):
        keeper.image_create(images / "image", size_bytes)
    assert list(images.iterdir()) == []


def test_a_full_disk_is_named_with_needed_and_available(keeper, images):
    with pytest.raises(Refused, match=rf"needs {1 << 50} bytes, available are \d+ in {images}: free space"):
        keeper.image_create(images / "image", 1 << 50)
    assert list(images.iterdir()) == []


def test_a_copy_that_does_not_fit_is_refused_and_leaves_nothing(state, small_disk):
    disk = small_disk(24)
    with Keeper("small", state_dir=state) as keeper:
        keeper.image_create(disk / "image", 20 * MIB)
        keeper.image_attach(disk / "image")
        keeper.format("ext4", {"journal": False})
        mountpoint = keeper.mount("ext4").mountpoint
        (mountpoint / "data").write_bytes(os.urandom(14 * MIB))
        keeper.unmount()
        with pytest.raises(Refused, match=r"needs .* bytes, available are"):
            keeper.image_save("full")
        assert [path.name for path in disk.iterdir()] == ["image"]
        keeper.mount("ext4")
        assert (mountpoint.parent / mountpoint.name / "data").stat().st_size == 14 * MIB


def test_a_directory_must_exist(keeper, images):
    with pytest.raises(InputError, match="cannot open its directory"):
        keeper.image_create(images / "deeper" / "image", 64 * MIB)
    with pytest.raises(InputError, match="must be absolute"):
        keeper.image_create(Path("image"), 64 * MIB)


def test_an_image_is_attached_and_detached(keeper, images):
    keeper.image_create(images / "image", 64 * MIB)
    attached = keeper.image_attach(images / "image")
    assert attached.device == Path("/dev") / attached.name
    backing = Path("/sys/block") / attached.name / "loop/backing_file"
    assert backing.read_text().strip() == str(images / "image")
    with pytest.raises(InputError, match="is attached to"):
        keeper.image_attach(images / "image")
    keeper.image_detach()
    assert not backing.exists() or str(images) not in backing.read_text()
    assert keeper.image_attach(images / "image").direct_io is False


def test_direct_io_is_real_or_refused(keeper, images, small_disk):
    keeper.image_create(images / "image", 64 * MIB)
    attached = keeper.image_attach(images / "image", direct_io=True)
    assert (Path("/sys/block") / attached.name / "loop/dio").read_text().strip() == "1"


def test_an_image_that_others_made_needs_a_blank_or_our_label(keeper, images, run):
    foreign = images / "foreign"
    foreign.touch()
    os.truncate(foreign, 64 * MIB)
    run("mke2fs", "-q", "-F", str(foreign))
    with pytest.raises(Refused, match="carries TYPE=ext2"):
        keeper.image_attach(foreign)
    foreign.unlink()
    foreign.touch()
    os.truncate(foreign, 64 * MIB)
    keeper.image_attach(foreign)
    keeper.format("ext4")
    keeper.image_detach()
    keeper.image_attach(foreign)
    keeper.restore()
    assert foreign.exists(), "what we have not made is not ours to remove"


@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs"])
def test_a_saved_image_comes_back_as_it_was(keeper, images, fs):
    keeper.image_create(images / "image", 320 * MIB)
    device = keeper.image_attach(images / "image").device
    keeper.format(fs)
    content = os.urandom(3 * MIB)
    (keeper.mount(fs).mountpoint / "kept").write_bytes(content)
    keeper.unmount()
    saved = keeper.image_save("filled")
    if saved.method == "copy":  # a file system that shares blocks has nothing to copy
        assert 3 * MIB <= saved.copied_bytes < 64 * MIB
    assert (images / "image.filled").stat().st_blocks * 512 < 64 * MIB
    for _ in range(2):
        place = keeper.mount(fs).mountpoint
        assert (place / "kept").read_bytes() == content
        (place / "kept").write_bytes(b"changed")
        (place / "new").write_bytes(os.urandom(MIB))
        keeper.unmount()
        # What the page cache has of the device itself must not be seen afterwards.
        with device.open("rb") as file:
            file.read(8 * MIB)
        assert keeper.image_load("filled").seconds > 0
    keeper.format("ext2")
    keeper.image_load("filled")
    place = keeper.mount(fs).mountpoint
    assert sorted(path.name for path in place.iterdir() if path.name != "lost+found") == ["kept"]
    keeper.unmount()
    keeper.image_forget("filled")
    assert [path.name for path in images.iterdir()] == ["image"]


def test_what_is_mounted_is_neither_saved_nor_loaded_nor_detached(keeper, device):
    keeper.format("ext4")
    keeper.image_save("empty")
    keeper.mount("ext4")
    for action in (
        lambda: keeper.image_save("other"),
        lambda: keeper.image_load("empty"),
        lambda: keeper.format("ext4"),
        lambda: keeper.mount("ext4"),
    ):
        with pytest.raises(InputError, match="is mounted at"):
            action()
    with pytest.raises(Refused, match="is mounted at"):
        keeper.image_detach()


def test_names_of_copies_are_plain_and_unique(keeper, device):
    keeper.format("ext4")
    for name in ("", "a/b", "..", "a.b", "x" * 65):
        with pytest.raises(InputError, match="allowed are 1 to 64"):
            keeper.image_save(name)
    keeper.image_save("once")
    with pytest.raises(InputError, match="is saved already"):
        keeper.image_save("once")
    with pytest.raises(InputError, match=r'is not saved; allowed are \["once"\]'):
        keeper.image_load("never")


def test_a_copy_out_of_time_is_a_timeout_and_leaves_nothing(keeper, images):
    keeper.image_create(images / "image", 320 * MIB)
    keeper.image_attach(images / "image")
    keeper.format("ext4", {"journal": False})
    (keeper.mount("ext4").mountpoint / "data").write_bytes(b"x" * (200 * MIB))
    keeper.unmount()
    saved = keeper.image_save("slow")
    if saved.method == "reflink":
        pytest.skip(f"{images} shares blocks between files: nothing is copied there")
    assert saved.copied_bytes > 200 * MIB
    keeper.image_forget("slow")
    with pytest.raises(StageFailed, match="not done within"):
        keeper.image_save("slow", timeout_s=0.001)
    assert [path.name for path in images.iterdir()] == ["image"]
    assert keeper.image_save("slow").copied_bytes > 200 * MIB


def test_several_images_must_be_told_apart(keeper, images):
    devices = []
    for name in ("one", "two"):
        keeper.image_create(images / name, 64 * MIB)
        devices.append(keeper.image_attach(images / name).device)
    with pytest.raises(InputError, match="device: is missing; allowed are /dev/loop"):
        keeper.format("ext4")
    places = []
    for device in devices:
        keeper.format("ext4", device=device)
        places.append(keeper.mount("ext4", device=device).mountpoint)
    assert len(set(places)) == 2
    with pytest.raises(Refused, match="is not this session's"):
        keeper.unmount(Path("/dev/vda"))
    keeper.unmount(devices[0])
    keeper.image_detach(devices[0])
    keeper.sync_fs()
