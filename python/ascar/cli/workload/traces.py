"""Traces in files, and what is shown of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.features import Trace
    from ascar.results.workload import TraceFacts

TRACE_BYTES_MAX = 2**30
"""Larger files are refused: a trace is read as a whole."""


@dataclass(frozen=True, slots=True, eq=False)
class TracedFile:
    """A trace and where it came from.

    Attributes:
        path: the file of the trace.
        form: the format of the file.
        trace: the operations of the trace.
        slowdown: the factor by which recording slowed the process; None if it is not known.
    """

    path: Path
    form: str
    trace: Trace
    slowdown: float | None = None

    @property
    def facts(self) -> TraceFacts:
        """The size of the trace."""
        import numpy as np

        from ascar.results.workload import TraceFacts

        return TraceFacts(
            operations=len(self.trace),
            seconds=self.trace.duration_s,
            threads=len(np.unique(self.trace.thread)),
            files=len(np.unique(self.trace.file)),
        )


def read_trace(path: Path, form: str | None) -> TracedFile:
    """Read a trace.

    Raises:
        InputError: the file cannot be read, is too large, or is not a trace; the message names it.
    """
    from ascar.errors import InputError
    from ascar.features import parse_trace
    from ascar.small_file import SmallFile

    advice = "give a trace's file, or a part of it"
    content = SmallFile(path, repr(str(path)), TRACE_BYTES_MAX, advice).content()
    try:
        found, trace = parse_trace(content, form)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error.message}") from error
    return TracedFile(path, found, trace)
