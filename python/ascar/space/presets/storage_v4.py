"""Storage V4: XFS on an SSD (Cao, Table 4.5): 5,184 valid configurations.

The printed total needs two rules: an inode is at most half a block, and a sector no larger than a block.
Categories are Table 9.1's own: it has XFS' log buffers and allocation size under remount, which present
kernels accept and ignore (Storage V5 has verified ones).
"""

from __future__ import annotations

from ascar.space.cost import ChangeCost
from ascar.space.parameter import categorical, ordinal
from ascar.space.space import Space

_FORMAT = ChangeCost.REFORMAT_RESTORE
_REMOUNT = ChangeCost.REMOUNT
_KERNEL = ChangeCost.DYN_KERNEL


def storage_v4() -> Space:
    """Storage V4."""
    return Space(
        (
            categorical("fs", ("xfs",), default="xfs", cost=_FORMAT, description="file system"),
            ordinal("block_size_bytes", (1024, 2048, 4096), default=4096, cost=_FORMAT, unit="bytes"),
            ordinal("inode_size_bytes", (512, 2048), default=512, cost=_FORMAT, unit="bytes"),
            ordinal("allocation_groups", (2, 32, 128, 512), default=32, cost=_FORMAT),
            ordinal("sector_size_bytes", (512, 2048, 4096), default=512, cost=_FORMAT, unit="bytes"),
            ordinal("log_buffers", (2, 8), default=8, cost=_REMOUNT),
            ordinal("log_buffer_size_kib", (32, 256), default=32, cost=_REMOUNT, unit="KiB"),
            ordinal("allocation_size_kib", (64, 256), default=64, cost=_REMOUNT, unit="KiB"),
            categorical("block_scheduler", ("noop", "cfq", "deadline"), default="cfq", cost=_KERNEL),
            ordinal("vm_dirty_background_ratio", (5, 10), default=10, cost=_KERNEL, unit="percent"),
            ordinal("vm_dirty_ratio", (10, 20, 40), default=20, cost=_KERNEL, unit="percent"),
        ),
        name="storage-v4",
    ).constrain("2 * inode_size_bytes <= block_size_bytes", "sector_size_bytes <= block_size_bytes")
