"""What a Ceph cluster that others run says of itself, and why it may not be tuned."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues.ceph import VERSION_MIN
from ascar.errors import EnvironmentLacks, Refused, StageFailed, WorkError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.catalogues.ceph import CephSetting
    from ascar.systems.ceph.connection import CephSession
    from ascar.systems.ceph.status import ClusterStatus

_VERSION = re.compile(r"\bceph version (\d{1,3})\.(\d{1,3})\.(\S{1,40})")
_FSID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LOOKED_AT = 3  # OSDs whose settings are read back, so that a cluster of thousands answers in time
_EXAMINED, _AT_ONCE = 100, 4  # OSDs that are asked before a study where each setting is from
_PRECEDES = {"osd": ("global", "osd"), "client": ("global", "client")}
_OWN = {
    "env": "from its environment; take it out there, and start the OSD anew",
    "file": "from its ceph.conf; take it out there, and start the OSD anew",
    "cmdline": "from its command line; take it out there, and start the OSD anew",
    "override": "set while it runs; undo that (ceph tell {osd} config unset {name})",
    "final": "which nothing changes",
}
"""Where a daemon has values from that come before the monitors' (ceph_conf_level_name in config.cc)."""

LOOKS = (
    *("fsid", "status", "versions", "config dump", "osd ls", "config show-with-defaults", "df detail"),
    *("mgr stat", "config get mgr mgr_stats_period"),
)
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
        numbers: the numbers of the OSDs.
        inside: how many OSDs hold data.
    """

    fsid: str
    version: str
    osds: int
    groups: int
    numbers: tuple[int, ...]
    inside: int = 0

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
        numbers = session.told(list[int], "osd", "ls")
        if not numbers:
            raise Refused(f"{status.fsid}: has no OSD")
        return cls(
            status.fsid,
            ".".join(version.groups()),
            status.osdmap.num_osds,
            status.pgmap.num_pgs,
            tuple(numbers),
            status.osdmap.num_in_osds,
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
            ("OSDs that hold data", self.inside, status.osdmap.num_in_osds),
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
        for osd in _spread(self.numbers, _LOOKED_AT):
            for name, value in session.shown(osd).items():
                found.setdefault(name, {})[value] = None
        return {name: ",".join(values) for name, values in found.items()}

    def check_monitors_decide(self, session: CephSession, names: Collection[str]) -> None:
        """See that OSDs take these settings from the monitors, and run with what these hold.

        All OSDs are asked, or a hundred that are spread over the cluster.

        Args:
            session: asks the cluster.
            names: Ceph's names.

        Raises:
            Refused: one has a value of its own, or has not taken the monitors'.
            StageFailed: the cluster does not answer.
        """
        osds = _spread(self.numbers, _EXAMINED)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shown = list(pool.map(session.shown_settings, osds))
        for osd, settings in zip(osds, shown, strict=True):
            for one in settings:
                if one.name not in names:
                    continue
                if one.source in _OWN:
                    how = _OWN[one.source].format(osd=osd, name=one.name)
                    raise Refused(
                        f"{one.name}: {osd} has a value of its own ({one.value!r:.40}), {how}, or pin the "
                        "setting"
                    )
                if one.ignores == "mon":
                    raise Refused(
                        f"{one.name}: {osd} runs with {one.value!r:.40}, not with what the monitors hold; "
                        "start the OSD anew, or pin the setting"
                    )


def _spread(numbers: Sequence[int], most: int) -> list[str]:
    """At most so many OSDs, from all over the cluster: neighbours are often of one host, or of one kind."""
    count = min(most, len(numbers))
    return [f"osd.{numbers[at * len(numbers) // count]}" for at in range(count)]


def held_settings(session: CephSession) -> list[HeldSetting]:
    """What the monitors hold.

    Raises:
        StageFailed: they do not answer.
    """
    return session.told(list[HeldSetting], "config", "dump")


def check_nothing_else_decides(
    held: Collection[HeldSetting], known: Mapping[str, CephSetting], names: Collection[str]
) -> None:
    """See that no daemon and no part of the cluster has a value of its own, which a study would not change.

    Args:
        held: what the monitors hold.
        known: the settings, by their names in a study.
        names: those that a study changes.

    Raises:
        Refused: one has.
    """
    wanted = {known[name].name: known[name].who for name in names}
    for one in held:
        who = wanted.get(one.name)
        if who is not None and (one.mask or one.section not in _PRECEDES[who]):
            part = f"{one.section}/{one.mask}" if one.mask else one.section
            raise Refused(
                f"{one.name}: {part} has a value of its own ({one.value!r:.40}), which comes before that of "
                f"{who}; remove it (ceph config rm {part} {one.name}), or pin the setting"
            )
