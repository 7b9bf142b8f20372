"""What `rados bench --format json` prints: a row a second, in one object that ends with the load.

    hints = 1
    {..."datas":[{"sec":"0",...},{"sec":"1","cur_ops":"15","started":"3262","finished":"3247",...},...

Numbers are texts. Other lines may stand between them, and a load that is ended early leaves the object open,
so that rows are found one by one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from ascar import typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ROW = re.compile(r'\{"sec":[^{}]{1,1000}\}')
_MS = 1e3


class _Row(msgspec.Struct, frozen=True):
    sec: str
    finished: str
    avg_lat: str


@dataclass(frozen=True, slots=True)
class BenchSecond:
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


def seconds_of(text: str) -> list[BenchSecond]:
    """The rows of a text in the order of time; what is none, or goes backwards, is left out."""
    found: list[BenchSecond] = []
    for match in _ROW.finditer(text):
        row = _second(match[0])
        if row is not None and (not found or _follows(found[-1], row)):
            found.append(row)
    return found


def intervals_of(rows: Sequence[BenchSecond]) -> list[BenchInterval]:
    """What was done from each row to the next.

    Latencies are means since the beginning, told to the microsecond: that of one interval is what the sums
    of both ends differ by.
    """
    return [_between(before, after) for before, after in pairwise(rows)]


def _second(text: str) -> BenchSecond | None:
    try:
        row = typed.decode(text.encode(), _Row)
        found = BenchSecond(float(row.sec), int(row.finished), float(row.avg_lat))
    except (msgspec.MsgspecError, UnicodeError, ValueError):
        return None
    numbers: Iterable[float] = (found.seconds, found.finished, found.mean_s)
    return found if all(math.isfinite(one) and 0 <= one < 1e15 for one in numbers) else None


def _follows(before: BenchSecond, after: BenchSecond) -> bool:
    return after.seconds > before.seconds and after.finished >= before.finished


def _between(before: BenchSecond, after: BenchSecond) -> BenchInterval:
    count = after.finished - before.finished
    spent_s = after.mean_s * after.finished - before.mean_s * before.finished
    mean_ms = max(0.0, spent_s / count) * _MS if count else None
    return BenchInterval(after.seconds, count / (after.seconds - before.seconds), mean_ms)
