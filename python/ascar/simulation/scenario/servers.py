"""Servers: threads, request queue, layout of files; the metadata server; striping; locks."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.simulation.scenario.devices import Device, Mechanical
from ascar.simulation.scenario.network import Link  # noqa: TC001  # msgspec reads the annotations

Order = Literal["arrival", "elevator", "nearest"]


class Queue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request queue of a server's device (Linux's block layer and the drive's command queue).

    An order is "arrival": as they came; "elevator": by position, upwards, then from the lowest again;
    "nearest": the one that the device reaches soonest, among those that it holds (native command queueing).

    Attributes:
        slots: pieces that the queue holds (nr_requests); a worker whose piece finds no room waits.
        piece_kib: largest piece: a longer request is cut (max_sectors_kb), and its pieces are queued one by
            one.
        merge: pieces that touch on the device are served without positioning in between when chosen together.
        read_order: of reads.
        write_order: of writes.
        device_depth: pieces that the device itself holds and chooses from, for "nearest".
        writes_starved: reads that may pass a waiting write, in a row, before writes have their turn.
        batch: pieces of one direction served in a row while the other waits.
        write_expire_ms: a write that has waited for longer is served before the order goes on from it.
    """

    slots: int = 128
    piece_kib: int = 512
    merge: bool = True
    read_order: Order = "arrival"
    write_order: Order = "nearest"
    device_depth: int = 31
    writes_starved: int = 2
    batch: int = 1
    write_expire_ms: float = 500.0


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How files lie on a server's device: they grow by extents, each behind the last one or somewhere else.

    Attributes:
        start_percent: where the free space used begins, of the capacity from the outer edge.
        spread_percent: over how much of the capacity files are scattered.
        extent_kib: the longest extent, what is allocated in one piece (ext4's: 128 MiB).
        fragmentation_percent: share of extents that do not lie behind the one allocated before.
        used_percent: share of the space between extents that other files hold: the fuller, the wider the
            gaps.
    """

    start_percent: float = 0.0
    spread_percent: float = 10.0
    extent_kib: int = 131_072
    fragmentation_percent: float = 0.0
    used_percent: float = 80.0


class ServerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Storage servers that are alike. Each has one device.

    Attributes:
        count: how many.
        threads: workers: each takes one request from arrival to reply, waiting for network and device.
        request_cpu_us: processor time of a request.
        queue: before the device.
        device: `kind` is "mechanical", "flash" or "memory".
        layout: how files lie on the device.
        link: its link; None: the network's.
    """

    count: int = 1
    threads: int = 128
    request_cpu_us: float = 40.0
    queue: Queue = Queue()
    device: Device = Mechanical()
    layout: Layout = Layout()
    link: Link | None = None


class Metadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The metadata server: threads that share nothing but their queue.

    Attributes:
        threads: operations served at a time.
        create_us: create, with its objects.
        open_us: open or close.
        stat_us: look at attributes.
        delete_us: delete, with its objects.
    """

    threads: int = 16
    create_us: float = 600.0
    open_us: float = 150.0
    stat_us: float = 120.0
    delete_us: float = 500.0


class Striping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a file is divided among servers.

    Attributes:
        count: servers that a file lies on; more than there are means all.
        size_kib: bytes in a row on one server.
    """

    count: int = 4
    size_kib: int = 1024


class Locks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Locks on the objects of files that several clients share.

    Attributes:
        enabled: without locks shared files cost nothing extra.
        whole_file: one lock covers a whole file; otherwise one covers what lies of it on one server.
        handover_us: processor time of handing a lock over, besides messages and flushing.
    """

    enabled: bool = True
    whole_file: bool = False
    handover_us: float = 500.0
