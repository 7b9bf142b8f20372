"""Ceph's balancer and the autoscaler of placement groups, which are off while a study runs.

Both move data by themselves, and a trial beside that measures the move.

    python -m ascar.systems.ceph.held_placement RECORD

`RECORD` is a `PlacementRestoration` as JSON; it is in the keeper's journal before anything is turned off.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from ascar.errors import Refused, StageFailed, WorkError
from ascar.systems.ceph.cluster_facts import held_settings
from ascar.systems.ceph.connection import POOL_NAME, CephAddress, CephSession
from ascar.systems.existing.restoration import LIMIT_S, restore
from ascar.systems.undo_record import forget, note

if TYPE_CHECKING:
    from ascar.systems.keeper import Keeper

READS = ("balancer status", "osd pool ls detail")
"""The commands of `ceph` by which it is known what is on."""
CHANGES = (
    "balancer off",
    "balancer on",
    "config rm mgr mgr/balancer/active",
    "osd pool set POOL pg_autoscale_mode off",
    "osd pool set POOL pg_autoscale_mode on",
)
"""The commands that may be issued."""
_MODE = "pg_autoscale_mode"
_ACTIVE = "mgr/balancer/active"


class _Balancer(msgspec.Struct, frozen=True):
    active: bool = False


class _Pool(msgspec.Struct, frozen=True):
    pool_name: str
    pg_autoscale_mode: str = "off"


class PlacementRestoration(msgspec.Struct, frozen=True, kw_only=True):
    """How Ceph comes to place objects by itself again.

    Attributes:
        address: where the cluster is.
        fsid: which cluster it is; another one is left alone.
        balancer: whether the balancer was on.
        forgets: whether the monitors did not hold that it was: it is on by default.
        pools: the pools whose autoscaler was on.
    """

    address: CephAddress
    fsid: str
    balancer: bool = False
    forgets: bool = False
    pools: tuple[str, ...] = ()

    def connected(self) -> CephSession:
        """A session for the restoration.

        Raises:
            StageFailed: the cluster does not answer.
        """
        return CephSession(self.address)

    def carry_out(self, session: CephSession) -> tuple[str, ...]:
        """Turn on what is off; what somebody else has turned on or set otherwise meanwhile stays as it is.

        Returns:
            The pools that are gone, a line each.

        Raises:
            Refused: it is another cluster, or the user lacks rights.
            StageFailed: the cluster refuses something, once all else is done; or it is gone.
        """
        session.check_is(self.fsid)
        modes = {pool.pool_name: pool.pg_autoscale_mode for pool in _pools(session)}
        failures: list[StageFailed | Refused] = []
        for name in self.pools:
            if modes.get(name) == "off":
                try:
                    session.ask("osd", "pool", "set", name, _MODE, "on")
                except (StageFailed, Refused) as failure:
                    failures.append(failure)
        if self.balancer and not _is_balanced(session):
            session.ask("balancer", "on")
        if self.forgets and _is_held(session):  # turning it on has left that in the monitors
            session.ask("config", "rm", "mgr", _ACTIVE)
        if failures:
            raise failures[0]
        return tuple(f"pool {name}: is gone" for name in self.pools if name not in modes)

    def carry_out_without_server(self) -> None:
        """Nothing can be put back: the monitors hold it.

        Raises:
            WorkError: always.
        """
        raise WorkError("the cluster's monitors hold what its balancer and its autoscaler do")


class HeldPlacement:
    """Where objects are; it stays as it is from `hold` to `release`.

    Args:
        session: asks the cluster.
        keeper: a keeper of the user, which releases it if we are killed.
        fsid: which cluster it is.
    """

    def __init__(self, session: CephSession, keeper: Keeper, fsid: str) -> None:
        self._session, self._keeper = session, keeper
        self._before = PlacementRestoration(address=session.address, fsid=fsid)

    def hold(self) -> None:
        """Turn off what is on.

        Raises:
            Refused: the user lacks rights, or a pool has a name that cannot be said to `ceph`.
            StageFailed: the cluster does not answer.
        """
        if _is_balanced(self._session):
            forgets = not _is_held(self._session)
            self._change(("balancer", "off"), balancer=True, forgets=forgets)
        for pool in _pools(self._session):
            if pool.pg_autoscale_mode != "on":
                continue
            if not POOL_NAME.fullmatch(pool.pool_name):
                raise Refused(
                    f"pool {pool.pool_name!r:.100}: its autoscaler cannot be turned off by name; set "
                    f"{_MODE} to off yourself, or target.fix_placement = false"
                )
            pools = (*self._before.pools, pool.pool_name)
            self._change(("osd", "pool", "set", pool.pool_name, _MODE, "off"), pools=pools)

    def release(self) -> None:
        """Turn on again what was on.

        Raises:
            StageFailed: the cluster does not answer; `ascar restore` tries again.
            Refused: the user lacks rights.
        """
        nothing = PlacementRestoration(address=self._before.address, fsid=self._before.fsid)
        if self._before == nothing:
            return
        self._before.carry_out(self._session)
        forget(self._keeper, self._before)
        self._before = nothing

    def _change(self, change: tuple[str, ...], **noted: bool | tuple[str, ...]) -> None:
        """Give a command, of which the keeper knows before what undoes it and those before it."""
        before, now = self._before, msgspec.structs.replace(self._before, **noted)
        had_any = before.balancer or before.pools
        note(self._keeper, now, before if had_any else None, LIMIT_S)
        self._before = now
        try:
            self._session.ask(*change)
        except Refused as refused:
            raise Refused(f"{refused.message}; or set target.fix_placement = false") from refused


def _is_balanced(session: CephSession) -> bool:
    return session.told(_Balancer, "balancer", "status").active


def _is_held(session: CephSession) -> bool:
    return any(one.name == _ACTIVE for one in held_settings(session))


def _pools(session: CephSession) -> list[_Pool]:
    return session.told(list[_Pool], "osd", "pool", "ls", "detail")


if __name__ == "__main__":
    sys.exit(restore(PlacementRestoration))
