"""What `rados bench` prints: a row a second, and at the end how much was done in all.

      sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
        0      16        16         0         0         0           -           0
        1      16      3182      3166   12.3613   12.3672  0.00351119  0.00503983
    Total time run:         2.0033
    Total writes made:      6326
    Average Latency(s):     0.00506031

With `--format json` it prints nothing before the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHOLE = "([0-9]{1,15})"
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,18})?(?:e-[0-9]{1,2})?)"
_ROW = re.compile(
    rf"^ *{_WHOLE} +[0-9]+ +[0-9]+ +{_WHOLE} +[0-9.e+-]+ +[0-9.e+-]+ +(?:-|[0-9.e-]+) +{_NUMBER} *\n",
    re.MULTILINE,
)
_TIME = re.compile(rf"^Total time run: +{_NUMBER}$", re.MULTILINE)
_MADE = re.compile(rf"^Total (?:writes|reads) made: +{_WHOLE}$", re.MULTILINE)
_MEAN = re.compile(rf"^Average Latency\(s\): +{_NUMBER}$", re.MULTILINE)
_PART_S = 0.5
"""An end that comes sooner after the last row is told as one with it."""
_MS = 1e3


@dataclass(frozen=True, slots=True)
class BenchMoment:
    """How far a load was at a moment.

    Attributes:
        seconds: since it began.
        finished: the operations that had ended by then.
        mean_s: their mean latency.
    """

    seconds: float
    finished: int
    mean_s: float


@dataclass(frozen=True, slots=True)
class BenchInterval:
    """What a load did between two moments.

    Attributes:
        seconds: when it ended, since the load began.
        rate: operations a second.
        mean_ms: their mean latency. None: none ended.
    """

    seconds: float
    rate: float
    mean_ms: float | None


def made_of(text: str) -> int | None:
    """The operations that a load did in all; None: it has not ended."""
    made = _MADE.search(text)
    return None if made is None else int(made[1])


def moments_of(text: str) -> list[BenchMoment]:
    """The rows of a text, and its end, in the order of time; what goes backwards is left out."""
    found: list[BenchMoment] = []
    for sec, finished, mean in _ROW.findall(text):
        row = BenchMoment(float(sec), int(finished), float(mean))
        if not found or _follows(found[-1], row):
            found.append(row)
    end = _end(text)
    if end is None or not found or end.finished < found[-1].finished:
        return found
    if end.seconds - found[-1].seconds < _PART_S:
        found.pop()
    return [*found, end] if not found or _follows(found[-1], end) else found


def intervals_of(moments: Sequence[BenchMoment]) -> list[BenchInterval]:
    """What was done from each moment to the next.

    Latencies are told as means since the beginning, in six digits: that of one interval is what the sums at
    its ends differ by.
    """
    return [_between(before, after) for before, after in pairwise(moments)]


def _end(text: str) -> BenchMoment | None:
    time, made, mean = _TIME.search(text), made_of(text), _MEAN.search(text)
    if time is None or made is None or mean is None:
        return None
    return BenchMoment(float(time[1]), made, float(mean[1]))


def _follows(before: BenchMoment, after: BenchMoment) -> bool:
    return after.seconds > before.seconds and after.finished >= before.finished


def _between(before: BenchMoment, after: BenchMoment) -> BenchInterval:
    count = after.finished - before.finished
    spent_s = after.mean_s * after.finished - before.mean_s * before.finished
    mean_ms = max(0.0, spent_s / count) * _MS if count else None
    return BenchInterval(after.seconds, count / (after.seconds - before.seconds), mean_ms)
