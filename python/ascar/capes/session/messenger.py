"""What `ascar capes up` tells on P.session, and asks the interface, tick by tick."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ascar.capes.messages.folding import SUBJECTS, fold
from ascar.errors import MessagingError
from ascar.results.encode import json_ready

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.capes.messages.bus import Bus
    from ascar.capes.messages.state import SessionState
    from ascar.capes.session.best_setting import Record
    from ascar.results.session import Proof

_HERE_S = 2.0


@dataclass(slots=True)
class Messenger:
    """Keeps the session's state, and says who is there.

    Attributes:
        bus: connected as user "session".
        objective: the objective of the session.
        interval_s: the length of a tick.
        until_s: the end of the session, in seconds since 1970; None without a limit.
        parts: standing of the processes, by name.
        record: the performance by setting.
        state: the state, as folded from messages.
        phase: the phase of the session.
        proof: the last proof; None before the first.
        defaults: the knobs before the session; empty until the interface knows them.
    """

    bus: Bus
    objective: str
    interval_s: float
    until_s: float | None
    parts: Callable[[], dict[str, Any]]
    record: Record
    state: SessionState
    phase: str = "learning"
    proof: Proof | None = None
    defaults: dict[str, Any] = field(default_factory=dict[str, Any])
    _knobs: list[Any] = field(default_factory=list[Any])
    _ticked: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self) -> None:
        """Fold what is told, without end."""
        async with aclosing(self.bus.follow(SUBJECTS)) as told:
            async for what, document in told:
                self.state = fold(self.state, what, document)
                if what == "ticks" and self.state.tick is not None:
                    self._ticked.set()
                    setting = {one.key: one.value for one in self.state.knobs}
                    self.record.take(self.state.tick, setting, self.state.now)

    async def speak(self) -> None:
        """Say who is there every two seconds, without end."""
        while True:
            await self.ask_status()
            await self.here()
            await asyncio.sleep(_HERE_S)

    async def here(self) -> None:
        """Say it now."""
        await self.tell(
            "here",
            objective=self.objective,
            interval_s=self.interval_s,
            phase=self.phase,
            until_s=self.until_s,
            knobs=self._knobs,
            defaults=self.defaults,
            parts=self.parts(),
            proof=None if self.proof is None else json_ready(self.proof),
        )

    async def enter(self, phase: str) -> None:
        """Say that another phase of the session has begun."""
        self.phase = phase
        await self.here()

    async def tell(self, event: str, **keys: object) -> None:
        """Say something; silent where the server is away."""
        try:
            await self.bus.publish("session", {"version": 1, "event": event, **keys})
        except MessagingError:
            return

    async def ask_status(self) -> dict[str, Any]:
        """The interface's status; empty where it does not answer."""
        try:
            status = await self.bus.control("status", why="to show")
        except MessagingError:
            return {}
        if not isinstance(status, dict):
            return {}
        found = cast("dict[str, Any]", status)
        self.defaults = found.get("defaults") or self.defaults
        self._knobs = found.get("knobs") or self._knobs
        return found

    async def next_tick(self, timeout_s: float) -> bool:
        """Wait for another tick; whether one came in time."""
        self._ticked.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._ticked.wait()
        except TimeoutError:
            return False
        return True
