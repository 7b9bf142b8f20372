"""The target of kind "ceph" with `server = "existing"`: a cluster that people use.

[target]
kind = "ceph"
server = "existing"
conf = "/etc/ceph/ceph.conf"
user = "client.ascar"
keyring = "/etc/ceph/ceph.client.ascar.keyring"
pool = "bench"                   # in which a load works; none where the cluster's clients are the load

Settings are changed by `ceph config set`, while the health is HEALTH_OK. Those that OSDs take only when they
start are left alone, unless `restarts = "allowed"`: then OSDs are started anew (`rolling_restart.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.catalogues.ceph import ceph
from ascar.errors import Refused, StageFailed
from ascar.program.ceph import POOL
from ascar.quoting import shell_line
from ascar.space import Guarantee, Space
from ascar.study import convert
from ascar.systems import Announced, Sample
from ascar.systems.ceph.activity import METRICS, POOL_COUNTERS, CephActivity, pool_totals
from ascar.systems.ceph.cluster_facts import LOOKS, CephFacts, check_nothing_else_decides
from ascar.systems.ceph.connection import CephSession, environment_of
from ascar.systems.ceph.existing_options import (
    ExistingCephOptions,
    ceph_address_of,
    check_ceph_options,
    restart_of,
)
from ascar.systems.ceph.held_placement import CHANGES as PLACEMENT_CHANGES
from ascar.systems.ceph.held_placement import READS as PLACEMENT_READS
from ascar.systems.ceph.live_settings import CephLiveSettings
from ascar.systems.ceph.rolling_restart import READS as RESTART_READS
from ascar.systems.ceph.statements import forms_of
from ascar.systems.existing import ExistingTarget

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration
    from ascar.systems.keeper import Keeper

_OPERATIONS = "throughput_ops"


class ExistingCeph(ExistingTarget[CephSession, CephFacts]):
    """A Ceph cluster that people use; its clients are the load where the study names none.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    kind = "ceph"
    listed = staticmethod(ceph)
    watched = METRICS
    nothing = "clients read and wrote nothing"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingCephOptions, "target")
        check_ceph_options(self.options)
        self._restart = restart_of(self.options)
        space = live_ceph_space(self.options.parameters, None, restarts=self._restart is not None)
        super().__init__(self.options, space)
        self._address = ceph_address_of(self.options)

    def _connect(self) -> CephSession:
        return CephSession(self._address)

    def _facts_of(self, session: CephSession) -> CephFacts:
        return CephFacts.of(session)

    def _check_tunable(self, session: CephSession, facts: CephFacts) -> None:
        try:
            facts.check_healthy(session.status())
        except StageFailed as failure:
            raise Refused(f"{facts.name}: {failure.message}; a study needs HEALTH_OK") from failure

    def _space_of(self, session: CephSession, facts: CephFacts) -> Space:
        return live_ceph_space(
            self.options.parameters, facts.shown(session), restarts=self._restart is not None
        )

    def _settings_of(self, session: CephSession, facts: CephFacts, keeper: Keeper) -> CephLiveSettings:
        settings = CephLiveSettings(
            session, self._address, facts, keeper, self.space.default(), restart=self._restart
        )
        if self.options.fix_placement and not self.keeps:
            settings.placement.hold()
        return settings

    def _activity(self, session: CephSession, metrics: Collection[str]) -> CephActivity:  # noqa: ARG002
        return CephActivity(session)

    def _check_settings(self, session: CephSession, names: Collection[str]) -> None:
        known = {one.parameter_name: one for one in ceph().values()}
        check_nothing_else_decides(session, known, names)

    def sample(self) -> Sample:
        """The totals of all pools.

        Raises:
            StageFailed: the cluster does not answer.
            WorkError: it is another one, or has another size, than when the study began.
        """
        totals = pool_totals(self._entered().checked_session())
        # The session of an online study makes a rate of it: throughput_ops_per_s.
        return Sample({**totals, _OPERATIONS: totals["ceph_operations"]})

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return frozenset({*POOL_COUNTERS, "ceph_operations", _OPERATIONS})

    @property
    def reached(self) -> Mapping[str, str]:
        """CEPH_CONF, CEPH_USER, CEPH_ARGS for Ceph's programs, and CEPH_POOL where the study names a pool."""
        pool = {} if self.options.pool is None else {POOL: self.options.pool}
        return {**environment_of(self._address), **pool}

    @staticmethod
    def _programs() -> _ClientPrograms:
        return _ClientPrograms()

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for; the memory of this machine is none of it."""
        return {name: value for name, value in super().describe().items() if name != "memory_bytes"}

    def _described(self, facts: CephFacts) -> Mapping[str, Any]:
        return {"ceph": facts.version, "osds": facts.osds, "placement_groups": facts.groups}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """`ceph config set` for a shell, and for the standard input of `ceph`."""
        return forms_of(configuration, chosen)

    def announced(self, names: Collection[str]) -> Announced:
        """`ceph config set` and `rm` for each setting, and what is read; what the user needs for it."""
        known = {one.parameter_name: one for one in ceph().values()}
        changes = [
            f"ceph config {verb} {known[name].who} {known[name].name}{value}"
            for name in names
            for verb, value in (("set", " ..."), ("rm", ""))
        ]
        looks = LOOKS if self._restart is None else (*LOOKS, *RESTART_READS)
        if self.options.fix_placement:
            looks += PLACEMENT_READS
            changes += [f"ceph {one}" for one in PLACEMENT_CHANGES]
        restarts = () if self._restart is None else (shell_line(self._restart.restart.argv),)
        return Announced((*changes, *(f"ceph {one}" for one in looks), *restarts), (self._address.rights,))


@dataclass(frozen=True, slots=True)
class _ClientPrograms:
    """Ceph's programs for clients, which lie in the search path."""

    folder: Path = Path("/usr/bin")


def live_ceph_space(parameters: str, told: Mapping[str, str] | None, *, restarts: bool) -> Space:
    """The settings that OSDs take at once, with the values in force as defaults.

    Args:
        parameters: "expert" or "wide".
        told: the settings in force by Ceph's names; None: nobody has asked the cluster yet.
        restarts: whether OSDs may be started anew, so that those are there that they take at the start.
    """
    wanted = [
        one
        for one in ceph().values()
        if (restarts or one.context == "dynamic") and one.who == "osd" and one.is_searched(parameters)
    ]
    if told is None:
        made = [one.parameter() for one in wanted]
    else:
        known = [one.found(told[one.name]) for one in wanted if one.name in told]
        made = [one.parameter() for one in known if one is not None]
    return Space(tuple(made), name="ceph", allow_weaker=tuple(Guarantee))
