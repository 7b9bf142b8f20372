"""What goes wrong, and what varies by itself."""

from __future__ import annotations

from typing import Literal

import msgspec


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A failure with its beginning and length.

    Attributes:
        kind: "slow-server": its device takes `factor` times as long; "dead-server": it answers nothing, and
            what reaches it is lost and sent again after the time-out; "network-pause": no link carries
            anything.
        at_s: when, in virtual seconds since the start, warm-up included.
        for_s: how long.
        server: the server concerned, counted from 0; unused by "network-pause".
        factor: of "slow-server".
    """

    kind: Literal["slow-server", "dead-server", "network-pause"]
    at_s: float
    for_s: float
    server: int = 0
    factor: float = 4.0


class Noise(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Variation that no part of the cluster controls.

    Attributes:
        service_sd_percent: standard deviation of the time of each device operation, of its mean (log-normal).
        disk_requests_per_s: foreign requests that reach each server's device (Poisson; logs, monitoring).
        disk_request_kib: size of a foreign request.
        network_bursts_per_s: bursts of foreign traffic on each server's incoming link (Poisson; scans,
            queries).
        network_burst_kib: mean size of a burst (exponential).
    """

    service_sd_percent: float = 0.0
    disk_requests_per_s: float = 0.0
    disk_request_kib: int = 4
    network_bursts_per_s: float = 0.0
    network_burst_kib: int = 256
