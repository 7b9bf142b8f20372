"""Storage V3: ext4 on an SSD (Cao, Table 4.4): 3,888 valid configurations.

The printed values multiply to 4,374; the total needs the rule that an inode is no larger than a block,
which gives the 972, 1,458 and 1,458 configurations with blocks of 1, 2 and 4 KiB of section 9.5, too.
Categories are Table 9.1's own (Figure 9.3 restricts this very space); Storage V5 has verified ones.
"""

from __future__ import annotations

from ascar.space.cost import ChangeCost
from ascar.space.parameter import categorical, ordinal
from ascar.space.space import Space

_FORMAT = ChangeCost.REFORMAT_RESTORE
_KERNEL = ChangeCost.DYN_KERNEL


def storage_v3() -> Space:
    """Storage V3."""
    return Space(
        (
            categorical("fs", ("ext4",), default="ext4", cost=_FORMAT, description="file system"),
            ordinal("block_size_bytes", (1024, 2048, 4096), default=4096, cost=_FORMAT, unit="bytes"),
            ordinal("inode_size_bytes", (128, 512, 2048), default=128, cost=_FORMAT, unit="bytes"),
            ordinal("flex_group_size", (4, 16, 64), default=16, cost=_FORMAT, unit="groups"),
            categorical(
                "journal_option",
                ("journal", "ordered", "writeback"),
                default="ordered",
                cost=ChangeCost.UMOUNT_MOUNT,
                weaker={"writeback": "consistency"},
            ),
            ordinal(
                "inode_readahead_blocks", (16, 32, 64), default=32, cost=ChangeCost.REMOUNT, unit="blocks"
            ),
            categorical("block_scheduler", ("noop", "cfq", "deadline"), default="cfq", cost=_KERNEL),
            ordinal("vm_dirty_background_ratio", (5, 10), default=10, cost=_KERNEL, unit="percent"),
            ordinal("vm_dirty_ratio", (10, 20, 40), default=20, cost=_KERNEL, unit="percent"),
        ),
        name="storage-v3",
    ).constrain("inode_size_bytes <= block_size_bytes")
