"""The status of a Ceph cluster, and whether a load can be measured on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.errors import StageFailed

if TYPE_CHECKING:
    from collections.abc import Collection

_ACCEPTED = frozenset({"POOL_NO_REDUNDANCY", "MON_DISK_LOW"})
"""Warnings with which a trial may begin: replicas are the study's, and a nearly full disk is not full."""
_CLEAN = frozenset({"active", "clean"})
_BESIDE = frozenset({"scrubbing", "deep", "snaptrim", "snaptrim_wait", "laggy", "wait"})
"""What placement groups with all of their copies in place do beside (Placement Group States)."""


class _Check(msgspec.Struct, frozen=True):
    severity: str = ""
    summary: dict[str, Any] = {}
    muted: bool = False


class _Health(msgspec.Struct, frozen=True):
    status: str
    checks: dict[str, _Check] = {}


class _State(msgspec.Struct, frozen=True):
    state_name: str
    count: int


class _Groups(msgspec.Struct, frozen=True):
    num_pgs: int = 0
    pgs_by_state: tuple[_State, ...] = ()


class _Osds(msgspec.Struct, frozen=True):
    num_osds: int = 0
    num_up_osds: int = 0
    num_in_osds: int = 0
    osd_up_since: int = 0


class ClusterStatus(msgspec.Struct, frozen=True):
    """What `ceph status` says.

    Attributes:
        fsid: the cluster's own number.
        health: the health, and the checks that fail.
        osdmap: how many OSDs there are, are up, and hold data; when one last came up or went down.
        pgmap: how many placement groups there are, by state.
    """

    health: _Health
    fsid: str = ""
    pgmap: _Groups = _Groups()
    osdmap: _Osds = _Osds()

    @classmethod
    def of(cls, told: str) -> ClusterStatus:
        """That of a cluster.

        Args:
            told: what `ceph status --format json` prints.

        Raises:
            StageFailed: it is not readable.
        """
        try:
            return typed.decode(told.encode(), cls)
        except (msgspec.MsgspecError, UnicodeError):
            raise StageFailed("program", f"ceph status: is not readable: {told[:100]!r}") from None

    def problem(self, osds: int, accepted: Collection[str] = _ACCEPTED) -> str | None:
        """Why no load can be measured; None: it can.

        Args:
            osds: the OSDs that the cluster has.
            accepted: the warnings with which a trial may begin all the same, beside those that are muted.
        """
        if self.health.status != "HEALTH_OK" and not self.health.checks:
            return f"the health is {self.health.status[:40]!r}"
        others = {
            name: check
            for name, check in self.health.checks.items()
            if name not in accepted and not check.muted
        }
        for name, check in others.items():
            said = f"{name}: {check.summary.get('message', self.health.status)}"
            return " ".join(said.split())[:200]
        if self.osdmap.num_up_osds != osds:
            return f"{self.osdmap.num_up_osds} of {osds} OSDs are up"
        clean = sum(one.count for one in self.pgmap.pgs_by_state if _serves(one.state_name))
        if not clean or clean != self.pgmap.num_pgs:
            return f"{clean} of {self.pgmap.num_pgs} placement groups are active and clean"
        return None


def _serves(state: str) -> bool:
    """Whether a placement group has all copies in place; some are scrubbed at nearly any time."""
    parts = set(state.split("+"))
    return parts >= _CLEAN and parts - _CLEAN <= _BESIDE
