"""Every study, trial and reading, kept for good: SQLite by default, another SQL database when shared."""

from ascar.history.run import BestSoFar, Run, RunState, WriteContext
from ascar.history.schema import SCHEMA_VERSION
from ascar.history.store import History, RunSummary, default_path

__all__ = [
    "SCHEMA_VERSION",
    "BestSoFar",
    "History",
    "Run",
    "RunState",
    "RunSummary",
    "WriteContext",
    "default_path",
]
