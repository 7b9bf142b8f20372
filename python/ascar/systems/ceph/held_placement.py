"""Ceph's balancer and the autoscaler of placement groups, which are off while a study runs.

Both move data by themselves, and a trial beside that measures the move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ascar.errors import Refused
from ascar.systems.ceph.cluster_facts import held_settings
from ascar.systems.ceph.connection import POOL_NAME

if TYPE_CHECKING:
    from ascar.systems.ceph.connection import CephSession
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
_FORGET_ACTIVE = ("config", "rm", "mgr", _ACTIVE)
_UNDO_S = 60.0


class _Balancer(msgspec.Struct, frozen=True):
    active: bool = False


class _Pool(msgspec.Struct, frozen=True):
    pool_name: str
    pg_autoscale_mode: str = "off"


class HeldPlacement:
    """Where objects are; it stays as it is from `hold` to `release`.

    Args:
        session: asks the cluster.
        keeper: a keeper of the user, which releases it if we are killed.
    """

    def __init__(self, session: CephSession, keeper: Keeper) -> None:
        self._session, self._keeper = session, keeper
        self._undo: list[tuple[str, ...]] = []

    def hold(self) -> None:
        """Turn off what is on.

        Raises:
            Refused: the user lacks rights, or a pool has a name that cannot be said to `ceph`.
            StageFailed: the cluster does not answer.
        """
        if self._session.told(_Balancer, "balancer", "status").active:
            is_held = any(one.name == _ACTIVE for one in held_settings(self._session))
            # Turning it on leaves that in the monitors, where it may not have been.
            self._change(("balancer", "off"), ("balancer", "on"), *(() if is_held else (_FORGET_ACTIVE,)))
        for pool in self._session.told(list[_Pool], "osd", "pool", "ls", "detail"):
            if pool.pg_autoscale_mode != "on":
                continue
            if not POOL_NAME.fullmatch(pool.pool_name):
                raise Refused(
                    f"pool {pool.pool_name!r:.100}: its autoscaler cannot be turned off by name; set "
                    f"{_MODE} to off yourself, or target.fix_placement = false"
                )
            words = ("osd", "pool", "set", pool.pool_name, _MODE)
            self._change((*words, "off"), (*words, "on"))

    def release(self) -> None:
        """Turn on again what was on, the last one first.

        Raises:
            StageFailed: the cluster does not answer; `ascar restore` tries again.
            Refused: the user lacks rights.
        """
        while self._undo:
            self._session.ask(*self._undo[-1])
            self._keeper.undo_forget(self._session.command(*self._undo.pop()))

    def _change(self, change: tuple[str, ...], *undo: tuple[str, ...]) -> None:
        """Give a command, of which the keeper knows before what undoes it, in that order."""
        for words in reversed(undo):
            self._keeper.undo_command(self._session.command(*words), _UNDO_S)
            self._undo.append(words)
        try:
            self._session.ask(*change)
        except Refused as refused:
            for words in undo:
                self._undo.remove(words)
                self._keeper.undo_forget(self._session.command(*words))
            raise Refused(f"{refused.message}; or set target.fix_placement = false") from refused
