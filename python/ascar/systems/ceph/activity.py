"""What a cluster's own clients get, out of the totals of its pools (`ceph df detail`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from ascar.systems.existing.activity import THROUGHPUT, ActivityTotals
from ascar.typed import finite

if TYPE_CHECKING:
    from ascar.systems.ceph.connection import CephSession

METRICS = frozenset({THROUGHPUT})
"""Everything that can be told of clients."""
POOL_COUNTERS = {
    "ceph_reads": "rd",
    "ceph_writes": "wr",
    "ceph_output_bytes": "rd_bytes",
    "ceph_input_bytes": "wr_bytes",
}
"""The totals of pools, and Ceph's names for them."""
_TOLD_S = 12.0  # OSDs tell of their work each five seconds
_ASKED_S = 1.0  # each question is a start of `ceph`, a quarter of a second of the processor


def pool_totals(session: CephSession) -> dict[str, float]:
    """The totals of all pools together.

    Raises:
        StageFailed: the cluster does not answer.
    """
    found = dict.fromkeys(POOL_COUNTERS, 0.0)
    pools = session.told(dict[str, Any], "df", "detail").get("pools")
    for pool in cast("list[Any]", pools) if isinstance(pools, list) else ():
        stats = cast("dict[str, Any]", pool).get("stats") if isinstance(pool, dict) else None
        if isinstance(stats, dict):
            for name, told in POOL_COUNTERS.items():
                found[name] += max(0.0, finite(cast("dict[str, Any]", stats).get(told)) or 0.0)
    return {**found, "ceph_operations": found["ceph_reads"] + found["ceph_writes"]}


class CephActivity:
    """Reads the statistics.

    Args:
        session: asks the cluster.
    """

    tells_s = 0.0
    """A cluster has a period of its own (`mgr_stats_period`); `[measurement] reading` says more."""

    def __init__(self, session: CephSession) -> None:
        self.session = session
        self._operations, self._counted_s, self._asked_s = -1.0, 0.0, 0.0

    def totals(self, limit_s: float = 30.0) -> ActivityTotals:  # noqa: ARG002 - the session has a limit
        """The statistics now, once a second at most.

        Raises:
            StageFailed: the cluster does not answer.
        """
        time.sleep(max(0.0, self._asked_s + _ASKED_S - time.monotonic()))
        operations = pool_totals(self.session)["ceph_operations"]
        now_s = self._asked_s = time.monotonic()
        if operations != self._operations or now_s - self._counted_s > _TOLD_S:
            self._operations, self._counted_s = operations, now_s
        return ActivityTotals(now_s, self._counted_s, operations, {})
