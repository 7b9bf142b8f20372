"""Paths that lead elsewhere while root works on them: who owns a directory can put a link in its place."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, Refused, StageFailed
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A directory in which an attacker may rename."""
    (tmp_path / "own/images").mkdir(parents=True)
    return tmp_path / "own"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory where nothing may be written."""
    (tmp_path / "victim/images").mkdir(parents=True)
    return tmp_path / "victim"


def swap(directory: Path, victim: Path) -> Path:
    """Puts a link to `victim` where a directory is; where the directory is now."""
    moved = directory.with_name("moved")
    directory.rename(moved)
    directory.symlink_to(victim)
    return moved


def test_a_copy_lies_beside_its_image_wherever_the_path_leads(keeper, own, victim):
    keeper.image_create(own / "images/image", 64 * MIB)
    device = keeper.image_attach(own / "images/image").device
    moved = swap(own, victim)
    keeper.image_save("copy", device)
    assert list((victim / "images").iterdir()) == []
    assert {path.name for path in (moved / "images").iterdir()} == {"image", "image.copy"}
    keeper.image_forget("copy", device)
    assert [path.name for path in (moved / "images").iterdir()] == ["image"]


def test_links_on_the_way_are_not_followed(keeper, raw, own, tmp_path):
    (tmp_path / "link").symlink_to(own)
    session = raw()
    reply = session.ask("image_create", path=str(tmp_path / "link/images/image"), size_bytes=64 * MIB)
    assert reply["error"]["kind"] == "input"
    assert "is a symbolic link: name the real one" in reply["error"]["message"]
    assert list((own / "images").iterdir()) == []
    # The client names the real directory, which it finds with its own rights.
    image = keeper.image_create(tmp_path / "link/images/image", 64 * MIB)
    assert image.path == own / "images/image"


def test_a_brought_image_is_no_link(keeper, own, victim):
    (victim / "images/image").touch()
    os.truncate(victim / "images/image", 64 * MIB)
    (own / "link").symlink_to(victim / "images/image")
    with pytest.raises(StageFailed, match="cannot open"):
        keeper.image_attach(own / "link")
    assert keeper.image_attach(victim / "images/image").name.startswith("loop")


def test_a_device_is_named_where_only_root_may_write(keeper, loop, tmp_path):
    public = tmp_path / "public"
    public.mkdir()
    node = public / "disk"
    os.mknod(node, stat.S_IFBLK | 0o600, loop.stat().st_rdev)
    public.chmod(0o777)
    with pytest.raises(Refused, match=f"{public} may be written by others than root: name the"):
        keeper.device_claim(node, confirmed=True)


def test_a_file_is_not_put_back_through_a_link(state, own, victim):
    (own / "settings").write_text("old")
    (victim / "settings").write_text("new")
    with Keeper("files", state_dir=state, user=True) as keeper:
        keeper.file_replace(own / "settings", "new")
        moved = swap(own, victim)
        report = keeper.restore()
        assert (victim / "settings").read_text() == "new"
        assert "symbolic link" in report.failed[0]
        own.unlink()
        moved.rename(own)
        assert keeper.restore().restored == (f"file {own / 'settings'}",)
    assert (own / "settings").read_text() == "old"


def test_a_directory_that_is_not_there_is_named(keeper, tmp_path):
    with pytest.raises(InputError, match="cannot open its directory: No such file or directory"):
        keeper.image_create(tmp_path / "nowhere/image", 64 * MIB)
