"""What a server's own clients get: their statements, and how long a request of ours waits.

MariaDB documentation, "Server Status Variables".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ascar.systems.existing.activity import THROUGHPUT, ActivityTotals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.systems.mariadb.connection import MariaSession

PING = "latency_ms_ping"
"""The mean time from a request of ours, which reads no table, to its answer."""

METRICS = frozenset({THROUGHPUT, PING})
"""Everything that can be told of clients."""

_STATEMENTS = (
    "Com_select",
    "Com_insert",
    "Com_insert_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_replace",
    "Com_replace_select",
)


class MariaActivity:
    """Reads the statistics, by a session that is kept open.

    Args:
        session: the session.
    """

    tells_s = 0.0
    """Each statement is counted at once."""

    def __init__(self, session: MariaSession) -> None:
        self.session = session
        self._pings, self._pinged_ms = 0.0, 0.0

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """The statistics now.

        Raises:
            StageFailed: the server does not answer.
        """
        begun_s = time.monotonic()
        self.session.ask("SHOW STATUS LIKE 'Uptime'", limit_s)
        self._pings += 1
        self._pinged_ms += (time.monotonic() - begun_s) * 1e3
        status = self.session.status(limit_s)
        now_s = time.monotonic()
        pings = {PING: (self._pings, self._pinged_ms)}
        return ActivityTotals(now_s, now_s, statements(status, self.session.own_selects), {}, pings)


def statements(status: Mapping[str, str], own_selects: int) -> float:
    """The statements that clients have had done.

    Args:
        status: the server's status variables.
        own_selects: the SELECT statements that are our own.
    """
    total = -float(own_selects)
    for name in _STATEMENTS:
        text = status.get(name, "0")
        total += float(text) if text.isdigit() else 0.0
    return total
