"""Control of streams: which controller, with what bounds."""

from __future__ import annotations

from typing import Literal

import msgspec

Controller = Literal["fixed", "rules", "aimd", "vegas", "gradient2", "envoy-gradient", "copa", "io-path-tune"]
"""Who decides: nobody; a rule set; or one of the rivals."""


class RuleExtensions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What controllers that follow rules do beyond the original; they need `faithful = false`.

    Attributes:
        piece_kib: window and gap count pieces of this size; 0: requests, whatever their size.
        minimum_period_s: the shortest process time is of so long at least, twice as long at most; 0: of all
            time.
        probe_interval_s: between two probes for the shortest process time; 0: no probes.
        probe_window: while probing, in requests.
        probe_replies: that end a probe.
        fixed_cost_kib: process times are compared as of one size, this one's transfer taking as long as what
            a request costs whatever its size; 0: as they are.
        slow_weight_shift: a gap counts for 1 / 2^this in the slow average.
        gate_growth: the window grows only if it was full since its last change.
        timeout_factor: a time-out multiplies the window by this; 1: it does nothing.
    """

    piece_kib: int = 0
    minimum_period_s: float = 30.0
    probe_interval_s: float = 30.0
    probe_window: float = 1.0
    probe_replies: int = 4
    fixed_cost_kib: int = 1024
    slow_weight_shift: int = 8
    gate_growth: bool = True
    timeout_factor: float = 0.5


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How streams (one client, one server) are controlled.

    Attributes:
        controller: what decides a stream's window and gap; with "fixed" they stay as they are set, here or
            from outside.
        window: at the start, in requests (Lustre's max_rpcs_in_flight).
        window_min: the smallest window, in requests.
        window_max: the largest window, in requests.
        tau_us: least gap between requests at the start.
        rules: text of a rule set, for the controller "rules".
        faithful: follow rules as the original did: fixed point, all-time minimum.
        extensions: what controllers do beyond the original where `faithful` is false.
        least_mb_per_s: what rules must leave to a stream: no gap longer, and no window smaller, than this
            throughput allows; with `faithful = false`.
        most_mb_per_s: what a stream under rules may have at most; with `faithful = false`.
        timeout_s: a request without a reply for so long counts a time-out and is sent again.
    """

    controller: Controller = "fixed"
    window: float = 8.0
    window_min: float = 1.0
    window_max: float = 256.0
    tau_us: float = 0.0
    rules: str | None = None
    faithful: bool = True
    extensions: RuleExtensions = RuleExtensions()
    least_mb_per_s: float = 0.0
    most_mb_per_s: float | None = None
    timeout_s: float = 20.0
