"""File systems on loop devices, as somebody has set them up before ascar comes."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.volumes import READ_LIMIT, ext4_volume

from ascar.systems.kernel_parameters import Devices

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def volume_that_reads_ahead(
    folder: Path, *, read_ahead_kb: int, reads_per_s: int | None = None
) -> Iterator[Path]:
    """An ext4 file system, mounted, whose disk reads so far ahead; it has to be as it was made at the end.

    Args:
        folder: an empty folder for the image and the mount.
        read_ahead_kb: the read-ahead of its queue.
        reads_per_s: the most reads of the disk, as a cloud volume has them; None: no limit.
    """
    limits = {} if reads_per_s is None else {READ_LIMIT: reads_per_s}
    with ext4_volume(folder, 300 << 20, limits) as place, ExitStack() as ends:
        queue = read_ahead_of(place)
        before = queue.read_text()
        queue.write_text(str(read_ahead_kb))
        ends.callback(queue.write_text, before)
        yield place
        left_kb = int(queue.read_text())
        assert left_kb == read_ahead_kb, f"a read-ahead of {left_kb} KiB is left"


def read_ahead_of(place: Path) -> Path:
    """The file of the read-ahead of the disk below a place."""
    return Path("/sys/block", str(Devices.below(place).disk), "queue/read_ahead_kb")
