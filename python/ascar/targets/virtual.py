"""Virtual time, for systems that exist on paper: hours of tuning pass in milliseconds."""

from __future__ import annotations

__all__ = ["VirtualClock"]


class VirtualClock:
    """A clock that moves only when told to. Call it for the seconds that have passed, like `time.monotonic`.

    A target that owns one offers it as its attribute `clock`; a loop that uses it as its own clock spends
    its budget in the target's time.
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def __call__(self) -> float:
        """Seconds, monotonic."""
        return self._now_s

    def sleep(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: time does not run backwards.
        """
        if not seconds >= 0:
            raise ValueError(f"a clock cannot advance by {seconds!r} s; it only runs forwards")
        self._now_s += seconds
