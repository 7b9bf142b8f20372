"""What a rule set does, as numbers, by itself and to a given workload."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.rules import Action, RuleSet

TRAITS = ("m", "b", "tau_ms", "window_log2", "rules")
"""Means over the rules, by how often each was used: of the action, of the window that it leads to; and how
many rules there are."""

EFFECTS = ("throttle_log2", "squeeze_log2", "allowed")
"""How far the pace allowed lies above the present rate of requests; how far the window lies above what is in
flight; and the lesser of what the two allow, over the present rate."""

_WINDOW_MAX = 256.0
_WINDOW_START = 8.0
_UNPACED_PER_S = 1e4


def traits_of(rules: RuleSet) -> NDArray[np.float64]:
    """The traits of a rule set: float64, as in `TRAITS`."""
    used = [0.0 if one.observed is None else float(one.observed.used_times) for one in rules.rules]
    weights = np.array(used) + 1e-9
    weights /= weights.sum()
    columns = np.array(
        [
            (
                1.0 if one.action.m100 < 0 else one.action.m100 / 100,
                one.action.b100 / 100,
                one.action.tau_us / 1e3,
                math.log2(_settled(one.action)),
            )
            for one in rules.rules
        ]
    )
    return np.append(weights @ columns, float(len(rules.rules)))


def effects_of(traits: NDArray[np.float64], features: Mapping[str, float]) -> NDArray[np.float64]:
    """What rules with these traits would do to a workload: float64, as in `EFFECTS`.

    Where requests were not seen, only operations, those of a stream are taken to be one of each thread.
    """
    streams, per_s, in_flight = _requests(features)
    window, tau_s = 2 ** float(traits[3]), float(traits[2]) / 1e3
    rate = max(per_s / streams, 1e-3)
    flying = max(in_flight / streams, 1e-2)
    pace = 1 / tau_s if tau_s > 0 else _UNPACED_PER_S
    allowed = min(pace, window / (flying / rate))
    return np.array([math.log2(pace / rate), math.log2(window / flying), min(allowed / rate, 64.0)])


def _settled(action: Action) -> float:
    """The window that an action leads to when it is taken again and again."""
    m = 1.0 if action.m100 < 0 else action.m100 / 100
    b = action.b100 / 100
    if m < 1:
        return min(max(b / (1 - m), 1.0), _WINDOW_MAX)
    if m > 1 or b > 0:
        return _WINDOW_MAX
    return _WINDOW_START if b == 0 else 1.0


def _requests(features: Mapping[str, float]) -> tuple[float, float, float]:
    """Streams, requests a second of all together, and requests in flight."""
    prefix = "request_" if not math.isnan(features.get("request_threads", math.nan)) else ""
    per_s, in_flight = 0.0, 0.0
    for kind in ("read", "write"):
        gap_s = features.get(f"{prefix}{kind}_gap_s_mean", math.nan)
        per_s += 1 / gap_s if gap_s > 0 else 0.0
        flying = features.get(f"{prefix}{kind}_in_flight_mean", math.nan)
        in_flight += 0.0 if math.isnan(flying) else flying
    streams = features.get(f"{prefix}threads", math.nan)
    return (streams if streams >= 1 else 1.0), per_s, in_flight
