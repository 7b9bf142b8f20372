"""Dirty pages of the machine and of control groups, and how old they become."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.systems.dirty_pages import group_dirty_bytes, machine_dirty_bytes, write_back_cycle_s
from ascar.systems.localfs_cycles import cycle_s

if TYPE_CHECKING:
    from pathlib import Path

MEMINFO = (
    "MemTotal:       24684084 kB\nDirty:             12 kB\nWriteback:         8 kB\nHugePages_Free: 0\n"
)


def test_the_machine_counts_pages_under_way_too():
    assert machine_dirty_bytes(MEMINFO) == 20 * 1024


def test_both_versions_of_control_groups_tell():
    assert group_dirty_bytes("dirty 1\nwriteback 2\ntotal_dirty 4096\ntotal_writeback 8192\n") == 12288
    assert group_dirty_bytes("anon 5\nfile_dirty 4096\nfile_writeback 0\n") == 4096
    assert group_dirty_bytes("cache 5\n") is None


@given(st.text())
def test_no_text_breaks_it(text: str):
    assert machine_dirty_bytes(text) >= 0
    found = group_dirty_bytes(text)
    assert found is None or found >= 0


def test_a_page_waits_for_its_age_and_then_until_somebody_looks():
    settings = {"vm_dirty_expire_centisecs": 3000, "vm_dirty_writeback_centisecs": 500}
    assert write_back_cycle_s(settings) == 35
    assert write_back_cycle_s({**settings, "vm_dirty_expire_centisecs": 60000}) == 605


def test_what_the_configuration_leaves_out_is_as_the_kernel_has_it():
    def read(path: Path) -> str:
        return {"dirty_expire_centisecs": "200\n", "dirty_writeback_centisecs": "100\n"}[path.name]

    assert write_back_cycle_s({}, read) == 3


@pytest.mark.parametrize("text", ["", "many", "1.5"])
def test_a_kernel_that_does_not_tell_has_no_cycle(text: str):
    assert write_back_cycle_s({}, lambda _: text) == 0


def test_nobody_looks():
    settings = {"vm_dirty_expire_centisecs": 3000, "vm_dirty_writeback_centisecs": 0}
    assert write_back_cycle_s(settings) > 86400


def test_the_longest_of_write_back_and_commit(tmp_path: Path):
    ages = {"vm_dirty_expire_centisecs": 500, "vm_dirty_writeback_centisecs": 500}
    assert cycle_s({**ages, "fs": "ext4", "ext_commit_interval_s": 5}) == 10
    assert cycle_s({**ages, "fs": "ext4", "ext_commit_interval_s": 60}) == 60
    assert cycle_s({**ages, "fs": "btrfs", "btrfs_commit_interval_s": 120}) == 120
    setting = tmp_path / "xfssyncd_centisecs"
    setting.write_text("3000\n")
    assert cycle_s({**ages, "fs": "xfs"}, setting) == 30
    assert cycle_s({**ages, "fs": "xfs"}, tmp_path / "missing") == 10
