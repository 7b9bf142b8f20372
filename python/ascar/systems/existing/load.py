"""The load that a server's own clients are: nothing is run, and what they get is read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.results.measurement import Readings, Series
from ascar.systems.existing.activity import THROUGHPUT

if TYPE_CHECKING:
    from ascar.systems.existing.activity import ActivityReader, ActivityTotals
    from ascar.workspace import LoadTiming

_LOOK_S = 0.1


def live_readings(activity: ActivityReader, pace: LoadTiming, nothing: str) -> Readings:
    """What the clients get, reading by reading.

    Where clients are in the statistics from time to time only, readings are no shorter than that: each would
    have the work of some clients for longer than it lasts, and of others none, so that their mean is no mean
    of what clients get. What is told later than it happened is waited for before the first one, for it may be
    what clients got before a change.

    Args:
        activity: tells it.
        pace: how long, and how often.
        nothing: what it means that nothing was done, and what helps.

    Raises:
        StageFailed: the server does not answer, or clients have nothing done.
    """
    first = begun = before = _begun(activity)
    reading_s = max(pace.reading_s, activity.tells_s)
    next_s = begun.read_s + reading_s
    seconds: dict[str, list[float]] = {}
    values: dict[str, list[float]] = {}
    ended = "time"

    def series() -> dict[str, Series]:
        return {name: Series.of(seconds[name], values[name]) for name in values}

    while before.read_s - first.read_s < pace.load_max_s:
        now = _next(activity)
        if now.read_s < next_s or now.counted_s <= before.counted_s:
            continue
        if now.operations < before.operations:
            begun = now.began(before, begun)
        age_s, next_s = now.read_s - first.read_s, now.read_s + reading_s
        for name, value in now.since(before).items():
            seconds.setdefault(name, []).append(age_s)
            values.setdefault(name, []).append(value)
        before = now
        if pace.asks(age_s) and pace.may_end(series()):
            ended = "enough"
            break
    metrics = before.since(begun)
    if not metrics.get(THROUGHPUT):
        raise StageFailed("load", f"{nothing}, or name a load")
    return Readings(series(), metrics, before.read_s - first.read_s, ended)


def _begun(activity: ActivityReader) -> ActivityTotals:
    """The statistics once clients have told of all work that they had done when asked first."""
    first = activity.totals()
    now = _next(activity)
    while now.counted_s <= first.counted_s or now.counted_s < first.read_s + activity.tells_s:
        now = _next(activity)
    return now


def _next(activity: ActivityReader) -> ActivityTotals:
    time.sleep(_LOOK_S)
    return activity.totals()
