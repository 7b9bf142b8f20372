"""What a learner may turn: ranges, steps, and the discrete actions of CAPES."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterParameter:
    """One knob, the same for all streams.

    Attributes:
        initial: the initial value.
        low: the least allowed.
        high: the most allowed.
        step: the size of the change by one action.
    """

    initial: float
    low: float
    high: float
    step: float


WINDOW = ClusterParameter(8, 1, 256, 4)
"""max_rpcs_in_flight, as CAPES's prototype turns it."""
TAU = ClusterParameter(0, 0, 400_000, 1_500)
"""The least gap between requests in microseconds, as CAPES's prototype turns it, but unpaced at first."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the knobs stand.

    Attributes:
        window: requests in flight of a stream.
        tau_us: least gap between its requests.
    """

    window: float = WINDOW.initial
    tau_us: float = TAU.initial

    def after(self, action: int) -> Setting:
        """The setting after a discrete action; a step out of range changes nothing.

        Args:
            action: 0 nothing, 1 and 2 the window up and down, 3 and 4 the gap up and down.
        """
        assert 0 <= action <= 4, "one of five actions"
        if action == 0:
            return self
        knob, now = (WINDOW, self.window) if action <= 2 else (TAU, self.tau_us)
        wanted = now + (knob.step if action % 2 else -knob.step)
        if not knob.low <= wanted <= knob.high:
            return self
        return Setting(wanted, self.tau_us) if action <= 2 else Setting(self.window, wanted)
