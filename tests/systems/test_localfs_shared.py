"""localfs where others use the machine too: two targets side by side, and nothing shared is touched."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from localfs_support import ROOT, entered

from ascar.systems.localfs_options import LocalFileSystemOptions, LocalFileSystemSettings
from ascar.systems.localfs_space import localfs_space, without_machine_wide

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [*ROOT, pytest.mark.machine]

DATA = b"x" * 200_000


def cached_bytes(file: Path) -> int:
    """How much of a file is in the page cache."""
    done = subprocess.run(
        ["fincore", "--bytes", "--noheadings", "--output", "RES", str(file)], capture_output=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(shutil.which("fincore") is None, reason="needs fincore of util-linux")
def test_two_targets_side_by_side(tmp_path):
    options = {"machine_wide": False, "state": "reuse"}
    with (
        entered(image=str(tmp_path / "one"), **options) as one,
        entered(image=str(tmp_path / "two"), **options) as two,
    ):
        assert not [name for name in one.space.names if name.startswith(("dirty", "vfs"))]
        assert "vm_dirty_ratio" not in one.describe()["kernel_defaults"]
        assert one.describe()["machine_wide"] is False
        files: list[Path] = []
        for target in (one, two):
            target.apply(target.space.default())
            file = target.workspace.directory / "file"
            file.write_bytes(DATA)
            target.settle()
            assert cached_bytes(file) == 0, "after the fill nothing of it is cached"
            assert file.read_bytes() == DATA
            files.append(file)
        own, other = files
        kept = False
        for _ in range(20):  # another test's session may drop all caches in between
            assert own.read_bytes() == other.read_bytes() == DATA
            one.apply(one.space.default())
            one.settle()
            kept = kept or cached_bytes(other) > 0
            assert cached_bytes(own) == 0, "nor before the load of a later trial"
        assert kept, "what the other has cached is its own"
    for target in (one, two):
        assert target.restored is not None
        assert target.restored.failed == ()
        assert not [knob for knob in target.restored.restored if knob.startswith("vm.")]


def test_the_space_without_what_is_shared_is_a_space():
    space = localfs_space(2**31, ("ext4", "xfs"))
    shared = without_machine_wide(space)
    assert {*space.names} - {*shared.names} == {
        "vm_dirty_background_ratio",
        "vm_dirty_ratio",
        "vm_dirty_expire_centisecs",
        "vm_vfs_cache_pressure",
    }
    assert shared.is_valid(shared.default())
    assert len(space.constraints) - len(shared.constraints) == 1
    assert LocalFileSystemSettings.read(LocalFileSystemOptions()).options.machine_wide
