"""Training on stored ticks alone, without actions."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from ascar.capes.environments.contest import ContestProgress
from ascar.capes.messages.bus import Bus
from ascar.capes.process.discovery import Discovery
from ascar.capes.process.learner_state import write_state
from ascar.capes.process.online_training import past_ticks_max, recall_others
from ascar.capes.process.tick_history import extent, past, rows_before
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.capes.messages.bus import Document
    from ascar.capes.process.learner_file import Plan
    from ascar.capes.process.learner_process import LearnerProcess
    from ascar.capes.process.tick_history import StoredRange
    from ascar.messaging import Settings

_LAYOUT_TICKS: Final = 600
_POINTS: Final = 50
_SLICE_S: Final = 0.5


@dataclass(slots=True)
class OfflineTraining:
    """What the policy has learnt from stored ticks.

    Attributes:
        ticks: the number of ticks that were used.
        steps: the number of training steps; 0 for the modern learner.
        errors: the ticks or steps done, with the prediction error at that point.
        learner: the learner at the end.
    """

    learner: LearnerProcess
    ticks: int = 0
    steps: int = 0
    errors: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])

    def note(self, at: int) -> None:
        """Record the prediction error."""
        error = self.learner.policy.prediction_error
        if error is not None:
            self.errors.append((at, error))


async def train_connected(
    plan: Plan,
    settings: Settings,
    others: Sequence[str],
    steps: int | None,
    listener: Callable[[ContestProgress], None] | None,
) -> OfflineTraining:
    """Connect to the session that the plan names and to others, and have the policy learn from their ticks.

    Args:
        plan: the learner's file.
        settings: the settings of the connection.
        others: the names of other sessions, whose ticks are used first.
        steps: the number of the classic learner's training steps; None means one for each tick.
        listener: is told how far it is.

    Raises:
        InputError: nothing is stored that could be learnt from, or the state does not fit.
        MessagingError: an interface does not answer.
        WorkError: what it knows cannot be written.
    """
    async with await Bus.open(settings, plan.file.session, name=f"learner {plan.file.session}") as bus:
        return await train_offline(plan, bus, [bus.beside(one) for one in others], steps, listener)


async def train_offline(
    plan: Plan,
    bus: Bus,
    others: Sequence[Bus],
    steps: int | None,
    listener: Callable[[ContestProgress], None] | None,
) -> OfflineTraining:
    """Have the policy learn from stored ticks, and write its state.

    Args:
        plan: the learner's file.
        bus: the connection to the session.
        others: the connections to other sessions, whose ticks are used first.
        steps: the number of the classic learner's training steps; None means one for each tick.
        listener: is told how far it is.

    Raises:
        InputError: nothing is stored that could be learnt from, or the state does not fit.
        MessagingError: an interface does not answer.
        WorkError: what it knows cannot be written.
    """
    status = cast("Document", await bus.control("status", why="to see"))
    found = await extent(bus)
    if found is None:
        raise InputError(
            f"session {plan.file.session!r}: has no stored ticks; let agents and interface run first"
        )
    workload = str(status.get("workload") or "")
    plan = plan.of_workload(workload)
    learner = await _learner(plan, bus, status, found)
    if plan.file.state_per_workload:
        await asyncio.to_thread(learner.announce, workload)
    training = OfflineTraining(learner)
    progress = _Progress(listener)
    training.ticks += await recall_others(learner, found.first, others)
    first = max(found.first, found.last - past_ticks_max(plan) + 1)
    if not learner.policy.replays:
        first = max(first, learner.tick + 1)
    length = max(1, found.last + 1 - first)
    async for one in past(bus, first, found.last):
        training.ticks += await asyncio.to_thread(learner.recall, one)
        training.note(training.ticks)
        if len(one.ticks):
            progress.tell("ticks", int(one.ticks[-1]) + 1 - first, length)
    await asyncio.to_thread(learner.policy.recalled)
    if not training.ticks and not learner.policy.replays:
        raise InputError(
            f"session {plan.file.session!r}: no stored tick is new, with a known setting of the knobs to turn"
        )
    if plan.file.algorithm == "classic":
        await _train(training, plan, steps, progress)
    await asyncio.to_thread(lambda: write_state(plan.state, *learner.written()))
    return training


async def _learner(plan: Plan, bus: Bus, status: Document, found: StoredRange) -> LearnerProcess:
    beginning = await asyncio.to_thread(Discovery.of, plan, status)
    rows = await rows_before(bus, found.last, _LAYOUT_TICKS)
    setting: dict[str, Any] = {}
    async for one in past(bus, found.last, found.last):
        setting = one.setting(found.last) or {}
    beginning.take(rows, setting)
    missing = beginning.missing(at_once=True)
    if missing:
        raise InputError(f"session {plan.file.session!r}: the stored ticks have no {missing}")
    return await asyncio.to_thread(beginning.learner)


async def _train(training: OfflineTraining, plan: Plan, steps: int | None, progress: _Progress) -> None:
    """Train on minibatches of the recalled ticks (Li, Algorithm 1)."""
    from ascar.capes.process.classic_policy import ClassicPolicy

    policy = training.learner.policy
    assert isinstance(policy, ClassicPolicy), "the file says classic"
    wanted = steps or max(1, training.ticks * plan.hyper.steps_per_tick)
    training.errors.clear()

    def some() -> bool:
        """Half a second's steps; whether there is anything to learn from."""
        end_s = time.monotonic() + _SLICE_S
        while training.steps < wanted and time.monotonic() < end_s:
            if not policy.classic.train():
                return False
            training.steps += 1
            if training.steps % max(1, wanted // _POINTS) == 0 or training.steps == wanted:
                training.note(training.steps)
        return True

    while training.steps < wanted:
        if not await asyncio.to_thread(some):
            raise InputError(
                "the stored ticks make no minibatch: too few, too much missing, or none with an action that "
                "moves one knob by its step; let the classic learner run first"
            )
        progress.tell("steps", training.steps, wanted)


class _Progress:
    def __init__(self, listener: Callable[[ContestProgress], None] | None) -> None:
        self._listener = listener
        self._unit, self._begun_s = "", 0.0

    def tell(self, unit: str, done: int, wanted: int) -> None:
        if unit != self._unit:
            self._unit, self._begun_s = unit, time.monotonic()
        if self._listener is not None:
            share, past_s = done / wanted, time.monotonic() - self._begun_s
            left_s = past_s / share - past_s if share else None
            self._listener(ContestProgress(share, done, wanted, left_s, unit))
