"""Storage V5: what present kernels (6.x) and mkfs programs offer: ext2, ext3, ext4, XFS and Btrfs.

Every value, and every category, was verified by formatting, mounting, remounting and reading back on a 6.18
kernel with e2fsprogs 1.47, xfsprogs 6.1 and btrfs-progs 6.2; the test of this module marked `root` does it
again. The default configuration is what mkfs.ext4 and the kernel do unasked; each other file system's
parameters default to what its own mkfs does.

What is not here, and why: blocks above 4 KiB (XFS takes them from 6.12 on, ext4 and Btrfs' sectors do not),
XFS' 256-byte inodes (not with checksums) and `nobarrier` (gone), Btrfs' space cache v1 (deprecated).
"""

from __future__ import annotations

from ascar.space.cost import ChangeCost
from ascar.space.parameter import boolean, categorical, ordinal
from ascar.space.space import Space

_FORMAT = ChangeCost.REFORMAT_RESTORE
_MOUNT = ChangeCost.UMOUNT_MOUNT
_REMOUNT = ChangeCost.REMOUNT
_KERNEL = ChangeCost.DYN_KERNEL
_EXT = 'fs in ("ext2", "ext3", "ext4")'
_JOURNAL = 'fs in ("ext3", "ext4")'

_FILE_SYSTEM = (
    categorical(
        "fs",
        ("ext2", "ext3", "ext4", "xfs", "btrfs"),
        default="ext4",
        cost=_FORMAT,
        weaker={"ext2": "consistency"},
        description="file system; ext2 has no journal",
    ),
    ordinal(
        "block_size_bytes",
        (1024, 2048, 4096),
        default=4096,
        cost=_FORMAT,
        when='fs != "btrfs"',
        unit="bytes",
        description="mkfs -b",
    ),
)

_EXT_PARAMETERS = (
    ordinal(
        "ext_inode_size_bytes",
        (128, 256, 512, 1024),
        default=256,
        cost=_FORMAT,
        when=_EXT,
        weaker={128: "integrity"},
        unit="bytes",
        description="mkfs -I; 128 cannot hold dates after 2038",
    ),
    ordinal(
        "ext4_flex_group_size",
        (1, 4, 16, 64),
        default=16,
        cost=_FORMAT,
        when='fs == "ext4"',
        unit="groups",
        description="mkfs.ext4 -G: block groups whose metadata lie together",
    ),
    ordinal(
        "ext_journal_size_mib",
        (0, 16, 64, 256),
        default=0,
        cost=_FORMAT,
        when=_JOURNAL,
        special={0: "mkfs decides"},
        unit="MiB",
        description="mkfs -J size=",
    ),
    categorical(
        "ext_journal_mode",
        ("journal", "ordered", "writeback"),
        default="ordered",
        cost=_MOUNT,
        when=_JOURNAL,
        weaker={"writeback": "consistency"},
        description="mount -o data=; writeback may show stale data after a crash",
    ),
    ordinal(
        "ext_commit_interval_s",
        (1, 5, 15, 30, 60),
        default=5,
        cost=_REMOUNT,
        when=_JOURNAL,
        weaker={">5": "durability"},
        unit="s",
        description="mount -o commit=; what is older survives a crash",
    ),
    boolean(
        "ext4_delayed_allocation",
        default=True,
        cost=_MOUNT,
        when='fs == "ext4" and ext_journal_mode != "journal"',
        description="mount -o delalloc or nodelalloc; data=journal has neither",
    ),
    ordinal(
        "ext4_inode_readahead_blks",
        (0, 8, 32, 128),
        default=32,
        cost=_KERNEL,
        when='fs == "ext4"',
        unit="blocks",
        description="/sys/fs/ext4/DEVICE/inode_readahead_blks",
        native="ext4.DEV.inode_readahead_blks",
    ),
    boolean(
        "write_barrier",
        default=True,
        cost=_REMOUNT,
        when='fs in ("ext3", "ext4", "btrfs")',
        weaker={False: ("durability", "consistency")},
        description="mount -o barrier or nobarrier: flush the device's cache where order matters",
    ),
)

_XFS_PARAMETERS = (
    ordinal(
        "xfs_inode_size_bytes",
        (512, 1024, 2048),
        default=512,
        cost=_FORMAT,
        when='fs == "xfs"',
        unit="bytes",
        description="mkfs.xfs -i size=",
    ),
    ordinal(
        "xfs_allocation_groups",
        (2, 4, 8, 16, 32),
        default=4,
        cost=_FORMAT,
        when='fs == "xfs"',
        description="mkfs.xfs -d agcount=; each needs room for the log, about 64 MiB",
    ),
    ordinal(
        "xfs_sector_size_bytes",
        (512, 1024, 2048, 4096),
        default=512,
        cost=_FORMAT,
        when='fs == "xfs"',
        unit="bytes",
        description="mkfs.xfs -s size=; not below the device's",
    ),
    ordinal(
        "xfs_log_buffers",
        (2, 4, 8),
        default=8,
        cost=_MOUNT,
        when='fs == "xfs"',
        description="mount -o logbufs=; a remount ignores it",
    ),
    ordinal(
        "xfs_log_buffer_size_kib",
        (32, 64, 128, 256),
        default=32,
        cost=_MOUNT,
        when='fs == "xfs"',
        unit="KiB",
        description="mount -o logbsize=; a remount ignores it",
    ),
    ordinal(
        "xfs_allocation_size_kib",
        (0, 64, 1024, 16384),
        default=0,
        cost=_MOUNT,
        when='fs == "xfs"',
        special={0: "dynamic preallocation: the option is left out"},
        unit="KiB",
        description="mount -o allocsize=; a remount ignores it",
    ),
)

_BTRFS_PARAMETERS = (
    ordinal(
        "btrfs_node_size_bytes",
        (4096, 16384, 32768, 65536),
        default=16384,
        cost=_FORMAT,
        when='fs == "btrfs"',
        unit="bytes",
        description="mkfs.btrfs -n",
    ),
    categorical(
        "btrfs_metadata_profile",
        ("dup", "single"),
        default="dup",
        cost=_FORMAT,
        when='fs == "btrfs"',
        weaker={"single": "integrity"},
        description="mkfs.btrfs -m: copies of metadata, from which damage is repaired",
    ),
    categorical(
        "btrfs_data_mode",
        ("datacow", "nodatasum", "nodatacow"),
        default="datacow",
        cost=_REMOUNT,
        when='fs == "btrfs"',
        weaker={"nodatasum": "integrity", "nodatacow": ("consistency", "integrity")},
        description="mount -o; for files made from then on; nodatacow implies nodatasum",
    ),
    categorical(
        "btrfs_compression",
        ("none", "lzo", "zstd:1", "zstd:3"),
        default="none",
        cost=_REMOUNT,
        when='fs == "btrfs" and btrfs_data_mode == "datacow"',
        description="mount -o compress=; for data written from then on; turns data sums on",
    ),
    ordinal(
        "btrfs_commit_interval_s",
        (5, 30, 120),
        default=30,
        cost=_REMOUNT,
        when='fs == "btrfs"',
        weaker={">30": "durability"},
        unit="s",
        description="mount -o commit=; what is older survives a crash",
    ),
    ordinal(
        "btrfs_max_inline_bytes",
        (0, 2048, 4095),
        default=2048,
        cost=_REMOUNT,
        when='fs == "btrfs"',
        unit="bytes",
        description="mount -o max_inline=: files up to this size lie in metadata",
    ),
)

_KERNEL_PARAMETERS = (
    categorical("atime", ("relatime", "noatime"), default="relatime", cost=_REMOUNT, description="mount -o"),
    categorical(
        "block_scheduler",
        ("none", "mq-deadline", "kyber", "bfq"),
        default="none",
        cost=_KERNEL,
        description="changing it resets block_nr_requests",
        native="block.DEV.scheduler",
    ),
    ordinal(
        "block_nr_requests",
        (32, 64, 128, 256, 512),
        default=128,
        cost=_KERNEL,
        description="requests that the queue holds",
        native="block.DEV.nr_requests",
    ),
    ordinal(
        "block_read_ahead_kb",
        (0, 16, 64, 128, 512, 2048),
        default=128,
        cost=_KERNEL,
        unit="KiB",
        description="the largest read-ahead of a file",
        native="block.DEV.read_ahead_kb",
    ),
    ordinal(
        "vm_dirty_background_ratio",
        (1, 5, 10, 20),
        default=10,
        cost=_KERNEL,
        unit="percent",
        description="the share of memory at which writing back starts",
        native="vm.dirty_background_ratio",
    ),
    ordinal(
        "vm_dirty_ratio",
        (10, 20, 40, 60),
        default=20,
        cost=_KERNEL,
        unit="percent",
        description="the share of memory at which writers wait",
        native="vm.dirty_ratio",
    ),
    ordinal(
        "vm_dirty_expire_centisecs",
        (500, 1500, 3000, 6000),
        default=3000,
        cost=_KERNEL,
        weaker={">3000": "durability"},
        unit="centiseconds",
        description="dirty data older than this are written back",
        native="vm.dirty_expire_centisecs",
    ),
    ordinal(
        "vm_vfs_cache_pressure",
        (50, 100, 200),
        default=100,
        cost=_KERNEL,
        unit="percent",
        description="how soon inodes and directory entries leave memory",
        native="vm.vfs_cache_pressure",
    ),
)

_CONSTRAINTS = (
    "ext_inode_size_bytes <= block_size_bytes",
    "2 * xfs_inode_size_bytes <= block_size_bytes",
    "xfs_sector_size_bytes <= block_size_bytes",
    "vm_dirty_background_ratio < vm_dirty_ratio",
    # Without a scheduler the kernel refuses more requests than the device's own queue holds.
    'block_scheduler != "none" or block_nr_requests <= 128',
)


def storage_v5() -> Space:
    """Storage V5."""
    parameters = (
        *_FILE_SYSTEM,
        *_EXT_PARAMETERS,
        *_XFS_PARAMETERS,
        *_BTRFS_PARAMETERS,
        *_KERNEL_PARAMETERS,
    )
    return Space(parameters, name="storage-v5").constrain(*_CONSTRAINTS)
