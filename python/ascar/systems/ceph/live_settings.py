"""The settings of a Ceph cluster that people use: `ceph config set`, and new starts of OSDs if allowed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues.ceph import CephSetting, ceph
from ascar.errors import Refused, StageFailed, WorkError
from ascar.systems.ceph.activity import told_after_s
from ascar.systems.ceph.cluster_facts import check_nothing_else_decides, held_settings
from ascar.systems.ceph.connection import CephAddress, CephSession
from ascar.systems.ceph.held_placement import HeldPlacement
from ascar.systems.ceph.restoration import CephRestoration
from ascar.systems.ceph.rolling_restart import starts_of
from ascar.systems.existing.settings import LiveSettings
from ascar.systems.keeper import UNDO_MAX_S
from ascar.systems.own_server import as_wanted
from ascar.systems.undo_record import note

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.space import Configuration, Value
    from ascar.systems.ceph.cluster_facts import CephFacts, HeldSetting
    from ascar.systems.ceph.rolling_restart import RollingRestart
    from ascar.systems.ceph.status import ClusterStatus
    from ascar.systems.keeper import Keeper


class CephLiveSettings(LiveSettings[CephSession, CephSetting]):
    """The settings of one cluster.

    Args:
        session: asks the cluster.
        address: where it is.
        facts: what it said when the study began.
        keeper: a keeper of the user.
        default: the values in force when the study began.
        restart: how OSDs are started anew. None: they are not.

    Raises:
        StageFailed: the cluster does not answer.
    """

    _status: ClusterStatus
    """What the cluster said of itself when the change began."""
    _held: Sequence[HeldSetting]
    """What the monitors held then."""

    def __init__(
        self,
        session: CephSession,
        address: CephAddress,
        facts: CephFacts,
        keeper: Keeper,
        default: Configuration,
        *,
        restart: RollingRestart | None = None,
    ) -> None:
        self._address, self._facts, self._restart = address, facts, restart
        super().__init__(session, keeper, default, {one.parameter_name: one for one in ceph().values()})
        self.placement = HeldPlacement(session, keeper, facts.fsid)
        self._started_with = self._at_start(default)
        """What OSDs took when they last started."""
        self._are_alike = True
        """Whether all of them did."""
        self._starts = {} if restart is None else starts_of(session)
        """The starts of OSDs that took the old values."""
        self._in_force_s += told_after_s(session)  # OSDs tell of their settings as often as of their work
        if restart is not None:
            rolled_s = facts.osds * restart.restart.limit_s
            self._undo_limit_s = min(UNDO_MAX_S, self._undo_limit_s + rolled_s)

    def check_undisturbed(self, up_since: int | None) -> int:
        """See that the cluster is healthy, and that no OSD has come up or gone down.

        Args:
            up_since: when one last had; None: whenever.

        Returns:
            When one last had.

        Raises:
            StageFailed: something is wrong, so that a load beside it measures nothing.
            WorkError: it is another cluster, or has another size, than when the study began.
        """
        self.checked_session()
        self._facts.check_healthy(self._status)
        now = self._status.osdmap.osd_up_since
        if up_since is not None and now != up_since:
            raise StageFailed("sample", "an OSD went down or came up during the load")
        return now

    def ping(self, limit_s: float = 30.0) -> None:
        """See that the cluster is healthy.

        Raises:
            StageFailed: it is not, or does not answer within `limit_s`.
        """
        self._facts.check_healthy(self.session.status(limit_s))

    def finish(self) -> None:
        """Put the old values back for good, and let Ceph move data again.

        Raises:
            WorkError: that failed, and `ascar restore` tries again; or somebody else changed a setting.
        """
        super().finish()
        try:
            self.placement.release()
        except (StageFailed, Refused) as failure:
            raise WorkError(
                f"the balancer or the autoscaler is still off: {failure.message}; `ascar restore` turns it "
                "on once the cluster answers"
            ) from failure

    def in_force(self, names: Collection[str]) -> Mapping[str, Value]:
        """What OSDs say is in force.

        Raises:
            StageFailed: the cluster does not answer.
        """
        told = self._facts.shown(self.session)
        return {
            name: as_wanted(self._known[name].value(told[self._known[name].name]), self.current[name])
            for name in names
            if name in self.current and self._known[name].name in told
        }

    def _set_as_it_is(self, name: str) -> None:
        one = self._known[name]
        self.session.put(one.who, one.name, self._before[name])

    def _connect(self) -> CephSession:
        return CephSession(self._address)

    def _reconnected(self) -> CephSession:
        """The session: each question is a connection of its own. One answers all that a change asks first."""
        self._status = self.session.status()
        return self.session

    def _check_same(self, session: CephSession) -> None:  # noqa: ARG002
        self._facts.check_same(self._status)

    def _others(self, session: CephSession) -> Mapping[str, str]:  # noqa: ARG002
        """None: the cluster sets some of them by itself, such as OSDs' memory."""
        return {}

    def _present(self, session: CephSession) -> Mapping[str, str]:
        named: dict[tuple[str, str], str] = {(one.who, one.name): name for name, one in self._known.items()}
        self._held = held_settings(session)
        return {
            named[one.section, one.name]: one.value
            for one in self._held
            if not one.mask and (one.section, one.name) in named
        }

    def _restoration_of(self, left: dict[str, tuple[str | None, ...]]) -> CephRestoration:
        # What monitors hold again, OSDs may still run with where a new start failed.
        names = left if self._have_started_with_default else self._default
        return CephRestoration(
            address=self._address,
            fsid=self._facts.fsid,
            before={self._known[name].name: text for name, text in self._before.items() if name in left},
            set={self._known[name].name: texts for name, texts in left.items()},
            restart=self._restart,
            running=self._at_start({name: self._default[name] for name in names}),
            starts=self._starts,
        )

    def _write(
        self, session: CephSession, texts: Mapping[str, str | None], present: Mapping[str, str]
    ) -> None:
        """One setting after the other, while the cluster is healthy; then OSDs that need it start anew.

        Raises:
            WorkError: a daemon or a part of the cluster has got a value of its own in mid-study.
        """
        self._facts.check_healthy(self._status)
        changed = [name for name, text in texts.items() if text != self._before.get(name)]
        try:
            check_nothing_else_decides(self._held, self._known, changed)
        except Refused as found:
            raise WorkError(f"{found.message}; it was set in mid-study, and the study ends") from found
        for name, text in texts.items():
            if text != present.get(name):
                one = self._known[name]
                session.put(one.who, one.name, text)
        values = {name: self._default[name] if text is None else text for name, text in texts.items()}
        wanted = self._started_with | self._at_start(values)
        if self._restart is not None and (wanted != self._started_with or not self._are_alike):
            self.restarts += 1
            self._are_alike = False
            self._restart.carry_out(session, wanted, {}, begun=self._note_starting)
            self._started_with, self._are_alike = wanted, True
            self._learn_starts()

    def _put_back(self) -> None:
        self.restarts += self._started_with != self._at_start(self._default)
        self._started_with, self._are_alike = self._at_start(self._default), True
        self._learn_starts()

    @property
    def _have_started_with_default(self) -> bool:
        return self._are_alike and self._started_with == self._at_start(self._default)

    def _note_starting(self, numbers: Collection[int]) -> None:
        """Have the keeper's journal say that these OSDs may run with values of the study from now on.

        The map does not say so before they are up again, and one that has not seen them go down shows the
        start that took the old values until then.
        """
        self._note_starts({osd: start for osd, start in self._starts.items() if osd not in numbers})

    def _learn_starts(self) -> None:
        """Note which starts of OSDs took the old values, if all that run did."""
        if self._restart is not None and self._have_started_with_default:
            with suppress(StageFailed):  # those that are not known to have are started anew
                self._note_starts(starts_of(self.session))

    def _note_starts(self, starts: dict[int, int]) -> None:
        before, self._starts = self._restoration, starts
        assert isinstance(before, CephRestoration), "a change is noted before it is made"
        self._restoration = msgspec.structs.replace(before, starts=starts)
        note(self._keeper, self._restoration, before, self._undo_limit_s)

    def _at_start(self, values: Mapping[str, Value]) -> dict[str, str]:
        """The texts, by Ceph's names, of those values that OSDs take when they start."""
        listed = ((self._known[name], value) for name, value in values.items())
        return {
            one.name: value if isinstance(value, str) else one.text(value)
            for one, value in listed
            if one.context != "dynamic"
        }
