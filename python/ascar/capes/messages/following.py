"""Following a session: its stored ticks and its messages, folded into states."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from ascar.capes.messages.bus import Bus
from ascar.capes.messages.folding import SUBJECTS, fold
from ascar.capes.messages.recent_series import RecentSeries, with_past
from ascar.capes.messages.state import SessionState
from ascar.capes.messages.ticks import later_version
from ascar.errors import MessagingError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ascar.messaging import Settings

_FIRST_S: Final = 20.0
_INITIAL_WAIT_S: Final = 4.0


async def watch(
    settings: Settings, session: str, *, name: str = "viewer"
) -> AsyncGenerator[SessionState, None]:
    """The session's state after each message, without end; what is not known yet comes within seconds.

    It listens, and asks the interface once for the ticks before: the user "viewer" of docs/capes-protocol.md
    is enough. Where the interface does not answer, the state begins with what is heard. While the server is
    away nothing comes; afterwards it goes on. Close it (`contextlib.aclosing`) to end the connection.

    Args:
        settings: the settings of the connection.
        session: the name of the session.
        name: the name of this client in the server's log.

    Raises:
        InputError: the settings or the name are wrong.
        MessagingError: nobody is there, we are not let in, or the interface speaks a later version.
    """
    state, asked = SessionState(session), None
    bus = await Bus.open(settings, session, name=name)
    async with bus, aclosing(bus.follow(SUBJECTS)) as told:
        async for what, document in told:
            if what == "ticks" and (reason := later_version(document)) is not None:
                raise MessagingError(f"session {session!r}: {reason}")
            state = fold(state, what, document)
            # What is tuned for, and where the knobs stood before, may be told after the first tick.
            known = state.objective, tuple(one.default for one in state.knobs)
            if what == "ticks" and state.objective is not None and known != asked:
                asked = known
                state, _ = await with_past(bus, state, RecentSeries())
            yield state


async def watch_ticks(settings: Settings, session: str) -> AsyncGenerator[SessionState, None]:
    """A state for each tick, the first of them once the initial setting of the knobs is known.

    Raises:
        MessagingError: nothing is heard of the session.
    """
    tick: int | None = None
    waits, start_s = True, None
    async with aclosing(watch(settings, session)) as states:
        while True:
            try:
                async with asyncio.timeout(_FIRST_S):
                    state = await anext(states)
            except TimeoutError:
                raise MessagingError(
                    f"session {session!r}: does not answer; is its interface running?"
                ) from None
            if state.tick == tick:
                continue
            tick = state.tick
            start_s = start_s or time.monotonic()
            # The session's owner tells the initial setting every other second; a session may have no owner.
            waits = waits and not state.parts and time.monotonic() - start_s < _INITIAL_WAIT_S
            if not waits:
                yield state
