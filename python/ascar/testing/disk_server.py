"""A server of block devices to user-mode Linux, whose `arch/um/drivers/virtio_uml.c` is the front end.

Source: QEMU, "Vhost-user Protocol"; the front end's numbers of messages and features.
"""

from __future__ import annotations

import mmap
import os
import select
import shutil
import socket
import struct
import tempfile
import threading
from contextlib import closing
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ascar.testing.virtio_block import FEATURES, BlockDevice, GuestMemory

if TYPE_CHECKING:
    from types import TracebackType

    from ascar.testing.volatile_disk import VolatileDisk

_PROTOCOL_FEATURES = 1 << 30
# The device has a configuration space. The front end takes interrupts only of a device that may send
# requests as well, though this one sends none.
_CONFIGURATION, _REQUESTS = 1 << 9, 1 << 5
_HEADER = struct.Struct("<III")
_REGION = struct.Struct("<QQQQ")
_REPLY = 0x5
_DESCRIPTORS_MAX = 8


class FrontEndMessage(IntEnum):
    """What the front end asks for; others need no answer."""

    GET_FEATURES = 1
    SET_MEMORY = 5
    SET_QUEUE_SIZE = 8
    SET_QUEUE_ADDRESSES = 9
    SET_QUEUE_BASE = 10
    SET_KICK = 12
    SET_CALL = 13
    GET_PROTOCOL_FEATURES = 15
    SET_REQUESTS = 21
    GET_CONFIGURATION = 24


class DiskServer:
    """Serves a disk to one guest after the other, in a thread.

    Args:
        disk: what is served.

    Attributes:
        path: the socket.
    """

    def __init__(self, disk: VolatileDisk) -> None:
        self.disk = disk
        # In a folder of its own, for the path of a socket has at most 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="ascar-disk-"))
        self.path = self._folder / "socket"
        self._ends, self._end = socket.socketpair()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen(1)
        self._thread = threading.Thread(target=self._run, name=f"disk {disk.path.name}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End serving; the disk stays open."""
        self._end.close()
        self._thread.join()
        shutil.rmtree(self._folder)

    def _run(self) -> None:
        with self._ends, self._listener:
            while self._ends not in (ready := _ready(self._ends, self._listener)):
                if self._listener in ready:
                    peer, _ = self._listener.accept()
                    with peer, closing(_Boot(peer, self.disk)) as boot:
                        boot.serve(self._ends)


class _Boot:
    """The conversation with one boot of the guest."""

    def __init__(self, peer: socket.socket, disk: VolatileDisk) -> None:
        self._peer = peer
        self._device = BlockDevice(disk)
        # Those that came with messages. The guest takes its disk for gone when that of requests is closed.
        self._kept: dict[int, int] = {}

    def close(self) -> None:
        """Let all go that is the guest's."""
        self._device.close()
        for descriptor in self._kept.values():
            os.close(descriptor)

    def serve(self, ends: socket.socket) -> None:
        """Serve it until it goes, or the server ends."""
        while True:
            kicks = [self._kept[FrontEndMessage.SET_KICK]] if FrontEndMessage.SET_KICK in self._kept else []
            ready = _ready(ends, self._peer, *kicks)
            if ends in ready:
                return
            if self._peer in ready and not self._answer():
                return
            if kicks and kicks[0] in ready:
                os.read(kicks[0], 8)
                try:
                    self._device.serve()
                except BrokenPipeError:  # the guest was killed before it could be interrupted
                    return

    def _answer(self) -> bool:
        """Take one message; return whether the guest is still there."""
        try:
            head, descriptors, _, _ = socket.recv_fds(
                self._peer, _HEADER.size, _DESCRIPTORS_MAX, socket.MSG_WAITALL
            )
            if len(head) < _HEADER.size:
                return False
            request, _, size = _HEADER.unpack(head)
            payload = self._peer.recv(size, socket.MSG_WAITALL) if size else b""
            answer = self._take(request, payload, descriptors)
            if answer is not None:
                self._peer.sendall(_HEADER.pack(request, _REPLY, len(answer)) + answer)
        except ConnectionError:  # the guest was killed
            return False
        return True

    def _take(self, request: int, payload: bytes, descriptors: list[int]) -> bytes | None:
        """Do what a message says; return what it wants to know."""
        queue = self._device.queue
        match request:
            case FrontEndMessage.GET_FEATURES:
                return struct.pack("<Q", FEATURES | _PROTOCOL_FEATURES)
            case FrontEndMessage.GET_PROTOCOL_FEATURES:
                return struct.pack("<Q", _CONFIGURATION | _REQUESTS)
            case FrontEndMessage.GET_CONFIGURATION:
                offset, size, _ = _HEADER.unpack_from(payload)
                whole = self._device.configuration().ljust(offset + size, b"\0")
                return payload[: _HEADER.size] + whole[offset : offset + size]
            case FrontEndMessage.SET_MEMORY:
                for index, descriptor in enumerate(descriptors):
                    address, size, _, offset = _REGION.unpack_from(payload, 8 + _REGION.size * index)
                    mapping = mmap.mmap(descriptor, offset + size)
                    self._device.memory.append(GuestMemory(address, size, mapping, offset))
            case FrontEndMessage.SET_QUEUE_SIZE:
                _, queue.size = struct.unpack_from("<II", payload)
            case FrontEndMessage.SET_QUEUE_BASE:
                _, queue.next = struct.unpack_from("<II", payload)
            case FrontEndMessage.SET_QUEUE_ADDRESSES:
                queue.descriptors, queue.used, queue.available = struct.unpack_from("<QQQ", payload, 8)
            case _:
                pass
        self._keep(request, descriptors)
        if request == FrontEndMessage.SET_CALL:
            self._device.call = self._kept[request]
        return None

    def _keep(self, request: int, descriptors: list[int]) -> None:
        """Keep the descriptor of a message of one; close all others."""
        useless = descriptors
        if (
            request in (FrontEndMessage.SET_KICK, FrontEndMessage.SET_CALL, FrontEndMessage.SET_REQUESTS)
            and descriptors
        ):
            useless = [self._kept[request]] if request in self._kept else []
            self._kept[request] = descriptors[0]
        for descriptor in useless:
            os.close(descriptor)


def _ready(*files: socket.socket | int) -> list[socket.socket | int]:
    return select.select(files, (), ())[0]
