"""The server of disks to guests: one that is killed at any time leaves it to the next."""

from __future__ import annotations

import mmap
import os
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from ascar.testing import DiskServer, VolatileDisk
from ascar.testing.disk_server import FrontEndMessage
from ascar.testing.virtio_block import DiskRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY_BYTES = 1 << 16
DESCRIPTORS, AVAILABLE, USED, HEADER, STATUS = 0, 0x1000, 0x2000, 0x3000, 0x4000
NEXT, WRITABLE = 1, 2


class FrontEnd:
    """A guest's side of the conversation, whose first request is to flush the disk."""

    def __init__(self, server: DiskServer) -> None:
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.settimeout(30)
        self.peer.connect(str(server.path))
        memory = os.memfd_create("guest")
        os.truncate(memory, MEMORY_BYTES)
        self.memory = mmap.mmap(memory, MEMORY_BYTES)
        self.memory[HEADER : HEADER + 16] = struct.pack("<IIQ", DiskRequest.FLUSH, 0, 0)
        chain = struct.pack("<QIHHQIHH", HEADER, 16, NEXT, 1, STATUS, 1, WRITABLE, 0)
        self.memory[DESCRIPTORS : DESCRIPTORS + len(chain)] = chain
        self.memory[AVAILABLE : AVAILABLE + 6] = struct.pack("<HHH", 0, 1, 0)
        self.memory[STATUS] = 0xFF
        heard, self.kick = os.pipe()
        self.interrupts, interrupt = os.pipe()
        self.tell(FrontEndMessage.SET_MEMORY, struct.pack("<IIQQQQ", 1, 0, 0, MEMORY_BYTES, 0, 0), memory)
        self.tell(FrontEndMessage.SET_QUEUE_SIZE, struct.pack("<II", 0, 2))
        addresses = struct.pack("<IIQQQQ", 0, 0, DESCRIPTORS, USED, AVAILABLE, 0)
        self.tell(FrontEndMessage.SET_QUEUE_ADDRESSES, addresses)
        self.tell(FrontEndMessage.SET_CALL, bytes(8), interrupt)
        self.tell(FrontEndMessage.SET_KICK, bytes(8), heard)
        for descriptor in (memory, heard, interrupt):
            os.close(descriptor)

    def tell(self, request: FrontEndMessage, payload: bytes, *descriptors: int) -> None:
        socket.send_fds(self.peer, [struct.pack("<III", request, 1, len(payload)) + payload], descriptors)

    def features(self) -> int:
        """What the server answers, which is after all that it was told before."""
        self.tell(FrontEndMessage.GET_FEATURES, b"")
        return int(struct.unpack("<IIIQ", self.peer.recv(20, socket.MSG_WAITALL))[3])

    def request(self) -> None:
        os.write(self.kick, bytes(8))

    def close(self) -> None:
        self.peer.close()
        os.close(self.kick)
        if self.interrupts >= 0:
            os.close(self.interrupts)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DiskServer]:
    image = tmp_path / "disk.img"
    image.touch()
    os.truncate(image, 1 << 20)
    with VolatileDisk(image) as disk, DiskServer(disk) as server:
        yield server


def test_a_request_is_done_and_the_guest_interrupted(server: DiskServer) -> None:
    guest = FrontEnd(server)
    assert guest.features() & 1 << 9
    guest.request()
    assert struct.unpack("<Q", os.read(guest.interrupts, 8)) == (1,)
    assert guest.memory[STATUS] == 0
    assert guest.memory[USED + 2] == 1
    guest.close()


def test_a_guest_that_is_killed_before_it_is_interrupted_leaves_the_disk_to_the_next(
    server: DiskServer,
) -> None:
    """Its interrupt goes first when a process ends, and the server's thread ended with it."""
    guest = FrontEnd(server)
    assert guest.features()
    os.close(guest.interrupts)
    guest.interrupts = -1
    guest.request()
    # The server lets go of who is gone.
    assert guest.peer.recv(1) == b""
    guest.close()
    following = FrontEnd(server)
    following.request()
    assert os.read(following.interrupts, 8)
    following.close()
