"""What a PostgreSQL server tells of itself: its cumulative statistics, and the log since the last checkpoint.

Manual, chapter 28 (pg_stat_database, pg_stat_bgwriter, pg_stat_checkpointer, pg_stat_wal) and table 9.91
(pg_control_checkpoint).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Configuration

COUNTERS = (
    "pg_commits",
    "pg_rollbacks",
    "pg_blocks_read",
    "pg_blocks_hit",
    "pg_temp_bytes",
    "pg_deadlocks",
    "pg_checkpoints",
    "pg_checkpoint_buffers",
    "pg_wal_records",
    "pg_wal_full_pages",
    "pg_wal_bytes",
)
DEFERRED = "wal_bytes"

_TIMEOUT_DEFAULT_S, _WAL_DEFAULT_MIB = 300, 1024

_DATABASE = """
SELECT sum(xact_commit), sum(xact_rollback), sum(blks_read), sum(blks_hit), sum(temp_bytes), sum(deadlocks)
FROM pg_stat_database"""
_CHECKPOINTS = "SELECT checkpoints_timed + checkpoints_req, buffers_checkpoint FROM pg_stat_bgwriter"
_CHECKPOINTS_17 = "SELECT num_timed + num_requested, buffers_written FROM pg_stat_checkpointer"
_LOG = """
SELECT wal_records, wal_fpi, wal_bytes,
       greatest(0, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn))
FROM pg_stat_wal, pg_control_checkpoint()"""


def query(major: int) -> str:
    """The statement that reads them all, as one row; for servers from version 14 on."""
    checkpoints = _CHECKPOINTS_17 if major >= 17 else _CHECKPOINTS
    return f"SELECT * FROM ({_DATABASE}) d, ({checkpoints}) c, ({_LOG}) w"  # noqa: S608 - constants


def counters_of(row: str) -> tuple[Mapping[str, float], float]:
    """The counters, and the bytes of the log since the last checkpoint, in a row of `query`."""
    *numbers, pending = (float(text or 0) for text in row.strip().split("|"))
    return dict(zip(COUNTERS, numbers, strict=True)), pending


def checkpoint_cycle_s(configuration: Configuration, metrics: Mapping[str, float]) -> float:
    """The time between checkpoints: checkpoint_timeout, or until the log has grown by max_wal_size."""
    longest_s = float(configuration.get("checkpoint_timeout", _TIMEOUT_DEFAULT_S))
    log_bytes, load_s = metrics.get("pg_wal_bytes", 0.0), metrics.get("load_s", 0.0)
    if not log_bytes or not load_s:
        return longest_s
    wal_bytes = float(configuration.get("max_wal_size", _WAL_DEFAULT_MIB)) * 2**20
    return min(longest_s, load_s * wal_bytes / log_bytes)
