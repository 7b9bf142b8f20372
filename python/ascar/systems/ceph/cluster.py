"""A Ceph cluster of a study's own: a monitor, a manager, and OSDs on sparse files, on the loopback alone.

PLACE/ceph.conf          what the cluster is; the settings of the trial are in its monitor, as usual
PLACE/keyring            the keys of daemons and of client.admin, for root and the account alone
PLACE/data/mon.a         the monitor's database
PLACE/data/osd.N         an OSD, with its file `block`
PLACE/logs               what the daemons log
PLACE/NAME.asok          the sockets by which they are asked
"""

from __future__ import annotations

import os
import signal
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.errors import StageFailed
from ascar.program.ceph import CONFIGURATION, POOL, CephPrograms
from ascar.systems.ceph.admin_socket import ask_daemon
from ascar.systems.ceph.counters import put_off
from ascar.systems.ceph.keyring import keyring_text
from ascar.systems.ceph.status import ClusterStatus
from ascar.systems.own_server.server import OwnServer, last_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ascar.program.account import Account
    from ascar.systems.keeper import Keeper
    from ascar.systems.program.foreground import Foreground

MONITOR, MANAGER, LOAD_POOL = "mon.a", "mgr.x", "load"
LONGEST_SOCKET = "mon.a.asok.999999"
_ASK_S = 10.0
_TELL_S = 30.0
_LOOK_S = 0.05
_HEALTH_LOOK_S = 0.3  # each look is a start of `ceph`, which is a Python program
_CLEAN_S = 60.0
_JOIN_S = 120.0
_ENDING_S = 10.0
_PLACEMENT_GROUPS = 32
_UNUSED_MODULES = (
    "alerts dashboard diskprediction_local influx insights iostat k8sevents localpool mirroring nfs "
    "osd_perf_query osd_support prometheus restful rook selftest snap_schedule stats telegraf "
    "test_orchestrator zabbix"
)
"""Of the manager, which reads all at each start, half of its time; it wants the others, used or not."""


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """What a cluster is made of; no trial changes it.

    Attributes:
        osds: the OSDs.
        replicas: the copies of each object.
        osd_bytes: the size of each OSD's sparse file.
        memory_bytes: the memory that each OSD tries to keep to.
    """

    osds: int
    replicas: int
    osd_bytes: int
    memory_bytes: int


class CephCluster(OwnServer[CephPrograms]):
    """The cluster; nothing runs until `begin`.

    Args:
        programs: the version to run.
        account: whom it runs as.
        place: the directory, which exists and belongs to the account.
        keeper: a keeper of the user.
        shape: what it is made of.
    """

    name = "Ceph"
    variables = ("CEPH_",)

    def __init__(
        self, programs: CephPrograms, account: Account, place: Path, keeper: Keeper, shape: ClusterShape
    ) -> None:
        super().__init__(programs, account, place, keeper)
        self._shape = shape
        self._port = 0
        self._fsid = str(uuid.uuid4())
        self._osds: list[Foreground] = []

    @property
    def configuration(self) -> Path:
        """The path of ceph.conf."""
        return self.place / "ceph.conf"

    @property
    def reached(self) -> Mapping[str, str]:
        """The path of ceph.conf, which Ceph's programs read, and the pool."""
        return {CONFIGURATION: str(self.configuration), POOL: LOAD_POOL}

    def create(self) -> None:
        """Make the database of a monitor; `begin` makes the OSDs.

        Raises:
            StageFailed: it cannot be made.
        """
        self._remove(self.data)
        for path in (self.data, self.place / "logs", self.data / MANAGER):
            if not path.exists():
                self._make(path)
        self._port = _free_port()
        self._write(self.configuration, "".join(f"{line}\n" for line in self._fixed_lines()))
        keys = keyring_text(["mon.", MANAGER, *self._names, "client.admin"])
        self._write(self._keyring, keys, private=True)
        map_path = str(self.place / "monmap")
        address = f"[v2:127.0.0.1:{self._port}]"
        made = ["--create", "--clobber", "--fsid", self._fsid, "--addv", "a", address, map_path]
        self._run([self.programs.path("monmaptool"), *made])
        self._run([*self._daemon("mon", "a"), "--mkfs", "--monmap", map_path])

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Start the daemons, whose settings the monitor gets first, and wait until the cluster is healthy.

        Args:
            lines: a file for `ceph config assimilate-conf`.
            limit_s: seconds that it may take.

        Raises:
            StageFailed: a daemon does not start, or the cluster does not become healthy; with the reason.
        """
        deadline_s = time.monotonic() + limit_s
        self._osds = []
        self._start([*self._daemon("mon", "a"), "-f"], {})
        self._wait_until(self._leads, limit_s, _LOOK_S)
        try:
            self._set(lines)
            names = [f"osd.{number}" for number in range(self._shape.osds)]
            fresh = not (self.data / names[0]).exists()
            if fresh:
                self._make_osds(names)
            self._start([*self._daemon("mgr", MANAGER.partition(".")[2]), "-f"], {})
            for name in names:
                self._start_osd(name)
            self._wait_until(self._answers, limit_s, _LOOK_S)
            if fresh:
                self._make_pool()
        except StageFailed:
            self.stop()
            raise
        self._wait_until_healthy(deadline_s)

    def ping(self, limit_s: float) -> None:
        """See that the cluster is healthy.

        Raises:
            StageFailed: it is not within `limit_s`.
        """
        deadline_s = time.monotonic() + limit_s
        while (reason := self._unhealthy()) is not None:
            self.check_alive()
            if time.monotonic() > deadline_s:
                raise StageFailed("health", f"the Ceph cluster is not healthy: {reason}")
            time.sleep(_HEALTH_LOOK_S)

    def kill_osd(self) -> None:
        """Kill the last OSD; its files stay.

        Raises:
            StageFailed: it does not run.
        """
        self.check_alive()
        failed = self._osds.pop()
        os.kill(failed.pid, signal.SIGKILL)
        failed.end()
        self._processes.remove(failed)

    def start_osd(self) -> None:
        """Start the OSD that was killed.

        Raises:
            StageFailed: it cannot be started.
        """
        self._start_osd(self._names[-1])

    def recover(self, limit_s: float) -> None:
        """Wait until the OSD that was started again has joined, and the cluster is healthy, or for `limit_s`.

        Raises:
            StageFailed: the OSD does not join.
        """
        deadline_s = time.monotonic() + limit_s
        self._wait_until(self._answers, _JOIN_S, _LOOK_S)
        while self._unhealthy() is not None and time.monotonic() < deadline_s:
            self.check_alive()
            time.sleep(_HEALTH_LOOK_S)

    def told(self) -> list[dict[str, Any]]:
        """The counters of each OSD.

        Raises:
            StageFailed: one does not answer.
        """
        return [self._ask(name, "perf dump") for name in self._names]

    def settings(self) -> dict[str, str]:
        """The settings in force in the OSDs, and those that the monitor gives to clients.

        Where OSDs differ, each value is told once, with "," between them.

        Raises:
            StageFailed: a daemon does not answer.
        """
        shown = [self._ask(name, "config show") for name in self._names]
        found = {name: ",".join(dict.fromkeys(str(one.get(name)) for one in shown)) for name in shown[0]}
        return {**found, **self._of_clients()}

    def catch_up(self, limit_s: float) -> None:
        """Do the writes that BlueStore has put off, which it would do after some seconds without a load.

        Batches of one write, and a write by each OSD to itself (`bench`), make it begin at once.

        Raises:
            StageFailed: it takes longer.
        """
        deadline_s = time.monotonic() + limit_s
        late = [name for name, dump in zip(self._names, self.told(), strict=True) if put_off(dump) > 0]
        for name in late:
            self._ask(name, "config set", var="bluestore_deferred_batch_ops", val=["1"])
        try:
            for name in late:
                self._ask(name, "bench", count=4096, size=4096)
                while put_off(self._ask(name, "perf dump")) > 0:
                    self.check_alive()
                    if time.monotonic() > deadline_s:
                        raise StageFailed("drain", f"{name} does not end the writes that it put off in time")
                    time.sleep(_LOOK_S)
        finally:
            for name in late:
                with suppress(StageFailed):
                    self._ask(name, "config unset", var="bluestore_deferred_batch_ops")

    @property
    def _keyring(self) -> Path:
        return self.place / "keyring"

    @property
    def _names(self) -> list[str]:
        return [f"osd.{number}" for number in range(self._shape.osds)]

    def _fixed_lines(self) -> list[str]:
        shape = self._shape
        sockets = [f"admin_socket = {self.place}/$name.asok", f"log_file = {self.place}/logs/$name.log"]
        return [
            "[global]",
            f"fsid = {self._fsid}",
            f"mon_host = v2:127.0.0.1:{self._port}/0",
            "mon_initial_members = a",
            "public_network = 127.0.0.0/8",
            "auth_cluster_required = cephx",
            "auth_service_required = cephx",
            "auth_client_required = cephx",
            "auth_allow_insecure_global_id_reclaim = false",
            f"run_dir = {self.place}",
            f"keyring = {self._keyring}",
            "log_to_stderr = false",
            f"osd_pool_default_size = {shape.replicas}",
            f"osd_pool_default_min_size = {shape.replicas // 2 + 1}",
            "osd_pool_default_pg_autoscale_mode = off",
            "osd_crush_chooseleaf_type = 0",
            "mon_allow_pool_size_one = true",
            "paxos_propose_interval = 0.1",
            "paxos_min_wait = 0.02",
            "mgr_stats_period = 1",
            "[mon]",
            *sockets,
            f"mon_data = {self.place}/data/$name",
            f"mon_cluster_log_file = {self.place}/logs/cluster.log",
            "mgr_initial_modules =",
            "[mgr]",
            *sockets,
            f"mgr_data = {self.place}/data/$name",
            f"mgr_disabled_modules = {_UNUSED_MODULES}",
            "[osd]",
            *sockets,
            f"osd_data = {self.place}/data/$name",
            f"bluestore_block_size = {shape.osd_bytes}",
            f"osd_memory_target = {shape.memory_bytes}",
        ]

    def _daemon(self, kind: str, called: str) -> list[str]:
        return [self.programs.path(f"ceph-{kind}"), "-c", str(self.configuration), "-i", called]

    def _start_osd(self, name: str) -> None:
        self._osds.append(self._start([*self._daemon("osd", name.partition(".")[2]), "-f"], {}))

    def _make_osds(self, names: Sequence[str]) -> None:
        """Make OSDs on files, side by side."""
        programs: list[list[str]] = []
        for name in names:
            identity = str(uuid.uuid4())
            self._tell("osd", "new", identity)
            self._make(self.data / name)
            words = self._daemon("osd", name.partition(".")[2])
            programs.append([*words, "--mkfs", "--osd-uuid", identity])
        self._run(*programs)

    def _make_pool(self) -> None:
        """Make the pool of the load; the manager makes one of its own, in which nothing happens."""
        count = str(_PLACEMENT_GROUPS)
        self._tell("osd", "pool", "create", LOAD_POOL, count, count, "replicated")
        self._tell("osd", "pool", "application", "enable", LOAD_POOL, "rados")

    def _set(self, lines: Sequence[str]) -> None:
        """Have the monitor, which has none yet, hold settings."""
        path = self.place / "settings.conf"
        self._write(path, "".join(f"{line}\n" for line in lines))
        left = self._tell("config", "assimilate-conf", "-i", str(path))
        refused = [line.strip() for line in left.splitlines() if "=" in line]
        if refused:
            raise StageFailed("change", f"Ceph has no such setting: {refused[0][:200]}")

    def _of_clients(self) -> dict[str, str]:
        told = self._tell("config", "dump", "--format", "json")
        try:
            listed = typed.decode(told.encode(), list[_Held])
        except (msgspec.MsgspecError, UnicodeError):
            raise StageFailed("program", f"Ceph's settings are not readable: {told[:100]!r}") from None
        return {one.name: one.value for one in listed if one.section == "client"}

    def _tell(self, *words: str, limit_s: float = _TELL_S) -> str:
        """What the monitor prints of a command."""
        argv = [self.programs.path("ceph"), "-c", str(self.configuration)]
        argv += ["--connect-timeout", str(int(limit_s)), *words]
        return self._asked(argv, " ".join(words), 2 * limit_s)

    def _ask(self, name: str, command: str, **more: Any) -> dict[str, Any]:
        return ask_daemon(self.place / f"{name}.asok", command, _ASK_S, **more)

    def _leads(self) -> bool:
        with suppress(StageFailed):
            return self._ask(MONITOR, "mon_status").get("state") == "leader"
        return False

    def _answers(self) -> bool:
        """Whether all OSDs have joined the cluster."""
        with suppress(StageFailed):
            return all(self._ask(name, "status").get("state") == "active" for name in self._names)
        return False

    def _wait_until_healthy(self, deadline_s: float) -> None:
        reason: str | None = None

        def healthy() -> bool:
            nonlocal reason
            reason = self._unhealthy()
            return reason is None

        try:
            self._wait_until(healthy, max(1.0, deadline_s - time.monotonic()), _HEALTH_LOOK_S)
        except StageFailed as failure:
            if reason is None:
                raise
            raise StageFailed("change", f"{failure.message}: {reason}"[:400], failure.stderr) from None

    def _unhealthy(self) -> str | None:
        """Why a trial may not begin; None: it may."""
        try:
            return ClusterStatus.of(self._tell("status", "--format", "json")).problem(self._shape.osds)
        except StageFailed as failure:
            return failure.message

    def _shut_down(self) -> None:
        """End the daemons, the OSDs first; after the fill, which is kept, these close their files first."""
        if not self.saved.exists():
            with suppress(StageFailed):  # so that a trial's settings are all that the monitor of a copy has
                self._tell("config", "reset", "0")
            for name in self._names:
                with suppress(StageFailed):
                    self._ask(name, "config set", var="osd_fast_shutdown", val=["false"])
        limit_s = _ENDING_S if self.saved.exists() else _CLEAN_S
        _end(self._osds, limit_s)
        _end([one for one in self._processes if one not in self._osds], _ENDING_S)

    def _reason(self, said: str) -> str | None:
        """The last line in which a daemon says -1, or what its log says of an error."""
        lines = [line for line in said.splitlines() if " -1 " in line]
        return last_line("\n".join(lines)).partition(" -1 ")[2] if lines else None


class _Held(msgspec.Struct, frozen=True):
    section: str
    name: str
    value: str


def _end(processes: Sequence[Foreground], limit_s: float) -> None:
    """Ask processes to end, and wait until they have."""
    for process in processes:
        with suppress(OSError):
            os.kill(process.pid, signal.SIGTERM)
    deadline_s = time.monotonic() + limit_s
    for process in processes:
        with suppress(StageFailed):
            while time.monotonic() < deadline_s:
                process.check_alive()
                time.sleep(_LOOK_S)


def _free_port() -> int:
    """A port of the loopback that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
