"""Configurations as mkfs options, mount options and knobs."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.space import Configuration, Guarantee, preset
from ascar.systems.administration import command_lines
from ascar.systems.published_spaces import published_space
from ascar.systems.recipe import recipe_of

SPACE = preset("storage-v5").permit_weaker(Guarantee)


def recipe(**values):
    return recipe_of(SPACE.nearest({**SPACE.default(), **values}), SPACE)


def lines(form, **values):
    configuration = SPACE.nearest({**SPACE.default(), **values})
    return command_lines(configuration, SPACE, SPACE.departures(configuration))[form]


def test_the_default_says_everything_explicitly():
    found = recipe()
    assert found.fs == "ext4"
    assert found.format == {"block_size_bytes": 4096, "inode_size_bytes": 256, "flex_bg_groups": 16}
    assert set(found.mount) == {"relatime", "data=ordered", "commit=5", "delalloc", "barrier"}
    assert set(found.remount) == {"relatime", "commit=5", "barrier"}
    assert found.mounted_knobs == {"ext4.DEV.inode_readahead_blks": 32}


def test_the_scheduler_comes_before_what_it_resets():
    knobs = list(recipe(block_scheduler="bfq", block_nr_requests=512).knobs)
    assert knobs.index("block.DEV.scheduler") < knobs.index("block.DEV.nr_requests")


@pytest.mark.parametrize(
    ("values", "present", "absent"),
    [
        ({"ext_journal_mode": "journal"}, {"data=journal"}, {"delalloc", "nodelalloc"}),
        ({"ext4_delayed_allocation": False}, {"nodelalloc"}, {"delalloc"}),
        ({"write_barrier": False}, {"nobarrier"}, {"barrier"}),
        ({"fs": "ext2"}, {"relatime"}, {"barrier", "data=ordered", "commit=5", "delalloc"}),
        ({"fs": "ext3"}, {"data=ordered", "commit=5", "barrier"}, {"delalloc", "nodelalloc"}),
        ({"fs": "xfs"}, {"logbufs=8", "logbsize=32k"}, {"allocsize=0k", "barrier"}),
        ({"fs": "xfs", "xfs_allocation_size_kib": 1024}, {"allocsize=1024k"}, set()),
        ({"fs": "btrfs"}, {"commit=30", "max_inline=2048", "barrier"}, {"datacow", "compress=none"}),
        ({"fs": "btrfs", "btrfs_compression": "zstd:1"}, {"compress=zstd:1"}, set()),
        ({"fs": "btrfs", "btrfs_data_mode": "nodatacow"}, {"nodatacow"}, {"compress=none"}),
        ({"atime": "noatime"}, {"noatime"}, {"relatime"}),
    ],
)
def test_mount_options_follow_the_configuration(values, present, absent):
    options = set(recipe(**values).mount)
    assert present <= options
    assert not absent & options


def test_a_remount_takes_back_what_a_fresh_mount_would_not_have():
    assert {"datacow", "datasum", "compress=no"} <= set(recipe(fs="btrfs").remount)
    assert "logbufs=8" not in recipe(fs="xfs").remount


def test_an_ext_journal_of_zero_is_left_to_mkfs():
    assert "journal_size_bytes" not in recipe().format
    assert recipe(ext_journal_size_mib=64).format["journal_size_bytes"] == 64 * 2**20


def test_every_configuration_has_a_recipe_and_lines():
    for configuration in SPACE.sample(np.random.default_rng(1), 300):
        found = recipe_of(configuration, SPACE)
        names = [option.partition("=")[0] for option in found.mount]
        assert len(names) == len(set(names))
        chosen = SPACE.departures(configuration)
        for text in command_lines(configuration, SPACE, chosen).values():
            assert not any("\n" in line or "DEV." in line for line in text)
        everything = command_lines(configuration, SPACE, SPACE.names)
        assert all(everything.values())


def test_layouts_are_equal_only_where_files_lie_alike():
    base = recipe()
    assert recipe(block_scheduler="bfq", vm_dirty_ratio=40).layout == base.layout
    assert recipe(ext_inode_size_bytes=512).layout != base.layout
    assert recipe(ext4_delayed_allocation=False).layout != base.layout
    assert hash(base.layout) == hash(recipe().layout)


def test_parameters_that_a_file_system_does_not_have_are_named():
    with pytest.raises(InputError, match="colour: must be a parameter of ext4"):
        recipe_of(Configuration({"fs": "ext4", "colour": "blue"}), SPACE)
    published = published_space("storage-v1")
    with pytest.raises(InputError, match="block_group: must be a parameter of btrfs"):
        recipe_of(Configuration({"fs": "btrfs", "block_group": 8}), published)


def test_shell_lines_name_the_device_once():
    shell = lines("shell", fs="xfs", xfs_allocation_groups=8)
    assert shell == ["mkfs.xfs -d agcount=8 /dev/DEVICE", "mount -t xfs /dev/DEVICE /MOUNTPOINT"]


def test_all_parameters_can_be_said():
    configuration = SPACE.nearest({"fs": "xfs", "xfs_allocation_groups": 8})
    shell = command_lines(configuration, SPACE, SPACE.names)["shell"]
    assert shell[0] == "mkfs.xfs -b size=4096 -i size=512 -d agcount=8 -s size=512 /dev/DEVICE"
    assert shell[1] == "mount -t xfs -o logbufs=8,logbsize=32k,relatime /dev/DEVICE /MOUNTPOINT"
    assert "echo none > /sys/block/DEVICE/queue/scheduler" in shell
    assert "sysctl -w vm.dirty_ratio=20" in shell


def test_nothing_is_said_of_what_nobody_chose():
    """A device's own defaults are not settings."""
    assert all(text == [] for text in command_lines(SPACE.default(), SPACE, ()).values())
    found = SPACE.with_defaults({"block_read_ahead_kb": 2048})
    configuration = found.nearest({**found.default(), "vm_dirty_ratio": 40})
    text = command_lines(configuration, found, found.departures(configuration))
    assert text["shell"] == ["sysctl -w vm.dirty_ratio=40"]
    assert (text["udev"], text["fstab"]) == ([], [])


def test_what_has_to_be_done_is_no_more_than_what_was_chosen():
    assert lines("shell", atime="noatime") == ["mount -o remount,noatime /MOUNTPOINT"]
    assert lines("shell", ext_journal_mode="journal") == [
        "umount /MOUNTPOINT",
        "mount -t ext4 -o data=journal /dev/DEVICE /MOUNTPOINT",
    ]
    assert lines("shell", ext4_inode_readahead_blks=128) == [
        "echo 128 > /sys/fs/ext4/DEVICE/inode_readahead_blks"
    ]
    assert lines("shell", ext_inode_size_bytes=512)[0] == "mkfs.ext4 -I 512 /dev/DEVICE"


def test_a_scheduler_brings_what_it_resets():
    assert lines("udev", block_scheduler="bfq") == [
        'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="DEVICE", '
        'ATTR{queue/scheduler}="bfq", ATTR{queue/nr_requests}="128"'
    ]


def test_the_other_forms():
    assert lines("fstab", atime="noatime", ext4_inode_readahead_blks=128) == [
        "/dev/DEVICE /MOUNTPOINT ext4 noatime,inode_readahead_blks=128 0 2"
    ]
    assert lines("fstab", fs="xfs")[0].endswith(" xfs defaults 0 0")
    assert lines("sysctl", vm_dirty_background_ratio=5) == ["vm.dirty_background_ratio = 5"]
    (rule,) = lines("udev", block_scheduler="bfq", block_nr_requests=64)
    assert rule.index('ATTR{queue/scheduler}="bfq"') < rule.index('ATTR{queue/nr_requests}="64"')
    profile = lines("tuned", vm_dirty_ratio=40, block_read_ahead_kb=512)
    assert profile[0] == "[main]"
    assert "vm.dirty_ratio=40" in profile[profile.index("[sysctl]") :]
    assert "/sys/block/DEVICE/queue/read_ahead_kb=512" in profile[profile.index("[sysfs]") :]
