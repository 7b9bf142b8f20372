"""The state of a session as one frozen value, which `ascar.capes.messages.folding` makes from messages."""

from __future__ import annotations

from ascar.pilot.turns import Gain
from ascar.results.capes import CapesStatusResult
from ascar.results.encode import extended
from ascar.results.session import SessionStatus

SUBJECTS = ("ticks", "outcomes", "events", "learner", "session")
"""What has to be listened to."""


class SessionState(SessionStatus, frozen=True):
    """The state of a session, with what follows from it."""

    @property
    def lower_is_better(self) -> bool:
        """Whether less of the objective is better."""
        return self.objective is not None and self.objective.startswith("minimize")

    @property
    def gain(self) -> Gain | None:
        """Of the last 60 ticks' mean over the baseline's: an estimate, and no proof."""
        recent = [value for _, value in self.performance[-60:]]
        if self.baseline is None or not recent:
            return None
        direction = "minimize" if self.lower_is_better else "maximize"
        return Gain.untested(self.baseline.mean, sum(recent) / len(recent), direction)

    def result(self) -> CapesStatusResult:
        """The document of this state."""
        gain = None if self.gain is None else self.gain.gain_relative
        return extended(CapesStatusResult, self, lower_is_better=self.lower_is_better, gain=gain)
