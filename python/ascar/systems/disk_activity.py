"""What a machine's own applications get of a disk, out of the kernel's totals: operations, bytes, latencies.

Documentation/block/stat.rst of the kernel.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.systems.existing.activity import LATENCY, THROUGHPUT, ActivityTotals, class_metric

if TYPE_CHECKING:
    from ascar.systems.kernel_files import KernelFiles

BYTES = "throughput_bytes_per_s"
_SECTOR_BYTES = 512
_FIELDS_MIN = 11  # since Linux 2.6

METRICS = frozenset({THROUGHPUT, BYTES, LATENCY, class_metric("read"), class_metric("write")})
"""Everything that can be told of applications."""


class DiskActivity:
    """Reads the totals.

    Args:
        device: the kernel's name of the disk.
        files: reads the files, of this machine or of a node.
    """

    tells_s = 0.0
    """Each operation is counted when it ends."""

    def __init__(self, device: str, files: KernelFiles) -> None:
        self._path, self._files = Path("/sys/block", device, "stat"), files

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:  # noqa: ARG002 - a file of the kernel's
        """The totals now.

        Raises:
            StageFailed: the disk is gone.
        """
        try:
            fields = [int(text) for text in self._files.text(self._path).split()]
        except (EnvironmentLacks, ValueError) as error:
            raise StageFailed("load", f"{self._path}: cannot be read; is the disk gone?") from error
        if len(fields) < _FIELDS_MIN:
            raise StageFailed("load", f"{self._path}: has {len(fields)} fields; must have {_FIELDS_MIN}")
        now_s = time.monotonic()
        reads, _, read_sectors, read_ms, writes, _, written_sectors, write_ms = map(float, fields[:8])
        return ActivityTotals(
            now_s,
            now_s,
            reads + writes,
            {"read": (reads, read_ms), "write": (writes, write_ms)},
            amounts={BYTES: (read_sectors + written_sectors) * _SECTOR_BYTES},
        )
