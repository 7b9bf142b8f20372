"""Which loop made a run, and how it stands."""

from __future__ import annotations

from enum import StrEnum


class RunKind(StrEnum):
    """Which loop made a run."""

    STUDY = "study"
    SESSION = "session"
    SEARCH = "search"
    LEARNING = "learning"


class RunState(StrEnum):
    """How a run stands. Whether a running one is alive says its lock."""

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
