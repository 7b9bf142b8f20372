"""What a cluster's own clients get, out of the totals of its pools (`ceph df detail`)."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.errors import StageFailed
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
_STATS, _TICK = "mgr_stats_period", "mgr_tick_period"
_USUAL_S = {_STATS: 5.0, _TICK: 2.0}
_PERIODS_S = (0.1, 600.0)
_LATE_S = 5.0  # what was told so much later than usual was not told
_ASKED_S = 1.0  # each question is a start of `ceph`, a quarter of a second of the processor
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,9})?")


class _Manager(msgspec.Struct, frozen=True):
    active_name: str = ""


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


def told_after_s(session: CephSession) -> float:
    """Seconds after which the totals of pools have what OSDs did.

    OSDs tell the manager of their work each `mgr_stats_period`, each at its own moment, and the manager tells
    the monitors each `mgr_tick_period` (Mgr Config Reference).

    Raises:
        StageFailed: the cluster does not answer.
    """
    told: dict[str, str] = {}
    manager = session.told(_Manager, "mgr", "stat").active_name
    with suppress(StageFailed):  # a manager that does not tell of itself
        told = session.shown(f"mgr.{manager}")
    if _STATS not in told:
        told = {_STATS: session.ask("config", "get", "mgr", _STATS)}
    return sum(_period_s(told.get(name, ""), usual_s) for name, usual_s in _USUAL_S.items())


def _period_s(text: str, usual_s: float) -> float:
    number = text.strip().strip('"')
    least, most = _PERIODS_S
    return min(most, max(least, float(number))) if _NUMBER.fullmatch(number) else usual_s


class CephActivity:
    """Reads the statistics.

    Args:
        session: asks the cluster.

    Raises:
        StageFailed: the cluster does not answer.
    """

    def __init__(self, session: CephSession) -> None:
        self.session = session
        self.tells_s = told_after_s(session)
        """Seconds after which what clients did is in the totals."""
        self._operations, self._counted_s, self._asked_s = -1.0, 0.0, 0.0

    def totals(self, limit_s: float = 30.0) -> ActivityTotals:  # noqa: ARG002 - the session has a limit
        """The statistics now, once a second at most.

        Raises:
            StageFailed: the cluster does not answer.
        """
        time.sleep(max(0.0, self._asked_s + _ASKED_S - time.monotonic()))
        operations = pool_totals(self.session)["ceph_operations"]
        now_s = self._asked_s = time.monotonic()
        if operations != self._operations or now_s - self._counted_s > self.tells_s + _LATE_S:
            self._operations, self._counted_s = operations, now_s
        return ActivityTotals(now_s, self._counted_s, operations, {})
