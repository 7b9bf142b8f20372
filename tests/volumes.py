"""File systems on loop devices, as somebody has set them up before ascar comes."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.systems.kernel_parameters import Devices

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_LIMIT = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")


@contextmanager
def ext4_volume(folder: Path, *, read_ahead_kb: int, reads_per_s: int | None = None) -> Iterator[Path]:
    """An ext4 file system, mounted, whose disk reads so far ahead; it has to be as it was made at the end.

    Args:
        folder: an empty folder for the image and the mount.
        read_ahead_kb: the read-ahead of its queue.
        reads_per_s: the most reads of the disk, as a cloud volume has them; None: no limit.
    """
    image, place = folder / "image", folder / "mounted"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(300 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, place], check=True)
    with ExitStack() as ends:
        ends.callback(_unmount, place)
        if reads_per_s is not None:
            number = place.stat().st_dev
            device = f"{os.major(number)}:{os.minor(number)}"
            READ_LIMIT.write_text(f"{device} {reads_per_s}")
            ends.callback(READ_LIMIT.write_text, f"{device} 0")
        queue = read_ahead_of(place)
        before = queue.read_text()
        queue.write_text(str(read_ahead_kb))
        ends.callback(queue.write_text, before)
        yield place
        left_kb = int(queue.read_text())
        assert left_kb == read_ahead_kb, f"a read-ahead of {left_kb} KiB is left"


def _unmount(place: Path) -> None:
    """Unmount it once the load of a study that was killed has ended too."""
    end_s = time.monotonic() + 60
    while subprocess.run(["umount", place], check=False, capture_output=True).returncode != 0:
        assert time.monotonic() < end_s, f"{place} is busy"
        time.sleep(0.1)


def read_ahead_of(place: Path) -> Path:
    """The file of the read-ahead of the disk below a place."""
    return Path("/sys/block", str(Devices.below(place).disk), "queue/read_ahead_kb")
