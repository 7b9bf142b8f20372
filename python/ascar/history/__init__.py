"""Every study, trial and reading, kept for good: SQLite by default, another SQL database when shared."""

from ascar.history.run import BestSoFar, Moment, Run, RunState
from ascar.history.schema import SCHEMA_VERSION
from ascar.history.store import History, RunSummary, default_path

__all__ = [
    "SCHEMA_VERSION",
    "BestSoFar",
    "History",
    "Moment",
    "Run",
    "RunState",
    "RunSummary",
    "default_path",
]
