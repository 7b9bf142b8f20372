"""A watch under way: from several sources' readings to batches, from batches to shifts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ascar.pilot import Batch, Batches, ShiftDetector
    from ascar.pilot.sources.stream import Stream

_POLL_S = 1.0
_LINE_EVERY_S = 5.0


@dataclass(slots=True)
class Watched:
    """One watch: sources, what they come to, where it is told.

    Attributes:
        files: the sources, as they were named.
        streams: the readings by node.
        batches: the batches of the readings.
        watcher: the detector that judges the batches.
        quiet: show no progress.
        json: documents instead of lines for people.
        seen: batches judged so far.
        end_s: time of the latest reading.
    """

    files: list[Path]
    streams: dict[str, Stream]
    batches: Batches
    watcher: ShiftDetector
    quiet: bool
    json: bool
    seen: int = 0
    end_s: float = 0.0
    _said_s: float = field(default_factory=time.monotonic)

    def run(self, follow_s: float | None) -> None:
        """Take in what there is, and with `follow_s` what comes in that time."""
        until_s = time.monotonic() + (follow_s or 0.0)
        left = {name: stream.readings(last=follow_s is None) for name, stream in self.streams.items()}
        last_s = dict.fromkeys(left, float("-inf"))
        while True:
            while left:
                # The node that is furthest behind goes on, so that few batches are under way at once.
                name = min(left, key=lambda node: last_s[node])
                last_s[name] = self._take(name, left[name])
                if last_s[name] == float("inf"):
                    del left[name]
            if follow_s is None or time.monotonic() >= until_s:
                return
            time.sleep(min(_POLL_S, max(until_s - time.monotonic(), 0.0)))
            left = {name: stream.readings(last=False) for name, stream in self.streams.items()}
            last_s = dict.fromkeys(left, float("-inf"))

    def _take(self, name: str, readings: Iterator[tuple[float, float]]) -> float:
        """Take a batch's worth of a node's readings; the last one's time, infinite if there are no more."""
        first_s: float | None = None
        for at_s, value in readings:
            self.end_s = max(self.end_s, at_s)
            for batch in self.batches.add(at_s, value, name):
                self._watch(batch)
            first_s = at_s if first_s is None else first_s
            if at_s - first_s >= self.batches.batch_s:
                return at_s
        return float("inf")

    def close(self) -> None:
        """What is left, and the summary.

        Raises:
            InputError: there was not one reading.
        """
        from ascar.cli.watch_output import emit_summary, print_summary
        from ascar.errors import InputError

        for batch in self.batches.close():
            self._watch(batch)
        empty = [stream for stream in self.streams.values() if not stream.taken]
        if empty:
            raise InputError(f"{str(empty[0].path)!r}: holds no readings; check --column, or wait for some")
        (emit_summary if self.json else print_summary)(self)

    @property
    def name(self) -> str:
        """Of the readings."""
        return next(iter(self.streams.values())).name or "value"

    def _watch(self, batch: Batch) -> None:
        from ascar.cli.output import say
        from ascar.cli.watch_output import emit_shift, print_shift, progress

        self.watcher.start_s = self.batches.start_s or 0.0
        self.seen += 1
        shift = self.watcher.add(batch)
        if shift is not None:
            (emit_shift if self.json else print_shift)(shift, self.name)
        if not self.quiet and time.monotonic() - self._said_s >= _LINE_EVERY_S:
            self._said_s = time.monotonic()
            say(progress(self))
