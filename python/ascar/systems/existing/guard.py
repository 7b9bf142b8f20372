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
from typing import TYPE_CHECKING, Generic, TypeVar

from ascar.errors import AscarError, StageFailed, StudyError
from ascar.systems.existing.activity import LiveSession

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ascar.study import GuardSection
    from ascar.systems.existing.activity import ActivityTotals, LiveActivity

TICK_S = 0.1
"""The length of a tick: the usual window of 30 ticks is three seconds."""

USUAL_S = 10.0
"""Shares are those of what clients get over so many seconds of the old values, at least."""

_WINDOW_TICKS, _HOLD_TICKS = 30, 300
_ANSWER_S = 2.0
_USUAL_MAX_S = 60.0
_USUAL_AFTER_S = 2.0  # what waited under a trial's values is done under the old ones
_USUAL_WAIT_S = 3 * USUAL_S
_CLIENTS_BACK_S = 3.0
_TELLINGS = 2
"""Of clients who are counted from time to time, windows have each so often at least."""

S = TypeVar("S", bound=LiveSession)


@dataclass(frozen=True, slots=True)
class LiveLimit:
    """A floor or a ceiling.

    Attributes:
        metric: the metric.
        is_floor: whether the mean must not be less; else it must not be more.
        value: the minimum, or the maximum; of a share, the share.
        window_s: the mean is over so many seconds.
        hold_s: nothing is changed for so long after a violation.
        is_share: whether the value is a share of what clients get under the old values.
    """

    metric: str
    is_floor: bool
    value: float
    window_s: float
    hold_s: float
    is_share: bool = False

    def bound(self, usual: Mapping[str, float]) -> float | None:
        """The least or greatest mean, where clients usually get this; None: nobody knows of a share."""
        if not self.is_share:
            return self.value
        return None if self.metric not in usual else self.value * usual[self.metric]

    def violated(self, mean: float, bound: float) -> bool:
        """Whether a mean is beyond a bound."""
        return mean < bound if self.is_floor else mean > bound


def limits_of(guard: GuardSection, watched: Collection[str]) -> tuple[LiveLimit, ...]:
    """The limits of a study that can be watched while a load runs; the others are held against its result.

    Args:
        guard: the table of the study.
        watched: the metrics that the server tells while it works.

    Raises:
        StudyError: a share is of another metric.
    """
    for limit in guard.levels:
        if limit.is_share and limit.metric not in watched:
            raise StudyError(
                f"{limit.key}: must be a number; shares are kept of {', '.join(sorted(watched))} alone"
            )
    return tuple(
        LiveLimit(
            limit.metric,
            limit.is_floor,
            limit.value,
            TICK_S * (limit.window_ticks or _WINDOW_TICKS),
            TICK_S * (_HOLD_TICKS if limit.hold_ticks is None else limit.hold_ticks),
            limit.is_share,
        )
        for limit in guard.levels
        if limit.metric in watched
    )


class LiveGuard(Generic[S]):
    """Watches the limits until it is stopped.

    Args:
        connect: opens a session of its own, and what reads the statistics by it.
        limits: the limits.
        put_back: puts the old values back, by that session.
        changing: held by whoever changes values.

    Raises:
        StudyError: a limit is of what the server does not tell.
    """

    def __init__(
        self,
        connect: Callable[[], LiveActivity[S]],
        limits: tuple[LiveLimit, ...],
        put_back: Callable[[S], None],
        changing: threading.RLock,
    ) -> None:
        self._connect, self._limits, self._put_back = connect, limits, put_back
        self._activity = connect()
        self._tells_s = self._activity.tells_s
        self._usual_min_s = max(USUAL_S, _TELLINGS * self._tells_s)
        self._seen: deque[ActivityTotals] = deque()
        self._changing = changing
        self._armed, self._armed_s = False, 0.0
        self._violation: str | None = None
        self._unjudged = set(limits)
        self._hold_until_s, self._afresh_s = 0.0, 0.0
        self._usual: Mapping[str, float] | None = None
        self._usual_since: ActivityTotals | None = None
        self._usual_from_s = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="guard", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End."""
        if self._end.is_set():
            return
        self._end.set()
        self._thread.join()
        self._activity.session.close()

    def arm(self, *, on: bool, restarted: bool = False) -> None:
        """Tell whether values of a trial are in force from now on.

        Args:
            on: whether they are.
            restarted: whether the server was started anew for them, so that clients have to come back first.
        """
        with self._changing:
            if restarted:
                self._afresh_s = time.monotonic() + _CLIENTS_BACK_S
            if on or self._armed:
                self._learn_anew()
            self._armed, self._armed_s, self._violation = on, time.monotonic(), None
            self._unjudged = set(self._limits)

    @property
    def violation(self) -> str | None:
        """Why the old values were put back, or None."""
        with self._changing:
            return self._violation

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Metrics of limits of which no whole window was seen since values were set."""
        with self._changing:
            return tuple(sorted({one.metric for one in self._unjudged}))

    @property
    def judged_after_s(self) -> float:
        """How long after values were set a whole window of every limit is seen."""
        return max(map(self._window_s, self._limits), default=0.0) + 2 * self._tells_s

    def wait(self) -> None:
        """Wait while nothing may be changed after a violation, and until shares are known.

        Raises:
            StageFailed: they cannot be known, for clients do nothing.
        """
        while (left_s := self._hold_until_s - time.monotonic()) > 0 and not self._end.wait(
            min(left_s, TICK_S)
        ):
            pass
        shares = [one.metric for one in self._limits if one.is_share]
        end_s = time.monotonic() + _USUAL_WAIT_S + 2 * _TELLINGS * self._tells_s
        while shares and not set(shares) <= set(self._usual or ()):
            if time.monotonic() > end_s:
                raise StageFailed(
                    "change",
                    f"guard: the limit of {shares[0]} is a share of what clients usually get, and they get "
                    "nothing; let them work, or give a number",
                )
            self._end.wait(TICK_S)

    def _watch(self) -> None:
        next_s = time.monotonic()
        while not self._end.is_set():
            asked_s = time.monotonic()
            try:
                self._look(self._activity.totals(_ANSWER_S), asked_s)
            except (StageFailed, ValueError) as failure:
                self._trip(str(failure), max(one.hold_s for one in self._limits), asked_s)
                self._mend()
            next_s = max(next_s + TICK_S, time.monotonic())
            self._end.wait(next_s - time.monotonic())

    def _mend(self) -> None:
        """Connect anew, if the session has ended."""
        if self._activity.session.is_open:
            return
        with suppress(AscarError):
            activity = self._connect()
            self._activity.session.close()
            self._activity = activity

    def _look(self, now: ActivityTotals, asked_s: float) -> None:
        self._learn(now)
        if now.read_s < self._afresh_s:
            self._seen.clear()
            return
        longest_s = max(map(self._window_s, self._limits))
        self._seen.append(now)
        while len(self._seen) > 1 and now.counted_s - self._seen[1].counted_s >= longest_s:
            self._seen.popleft()
        for limit in self._limits:
            begun = [one for one in self._seen if now.counted_s - one.counted_s >= self._window_s(limit)]
            mean = now.since(begun[-1]).get(limit.metric) if begun else None
            bound = limit.bound(self._usual or {})
            if mean is None or bound is None:
                continue
            if begun[-1].read_s >= self._armed_s + self._tells_s:
                self._unjudged.discard(limit)
            if limit.violated(mean, bound):
                side = "less" if limit.is_floor else "more"
                share = f", {limit.value:.0%} of the usual" if limit.is_share else ""
                self._trip(
                    f"the mean of {limit.metric} was {mean:.6g}, {side} than {bound:.6g}{share}",
                    limit.hold_s,
                    asked_s,
                )

    def _window_s(self, limit: LiveLimit) -> float:
        return max(limit.window_s, _TELLINGS * self._tells_s)

    def _learn_anew(self) -> None:
        """Learn what clients usually get from when what happened under a trial's values has been told."""
        self._usual_since = None
        self._usual_from_s = time.monotonic() + _USUAL_AFTER_S + self._tells_s

    def _learn(self, now: ActivityTotals) -> None:
        """What clients get under the old values: what they got when these were last in force long enough."""
        with self._changing:
            if self._armed or now.read_s < self._usual_from_s:
                return
            if self._usual_since is None:
                self._usual_since = now
            seconds = now.counted_s - self._usual_since.counted_s
            if seconds >= self._usual_min_s:
                self._usual = now.since(self._usual_since)
            if seconds >= max(_USUAL_MAX_S, self._usual_min_s):  # traffic changes with the time of the day
                self._usual_since = now

    def _trip(self, why: str, hold_s: float, asked_s: float) -> None:
        """Put the old values back, if others are in force, and were when the server was asked."""
        with self._changing:
            if not self._armed or asked_s < max(self._armed_s, self._afresh_s):
                return
            self._armed = False
            begun_s = time.monotonic()
            try:
                self._put_back(self._activity.session)
                done = f"the old values were put back in {time.monotonic() - begun_s:.1f} s"
            except AscarError as error:
                done = f"the old values could not be put back: {error.message}"
                self._armed = True  # tried again at the next tick
            self._violation = f"{why}; {done}"
            self._hold_until_s = time.monotonic() + hold_s
            self._learn_anew()
