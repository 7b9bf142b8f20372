"""Every study, trial and reading, kept for good: SQLite by default, another SQL database when shared."""

from ascar.history.run import BestSoFar, Run, RunKind, RunState, WriteContext
from ascar.history.schema import SCHEMA_VERSION
from ascar.history.store import BegunRun, History, RunSummary, default_path

__all__ = [
    "SCHEMA_VERSION",
    "BegunRun",
    "BestSoFar",
    "History",
    "Run",
    "RunKind",
    "RunState",
    "RunSummary",
    "WriteContext",
    "default_path",
]
