"""Links and the switch between them."""

from __future__ import annotations

import msgspec


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A full-duplex link of a node.

    Attributes:
        bandwidth_mb_per_s: file data that it carries, each way, after headers (gigabit Ethernet: 117.5).
    """

    bandwidth_mb_per_s: float = 117.5


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The switched network: each node hangs on a link; the switch queues what goes to the same link.

    Attributes:
        link: of every node that has none of its own.
        latency_us: one way from node to node, without queues.
        port_buffer_kib: buffer of a switch port. When more senders than fit into it at `window_min_kib` each
            send to one port at once, segments are lost and a sender waits for `rto_ms` (incast).
        window_min_kib: the least that a sender has under way (TCP's initial window of ten segments).
        rto_ms: retransmission time-out.
    """

    link: Link = Link()
    latency_us: float = 60.0
    port_buffer_kib: int = 512
    window_min_kib: int = 14
    rto_ms: float = 200.0
