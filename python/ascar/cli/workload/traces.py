"""Traces in files, and what is shown of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.features import Trace

TRACE_BYTES_MAX = 2**30
"""Larger files are refused: a trace is read as a whole."""


@dataclass(frozen=True, slots=True, eq=False)
class TracedFile:
    """A trace and where it came from.

    Attributes:
        path: its file.
        form: of the file.
        trace: what is in it.
        slowdown: how much slower a recorded process went for it; None where that is not known.
    """

    path: Path
    form: str
    trace: Trace
    slowdown: float | None = None

    @property
    def facts(self) -> dict[str, object]:
        """What is told of a trace beside its features."""
        import numpy as np

        return {
            "operations": len(self.trace),
            "seconds": self.trace.duration_s,
            "threads": len(np.unique(self.trace.thread)),
            "files": len(np.unique(self.trace.file)),
        }


def read_trace(path: Path, form: str | None) -> TracedFile:
    """Read a trace.

    Raises:
        InputError: the file cannot be read, is too large, or is no trace; the message names it.
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


def nullable(values: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers for JSON, which has neither nan nor infinity."""
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
