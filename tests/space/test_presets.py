from collections import Counter

import pytest

import ascar.space
from ascar.errors import SpaceError
from ascar.space import PRESETS, ChangeCost, Configuration, Guarantee, preset


def whole(name):
    """With the values that promise less than the default."""
    return preset(name).permit_weaker(Guarantee)


def per_value(space, name):
    return {value: space.pin({name: value}).count() for value in space[name].domain.values}


def test_names():
    assert PRESETS == ("storage-v1", "storage-v2", "storage-v3", "storage-v4", "storage-v5")
    assert all(preset(name).name == name for name in PRESETS)
    with pytest.raises(
        SpaceError, match=r"preset 'storage-v6' is unknown; allowed: storage-v1, .*; did you mean"
    ):
        preset("storage-v6")


@pytest.mark.parametrize("name", PRESETS)
def test_every_default_is_valid_and_promises_what_the_default_does(name):
    space = whole(name)
    default = space.check().default()
    assert all(space[parameter].default == value for parameter, value in default.items())
    assert space.weakened(default) == {}
    assert space.permit_weaker([]).is_valid(default)
    assert preset(name) == space.permit_weaker([])


@pytest.mark.parametrize(
    ("name", "total"),
    [("storage-v1", 2074), ("storage-v2", 6222), ("storage-v3", 3888), ("storage-v4", 5184)],
)
def test_totals_are_the_thesis_own(name, total):
    space = whole(name)
    assert space.count() == total
    assert len(set(space.enumerate())) == total


def test_v2_by_file_system_matches_table_7_1():
    # Table 7.1 counts four devices; for ext3 and ext4 it leaves out the journal option n/a, one of four.
    counts = per_value(whole("storage-v2"), "fs")
    printed = {
        "ext2": 2208,
        "ext3": 6624,
        "ext4": 6624,
        "xfs": 2592,
        "btrfs": 288,
        "nilfs2": 1944,
        "reiserfs": 192,
    }
    for fs in ("ext3", "ext4"):
        without = whole("storage-v2").pin({"fs": fs}).constrain('journal_option != "n/a"')
        assert without.count() * 4 == printed.pop(fs)
        assert counts[fs] == 2208  # Figure 5.6's ext3 configurations on one device
    for fs, total in printed.items():
        assert counts[fs] * 4 == total


def test_v1_by_file_system():
    assert per_value(whole("storage-v1"), "fs") == {
        "ext2": 184,
        "ext3": 736,
        "ext4": 736,
        "xfs": 216,
        "btrfs": 24,
        "nilfs2": 162,
        "reiserfs": 16,
    }


def test_v1_has_no_parameter_that_a_file_system_lacks():
    for configuration in whole("storage-v1").enumerate():
        fs = configuration["fs"]
        assert ("journal_option" in configuration) == (fs in ("ext3", "ext4", "nilfs2", "reiserfs"))
        assert ("special_option" in configuration) == (fs in ("btrfs", "reiserfs"))


def test_v3_by_block_size_is_section_9_5s():
    assert per_value(whole("storage-v3"), "block_size_bytes") == {1024: 972, 2048: 1458, 4096: 1458}


def test_v4_by_block_size():
    counts = Counter(c["block_size_bytes"] for c in whole("storage-v4").enumerate())
    # A block of 1 KiB has room for one inode size and one sector size, one of 2 KiB for one and two.
    assert counts == {1024: 576, 2048: 1152, 4096: 3456}


def test_table_9_1s_labels():
    v3, v4, v2 = whole("storage-v3"), whole("storage-v4"), whole("storage-v2")
    assert v3["block_scheduler"].cost is v3["vm_dirty_ratio"].cost is ChangeCost.DYN_KERNEL
    assert v3["inode_readahead_blocks"].cost is ChangeCost.REMOUNT
    assert v3["journal_option"].cost is ChangeCost.UMOUNT_MOUNT
    assert v4["log_buffers"].cost is v4["allocation_size_kib"].cost is ChangeCost.REMOUNT
    assert {v4[n].cost for n in ("sector_size_bytes", "allocation_groups")} == {ChangeCost.REFORMAT_RESTORE}
    assert v2["atime_option"].cost is ChangeCost.REMOUNT
    # Figure 9.3 (a): without category 3, only those of the default file system are searched.
    assert v3.restrict([0, 1, 2]).count() == 3 * 3 * 3 * 2 * 3


def test_v5s_default_is_ext4s():
    assert whole("storage-v5").default() == Configuration(
        {
            "fs": "ext4",
            "block_size_bytes": 4096,
            "ext_inode_size_bytes": 256,
            "ext4_flex_group_size": 16,
            "ext_journal_size_mib": 0,
            "ext_journal_mode": "ordered",
            "ext_commit_interval_s": 5,
            "ext4_delayed_allocation": True,
            "ext4_inode_readahead_blks": 32,
            "write_barrier": True,
            "atime": "relatime",
            "block_scheduler": "none",
            "block_nr_requests": 128,
            "block_read_ahead_kb": 128,
            "vm_dirty_background_ratio": 10,
            "vm_dirty_ratio": 20,
            "vm_dirty_expire_centisecs": 3000,
            "vm_vfs_cache_pressure": 100,
        }
    )


def test_v5_without_permission_keeps_every_promise():
    space = whole("storage-v5")
    safe = space.permit_weaker([])
    left = {name: safe.domain(name).values for name in safe.names}
    assert "ext2" not in left["fs"]
    assert left["write_barrier"] == (True,)
    assert left["btrfs_data_mode"] == ("datacow",)
    assert left["btrfs_metadata_profile"] == ("dup",)
    assert left["ext_journal_mode"] == ("journal", "ordered")
    assert max(left["ext_commit_interval_s"]) == 5
    assert max(left["btrfs_commit_interval_s"]) == 30
    assert max(left["vm_dirty_expire_centisecs"]) == 3000
    assert 128 not in left["ext_inode_size_bytes"]
    assert space["write_barrier"].weakens(False) == {Guarantee.DURABILITY, Guarantee.CONSISTENCY}


def test_v5_by_file_system_adds_up():
    space = whole("storage-v5")
    counts = per_value(space, "fs")
    assert sum(counts.values()) == space.count()
    queues = 3 + 3 * 5  # without a scheduler 3 lengths, with each of 3 schedulers 5
    dirty = 2 + 3 + 4 + 4  # background ratios below 10, 20, 40 and 60
    everywhere = 2 * queues * 6 * dirty * 4 * 3  # atime, queues, read-ahead, dirty, expiry, cache pressure
    sizes = 3 * 4  # every inode size fits every block size
    journal = 4 * 5 * 2  # size, commit interval, barrier
    assert counts["ext2"] == sizes * everywhere
    assert counts["ext3"] == sizes * journal * 3 * everywhere
    # Two journal modes with and without delayed allocation, one that has neither.
    assert counts["ext4"] == sizes * journal * 4 * 4 * (2 * 2 + 1) * everywhere
    assert counts["xfs"] == xfs_blocks() * 5 * 3 * 4 * 4 * everywhere
    assert counts["btrfs"] == 4 * 2 * (4 + 2) * 3 * 3 * 2 * everywhere


def xfs_blocks():
    """Block, inode and sector sizes of XFS that go together."""
    return sum(
        1
        for block in (1024, 2048, 4096)
        for inode in (512, 1024, 2048)
        for sector in (512, 1024, 2048, 4096)
        if 2 * inode <= block and sector <= block
    )


def test_everything_public_is_listed_in_order():
    listed = ascar.space.__all__
    assert listed == sorted(listed, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(ascar.space, name) for name in listed)
