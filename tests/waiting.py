"""Waiting in tests for what another process does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["until"]


def until(look: Callable[[], Any], limit_s: float = 100.0, what: str = "") -> Any:
    """What is seen once it is true.

    Args:
        look: what is looked at, again and again.
        limit_s: how long it may take.
        what: what is waited for, as a failure says it.
    """
    end_s = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < end_s, f"not within {limit_s:g} s {what}".rstrip()
        time.sleep(0.02)
    return found
