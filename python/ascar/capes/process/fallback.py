"""The learner follows the states in which the interface falls back: `crates/interface/src/fallback.rs`.

In `tuning` the learner acts. In every other state the interface refuses all actions: the learner gives up
its target and only observes. Back in `tuning` it goes on from where the knobs are; the setting that was in
force when a floor was violated is avoided from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.capes.axes import Setting


class FallbackState(StrEnum):
    """What the interface does with actions; the first word of its reason for refusing them."""

    TUNING = "tuning"
    STORAGE = "storage"
    HOLDING = "holding"
    KILLED = "killed"

    @classmethod
    def of(cls, reason: str | None) -> FallbackState:
        """The state that a tick's `holding` names; a reason with an unknown first word is like `storage`."""
        if reason is None:
            return cls.TUNING
        word = reason.partition(":")[0].partition(" ")[0]
        return next((one for one in cls if one is not cls.TUNING and one == word), cls.STORAGE)


@dataclass(frozen=True, slots=True)
class Suspension:
    """The learner observes, since the interface left `tuning`.

    Attributes:
        state: the state of the interface.
        blamed: the setting in force when it left `tuning`.
    """

    state: FallbackState
    blamed: Setting

    @classmethod
    def after(
        cls, known: Suspension | None, state: FallbackState, before: Setting | None, now: Setting
    ) -> Suspension | None:
        """The transition at a tick; None in `tuning`.

        Args:
            known: the suspension until then; None where the interface was in `tuning`.
            state: the state of the interface in this tick.
            before: the setting in the tick before; None where there is none.
            now: the setting in this tick, perhaps restored already.
        """
        match known, state:
            case _, FallbackState.TUNING:
                return None
            case None, _:
                return cls(state, now if before is None else before)
            case _:
                return replace(known, state=state)

    def avoids(self, now: Setting, initial: Setting) -> bool:
        """Whether the blamed setting is avoided after this: it violated a floor, and was left for that.

        Args:
            now: the setting in force when the interface is in `tuning` again.
            initial: the setting before the session; nothing could be put back that is better known.
        """
        return self.state is FallbackState.HOLDING and self.blamed not in (now, initial)
