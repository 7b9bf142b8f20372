"""Every study, trial and reading, kept for good: SQLite by default, another SQL database when shared."""

from ascar.history.kinds import RunKind, RunState
from ascar.history.listing import DamagedRun, RunSummary
from ascar.history.run import BestSoFar, Run, WriteContext
from ascar.history.schema import SCHEMA_VERSION
from ascar.history.store import BegunRun, History, default_path

__all__ = [
    "SCHEMA_VERSION",
    "BegunRun",
    "BestSoFar",
    "DamagedRun",
    "History",
    "Run",
    "RunKind",
    "RunState",
    "RunSummary",
    "WriteContext",
    "default_path",
]
