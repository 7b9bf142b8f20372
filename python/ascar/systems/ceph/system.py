"""The target of kind "ceph".

[target]
kind = "ceph"
directory = "/data"        # default: the home of the account that runs the cluster, or /var/tmp
parameters = "expert"      # or "wide": every setting that bears on speed
memory = "6 GiB"           # of all OSDs; default: three quarters of the machine's
replicas = 3               # copies of each object
settings = { osd_op_num_shards = 8 }      # how your cluster runs today: what the study starts from

Each trial starts the daemons of a small cluster on a copy of their files as the load's fill left them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ascar.catalogues.ceph import VERSION_MIN, ceph
from ascar.errors import StudyError
from ascar.program.ceph import CephPrograms
from ascar.results.machine import Need
from ascar.study import convert, duration, size
from ascar.systems import Sample, Starter
from ascar.systems.ceph.cluster import LONGEST_SOCKET, CephCluster, ClusterShape
from ascar.systems.ceph.counters import COUNTERS, PUT_OFF, counters_of, put_off
from ascar.systems.ceph.space import EXAMPLES, ceph_space
from ascar.systems.ceph.statements import forms_of, settings_of
from ascar.systems.needs import found_by
from ascar.systems.own_server import ConfiguredKeys, ConfiguredTarget
from ascar.systems.starter import PLAIN
from ascar.units import format_size

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from ascar.space import Configuration
    from ascar.systems import System
    from ascar.systems.keeper import Keeper

OSD_MEMORY_BYTES_MIN = 896 << 20
"""What Ceph takes as osd_memory_target at least."""
_OSDS = (1, 16)
_REPLICAS_MIN = 3
"""With which a pool takes writes while one is missing."""
_OSD_BYTES_MIN = 2 << 30
_SETTLE_S = 120.0
_RECOVERY_MAX_S = 1200.0
_FAILURE_S = (4.0, 600.0)


class CephOptions(ConfiguredKeys, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "ceph".

    Attributes:
        directory: the directory in which one is made for the cluster. None: the home of its account, or
            /var/tmp where it has none.
        parameters: "expert", about twenty settings, or "wide", all that bear on speed.
        memory: the memory that all OSDs together try to keep to (osd_memory_target). None: memory_limit, or
            three quarters of the machine's.
        memory_limit: the memory and page cache that the daemons have once the cluster is filled, as in a
            container of that size: a control group, which takes root. None: the machine's.
        user: the account that runs the daemons. None: the caller's, or "ceph" where root calls.
        version: the major version to run. None: the one that is installed.
        settings: settings as the cluster of today has them, by Ceph's own names: the default of the study.
        data: each trial starts on the data that the fill left ("same").
        osds: the OSDs, each on a sparse file.
        osd_size: the size of that file.
        replicas: the copies of each object, at most one on each OSD; more than half of them have to be there.
        osd_failure: the time for which the load of each trial runs once more while an OSD fails and, from
            half of it on, comes back, e.g. "30 s". A study bounds what clients notice by `constraints` over
            metrics such as `degraded_latency_ms_mean`, and `recovery_s`. None: no OSD fails.
        recovery_limit: how long a trial waits after that until each object has all of its copies again;
            `recovery_s` tells no more than this beyond the load.
    """

    data: Literal["same"] = "same"
    osds: int = 3
    osd_size: str = "10 GiB"
    replicas: int = 3
    osd_failure: str | None = None
    recovery_limit: str = "1 min"


class Ceph(ConfiguredTarget[CephCluster]):
    """A Ceph cluster of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: Ceph is not installed, or too old a version.
    """

    name, kind, account, socket = "Ceph", "ceph", "ceph", LONGEST_SOCKET
    listed = staticmethod(ceph)
    told = COUNTERS
    default_workload: str | None = "rados-bench"
    changes_while_working = frozenset()
    """Each trial starts the daemons anew."""
    starter = Starter(
        target={"parameters": '"expert"', "memory": '"3 GiB"'},
        shown={
            "memory_limit": '"4 GiB"',
            "user": '"ceph"',
            "version": "16",
            "settings": '{ osd_op_num_shards = 8, debug_osd = "0/0" }',
            "osd_failure": '"30 s"',
        },
        space={**PLAIN, **EXAMPLES},
        workload=lambda: {"kind": '"rados-bench"'},
        online={"server": "existing"},
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, CephOptions, "target")
        self._programs = CephPrograms.find(self.options.version)
        self._programs.check_from("Ceph", VERSION_MIN)
        super().__init__(self.options, ceph().values())
        self._shape = _shape_of(self.options, self._memory_bytes)
        self.degraded_s = _failure_s(self.options)
        self._recovery_limit_s = duration("target.recovery_limit", self.options.recovery_limit)
        if self._recovery_limit_s > _RECOVERY_MAX_S:
            raise StudyError(
                f"target.recovery_limit = {self.options.recovery_limit!r}: must be at most "
                f"{_RECOVERY_MAX_S:g} s"
            )
        self.space = ceph_space(self.options.parameters, self._given, self._shape.memory_bytes)

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """A cluster that people use is tuned in another way."""
        if "server" not in options:
            return cls
        from ascar.systems.ceph.existing import ExistingCeph

        return ExistingCeph

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Nothing changes while a load runs."""
        return options

    def _end_fill(self) -> None:
        self._entered().catch_up(_SETTLE_S)

    def drain(self, limit_s: float) -> None:
        """Do the writes that BlueStore has put off.

        Raises:
            StageFailed: it takes longer.
        """
        if self._current is not None:
            self._entered().catch_up(limit_s)

    def degrade(self) -> None:
        """Kill an OSD, the same in each trial.

        Raises:
            StageFailed: it is not there.
        """
        self._entered().kill_osd()

    def repair(self) -> None:
        """Start it again.

        Raises:
            StageFailed: it cannot be started.
        """
        self._entered().start_osd()

    def recover(self) -> None:
        """Wait until each object has all of its copies again, or for `recovery_limit`.

        Raises:
            StageFailed: the OSD does not join the cluster.
        """
        self._entered().recover(self._recovery_limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:
        """The seconds after which writes that were put off are done in any case."""
        if not metrics.get("ceph_deferred_writes", 0.0) and not metrics.get(f"deferred_{PUT_OFF}", 0.0):
            return 0.0
        name = "bluestore_max_defer_interval"
        return float(configuration.get(name, self._before(name)))

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        shape = {"osds": self._shape.osds, "replicas": self._shape.replicas}
        return {**super().describe(), "ceph": self._programs.version, **shape}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """`ceph config set` for a shell, and for the standard input of `ceph`."""
        return forms_of(configuration, chosen)

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """The daemons, with what comes along."""
        found = found_by(lambda: f"Ceph {CephPrograms.find().version}")
        what = "the cluster that is tuned, and the load"
        return (Need("ceph", what, found, ("ceph",), "ceph-mon ceph-mgr ceph-osd", "ceph"),)

    def _made(self, place: Path, keeper: Keeper) -> CephCluster:
        return CephCluster(self._programs, self._account, place, keeper, self._shape)

    def _lines(self, configuration: Configuration) -> Sequence[str]:
        """The settings of a configuration; those that it does not have return to what was in force before."""
        before = {one.name: one.default for one in self.space.parameters}
        return settings_of({**before, **self._whole(configuration)})

    def _settings(self) -> Mapping[str, str]:
        return self._entered().settings()

    def _told(self) -> Sample:
        """The totals of all OSDs, and the writes that they have put off."""
        dumps = self._entered().told()
        totals = [counters_of(dump) for dump in dumps]
        counters = {name: sum(one[name] for one in totals) for name in COUNTERS}
        return Sample(counters, deferred={PUT_OFF: sum(map(put_off, dumps))})


def _failure_s(given: CephOptions) -> float:
    """How long the load runs during the failure of an OSD; 0: none fails."""
    if given.osd_failure is None:
        return 0.0
    failure_s, (least_s, most_s) = duration("target.osd_failure", given.osd_failure), _FAILURE_S
    if not least_s <= failure_s <= most_s:
        raise StudyError(
            f"target.osd_failure = {given.osd_failure!r}: must be from {least_s:g} s to {most_s:g} s"
        )
    if given.replicas < _REPLICAS_MIN:
        raise StudyError(
            f"target.osd_failure = {given.osd_failure!r}: needs target.replicas of at least {_REPLICAS_MIN}: "
            "with fewer, a pool takes no writes while one copy is missing"
        )
    return failure_s


def _shape_of(given: CephOptions, memory_bytes: int) -> ClusterShape:
    least, most = _OSDS
    if not least <= given.osds <= most:
        raise StudyError(f"target.osds = {given.osds}: must be from {least} to {most}")
    if not 1 <= given.replicas <= given.osds:
        raise StudyError(f"target.replicas = {given.replicas}: must be from 1 to target.osds ({given.osds})")
    osd_bytes = size("target.osd_size", given.osd_size, _OSD_BYTES_MIN)
    each_bytes = memory_bytes // given.osds
    if given.memory is not None and each_bytes < OSD_MEMORY_BYTES_MIN:
        each = format_size(OSD_MEMORY_BYTES_MIN)
        raise StudyError(f"target.memory = {given.memory!r}: must be at least {each} for each OSD")
    aligned = osd_bytes // 4096 * 4096
    return ClusterShape(given.osds, given.replicas, aligned, max(OSD_MEMORY_BYTES_MIN, each_bytes))
