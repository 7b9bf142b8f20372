"""Training online: ticks and outcomes come in, actions and reports go out, the state goes to disk."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ascar import typed
from ascar.capes.messages.bus import Bus
from ascar.capes.messages.ticks import Assembler
from ascar.capes.process.discovery import Discovery, starting_report
from ascar.capes.process.learner_state import write_state
from ascar.capes.process.tick_history import extent, past
from ascar.errors import InputError, MessagingError, WorkError
from ascar.messaging import end_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.capes.messages.bus import Document
    from ascar.capes.messages.ticks import Tick
    from ascar.capes.process.action_queue import ActionRequest
    from ascar.capes.process.learner_file import Plan
    from ascar.capes.process.learner_process import LearnerProcess
    from ascar.messaging import Settings

_HEARD: Final = ("ticks", "outcomes")
_RETRY_S: Final = 0.5
_ACTION_S: Final = 10.0
_MODERN_TICKS_MAX: Final = 100_000
_GAP_TICKS: Final = 1_000


@dataclass(slots=True)
class Feed:
    """Messages that have come and were not taken yet.

    Attributes:
        waiting: subjects' last parts, with objects.
        some: set while there is something, or it is to stop.
        stop: set when it is to end.
    """

    stop: asyncio.Event
    waiting: list[tuple[str, Document]] = field(default_factory=list[tuple[str, "Document"]])
    some: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, bus: Bus) -> None:
        """Collect messages until cancelled."""
        async for what, document in bus.follow(_HEARD):
            self.waiting.append((what, document))
            self.some.set()

    async def take(self) -> list[tuple[str, Document]]:
        """Everything that waits, as soon as there is something; nothing when it is to stop."""
        await self.some.wait()
        if self.stop.is_set():
            return []
        self.some.clear()
        found, self.waiting = self.waiting, []
        return found


async def run(
    plan: Plan, settings: Settings, stop: asyncio.Event, say: Callable[[str], None], others: Sequence[str]
) -> LearnerProcess | None:
    """Learn until told to stop, then save.

    Args:
        plan: the learner's file.
        settings: the settings of the connection.
        stop: set when it is to end.
        say: a function that prints a line about what the learner waits for.
        others: sessions whose stored ticks are learnt from before the first start.

    Returns:
        The learner at its end; None where it never began.

    Raises:
        InputError: file, state or connection are wrong, or do not fit the session.
        EnvironmentLacks: the classic learner's libraries are not installed.
        WorkError: what it knows cannot be written at the end.
    """
    bus = await connected(plan, settings, stop, say)
    if bus is None:
        return None
    async with bus:
        feed = Feed(stop)
        listening = asyncio.create_task(feed.listen(bus))
        stopping = asyncio.create_task(_on_stop(stop, feed))
        try:
            process = _Process(plan, bus, feed, say)
            process.others = [bus.beside(one) for one in others]
            return await process.live()
        finally:
            await end_tasks((listening, stopping))


async def connected(
    plan: Plan, settings: Settings, stop: asyncio.Event, say: Callable[[str], None]
) -> Bus | None:
    """A connection, as soon as there is one; None when it is to stop before.

    Raises:
        InputError: the settings are wrong.
    """
    said = ""
    while not stop.is_set():
        try:
            return await Bus.open(settings, plan.file.session, name=f"learner {plan.file.session}")
        except MessagingError as error:
            if error.message != said:
                said = error.message
                say(f"{said}; waiting for it")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _RETRY_S)
    return None


async def warm_up(learner: LearnerProcess, bus: Bus, status: Document, ticks_max: int) -> int:
    """Learn from what the interface has stored; how many ticks.

    Raises:
        MessagingError: the interface does not answer.
    """
    workload = str(status.get("workload") or "")
    own = bool(workload) and PurePath(str(status.get("database"))).stem.endswith(f"-{workload}")
    if own:  # all that is stored is of it
        await asyncio.to_thread(learner.announce, workload)
    found, count = await extent(bus), 0
    if found is not None:
        first = max(found.first, found.last - ticks_max + 1)
        if not learner.policy.replays:
            first = max(first, learner.tick + 1)
        async for one in past(bus, first, found.last):
            count += await asyncio.to_thread(learner.recall, one)
        await asyncio.to_thread(learner.policy.recalled)
    await asyncio.to_thread(learner.announce, workload)
    return count


async def recall_others(learner: LearnerProcess, before: int, others: Sequence[Bus]) -> int:
    """Learn from other sessions' ticks, numbered as if they had been before this one's; how many.

    Args:
        learner: the learner to train.
        before: the first tick of its own session.
        others: the sessions.

    Raises:
        InputError: one has no tick with these knobs.
        MessagingError: an interface does not answer.
    """
    count, end = 0, before - _GAP_TICKS
    for other in others:
        found, own = await extent(other), 0
        if found is not None:
            later_by = end - found.last
            first = max(found.first, found.last - past_ticks_max(learner.plan) + 1)
            async for one in past(other, first, found.last):
                own += await asyncio.to_thread(learner.recall, one, later_by)
            await asyncio.to_thread(learner.policy.recalled)
            end = first + later_by - _GAP_TICKS
        if not own:
            raise InputError(
                f"--history {other.session!r}: has no stored tick with a setting of the knobs "
                f"{', '.join(one.key for one in learner.setting_keys[:5])}; leave it out"
            )
        count += own
    return count


def past_ticks_max(plan: Plan) -> int:
    """How many stored ticks the algorithm uses at most."""
    return plan.hyper.memory_ticks if plan.file.algorithm == "classic" else _MODERN_TICKS_MAX


async def _on_stop(stop: asyncio.Event, feed: Feed) -> None:
    await stop.wait()
    feed.some.set()


class _Named(msgspec.Struct, frozen=True):
    id: str = ""


class _Underway(msgspec.Struct, frozen=True):
    """The actions in an answer to `status` that have not ended."""

    on_its_way: _Named | None = None
    waiting: tuple[_Named, ...] = ()

    def all(self) -> tuple[_Named, ...]:
        return self.waiting if self.on_its_way is None else (self.on_its_way, *self.waiting)


class _Process:
    def __init__(self, plan: Plan, bus: Bus, feed: Feed, say: Callable[[str], None]) -> None:
        self._file, self._bus, self._feed, self._say = plan, bus, feed, say
        self._plan, self._workload, self._since = plan, "", 0
        self._assembler = Assembler()
        self._saved_s = time.monotonic()
        self._said = ""
        self._refused: str | None = None
        self.others: list[Bus] = []

    async def live(self) -> LearnerProcess | None:
        learner: LearnerProcess | None = None
        while not self._feed.stop.is_set():
            begun = await self._begun()
            if begun is None:
                break
            learner = begun
            of = f" of {self._workload}" if self._plan is not self._file else ""
            self._say(
                f"learning{of}: {len(learner.setting_keys)} knobs, {len(learner.observer.layout.nodes)} nodes"
            )
            await self._learn(learner)
        return learner

    async def _learn(self, learner: LearnerProcess) -> None:
        """Until it is to stop, or to go on with another state."""
        self._saved_s = time.monotonic()
        try:
            while not self._feed.stop.is_set():
                batch = await self._feed.take()
                if self._is_of_another(batch):
                    return  # its ticks are stored: the next one reads them
                await self._take(learner, batch)
                if time.monotonic() - self._saved_s >= self._plan.file.checkpoint_s:
                    await self._save(learner)
        finally:
            write_state(self._plan.state, *learner.written())

    def _is_of_another(self, batch: list[tuple[str, Document]]) -> bool:
        """Whether a workload with a state of its own has begun, or ended, since this one began."""
        if not self._file.file.state_per_workload:
            return False
        ticks = [(one.get("tick"), one.get("workload") or "") for what, one in batch if what == "ticks"]
        return any(
            isinstance(tick, int) and tick > self._since and named != self._workload for tick, named in ticks
        )

    async def _begun(self) -> LearnerProcess | None:
        """The learner, as soon as nodes and knobs are there."""
        beginning: Discovery | None = None
        while not self._feed.stop.is_set():
            status = await self._status()
            if status is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._feed.stop.wait(), _RETRY_S)
                continue
            workload = str(status.get("workload") or "")
            if self._file.file.state_per_workload and workload != self._workload:
                beginning = None
            if beginning is None:
                self._workload, self._since = workload, int(status.get("tick") or 0)
                self._plan = self._file.of_workload(self._workload)
                beginning = await asyncio.to_thread(Discovery.of, self._plan, status)
            beginning.status = status
            missing = beginning.missing()
            if not missing:
                return await self._warmed(await asyncio.to_thread(beginning.learner), status)
            self._once(f"waiting for {missing}")
            for tick in self._ticks(await self._feed.take()):
                beginning.take({node: names for node, (names, _) in tick.rows.items()}, tick.setting)
                await self._publish(starting_report(self._plan, tick.number))
        return None

    async def _warmed(self, learner: LearnerProcess, status: Document) -> LearnerProcess | None:
        if self._file.file.state_per_workload:  # of the past only what is of it is read
            await asyncio.to_thread(learner.announce, self._workload)
        while self._plan.file.warm and not self._feed.stop.is_set():
            try:
                if self.others and learner.starts == 1:
                    found = await extent(self._bus)
                    before = int(status.get("tick") or 0) if found is None else found.first
                    count = await recall_others(learner, before, self.others)
                    self._say(f"{count} stored ticks of other sessions read")
                count = await warm_up(learner, self._bus, status, past_ticks_max(self._plan))
            except MessagingError as error:
                self._once(f"{error.message}; waiting for it")
                await asyncio.sleep(_RETRY_S)
                continue
            self._say(f"{count} stored ticks read")
            await self._save(learner)
            break
        return learner

    async def _take(self, learner: LearnerProcess, batch: list[tuple[str, Document]]) -> None:
        """All that has come: only after the newest tick something is decided."""
        last = max((at for at, one in enumerate(batch) if one[0] == "ticks"), default=-1)
        for at, (what, document) in enumerate(batch):
            if what == "outcomes":
                await asyncio.to_thread(learner.told, document)
                continue
            for tick in self._ticks([(what, document)]):
                if self._file.file.state_per_workload and tick.workload != self._workload:
                    continue  # from before this one began
                newest = at == last
                action = await asyncio.to_thread(learner.hear, tick, newest=newest)
                if action is not None:
                    await self._act(learner, action)
                if newest:
                    await self._look_after(learner)
                    await self._publish(await asyncio.to_thread(learner.report))

    async def _act(self, learner: LearnerProcess, action: ActionRequest) -> None:
        message = {
            "version": 1,
            "id": action.id,
            "tick": action.tick,
            "set": action.set,
            "why": self._plan.file.algorithm,
        }
        # Without an answer the outcome tells, or what is in force.
        with contextlib.suppress(MessagingError):
            verdict = await self._bus.request("actions", message, timeout_s=_ACTION_S)
            await asyncio.to_thread(learner.told, verdict)

    async def _look_after(self, learner: LearnerProcess) -> None:
        """Ask the interface for an action of which nothing was heard for long."""
        late = learner.action_queue.overdue(learner.tick)
        status = await self._status() if late is not None else None
        if status is None:
            return
        try:
            ids = [one.id for one in typed.convert(status, _Underway).all()]
        except msgspec.ValidationError:
            return
        if late not in ids:
            await asyncio.to_thread(learner.lost)

    def _ticks(self, batch: list[tuple[str, Document]]) -> list[Tick]:
        found = [
            tick for what, document in batch if what == "ticks" for tick in self._assembler.take(document)
        ]
        refused = self._assembler.refused
        if refused is not None and refused != self._refused:
            self._refused = refused
            self._say(refused)
        return found

    async def _status(self) -> Document | None:
        try:
            answer = await self._bus.control("status", why="to see")
        except MessagingError as error:
            self._once(f"{error.message}; waiting for the interface")
            return None
        return cast("Document", answer) if isinstance(answer, dict) else None

    async def _publish(self, report: dict[str, Any]) -> None:
        with contextlib.suppress(MessagingError):  # nobody hears it now
            await self._bus.publish("learner", report)

    async def _save(self, learner: LearnerProcess) -> None:
        self._saved_s = time.monotonic()
        try:
            await asyncio.to_thread(lambda: write_state(self._plan.state, *learner.written()))
        except WorkError as error:
            self._once(error.message)

    def _once(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._say(line)
