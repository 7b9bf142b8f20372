"""What a session that runs gains, measured from outside it: by a command of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ascar.capes.messages.bus import Bus
from ascar.capes.messages.state import SessionState
from ascar.capes.session.best_setting import Record
from ascar.capes.session.messenger import Messenger
from ascar.capes.session.phase_turns import Alternation, PhaseTurns
from ascar.errors import InputError, MessagingError, WorkError
from ascar.objective import Objective

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.messaging import Settings
    from ascar.results.session import Proof

_MEASURE_MIN_S: Final = 3.0
_FIRST_TICK_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class ProofTimes:
    """The lengths of a proof.

    Attributes:
        budget_s: the length of the whole proof.
        phase_s: the length of a phase with or without tuning.
        settle_s: the warm-up at the start of each phase.
    """

    budget_s: float
    phase_s: float
    settle_s: float

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: a phase has no time to be measured in, or the budget is too short for two phases.
        """
        if self.phase_s < self.settle_s + _MEASURE_MIN_S or self.budget_s < 2 * self.phase_s:
            raise InputError(
                f"--phase = {self.phase_s:g} s: must be at least {_MEASURE_MIN_S:g} s longer than --settle = "
                f"{self.settle_s:g} s, and at most half of --budget = {self.budget_s:g} s"
            )


async def prove_live(
    settings: Settings,
    session: str,
    times: ProofTimes,
    test: tuple[float, int],
    told: Callable[[Proof], None],
) -> Proof:
    """Run phases with and without tuning in turns; at the end the session goes on tuning.

    Args:
        settings: the connection to the message server, with the rights of the session's owner.
        session: the name of the session.
        times: the lengths of the phases.
        test: the significance level, and the seed of the order in each pair.
        told: hears of the proof after each pair.

    Raises:
        MessagingError: the session does not answer.
        WorkError: no pair ended in time, or nothing is tuned in the session's mode.
    """
    async with await Bus.open(settings, session, name="ascar capes prove") as bus:
        messenger = Messenger(bus, "", 1.0, None, dict, Record(1), SessionState(session))
        listening = asyncio.create_task(messenger.listen())
        try:
            objective = await _objective(messenger)
            messenger.record.sign = objective.sign
            turns = PhaseTurns(objective, times.phase_s, times.settle_s, *test)
            alternation = Alternation(messenger, turns, told)
            try:
                async with asyncio.timeout(times.budget_s):
                    await alternation.run()
            except TimeoutError:
                pass
            finally:
                await alternation.back_to_tuning()
        finally:
            listening.cancel()
    if not alternation.proof.pairs:
        raise WorkError("no pair of phases ended in time; give more time with --budget")
    return alternation.proof


async def _objective(messenger: Messenger) -> Objective:
    """The session's objective, once its first tick has come."""
    try:
        async with asyncio.timeout(_FIRST_TICK_S):
            while messenger.state.tick is None or messenger.state.objective is None:
                await messenger.next_tick(1.0)
            return Objective.parse(messenger.state.objective)
    except TimeoutError:
        raise MessagingError(
            f"session {messenger.state.session!r}: does not answer; is its interface running?"
        ) from None
