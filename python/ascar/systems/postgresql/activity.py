"""What a server's own clients get, out of its cumulative statistics: transactions, time of statements.

Manual, chapter 28 (pg_stat_database) and section F.32 (pg_stat_statements).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.systems.existing.activity import LATENCY, THROUGHPUT, ActivityTotals, class_metric

if TYPE_CHECKING:
    from ascar.systems.postgresql.connection import PsqlSession

CLASSES = ("select", "insert", "update", "delete", "commit", "other")
"""The classes of statements, by their first word; to begin and to roll back is none."""

FLUSHED_S = 1.5
"""Sessions that have worked have told of it after so many seconds."""

_EXTENSION = """SELECT quote_ident(n.nspname) FROM pg_extension e
 JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements'"""
_MARK = "/* ascar */"
_TRANSACTIONS = f"SELECT {_MARK} sum(xact_commit) FROM pg_stat_database"  # noqa: S608 - constants
LOOKS = (
    "SELECT ... FROM pg_settings, pg_stat_activity, pg_db_role_setting, pg_file_settings, pg_extension",
    "SELECT ... FROM pg_stat_database, pg_stat_bgwriter, pg_stat_wal, pg_stat_statements",
    "SELECT ... FROM pg_control_system(), pg_control_checkpoint()",
)
"""What is read of a server, in short."""


METRICS = frozenset({THROUGHPUT, LATENCY, *map(class_metric, CLASSES)})
"""Everything that can be told of clients."""


class PostgresActivity:
    """Reads the statistics, by a session that is kept open.

    Args:
        session: the session.
        with_statements: whether to read pg_stat_statements too, where it is there.
    """

    tells_s = 1.0
    """Sessions tell of their transactions once a second at most (PGSTAT_MIN_INTERVAL in pgstat.c)."""

    def __init__(self, session: PsqlSession, *, with_statements: bool) -> None:
        self.session = session
        self._transactions, self._counted_s = -1.0, 0.0
        self._statements = ""
        if with_statements:
            with suppress(StageFailed):
                schema = session.ask(_EXTENSION).strip()
                if schema:
                    query = _statements_of(schema)
                    session.ask(query)
                    self._statements = query

    @property
    def has_statements(self) -> bool:
        """Whether the time of statements is known."""
        return bool(self._statements)

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """The statistics now.

        Raises:
            StageFailed: the server does not answer.
        """
        transactions = float(self._look(_TRANSACTIONS, limit_s))
        now_s = time.monotonic()
        if transactions != self._transactions or now_s - self._counted_s > FLUSHED_S:
            self._transactions, self._counted_s = transactions, now_s
        statements: dict[str, tuple[float, float]] = {}
        if self._statements:
            for row in self._look(self._statements, limit_s).splitlines():
                kind, calls, spent_ms = row.split("|")
                statements[kind] = (float(calls), float(spent_ms))
        return ActivityTotals(now_s, self._counted_s, transactions, statements)

    def _look(self, query: str, limit_s: float) -> str:
        """The answer to a query in a transaction that is rolled back, which does not count as a commit."""
        answer = self.session.command(f"BEGIN; {query}; ROLLBACK;", limit_s).strip()
        if not answer:
            raise StageFailed("program", "PostgreSQL does not tell its statistics")
        return answer


def _statements_of(schema: str) -> str:
    listed = ", ".join(f"'{kind}'" for kind in CLASSES[:-1])
    return (
        f"SELECT {_MARK} CASE WHEN w = 'end' THEN 'commit' WHEN w IN ({listed}) THEN w ELSE 'other' END, "  # noqa: S608
        "sum(calls), sum(total_exec_time) "
        "FROM (SELECT lower(substring(query FROM '^[[:space:](]*([[:alpha:]]+)')) w, calls, total_exec_time "
        f"FROM {schema}.pg_stat_statements WHERE query NOT LIKE '%{_MARK}%') s "
        "WHERE w NOT IN ('begin', 'start', 'rollback', 'abort') GROUP BY 1"
    )
