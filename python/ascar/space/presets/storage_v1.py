"""Storage V1 and V2: Cao's seven file systems (Table 4.3), with the validity rules behind their counts.

The thesis prints values and totals (2,074 and 6,222) but not which combinations are valid. These rules give
both totals, and every total per file system of Table 7.1:

- ext2/3/4: an inode is no larger than a block; a group has at most 8 * block size blocks, what one block of
  bitmap can describe; ext2 has no journal.
- XFS: an inode is at most half a block and at least 256 bytes.
- Btrfs and Reiserfs have blocks of 4K only; Btrfs' leaves (nodes) and sectors are chosen with the second
  parameter, and its special options compress, nodatacow and nodatasum exclude each other.
- Nilfs2: 2 to 256 thousand blocks per segment (mkfs.nilfs2 takes none below 16 blocks).

"n/a" here is a value of its own, as in the thesis: "the option was not given, the program's default holds".
A parameter that a file system does not have is absent instead. Table 7.1 counts differently in places: 3
journal options for ext3 and ext4 (without n/a; with it there are the 2,208 ext3 configurations of Figure
5.6 on one device, 92 * 4 * 2 * 3), 2 for Nilfs2 and 3 for Reiserfs although the totals below them need 3
and 4 (1,944 and 192 on four devices), and 5 inode sizes for Btrfs, which its total (288) does not count.
Labels and categories are Table 9.1's own.
"""

from __future__ import annotations

from ascar.space.cost import ChangeCost
from ascar.space.parameter import Parameter, categorical, ordinal
from ascar.space.space import Space

_FORMAT = ChangeCost.REFORMAT_RESTORE
_EXT = 'fs in ("ext2", "ext3", "ext4")'

_PARAMETERS = (
    categorical(
        "fs",
        ("ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs"),
        default="ext4",
        cost=_FORMAT,
        weaker={"ext2": "consistency"},
        description="file system",
    ),
    ordinal(
        "block_size_k",
        (1, 2, 4),
        default=4,
        cost=_FORMAT,
        unit="KiB",
        description="block size, leaf size",
    ),
    ordinal(
        "inode_size_bytes",
        ("n/a", 128, 256, 512, 1024, 2048, 4096, 8192),
        default="n/a",
        cost=_FORMAT,
        when='fs not in ("nilfs2", "reiserfs")',
        unit="bytes",
        description="inode size; of Btrfs the sector size",
    ),
    ordinal(
        "block_group",
        ("n/a", 2, 4, 8, 16, 32, 64, 128, 256),
        default="n/a",
        cost=_FORMAT,
        when='fs not in ("btrfs", "reiserfs")',
        description="thousands of blocks per group; XFS: allocation groups; Nilfs2: thousands per segment",
    ),
    categorical(
        "journal_option",
        ("n/a", "order=strict", "order=relaxed", "data=journal", "data=ordered", "data=writeback"),
        default="n/a",
        cost=ChangeCost.UMOUNT_MOUNT,
        when='fs in ("ext3", "ext4", "nilfs2", "reiserfs")',
        weaker={"data=writeback": "consistency", "order=relaxed": "consistency"},
    ),
    categorical("atime_option", ("relatime", "noatime"), default="relatime", cost=ChangeCost.REMOUNT),
    categorical(
        "special_option",
        ("n/a", "compress", "nodatacow", "nodatasum", "notail"),
        default="n/a",
        cost=ChangeCost.UMOUNT_MOUNT,
        when='fs in ("btrfs", "reiserfs")',
        weaker={"nodatacow": ("consistency", "integrity"), "nodatasum": "integrity"},
        description="Table 9.1 has Reiserfs' notail as remount, the others as umount-mount",
    ),
)

# A formula orders numbers only, so those on "n/a" (a string) say first that it is fine.
_CONSTRAINTS = (
    'fs not in ("btrfs", "reiserfs") or block_size_k == 4',
    f'if({_EXT}, inode_size_bytes in ("n/a", 128, 256, 512, 1024, 2048, 4096), true)',
    f'if({_EXT} and inode_size_bytes != "n/a", inode_size_bytes <= 1024 * block_size_k, true)',
    'if(fs == "xfs", inode_size_bytes in ("n/a", 256, 512, 1024, 2048), true)',
    'if(fs == "xfs" and inode_size_bytes != "n/a", 2 * inode_size_bytes <= 1024 * block_size_k, true)',
    'if(fs == "btrfs", inode_size_bytes in ("n/a", 4096, 8192), true)',
    f'if({_EXT}, block_group in ("n/a", 2, 4, 8, 16, 32), true)',
    f'if({_EXT} and block_group != "n/a", block_group <= 8 * block_size_k, true)',
    'if(fs == "nilfs2", journal_option in ("n/a", "order=strict", "order=relaxed"), '
    'journal_option in ("n/a", "data=journal", "data=ordered", "data=writeback"))',
    'if(fs == "btrfs", special_option != "notail", special_option in ("n/a", "notail"))',
)

_SCHEDULER = categorical(
    "block_scheduler",
    ("noop", "cfq", "deadline"),
    default="cfq",
    cost=ChangeCost.DYN_KERNEL,
    description="I/O scheduler",
)


def storage_v1() -> Space:
    """Storage V1: 2,074 valid configurations."""
    return _space("storage-v1", _PARAMETERS)


def storage_v2() -> Space:
    """Storage V2: V1 and the I/O scheduler; 6,222 valid configurations."""
    return _space("storage-v2", (*_PARAMETERS, _SCHEDULER))


def _space(name: str, parameters: tuple[Parameter, ...]) -> Space:
    return Space(parameters, name=name).constrain(*_CONSTRAINTS)
