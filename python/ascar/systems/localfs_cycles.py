"""After how long a local file system does what it has deferred: write-back, commits of its journal."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.systems.dirty_pages import write_back_cycle_s
from ascar.systems.kernel_files import KernelFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Value

_COMMITS = ("ext_commit_interval_s", "btrfs_commit_interval_s")
_XFS_SYNC = Path("/proc/sys/fs/xfs/xfssyncd_centisecs")


def cycle_s(
    configuration: Mapping[str, Value],
    xfs_sync: Path = _XFS_SYNC,
    files: KernelFiles = KernelFiles(),  # noqa: B008 - it is frozen
) -> float:
    """The longest cycle in force under a configuration of storage-v5.

    Args:
        configuration: the configuration; what it leaves out is as the kernel has it.
        xfs_sync: the kernel's setting of how often xfs moves its log on.
        files: reads the kernel's settings.
    """
    found = [write_back_cycle_s(configuration, files.in_force)]
    found += [float(configuration[name]) for name in _COMMITS if configuration.get(name) is not None]
    if configuration.get("fs") == "xfs":
        with suppress(ValueError):  # it is not told
            found.append(int(files.in_force(xfs_sync)) / 100)
    return max(found)
