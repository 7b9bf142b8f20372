"""`[guard]` on a server that people use: limits are watched while the values of a trial are in force.

The guard has a thread and a session of its own, open before the first change: clients that take all
connections do not lock it out. It puts the old values back by itself; the trial then ends as failed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import AscarError, StageFailed, StudyError
from ascar.systems.postgresql.activity import LATENCY, METRICS, THROUGHPUT, Activity, ActivityTotals

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.study import GuardSection
    from ascar.systems.postgresql.connection import PsqlSession

TICK_S = 0.1
"""The length of a tick: the usual window of 30 ticks is three seconds."""

_WINDOW_TICKS, _HOLD_TICKS = 30, 300
_ANSWER_S = 2.0


@dataclass(frozen=True, slots=True)
class LiveLimit:
    """A floor or a ceiling.

    Attributes:
        metric: the metric.
        is_floor: whether the mean must not be less; else it must not be more.
        value: the minimum, or the maximum.
        window_s: the mean is over so many seconds.
        hold_s: nothing is changed for so long after a violation.
    """

    metric: str
    is_floor: bool
    value: float
    window_s: float
    hold_s: float

    def violated(self, mean: float) -> bool:
        """Whether a mean is beyond the limit."""
        return mean < self.value if self.is_floor else mean > self.value


def limits_of(guard: GuardSection) -> tuple[LiveLimit, ...]:
    """The limits of a study that can be watched while a load runs; the others are held against its result."""
    found: list[LiveLimit] = []
    for tables, key in ((guard.floor, "minimum"), (guard.ceiling, "maximum")):
        for table in tables:
            if table["metric"] in METRICS:
                window_s = TICK_S * int(table.get("window_ticks", _WINDOW_TICKS))
                hold_s = TICK_S * int(table.get("hold_ticks", _HOLD_TICKS))
                found.append(
                    LiveLimit(table["metric"], key == "minimum", float(table[key]), window_s, hold_s)
                )
    return tuple(found)


class LiveGuard:
    """Watches the limits until it is stopped.

    Args:
        connect: opens a session of its own.
        limits: the limits.
        put_back: puts the old values back, by that session.
        changing: held by whoever changes values.

    Raises:
        StudyError: a limit is of the time of statements, which the server does not tell.
    """

    def __init__(
        self,
        connect: Callable[[], PsqlSession],
        limits: tuple[LiveLimit, ...],
        put_back: Callable[[PsqlSession], None],
        changing: threading.RLock,
    ) -> None:
        of_statements = [one.metric for one in limits if one.metric.startswith(LATENCY)]
        self._connect, self._limits, self._put_back = connect, limits, put_back
        self._session = connect()
        self._activity = Activity(self._session, with_statements=bool(of_statements))
        if of_statements and not self._activity.has_statements:
            self._session.close()
            raise StudyError(
                f"guard.ceiling: {of_statements[0]!r} needs the extension pg_stat_statements in the "
                f"database that the study connects to; create it, or limit {THROUGHPUT!r}"
            )
        self._seen: deque[ActivityTotals] = deque()
        self._changing = changing
        self._armed = False
        self._violation: str | None = None
        self._hold_until_s = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._end.set()
        self._thread.join()
        self._session.close()

    def arm(self, *, on: bool) -> None:
        """Tell whether values of a trial are in force from now on."""
        with self._changing:
            self._armed, self._violation = on, None

    @property
    def violation(self) -> str | None:
        """Why the old values were put back, or None."""
        with self._changing:
            return self._violation

    def wait(self) -> None:
        """Wait while nothing may be changed after a violation."""
        while (left_s := self._hold_until_s - time.monotonic()) > 0 and not self._end.wait(
            min(left_s, TICK_S)
        ):
            pass

    def _watch(self) -> None:
        next_s = time.monotonic()
        while not self._end.is_set():
            try:
                self._look(self._activity.totals(_ANSWER_S))
            except (StageFailed, ValueError) as failure:
                self._trip(str(failure), max(one.hold_s for one in self._limits))
                self._mend()
            next_s = max(next_s + TICK_S, time.monotonic())
            self._end.wait(next_s - time.monotonic())

    def _mend(self) -> None:
        """Connect anew, if the session has ended."""
        if self._session.is_open:
            return
        with suppress(AscarError):
            session = self._connect()
            self._session.close()
            self._session = session
            self._activity = Activity(session, with_statements=self._activity.has_statements)

    def _look(self, now: ActivityTotals) -> None:
        longest_s = max(one.window_s for one in self._limits)
        self._seen.append(now)
        while len(self._seen) > 1 and now.counted_s - self._seen[1].counted_s >= longest_s:
            self._seen.popleft()
        for limit in self._limits:
            begun = [one for one in self._seen if now.counted_s - one.counted_s >= limit.window_s]
            mean = now.since(begun[-1]).get(limit.metric) if begun else None
            if mean is not None and limit.violated(mean):
                side = "less" if limit.is_floor else "more"
                self._trip(
                    f"the mean of {limit.metric} was {mean:.6g}, {side} than {limit.value:g}", limit.hold_s
                )

    def _trip(self, why: str, hold_s: float) -> None:
        """Put the old values back, if others are in force."""
        with self._changing:
            if not self._armed:
                return
            self._armed = False
            begun_s = time.monotonic()
            try:
                self._put_back(self._session)
                done = f"the old values were put back in {time.monotonic() - begun_s:.1f} s"
            except AscarError as error:
                done = f"the old values could not be put back: {error.message}"
                self._armed = True  # tried again at the next tick
            self._violation = f"{why}; {done}"
            self._hold_until_s = time.monotonic() + hold_s
