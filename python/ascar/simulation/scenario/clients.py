"""Clients and their caches."""

from __future__ import annotations

import msgspec

from ascar.simulation.scenario.control import Control  # noqa: TC001  # msgspec reads the annotations
from ascar.simulation.scenario.network import Link  # noqa: TC001


class Cache(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A client's memory as a cache of file data.

    Attributes:
        dirty_limit_mib: dirty data that a stream may hold before a writer waits (Lustre's max_dirty_mb).
        page_cache_mib: file data kept for reading again; 0 keeps none.
        read_ahead_mib: data read ahead of a sequential reader, at most, a file (Lustre's
            max_read_ahead_per_file_mb).
        copy_mb_per_s: speed of copying between an application and the cache.
    """

    dirty_limit_mib: float = 32.0
    page_cache_mib: float = 12_288.0
    read_ahead_mib: float = 40.0
    copy_mb_per_s: float = 2_500.0


class ClientGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Clients that are alike.

    Attributes:
        count: how many; each is a node with a link of its own.
        workload: name of the workload that each of them runs.
        control: of their streams; None: the scenario's.
        rogue: these clients ignore control: the window stays at `rogue_window` and nothing paces them.
        rogue_window: requests that a rogue keeps in flight on each stream at most.
        cache: write-back cache, read-ahead and page cache, for what is not direct I/O.
        link: its link; None: the network's.
        request_kib: largest request to a server: longer operations are split (Lustre's max_pages_per_rpc).
        start_s: virtual seconds after which this group begins to work.
        stop_s: virtual seconds after which it issues no more work; None: never.
    """

    count: int
    workload: str
    control: Control | None = None
    rogue: bool = False
    rogue_window: int = 256
    cache: Cache = Cache()
    link: Link | None = None
    request_kib: int = 1024
    start_s: float = 0.0
    stop_s: float | None = None
