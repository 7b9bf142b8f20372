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

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.catalogues.ceph import ceph
from ascar.errors import Refused, StageFailed
from ascar.program.ceph import POOL
from ascar.quoting import shell_line
from ascar.results.machine import Need
from ascar.space import Guarantee, Space
from ascar.study import convert
from ascar.systems import Announced, Sample, Starter
from ascar.systems.ceph.activity import METRICS, POOL_COUNTERS, CephActivity, pool_totals
from ascar.systems.ceph.cluster_facts import (
    LOOKS,
    CephFacts,
    check_nothing_else_decides,
    held_settings,
)
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
from ascar.systems.ceph.space import CACHE, EXAMPLES, number_of, with_bounds
from ascar.systems.ceph.statements import forms_of
from ascar.systems.existing import ExistingTarget
from ascar.systems.starter import PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.ceph import CephSetting
    from ascar.results.trial import Change
    from ascar.space import Configuration
    from ascar.systems.keeper import Keeper

_log = logging.getLogger(__name__)
_OPERATIONS = "throughput_ops"
_NOT_CHARGED = (
    "writes that BlueStore puts off are not charged to trials: OSDs alone tell of them (`ceph tell osd.N "
    "perf dump`), to a user with osd 'allow *' alone, who may then do anything with all data; let loads last "
    "several times bluestore_max_defer_interval (3 s unless you have changed it), after which they are done "
    "in any case"
)


class ExistingCeph(ExistingTarget[CephSession, CephFacts]):
    """A Ceph cluster that people use; its clients are the load where the study names none.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    kind = "ceph"
    listed = staticmethod(ceph)
    starter = Starter(
        target={"server": '"existing"', "parameters": '"expert"'},
        shown={
            "keyring": '"/etc/ceph/ceph.client.ascar.keyring"',
            "pool": '"bench"',
            "restart_command": '["ssh", "{host}", "sudo", "-n", "systemctl", "restart", "ceph-osd@{id}"]',
        },
        space={**PLAIN, **EXAMPLES},
    )
    watched = METRICS
    nothing = "clients read and wrote nothing"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingCephOptions, "target")
        check_ceph_options(self.options)
        self._restart = restart_of(self.options)
        space = live_ceph_space(self.options.parameters, None, restarts=self._restart is not None)
        super().__init__(self.options, space)
        self._address = ceph_address_of(self.options)
        self._up_since: int | None = None

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
        told, restarts = facts.shown(session), self._restart is not None
        for one in _searched(self.options.parameters, restarts=restarts):
            if "," in told.get(one.name, ""):
                _log.warning(
                    "%s: OSDs run with different values (%.80s), so that it is left out",
                    one.name,
                    told[one.name],
                )
        return live_ceph_space(self.options.parameters, told, restarts=restarts)

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
        assert self._facts is not None, "facts are known once the target is entered"
        known = {one.parameter_name: one for one in ceph().values()}
        check_nothing_else_decides(held_settings(session), known, names)
        self._facts.check_monitors_decide(session, {known[name].name for name in names})

    def apply(self, configuration: Configuration) -> Change:
        """Change what differs.

        Raises:
            StageFailed: the cluster is not healthy, or refuses a value.
            WorkError: it is not the cluster any more that the study began on, or somebody else changed one.
        """
        self._up_since = None
        return super().apply(configuration)

    def sample(self) -> Sample:
        """The totals of all pools; a trial during which an OSD fails, or comes back, is none.

        Raises:
            StageFailed: the cluster does not answer, is not healthy, or was not since the sample before.
            WorkError: it is another one, or has another size, than when the study began.
        """
        settings = self._entered()
        assert isinstance(settings, CephLiveSettings), "made by _settings_of"
        up_since, self._up_since = self._up_since, None
        self._up_since = settings.check_undisturbed(up_since)
        totals = pool_totals(settings.session)
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
        statements = (*changes, *(f"ceph {one}" for one in looks), *restarts)
        return Announced(statements, (self._address.rights,), (_NOT_CHARGED,))

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """Ceph's client."""
        found, packages = shutil.which("ceph"), ("ceph-common", "ceph-common")
        return (Need("ceph", "the client that sets the cluster's settings", found, ("ceph",), *packages),)


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
    wanted = _searched(parameters, restarts=restarts)
    if told is None:
        made = [one.parameter() for one in wanted]
    else:
        known = [one.found(told[one.name]) for one in wanted if one.name in told]
        memory_bytes = number_of(told, "osd_memory_target")
        most = {} if memory_bytes is None else {CACHE: int(memory_bytes)}
        found = [one.up_to(most.get(one.name), one.default) for one in known if one is not None]
        made = [one.parameter() for one in found]
    space = Space(tuple(made), name="ceph", allow_weaker=tuple(Guarantee))
    return with_bounds(space, told or {})


def _searched(parameters: str, *, restarts: bool) -> list[CephSetting]:
    return [
        one
        for one in ceph().values()
        if (restarts or one.context == "dynamic") and one.who == "osd" and one.is_searched(parameters)
    ]
