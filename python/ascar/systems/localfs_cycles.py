"""After how long a local file system does what it has deferred: write-back, commits of its journal."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.systems.dirty_pages import write_back_cycle_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Value

_COMMITS = ("ext_commit_interval_s", "btrfs_commit_interval_s")
_XFS_SYNC = Path("/proc/sys/fs/xfs/xfssyncd_centisecs")


def cycle_s(configuration: Mapping[str, Value], xfs_sync: Path = _XFS_SYNC) -> float:
    """The longest cycle in force under a configuration of storage-v5.

    Args:
        configuration: the configuration; what it leaves out is as the kernel has it.
        xfs_sync: the kernel's setting of how often xfs moves its log on.
    """
    found = [write_back_cycle_s(configuration)]
    found += [float(configuration[name]) for name in _COMMITS if configuration.get(name) is not None]
    if configuration.get("fs") == "xfs":
        with suppress(OSError, ValueError):
            found.append(int(xfs_sync.read_text()) / 100)
    return max(found)
