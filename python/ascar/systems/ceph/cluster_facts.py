"""What a Ceph cluster that others run says of itself, and why it may not be tuned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues.ceph import VERSION_MIN
from ascar.errors import EnvironmentLacks, Refused, StageFailed, WorkError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.ceph import CephSetting
    from ascar.systems.ceph.connection import CephSession
    from ascar.systems.ceph.status import ClusterStatus

_VERSION = re.compile(r"\bceph version (\d{1,3})\.(\d{1,3})\.(\S{1,40})")
_FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOOKED_AT = 3  # OSDs whose settings are read back, so that a cluster of thousands answers in time
_PRECEDES = {"osd": ("global", "osd"), "client": ("global", "client")}

LOOKS = ("fsid", "status", "versions", "config dump", "osd ls", "config show-with-defaults", "df detail")
"""The commands of `ceph` by which a study reads."""


class _Versions(msgspec.Struct, frozen=True):
    osd: dict[str, int] = {}


class HeldSetting(msgspec.Struct, frozen=True):
    """A setting as the monitors hold it.

    Attributes:
        section: whose it is: "global", "osd", "osd.3".
        name: Ceph's name.
        value: its text.
        mask: the part of the cluster that it is for; "": all.
    """

    section: str
    name: str
    value: str
    mask: str = ""


@dataclass(frozen=True, slots=True)
class CephFacts:
    """What a cluster says of itself.

    Attributes:
        fsid: the cluster's own number.
        version: the version of its OSDs.
        osds: how many OSDs it has.
        groups: how many placement groups.
        looked_at: the OSDs whose settings are read back.
    """

    fsid: str
    version: str
    osds: int
    groups: int
    looked_at: tuple[str, ...]

    is_local = False

    @property
    def name(self) -> str:
        """The fsid, by which a user confirms that this cluster may be tuned."""
        return self.fsid

    @property
    def lock(self) -> str:
        """The name of the lock that a study of it takes."""
        return f"ceph:{self.fsid}"

    @classmethod
    def of(cls, session: CephSession) -> CephFacts:
        """Those of the cluster of a session.

        Raises:
            EnvironmentLacks: the version is too old.
            Refused: an upgrade is under way, or the user lacks rights.
            StageFailed: the cluster does not answer.
        """
        status = session.status()
        if not _FSID.fullmatch(status.fsid):
            raise StageFailed("program", f"ceph status: {status.fsid!r:.60}: must be the fsid of a cluster")
        told = session.told(_Versions, "versions").osd
        versions = [match for text in told if (match := _VERSION.search(text)) is not None]
        if len(told) != 1 or len(versions) != 1:
            raise Refused(f"{status.fsid}: its OSDs have {len(told)} versions; finish the upgrade first")
        (version,) = versions
        if (int(version[1]), int(version[2])) < VERSION_MIN:
            least = ".".join(map(str, VERSION_MIN))
            raise EnvironmentLacks(f"Ceph {version[0][13:60]}: ascar tunes versions from {least} on")
        numbers = session.told(list[int], "osd", "ls")[:_LOOKED_AT]
        if not numbers:
            raise Refused(f"{status.fsid}: has no OSD")
        looked_at = tuple(f"osd.{number}" for number in numbers)
        return cls(
            status.fsid,
            ".".join(version.groups()),
            status.osdmap.num_osds,
            status.pgmap.num_pgs,
            looked_at,
        )

    def check_same(self, status: ClusterStatus) -> None:
        """See that the cluster is the one that the study began on, as large as then.

        Raises:
            WorkError: it is not, so that what was measured before does not compare.
        """
        if status.fsid != self.fsid:
            raise WorkError(f"another cluster answers in mid-study ({status.fsid!r:.50}); the study ends")
        for what, before, now in (
            ("OSDs", self.osds, status.osdmap.num_osds),
            ("placement groups", self.groups, status.pgmap.num_pgs),
        ):
            if now != before:
                raise WorkError(f"the cluster has {now} {what}, and had {before} before; the study ends")

    def check_healthy(self, status: ClusterStatus) -> None:
        """See that a trial may begin.

        Raises:
            StageFailed: the health is not HEALTH_OK, or a placement group is not active and clean.
        """
        if (reason := status.problem(self.osds, accepted=())) is not None:
            raise StageFailed("health", f"the Ceph cluster is not healthy: {reason}")

    def shown(self, session: CephSession) -> dict[str, str]:
        """The settings in force in the OSDs that are looked at; where these differ, each value once.

        Raises:
            StageFailed: the cluster does not answer.
        """
        found: dict[str, dict[str, None]] = {}
        for osd in self.looked_at:
            for name, value in session.shown(osd).items():
                found.setdefault(name, {})[value] = None
        return {name: ",".join(values) for name, values in found.items()}


def held_settings(session: CephSession) -> list[HeldSetting]:
    """What the monitors hold.

    Raises:
        StageFailed: they do not answer.
    """
    return session.told(list[HeldSetting], "config", "dump")


def check_nothing_else_decides(
    session: CephSession, known: Mapping[str, CephSetting], names: Collection[str]
) -> None:
    """See that no daemon and no part of the cluster has a value of its own, which a study would not change.

    Raises:
        Refused: one has.
    """
    wanted = {known[name].name: known[name].who for name in names}
    for one in held_settings(session):
        who = wanted.get(one.name)
        if who is not None and (one.mask or one.section not in _PRECEDES[who]):
            part = f"{one.section}/{one.mask}" if one.mask else one.section
            raise Refused(
                f"{one.name}: {part} has a value of its own ({one.value!r:.40}), which comes before that of "
                f"{who}; remove it (ceph config rm {part} {one.name}), or pin the setting"
            )
