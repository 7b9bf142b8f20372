"""Convergence in a game: the thesis' criterion, and one that a sweep does not meet by passing the ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.capes.environments.game import GameKind

_HELD_TICKS: Final = 20
_SHARE: Final = 0.9
_STRETCH_MIN_TICKS: Final = 600


def converged_tick(kind: GameKind, near: Sequence[bool]) -> int | None:
    """The tick at which a run had converged, from 1; None where it had not.

    Args:
        kind: thesis: the tick that ends the first stretch of more than 20 ticks near the ideal (Li 5.2.2).
            hard: the first tick from which to the end at least 90% of the ticks are near it. The end must be
            at least 600 ticks away, or else whoever is there by chance in the last tick has won.
        near: for each tick, whether the throughput without noise was within 10% of the ideal.
    """
    return _held(near) if kind == "thesis" else _stayed(np.asarray(near, bool))


def _held(near: Sequence[bool]) -> int | None:
    run = 0
    for tick, one in enumerate(near, 1):
        run = run + 1 if one else 0
        if run > _HELD_TICKS:
            return tick
    return None


def _stayed(near: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    ticks = len(near)
    if ticks < _STRETCH_MIN_TICKS:
        return None
    left = np.arange(ticks, 0, -1)
    share = np.cumsum(near[::-1])[::-1] / left
    found = np.flatnonzero(share[: ticks - _STRETCH_MIN_TICKS + 1] >= _SHARE)
    return int(found[0]) + 1 if len(found) else None
