"""A trace: operations in the order they began, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TraceOperation(IntEnum):
    """Types of operation (Li, section 3.1.7), and what is needed to replay them."""

    READ = 0
    WRITE = 1
    CREATE = 2
    DELETE = 3
    STAT = 4
    SYNC = 5
    OPEN = 6
    CLOSE = 7


DATA = (TraceOperation.READ, TraceOperation.WRITE)
"""Types with a position and a size."""

MIX = (*DATA, TraceOperation.CREATE, TraceOperation.DELETE, TraceOperation.STAT, TraceOperation.SYNC)
"""Types that make up the mix; opening and closing go with the others."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Operations in the order they began; each column has one element an operation.

    Attributes:
        seconds: float64, when it began, since any instant.
        operation: int8, its `TraceOperation`.
        thread: int64, who did it; 0 throughout where that is not known, as in block traces.
        file: int64, the file or device it works on.
        offset_bytes: int64, first byte; 0 where there is no position.
        size_bytes: int64, bytes moved; 0 where none are.
        latency_s: float64, how long it took; nan where that is not known.
        start_bytes: int64, size of its file when the trace began; -1 where that is not known.
    """

    seconds: NDArray[np.float64]
    operation: NDArray[np.int8]
    thread: NDArray[np.int64]
    file: NDArray[np.int64]
    offset_bytes: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    latency_s: NDArray[np.float64]
    start_bytes: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Assert that columns have one length, and time does not run backwards."""
        columns: list[NDArray[Any]] = [self.operation, self.thread, self.file, self.offset_bytes]
        columns += [self.size_bytes, self.latency_s, self.start_bytes]
        assert all(column.shape == self.seconds.shape for column in columns), "one element an operation"
        assert len(self) == 0 or bool(np.all(np.diff(self.seconds) >= 0)), "operations are in order of time"

    @classmethod
    def of(cls, columns: dict[str, Any]) -> Trace:
        """A trace from columns by name, in any order; those that may be unknown may be left out."""
        seconds = np.asarray(columns["seconds"], np.float64)
        order = np.argsort(seconds, kind="stable")

        def column(name: str, dtype: Any, missing: float) -> NDArray[Any]:
            given = columns.get(name)
            values = np.full(seconds.shape, missing, dtype) if given is None else np.asarray(given, dtype)
            return values[order]

        return cls(
            seconds=seconds[order],
            operation=column("operation", np.int8, 0),
            thread=column("thread", np.int64, 0),
            file=column("file", np.int64, 0),
            offset_bytes=column("offset_bytes", np.int64, 0),
            size_bytes=column("size_bytes", np.int64, 0),
            latency_s=column("latency_s", np.float64, np.nan),
            start_bytes=column("start_bytes", np.int64, -1),
        )

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def duration_s(self) -> float:
        """From the first operation's begin to the last one's."""
        return float(self.seconds[-1] - self.seconds[0]) if len(self) else 0.0

    def where(self, chosen: NDArray[np.bool_]) -> Trace:
        """The chosen operations."""
        return Trace(*(getattr(self, name)[chosen] for name in self.__slots__))

    def only(self, *operations: TraceOperation) -> Trace:
        """The operations of these types."""
        return self.where(np.isin(self.operation, operations))

    def between(self, start_s: float, end_s: float) -> Trace:
        """The operations that began in [start_s, end_s)."""
        return self.where((self.seconds >= start_s) & (self.seconds < end_s))
