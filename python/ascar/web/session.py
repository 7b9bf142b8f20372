"""A session of online tuning, as it goes: followed in a thread; only listened to, and read."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self

from ascar.capes.messages.bus import Bus
from ascar.capes.messages.folding import SUBJECTS, fold
from ascar.capes.messages.recent_series import RecentSeries, with_past
from ascar.capes.messages.state import SessionState
from ascar.capes.messages.ticks import later_version
from ascar.errors import AscarError
from ascar.messaging import Background
from ascar.results.encode import json_ready
from ascar.web.exploration import NothingYet

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ascar.messaging import Settings
    from ascar.web.exploration import Exploration

_AGAIN_S = 1.0
_SILENCE_S = 10.0
_SILENCE_TICKS = 5.0


class OnlineSubject:
    """A session as a subject; use it in a `with` statement.

    When the session ends, or its message server, it is looked for again and again: it may be started anew,
    with other passwords.

    Args:
        session: the session's name.
        settings: returns the present connection settings; may raise an AscarError where the session does not
            run.
        silence_s: the subject connects anew after so many seconds without a message.
    """

    def __init__(self, session: str, settings: Callable[[], Settings], silence_s: float = _SILENCE_S) -> None:
        self._session = session
        self._settings = settings
        self._silence_s = silence_s
        self._background = Background()
        self._lock = threading.Lock()
        self._state = SessionState(session)
        self._series = RecentSeries()
        self._problem: str | None = "connecting"

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._background.__enter__()
        self._background.start(self._follow())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._background.__exit__(kind, error, trace)

    def stamp(self) -> int:
        """There is no table that could grow."""
        return 0

    def exploration(self) -> Exploration:
        """Nothing: a session is watched.

        Raises:
            NothingYet: always.
        """
        raise NothingYet(f"session {self._session!r}: is watched, and no table")

    def live(self) -> dict[str, Any]:
        """How it stands, JSON-ready."""
        with self._lock:
            state, series, problem = self._state, self._series, self._problem
        return {"kind": "session", "problem": problem, **json_ready(state.result()), **json_ready(series)}

    async def _follow(self) -> None:
        """Listen, without end; whatever goes wrong is said on the page, and tried again."""
        while True:
            try:
                await self._listen()
            except AscarError as error:
                self._tell(problem=error.message)
            except Exception as error:  # noqa: BLE001  # the page goes on showing what is known, and says so
                self._tell(problem=f"{type(error).__name__}: {error}")
            await asyncio.sleep(_AGAIN_S)

    async def _listen(self) -> None:
        """Until nothing has come for too long.

        What was missed is asked for: at first, and whenever it is connected anew.

        Raises:
            AscarError: there is no connection.
        """
        settings = self._settings()
        state, series, asked = SessionState(self._session), RecentSeries(), None
        problem: str | None = None
        async with (
            await Bus.open(settings, self._session, name="explore") as bus,
            aclosing(bus.follow(SUBJECTS)) as messages,
        ):
            while True:
                silence_s = max(self._silence_s, _SILENCE_TICKS * state.interval_s)
                try:
                    what, document = await asyncio.wait_for(anext(messages), silence_s)
                except TimeoutError:
                    self._tell(problem=f"nothing was heard of it for {silence_s:g} s")
                    return
                problem = later_version(document) if what == "ticks" else problem
                state = fold(state, what, document)
                series = series.after(state, what)
                # What is tuned for, and where the knobs stood before, may be told after the first tick.
                known = state.objective, tuple(one.default for one in state.knobs)
                if what == "ticks" and state.objective is not None and known != asked:
                    asked = known
                    state, series = await with_past(bus, state, series)
                self._tell(state, series, problem)

    def _tell(
        self,
        state: SessionState | None = None,
        series: RecentSeries | None = None,
        problem: str | None = None,
    ) -> None:
        with self._lock:
            self._problem = problem
            if state is not None and series is not None:
                self._state, self._series = state, series
