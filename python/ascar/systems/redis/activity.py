"""What a server's own clients get, out of INFO's command statistics, and how long a request of ours waits.

Redis documentation, "INFO", commandstats.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ascar.systems.existing.activity import LATENCY, THROUGHPUT, ActivityTotals
from ascar.systems.redis.counters import calls_of, fields_of

if TYPE_CHECKING:
    from ascar.systems.redis.connection import RedisSession

PING = "latency_ms_ping"
"""The mean time from our PING to its answer: one thread serves all clients, whose requests wait as long."""

METRICS = frozenset({THROUGHPUT, LATENCY, PING})
"""Everything that can be told of clients."""


class RedisActivity:
    """Reads the statistics, by a session that is kept open.

    Args:
        session: the session.
    """

    tells_s = 0.0
    """Each command is counted at once."""

    def __init__(self, session: RedisSession) -> None:
        self.session = session
        self._pings, self._pinged_ms = 0.0, 0.0

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """The statistics now.

        Raises:
            StageFailed: the server does not answer.
        """
        begun_s = time.monotonic()
        self.session.ask("PING", limit_s=limit_s)
        self._pings += 1
        self._pinged_ms += (time.monotonic() - begun_s) * 1e3
        fields = fields_of(str(self.session.ask("INFO", "commandstats", limit_s=limit_s)))
        now_s = time.monotonic()
        calls, spent_ms = calls_of(fields)
        return ActivityTotals(
            now_s, now_s, calls, {"": (calls, spent_ms)}, {PING: (self._pings, self._pinged_ms)}
        )
