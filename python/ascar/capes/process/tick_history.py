"""Stored ticks, which the interface sends over `P.history`; every part is checked."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from ascar.capes.messages.parts import add_settings
from ascar.errors import MessagingError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from numpy.typing import NDArray

    from ascar.capes.messages.bus import Bus
    from ascar.capes.process.observer import ObservationLayout

_PART_S: Final = 60.0
_HEADER_MAX: Final = 8 << 20
_REQUEST_TICKS: Final = 86_400
_CELLS_MAX: Final = 1 << 28

_Float = np.float32
Block = tuple["NDArray[np.int64]", "NDArray[np.float32]"]
"""(n,) ticks, and (n, names) values."""


@dataclass(frozen=True, slots=True)
class StoredRange:
    """The range of stored ticks.

    Attributes:
        first: tick.
        last: tick.
        nodes: all that ever sent something.
    """

    first: int
    last: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReplyPart:
    """One message of a reply.

    Attributes:
        header: the header of the message.
        block: the block of a node or of the metrics; None without one.
    """

    header: Mapping[str, Any]
    block: Block | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the block's columns."""
        return tuple(self.header["names"])


@dataclass(slots=True, eq=False)
class TickHistory:
    """A range of ticks.

    Attributes:
        parts: blocks of nodes.
        metrics: blocks of metrics.
        settings: ticks with the setting from then on, in order.
        workloads: ticks with the workload that was announced, from then on, in order; "" where it had ended.
        following: the tick where to go on; None at the end.
    """

    parts: list[ReplyPart] = field(default_factory=list[ReplyPart])
    metrics: list[ReplyPart] = field(default_factory=list[ReplyPart])
    settings: list[tuple[int, dict[str, Any]]] = field(default_factory=list[tuple[int, dict[str, Any]]])
    workloads: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    following: int | None = None

    @property
    def ticks(self) -> NDArray[np.int64]:
        """(n,), those of which something is stored, in order."""
        found = [one.block[0] for one in (*self.parts, *self.metrics) if one.block is not None]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def setting(self, tick: int) -> dict[str, Any] | None:
        """In force at a tick; None where nobody knows."""
        at = bisect.bisect_right(self.settings, tick, key=lambda one: one[0]) - 1
        return self.settings[at][1] if at >= 0 else None

    def workload(self, tick: int) -> str | None:
        """That was announced at a tick, "" for none; None where nobody knows."""
        at = bisect.bisect_right(self.workloads, tick, key=lambda one: one[0]) - 1
        return self.workloads[at][1] if at >= 0 else None

    def metrics_by_tick(self) -> dict[int, dict[str, float]]:
        """Those that have a value."""
        found: dict[int, dict[str, float]] = {}
        for part in self.metrics:
            if part.block is None:
                continue
            for tick, row in zip(part.block[0].tolist(), part.block[1].tolist(), strict=True):
                known = {name: value for name, value in zip(part.names, row, strict=True) if not isnan(value)}
                found.setdefault(tick, {}).update(known)
        return found

    def matrices(self, layout: ObservationLayout) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Each tick with its (nodes, indicators); NaN where there is no value."""
        ticks = self.ticks
        columns = {name: at for at, name in enumerate(layout.names)}
        rows = {name: at for at, name in enumerate(layout.nodes)}
        length = max(1, _CELLS_MAX // max(1, 8 * len(rows) * len(columns)))
        for start in range(0, len(ticks), length):
            some = ticks[start : start + length]
            cube = np.full((len(some), len(rows), len(columns)), np.nan)
            for part in self.parts:
                node = rows.get(part.header["node"])
                if node is None or part.block is None:
                    continue
                inside = (part.block[0] >= some[0]) & (part.block[0] <= some[-1])
                at = np.searchsorted(some, part.block[0][inside])
                for theirs, name in enumerate(part.names):
                    if name in columns:
                        cube[at, node, columns[name]] = part.block[1][inside, theirs]
            yield from zip(some.tolist(), cube, strict=True)


async def extent(bus: Bus) -> StoredRange | None:
    """What is stored; None where nothing is.

    Raises:
        MessagingError: nobody answers, or what comes is no answer.
    """
    names: list[str] = []
    async for payload in bus.replies("history", {"version": 1, "extent": True}, _PART_S):
        header = part_of(payload).header
        nodes = header.get("nodes")
        if not isinstance(nodes, list):
            raise _strange("the extent")
        names += [str(one) for one in cast("list[Any]", nodes)]
        if header.get("last") is False:  # of thousands there are more
            continue
        first, last = header.get("first_tick"), header.get("last_tick")
        if first is None or last is None:
            return None
        if not isinstance(first, int) or not isinstance(last, int):
            raise _strange("the extent")
        return StoredRange(first, last, tuple(names))
    raise _strange("no answer")


async def past(bus: Bus, first: int, last: int) -> AsyncGenerator[TickHistory]:
    """Ranges of ticks from the first to the last one, in order.

    Raises:
        MessagingError: nobody answers, or what comes is no answer.
    """
    start = first
    while start <= last:
        end = min(start + _REQUEST_TICKS, last + 1)
        found = await _range(bus, start, end)
        yield found
        following = found.following
        if following is not None and not start < following <= end:
            raise _strange(f"next_tick = {following}")
        start = end if following is None else following


async def rows_before(bus: Bus, tick: int, ticks: int) -> dict[str, set[str]]:
    """The nodes that sent something in the ticks up to one, with the names of their indicators.

    Raises:
        MessagingError: nobody answers, or what comes is no answer.
    """
    found: dict[str, set[str]] = {}
    async for one in past(bus, tick - ticks + 1, tick):
        for part in one.parts:
            found.setdefault(part.header["node"], set()).update(part.names)
    return found


async def _range(bus: Bus, start: int, end: int) -> TickHistory:
    found = TickHistory()
    request = {"version": 1, "from_tick": start, "to_tick": end, "nodes": None}
    async for payload in bus.replies("history", request, _PART_S):
        part = part_of(payload)
        header = part.header
        if part.block is not None:
            (found.metrics if header["node"] is None else found.parts).append(part)
        add_settings(found.settings, header.get("settings"))
        for tick, name in _by_tick(header, "workloads", "name"):
            if isinstance(name, (str, type(None))):
                found.workloads.append((tick, name or ""))
        if header.get("last"):
            following = header.get("next_tick")
            found.following = following if isinstance(following, int) else None
            found.settings.sort(key=lambda one: one[0])
            found.workloads.sort(key=lambda one: one[0])
            return found
    raise _strange("it has no end")


def _by_tick(header: Mapping[str, Any], part: str, key: str) -> Iterator[tuple[int, object]]:
    """Ticks, and what was under a key from each of them on; what is no such entry is passed over."""
    for one in header.get(part) or ():
        if isinstance(one, dict):
            entry = cast("dict[str, Any]", one)
            tick = entry.get("tick")
            if isinstance(tick, int):
                yield tick, entry.get(key)


def part_of(payload: bytes) -> ReplyPart:
    """The part in a message: a length, a header, perhaps a block.

    Raises:
        MessagingError: it is none, or the interface says that something is wrong.
    """
    size = int.from_bytes(payload[:4], "little")
    if len(payload) < 4 or size > min(_HEADER_MAX, len(payload) - 4):
        raise _strange("a part is cut off")
    try:
        decoded = msgspec.json.decode(payload[4 : 4 + size])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _strange("a header is not JSON") from error
    if not isinstance(decoded, dict):
        raise _strange("a header is not an object")
    header = cast("dict[str, Any]", decoded)
    if "error" in header:
        raise MessagingError(f"history: the interface says: {str(header['error'])[:300]}")
    if "rows" not in header:
        return ReplyPart(header)
    rows, names, node = header["rows"], header.get("names"), header.get("node")
    if not isinstance(rows, int) or not isinstance(names, list) or not isinstance(node, (str, type(None))):
        raise _strange("a block's header")
    columns = cast("list[object]", names)
    width = len(columns)
    body = payload[4 + size :]
    if rows < 0 or len(body) != rows * (8 + 4 * width) or not all(isinstance(one, str) for one in columns):
        raise _strange("a block has another length")
    ticks = np.frombuffer(body, "<i8", rows)
    values = np.frombuffer(body, "<f4", rows * width, 8 * rows).reshape(rows, width)
    return ReplyPart(header, (ticks.astype(np.int64), values.astype(_Float)))


def _strange(what: str) -> MessagingError:
    return MessagingError(
        f"history: the answer cannot be understood: {what}; is the interface of this version?"
    )
