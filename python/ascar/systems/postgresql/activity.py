"""What a server's own clients get, out of its cumulative statistics: transactions, time of statements.

Manual, chapter 28 (pg_stat_database) and section F.32 (pg_stat_statements).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import StageFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.systems.postgresql.connection import PsqlSession

THROUGHPUT, LATENCY = "throughput_ops_per_s", "latency_ms_mean"
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


def class_metric(kind: str) -> str:
    """The metric of a class's mean latency."""
    return f"{LATENCY}_{kind}"


METRICS = frozenset({THROUGHPUT, LATENCY, *map(class_metric, CLASSES)})
"""Everything that can be told of clients."""


@dataclass(frozen=True, slots=True)
class ActivityTotals:
    """Cumulative statistics at a moment.

    Attributes:
        read_s: the moment, monotonic.
        counted_s: the moment up to which transactions are counted: each session of the server tells of its
            own about once a second.
        transactions: the transactions that were committed, our own left out.
        statements: by class, the number of statements and the milliseconds that they took.
    """

    read_s: float
    counted_s: float
    transactions: float
    statements: Mapping[str, tuple[float, float]]

    def since(self, before: ActivityTotals) -> dict[str, float]:
        """The metrics between two moments; of what did not happen, none."""
        seconds = self.counted_s - before.counted_s
        found: dict[str, float] = {}
        if seconds > 0:
            found[THROUGHPUT] = max(0.0, self.transactions - before.transactions) / seconds
        all_calls = all_ms = 0.0
        for kind, now in self.statements.items():
            old = before.statements.get(kind, (0.0, 0.0))
            calls, spent_ms = now[0] - old[0], now[1] - old[1]
            if calls > 0 and spent_ms >= 0:  # less than before: entries were evicted
                found[class_metric(kind)] = spent_ms / calls
                all_calls, all_ms = all_calls + calls, all_ms + spent_ms
        if all_calls > 0:
            found[LATENCY] = all_ms / all_calls
        return found


class Activity:
    """Reads the statistics, by a session that is kept open.

    Args:
        session: the session.
        with_statements: whether to read pg_stat_statements too, where it is there.
    """

    def __init__(self, session: PsqlSession, *, with_statements: bool) -> None:
        self._session = session
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
        answer = self._session.command(f"BEGIN; {query}; ROLLBACK;", limit_s).strip()
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
