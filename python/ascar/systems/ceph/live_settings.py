"""The settings of a Ceph cluster that people use: `ceph config set`, of OSDs that take them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.ceph import CephSetting, ceph
from ascar.systems.ceph.cluster_facts import held_settings
from ascar.systems.ceph.connection import CephAddress, CephSession
from ascar.systems.ceph.restoration import CephRestoration
from ascar.systems.existing.settings import LiveSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Value
    from ascar.systems.ceph.cluster_facts import CephFacts
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

    Raises:
        StageFailed: the cluster does not answer.
    """

    _status: ClusterStatus
    """What the cluster said of itself when the change began."""

    def __init__(
        self,
        session: CephSession,
        address: CephAddress,
        facts: CephFacts,
        keeper: Keeper,
        default: Configuration,
    ) -> None:
        self._address, self._facts = address, facts
        super().__init__(session, keeper, default, {one.parameter_name: one for one in ceph().values()})

    def ping(self, limit_s: float = 30.0) -> None:
        """See that the cluster is healthy.

        Raises:
            StageFailed: it is not, or does not answer within `limit_s`.
        """
        self._facts.check_healthy(self.session.status(limit_s))

    def in_force(self, names: Collection[str]) -> Mapping[str, Value]:
        """What OSDs say is in force.

        Raises:
            StageFailed: the cluster does not answer.
        """
        told = self._facts.shown(self.session)
        return {
            name: self._known[name].value(told[self._known[name].name])
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

    def _present(self, session: CephSession) -> Mapping[str, str]:
        named: dict[tuple[str, str], str] = {(one.who, one.name): name for name, one in self._known.items()}
        return {
            named[one.section, one.name]: one.value
            for one in held_settings(session)
            if not one.mask and (one.section, one.name) in named
        }

    def _restoration_of(self, left: dict[str, tuple[str | None, ...]]) -> CephRestoration:
        return CephRestoration(
            address=self._address,
            fsid=self._facts.fsid,
            before={self._known[name].name: text for name, text in self._before.items() if name in left},
            set={self._known[name].name: texts for name, texts in left.items()},
        )

    def _write(
        self, session: CephSession, texts: Mapping[str, str | None], present: Mapping[str, str]
    ) -> None:
        """One setting after the other, while the cluster is healthy."""
        self._facts.check_healthy(self._status)
        for name, text in texts.items():
            if text != present.get(name):
                one = self._known[name]
                session.put(one.who, one.name, text)
