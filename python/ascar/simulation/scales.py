"""Indicators of streams on scales from 0 to 1, as learning needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ascar.simulation.cluster import INDICATORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SCALES: Final[Mapping[str, tuple[float, float]]] = {
    "window": (1, 256),
    "tau_us": (1_000, 400_000),
    "ack_ewma_us": (100, 10_000_000),
    "send_ewma_us": (100, 10_000_000),
    "pt_ratio": (1, 1_000),
    "read_mb_per_s": (1, 10_000),
    "write_mb_per_s": (1, 10_000),
    "dirty_bytes": (1_048_576, 1_073_741_824),
    "dirty_limit_bytes": (1_048_576, 1_073_741_824),
    "in_flight": (1, 256),
    "waiting": (1, 256),
    "ping_us": (100, 10_000_000),
}
"""By indicator: what is small, about where a scale turns from linear to logarithmic, and what becomes 1."""


def scaled(observed: NDArray[np.float64]) -> NDArray[np.float32]:
    """Observations on logarithmic scales: log(1 + x/small) / log(1 + large/small), cut off at 1.

    Args:
        observed: (..., indicators), columns as in `INDICATORS`.

    Returns:
        The same shape; what is not finite (no reply yet) is 1.
    """
    small = np.array([SCALES[name][0] for name in INDICATORS])
    large = np.array([SCALES[name][1] for name in INDICATORS])
    known = np.where(np.isfinite(observed), observed, large)
    within = np.log1p(np.maximum(known, 0.0) / small) / np.log1p(large / small)
    return np.clip(within, 0.0, 1.0).astype(np.float32)
