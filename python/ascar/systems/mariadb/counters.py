"""What a MariaDB server tells of itself: SHOW GLOBAL STATUS, and the work that InnoDB has put off.

Accepted work that is still to be done is in three places (MariaDB documentation, "InnoDB Redo Log", "InnoDB
Page Flushing", "InnoDB Purge"): in the redo log since the last checkpoint, which a crashed server would have
to read; in changed pages that have not been written; and in versions of rows that are to be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Configuration

_TOTALS = {
    "mariadb_statements": "Questions",
    "mariadb_commits": "Com_commit",
    "mariadb_connections": "Connections",
    "mariadb_pages_read": "Innodb_buffer_pool_reads",
    "mariadb_page_requests": "Innodb_buffer_pool_read_requests",
    "mariadb_pages_flushed": "Innodb_buffer_pool_pages_flushed",
    "mariadb_page_waits": "Innodb_buffer_pool_wait_free",
    "mariadb_read_bytes": "Innodb_data_read",
    "mariadb_written_bytes": "Innodb_data_written",
    "mariadb_log_bytes": "Innodb_os_log_written",
    "mariadb_syncs": "Innodb_data_fsyncs",
    "mariadb_row_lock_waits": "Innodb_row_lock_waits",
    "mariadb_deadlocks": "Innodb_deadlocks",
    "mariadb_sort_passes": "Sort_merge_passes",
    "mariadb_disk_tables": "Created_tmp_disk_tables",
    "mariadb_binlog_commits": "Binlog_commits",
}
_GAUGES = {
    "mariadb_pool_bytes": "Innodb_buffer_pool_bytes_data",
    "mariadb_memory_bytes": "Memory_used",
}
_DEFERRED = {
    "log_bytes": "Innodb_checkpoint_age",
    "dirty_bytes": "Innodb_buffer_pool_bytes_dirty",
    "unpurged_transactions": "Innodb_history_list_length",
}
TOLD = frozenset({*_TOTALS, *_GAUGES})
_LOG_SHARE = 0.8  # of the redo log, after which a checkpoint is forced (log_t::max_checkpoint_age)


def counters_of(status: Mapping[str, str]) -> dict[str, float]:
    """Totals that only grow."""
    return {name: _number(status, variable) for name, variable in _TOTALS.items()}


def gauges_of(status: Mapping[str, str]) -> dict[str, float]:
    """Memory as it is."""
    return {name: _number(status, variable) for name, variable in _GAUGES.items()}


def deferred_of(status: Mapping[str, str]) -> dict[str, float]:
    """The amounts of work put off."""
    return {name: _number(status, variable) for name, variable in _DEFERRED.items()}


def checkpoint_cycle_s(
    configuration: Configuration, metrics: Mapping[str, float], log_bytes_today: float
) -> float:
    """The seconds until the redo log is full, under the load of a trial; 0: it writes none.

    Args:
        configuration: the configuration.
        metrics: those of a trial of it.
        log_bytes_today: the size of the log where the study does not search it.
    """
    grown_bytes, load_s = metrics.get("mariadb_log_bytes", 0.0), metrics.get("load_s", 0.0)
    if not grown_bytes or not load_s:
        return 0.0
    log_bytes = float(configuration.get("innodb_log_file_size", log_bytes_today))
    return load_s * _LOG_SHARE * log_bytes / grown_bytes


def _number(status: Mapping[str, str], name: str) -> float:
    try:
        return max(0.0, float(status.get(name, "0")))
    except ValueError:
        return 0.0
