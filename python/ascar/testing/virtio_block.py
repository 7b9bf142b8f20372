"""A virtio block device on a guest's memory: virtio 1.2, 2.7 (split virtqueues) and 5.2 (block device)."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from ascar.testing.volatile_disk import SECTOR_BYTES

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

    from ascar.testing.volatile_disk import VolatileDisk

FEATURES = 1 << 9 | 1 << 32
"""The device has a write cache (VIRTIO_BLK_F_FLUSH), and is of version 1."""
_DESCRIPTOR = struct.Struct("<QIHH")
_NEXT, _WRITABLE = 1, 2
_DONE, _FAILED, _UNSUPPORTED = b"\0", b"\1", b"\2"


class DiskRequest(IntEnum):
    """What the guest asks the disk for."""

    READ = 0
    WRITE = 1
    FLUSH = 4
    IDENTIFY = 8


@dataclass(frozen=True, slots=True)
class GuestMemory:
    """A part of the guest's memory.

    Attributes:
        address: where it begins in the guest.
        size: its length in bytes.
        mapping: a mapping of it, and of what is before it in its file.
        offset: where it begins in the mapping.
    """

    address: int
    size: int
    mapping: mmap.mmap
    offset: int


@dataclass(slots=True)
class VirtQueue:
    """The one virtqueue.

    Attributes:
        size: the number of its descriptors; 0 before it is set up.
        descriptors: address of its descriptors.
        used: address of the ring of served requests.
        available: address of the ring of requests.
        next: index of the next request, modulo 2^16.
    """

    size: int = 0
    descriptors: int = 0
    used: int = 0
    available: int = 0
    next: int = 0


@dataclass(slots=True)
class BlockDevice:
    """The device in one boot of a guest.

    Attributes:
        disk: what it reads and writes.
        memory: the guest's memory.
        queue: the queue of requests.
        call: descriptor of the guest's interrupt; -1 before it is set up.
    """

    disk: VolatileDisk
    memory: list[GuestMemory] = field(default_factory=list[GuestMemory])
    queue: VirtQueue = field(default_factory=VirtQueue)
    call: int = -1

    def close(self) -> None:
        """Let the guest's memory go."""
        for part in self.memory:
            part.mapping.close()

    def configuration(self) -> bytes:
        """The configuration space: its capacity in sectors."""
        return struct.pack("<Q", self.disk.size_bytes // SECTOR_BYTES)

    def serve(self) -> None:
        """Serve the requests that the guest has made available, and interrupt it."""
        queue, served = self.queue, False
        while queue.size and (head := self._available()) is not None:
            length = self._request(head)
            index = self._index(queue.used + 2)
            self._store(queue.used + 4 + 8 * (index % queue.size), struct.pack("<II", head, length))
            self._store(queue.used + 2, struct.pack("<H", (index + 1) & 0xFFFF))
            served = True
        if served and self.call >= 0:
            os.write(self.call, struct.pack("<Q", 1))

    def _available(self) -> int | None:
        queue = self.queue
        if self._index(queue.available + 2) == queue.next:
            return None
        head = self._index(queue.available + 4 + 2 * (queue.next % queue.size))
        queue.next = (queue.next + 1) & 0xFFFF
        return head

    def _request(self, head: int) -> int:
        """Serve one request; return the number of bytes that it wrote to the guest."""
        sent, room = b"", list[tuple[int, int]]()
        for address, length, flags in self._chain(head):
            if flags & _WRITABLE:
                room.append((address, length))
            else:
                sent += self._load(address, length)
        kind, _, sector = struct.unpack_from("<IIQ", sent)
        wanted = sum(length for _, length in room) - 1
        try:
            answer, status = self._done(kind, sector * SECTOR_BYTES, sent[16:], wanted)
        except ValueError:
            answer, status = b"", _FAILED
        rest = answer.ljust(wanted, b"\0") + status
        for address, length in room:
            self._store(address, rest[:length])
            rest = rest[length:]
        return wanted + 1

    def _done(self, kind: int, offset: int, content: bytes, wanted: int) -> tuple[bytes, bytes]:
        match kind:
            case DiskRequest.READ:
                return self.disk.read(offset, wanted), _DONE
            case DiskRequest.WRITE:
                self.disk.write(offset, content)
            case DiskRequest.FLUSH:
                self.disk.flush()
            case DiskRequest.IDENTIFY:
                return b"volatile", _DONE
            case _:
                return b"", _UNSUPPORTED
        return b"", _DONE

    def _chain(self, head: int) -> Iterator[tuple[int, int, int]]:
        """The buffers of a request: address, length, flags."""
        following = head
        for _ in range(self.queue.size):
            place = self.queue.descriptors + _DESCRIPTOR.size * following
            address, length, flags, following = _DESCRIPTOR.unpack(self._load(place, _DESCRIPTOR.size))
            yield address, length, flags
            if not flags & _NEXT:
                return

    def _place(self, address: int, length: int) -> tuple[mmap.mmap, int]:
        for part in self.memory:
            if part.address <= address and address + length <= part.address + part.size:
                return part.mapping, part.offset + address - part.address
        raise ValueError(f"{length} bytes at {address:#x}: are not in the guest's memory")

    def _index(self, address: int) -> int:
        return int.from_bytes(self._load(address, 2), "little")

    def _load(self, address: int, length: int) -> bytes:
        mapping, begin = self._place(address, length)
        return mapping[begin : begin + length]

    def _store(self, address: int, content: bytes) -> None:
        mapping, begin = self._place(address, len(content))
        mapping[begin : begin + len(content)] = content
