"""What a user wants of a session, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ascar.capes.messages.state import SessionState


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What the user adds to the study.

    Attributes:
        file: the study's path, as it was given.
        duration_s: how long; None: until somebody ends it.
        prove: whether the gain is shown by phases in turns.
        keep: whether the setting that did best stays.
    """

    file: str
    duration_s: float | None = None
    prove: bool = False
    keep: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a session.

    Attributes:
        session: its name.
        study: the study's name.
        seconds: how long it ran, from the first tick on.
        stopped: why it ended: "time", "asked", "problem".
        setting: that did best (mean less two standard errors); the last, where none was there for ten ticks.
        defaults: before the session.
        proof: see `Proof.to_dict`; None: none was asked for, or no pair of phases was over.
        broken_pairs: pairs of phases that did not count.
        restarts: how often each part died and was started again.
        state: the last one.
        problem: why it ended early; None: it did not.
        left_changed: knobs that do not stand where they stood, with their values; empty is good.
        kept: knobs that stay set on purpose, with their values; None: none were to.
    """

    session: str
    study: str
    seconds: float
    stopped: str
    setting: dict[str, Any]
    defaults: dict[str, Any]
    proof: dict[str, Any] | None
    broken_pairs: int
    restarts: dict[str, int]
    state: SessionState
    problem: str | None = None
    left_changed: dict[str, Any] = field(default_factory=dict[str, Any])
    kept: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "session": self.session,
            "study": self.study,
            "seconds": self.seconds,
            "stopped": self.stopped,
            "setting": self.setting,
            "defaults": self.defaults,
            "kept": self.kept,
            "left_changed": self.left_changed,
            "proof": self.proof,
            "broken_pairs": self.broken_pairs,
            "restarts": self.restarts,
            "verdicts": self.state.verdicts,
            "refusals": self.state.refusals,
            "last_tick": self.state.tick,
            "problem": self.problem,
        }
