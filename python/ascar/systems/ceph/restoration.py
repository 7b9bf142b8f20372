"""What puts the settings of a Ceph cluster back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.ceph.restoration < RECORD

`RECORD` is a `CephRestoration` as JSON. The monitors hold a trial's values until they are told others.
"""

from __future__ import annotations

import sys
import time

import msgspec

from ascar.catalogues.ceph import ceph
from ascar.errors import Refused, WorkError
from ascar.systems.ceph.cluster_facts import held_settings
from ascar.systems.ceph.connection import CephAddress, CephSession
from ascar.systems.ceph.rolling_restart import RollingRestart  # noqa: TC001 - msgspec reads it
from ascar.systems.existing.restoration import foreign, restore

_OF_A_CRASH = frozenset({"RECENT_CRASH"})
"""Warnings with which OSDs get old values back: one that crashed under a trial's is told of for two weeks."""
_SENT_S = 0.5  # what was sent to the monitors before ascar was killed is done by then
_STARTED_S = 10.0  # a command that was starting an OSD anew goes on without ascar, and has ended by then


class CephRestoration(msgspec.Struct, frozen=True, kw_only=True):
    """How the settings of a cluster become what they were.

    Attributes:
        address: where the cluster is.
        fsid: which cluster it is; another one is left alone.
        before: the values that the monitors held before the study, by Ceph's names.
        set: the values that the study may have left. A value that is none of them is somebody else's.
        restart: how OSDs are started anew. None: they are not.
        running: the values before the study of those settings that OSDs take only when they start.
        starts: the starts of OSDs that took these values, by number; see `starts_of`. An OSD that the study
            has begun to start anew is not among them, whatever the map says of it.
    """

    address: CephAddress
    fsid: str
    before: dict[str, str]
    set: dict[str, tuple[str | None, ...]]
    restart: RollingRestart | None = None
    running: dict[str, str] = {}
    starts: dict[int, int] = {}

    def connected(self) -> CephSession:
        """A session for the restoration.

        Raises:
            StageFailed: the cluster does not answer.
        """
        time.sleep(_STARTED_S if self.restart is not None and self.running else _SENT_S)
        return CephSession(self.address)

    def carry_out(self, session: CephSession) -> tuple[str, ...]:
        """Put the settings back; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.

        Raises:
            Refused: it is another cluster, or the record names what is no setting of Ceph.
            StageFailed: the cluster refuses it, or is gone.
        """
        session.check_is(self.fsid)
        known = ceph()
        unknown = [name for name in self.set if name not in known]
        if unknown:
            raise Refused(f"{unknown[0]!r:.80}: must be a setting of Ceph")
        present = {
            one.name: one.value
            for one in held_settings(session)
            if one.name in self.set and not one.mask and one.section == known[one.name].who
        }
        left = foreign(self.set, self.before, present, " in the monitors")
        for name in self.set:
            old = self.before.get(name)
            if name not in left and present.get(name) != old:
                session.put(known[name].who, name, old)
        # From here on an OSD that starts, whoever starts it, has the old values.
        running = {name: text for name, text in self.running.items() if name not in left}
        if self.restart is not None and running:
            self.restart.carry_out(session, running, self.starts, accepted=_OF_A_CRASH)
        return tuple(left.values())

    def carry_out_without_server(self) -> None:
        """Nothing can be put back: the monitors hold the values.

        Raises:
            WorkError: always.
        """
        raise WorkError("the cluster's monitors hold the settings")


if __name__ == "__main__":
    sys.exit(restore(CephRestoration))
