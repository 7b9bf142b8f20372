"""Control of streams: which controller, with what bounds."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Control", "Controller"]

Controller = Literal["fixed", "rules", "aimd", "vegas", "gradient2", "envoy-gradient", "copa", "io-path-tune"]
"""Who decides: nobody; a rule set; or one of the rivals."""


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
        timeout_s: a request without a reply for so long counts a time-out and is sent again.
    """

    controller: Controller = "fixed"
    window: float = 8.0
    window_min: float = 1.0
    window_max: float = 256.0
    tau_us: float = 0.0
    rules: str | None = None
    faithful: bool = True
    timeout_s: float = 20.0
