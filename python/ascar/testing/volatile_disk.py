"""A disk image behind a write cache that a power cut loses."""

from __future__ import annotations

import mmap
import os
from threading import Lock
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import random
    from pathlib import Path
    from types import TracebackType

SECTOR_BYTES = 512
"""The unit of places on a disk."""
BLOCK_BYTES = 4096
"""What a disk writes as a whole. Smaller ones would tear commit blocks of ext4's journal, which Linux 6.1
takes for damage: it does not mount the file system."""


class VolatileDisk:
    """A disk image whose writes are durable only after a flush.

    Each block keeps every content that it had since the last flush. A cut chooses one of them for each
    block: writes are lost, reordered, and torn between blocks, as by a drive with a write cache.

    Args:
        path: the image, a regular file of whole blocks; it holds the durable content after a cut.
        flushes: whether flushes are obeyed; a drive that ignores them loses what was written at any time.
    """

    def __init__(self, path: Path, *, flushes: bool = True) -> None:
        size = path.stat().st_size
        if size == 0 or size % BLOCK_BYTES:
            raise ValueError(
                f"image {str(path)!r}: has {size} bytes; allowed are whole blocks of {BLOCK_BYTES}"
            )
        self.path = path
        self.flushes = flushes
        self.size_bytes = size
        self._lock = Lock()
        # By the number of a block: what is durable, then each later content but the present one.
        self._earlier: dict[int, list[bytes]] = {}
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._image = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the image go, with all that was written: a proper shutdown."""
        self._image.close()

    @property
    def unflushed(self) -> int:
        """The number of blocks that a cut may lose."""
        with self._lock:
            return len(self._earlier)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes at an offset, as written last.

        Raises:
            ValueError: they are not on the disk.
        """
        self._check(offset, length)
        with self._lock:
            return self._image[offset : offset + length]

    def write(self, offset: int, content: bytes) -> None:
        """Write whole sectors into the cache.

        Raises:
            ValueError: they are not on the disk.
        """
        self._check(offset, len(content))
        with self._lock:
            for number in range(offset // BLOCK_BYTES, -(-(offset + len(content)) // BLOCK_BYTES)):
                here = number * BLOCK_BYTES
                was = self._image[here : here + BLOCK_BYTES]
                self._earlier.setdefault(number, []).append(was)
            self._image[offset : offset + len(content)] = content

    def flush(self) -> None:
        """Make durable what was written so far."""
        if self.flushes:
            with self._lock:
                self._earlier.clear()

    def cut(self, rng: random.Random) -> int:
        """Cut the power: each unflushed block becomes one of its contents since the last flush.

        Returns:
            The number of blocks that lost a write.
        """
        lost = 0
        with self._lock:
            for number, earlier in sorted(self._earlier.items()):
                choice = rng.randrange(len(earlier) + 1)
                if choice < len(earlier):
                    begin = number * BLOCK_BYTES
                    self._image[begin : begin + BLOCK_BYTES] = earlier[choice]
                    lost += 1
            self._earlier.clear()
        return lost

    def _check(self, offset: int, length: int) -> None:
        whole = offset % SECTOR_BYTES == 0 and length % SECTOR_BYTES == 0
        if not whole or offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise ValueError(
                f"{length} bytes at {offset}: are not whole sectors of a disk of {self.size_bytes}"
            )
