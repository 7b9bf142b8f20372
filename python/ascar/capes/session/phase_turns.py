"""Phases with and without tuning in turns, on a session that runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascar.capes.session.proof import ComparedPhase, judge
from ascar.errors import MessagingError, WorkError
from ascar.messaging import RequestRefused
from ascar.pilot.turns import drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.capes.session.messenger import Messenger
    from ascar.objective import Objective
    from ascar.results.session import Proof

_SWITCH_S, _TRIES, _PAUSE_S, _ON_ITS_WAY_S = 15.0, 10, 0.5, 0.5
_VALUES_MIN = 3


@dataclass(frozen=True, slots=True)
class PhaseTurns:
    """How phases take turns.

    Attributes:
        objective: the objective of the comparison.
        phase_s: length of a phase.
        settle_s: the warm-up of a phase, which does not count.
        p_value: see `judge`.
        seed: the seed of the order in each pair.
    """

    objective: Objective
    phase_s: float
    settle_s: float
    p_value: float
    seed: int


@dataclass(slots=True)
class Alternation:
    """Runs phases until it is cancelled; whole pairs are kept, and judged after each.

    Attributes:
        messenger: the messenger of the session.
        turns: the options of the phases.
        tell: hears of the proof after each pair.
        phases: the phases that were run.
        wanted: the differences between a tuned phase's first setting and the initial setting.
        broken: pairs that did not count: too few ticks had a value, or a setting could not be put in force.
    """

    messenger: Messenger
    turns: PhaseTurns
    tell: Callable[[Proof], None]
    phases: list[ComparedPhase] = field(default_factory=list[ComparedPhase])
    broken: int = 0
    wanted: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def proof(self) -> Proof:
        """Of the pairs so far."""
        return judge(self.phases, self.turns.objective, self.turns.p_value)

    async def run(self) -> None:
        """Run, without end.

        Raises:
            WorkError: the session's mode is not automatic: nothing is tuned.
        """
        if self.messenger.state.mode not in (None, "automatic"):
            raise WorkError(
                f"mode = {self.messenger.state.mode!r}: nothing is tuned in it; set the mode to automatic"
            )
        order = drawn(self.turns.seed)
        self._remember()
        while True:
            sides = order(len(self.phases) // 2 + self.broken)
            pair = [await self._phase(is_tuned=side == "candidate") for side in sides]
            whole = [one for one in pair if one is not None]
            if len(whole) != len(pair):
                self.broken += 1
                continue
            self.phases += whole
            proof = self.proof
            self.tell(proof)
            self.messenger.proof = proof
            await self.messenger.here()

    async def back_to_tuning(self) -> None:
        """The learner goes on; for the end."""
        await self._to_tuned()

    async def _phase(self, *, is_tuned: bool) -> ComparedPhase | None:
        """One phase; None where it does not count."""
        await self.messenger.enter("tuned" if is_tuned else "baseline")
        switched = await (self._to_tuned() if is_tuned else self._to_baseline())
        await asyncio.sleep(self.turns.settle_s)
        first_tick = self.messenger.state.tick or 0
        await asyncio.sleep(self.turns.phase_s - self.turns.settle_s)
        state = self.messenger.state
        values = tuple(value for tick, value in state.performance if tick > first_tick)
        if is_tuned:
            self._remember()
        whole = switched and len(values) >= _VALUES_MIN
        return ComparedPhase(is_tuned, values) if whole else None

    def _remember(self) -> None:
        """What did best so far, else where the learner has the knobs."""
        knobs = self.messenger.state.knobs
        best = self.messenger.record.best()
        values = {one.key: one.value for one in knobs} if best is None else best
        self.wanted = {one.key: values.get(one.key, one.value) for one in knobs}
        self.wanted = {one.key: self.wanted[one.key] for one in knobs if self.wanted[one.key] != one.default}

    async def _to_baseline(self) -> bool:
        """The learner may not act, and every knob stands where it was."""
        try:
            await self._ask("mode", mode="observe")
            await asyncio.sleep(_ON_ITS_WAY_S)  # what is on its way arrives
            await self._ask("restore")
        except MessagingError:
            return False
        return await self._until(lambda: not any(one.is_changed for one in self.messenger.state.knobs))

    async def _to_tuned(self) -> bool:
        """The learner acts again, from the setting that did best.

        What it wants at the same moment may be on its way; then it is left to it.
        """
        try:
            await self._ask("mode", mode="automatic")
        except MessagingError:
            return False
        for _ in range(_TRIES):
            if not self.wanted:
                break
            try:
                verdict = await self._ask("set", set=self.wanted)
            except MessagingError:
                return False
            if verdict.get("verdict") == "accepted":
                break
            await asyncio.sleep(_PAUSE_S)
        return True

    async def _ask(self, op: str, **keys: Any) -> dict[str, Any]:
        for left in reversed(range(_TRIES)):
            try:
                return await self.messenger.bus.control(op, why="comparison with the baseline", **keys)
            except RequestRefused:
                raise
            except MessagingError:  # the interface may just be begun anew
                if not left:
                    raise
                await asyncio.sleep(_PAUSE_S)
        raise AssertionError("the last try returns or raises")

    async def _until(self, condition: Callable[[], bool]) -> bool:
        """Wait for ticks until something is true; whether it became so in time."""
        try:
            async with asyncio.timeout(_SWITCH_S):
                while True:
                    await self.messenger.next_tick(_SWITCH_S)
                    if condition():
                        return True
        except TimeoutError:
            return False
