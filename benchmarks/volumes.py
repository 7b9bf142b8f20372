"""An ext4 volume on a loop device, of so many reads and writes a second as a cloud's has."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import called

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

READ_LIMIT, WRITE_LIMIT = (
    Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_iops_device") for way in ("read", "write")
)
_UNMOUNT_S = 60.0


@contextmanager
def ext4_volume(folder: Path, size_bytes: int, limits: Mapping[Path, int]) -> Generator[Path]:
    """The directory where it is mounted, until then.

    Args:
        folder: an empty folder for the image and the mount.
        size_bytes: the size of the image.
        limits: operations a second by the control group's file.
    """
    image, place = folder / "image", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(size_bytes)
    place.mkdir()
    called("mkfs.ext4", "-q", "-F", image)
    called("mount", "-o", "loop", image, place)
    with ExitStack() as ends:
        ends.callback(_unmount, place)
        number = place.stat().st_dev
        device = f"{os.major(number)}:{os.minor(number)}"
        for limit, iops in limits.items():
            limit.write_text(f"{device} {iops}")
            ends.callback(limit.write_text, f"{device} 0")
        yield place


def _unmount(place: Path) -> None:
    """Unmount it once the load of a study that was killed has ended too."""
    ends_s = time.monotonic() + _UNMOUNT_S
    while True:
        try:
            called("umount", place)
        except RuntimeError:
            if time.monotonic() > ends_s:
                raise
            time.sleep(0.1)
        else:
            return
