"""The target of kind "nfs".

[target]
kind = "nfs"
parameters = "expert"         # or "wide": every setting of the catalogue
disk = "read-ahead-cliff"     # the scenario that says how long the server's disk takes
disk_size = "2 GiB"
link = { rate_mbit_per_s = 1000, delay_ms = 0.2 }

A server and a client, each a kernel of its own on this machine (user-mode Linux), made for the study. The
load runs in the client. `server = "existing"` tunes a mount, or a server, of this machine instead
(`existing.py`).
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.catalogues.nfs import nfs
from ascar.errors import AscarError, InputError, StageFailed, StudyError
from ascar.nodes.process import failing
from ascar.results.machine import Need
from ascar.results.trial import Change
from ascar.study import absolute, convert, size
from ascar.systems import Sample, Starter, Target
from ascar.systems.counters import device_totals
from ascar.systems.dirty_pages import MEMINFO, machine_dirty_bytes, write_back_cycle_s
from ascar.systems.keeper import Keeper, scratch_directory
from ascar.systems.machine import describe_machine
from ascar.systems.needs import program_need
from ascar.systems.nfs.mounts import COUNTERS, MOUNTSTATS, counters_of
from ascar.systems.nfs.nodes import CLIENTS, DISK_STAT, EXPORT, PLACE, NfsNodes
from ascar.systems.nfs.settings import in_order, options_of, those
from ascar.systems.nfs.space import chosen, nfs_space
from ascar.systems.nfs.statements import forms_of
from ascar.systems.steps import SecondsByStep
from ascar.testbed import user_mode
from ascar.testbed.kernel_parts import KernelParts, LinkShape, NfsExport, NfsServer, NodeDisk
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.space import Configuration, Space, Value
    from ascar.systems import System

_DIRECTORY = "/var/tmp"  # noqa: S108 - what is made in it has a name that nobody knows
_WRITE_BACK_S = 300.0
_DISK_BYTES, _MEMORY_BYTES = (64 << 20, 1 << 46), (128 << 20, 1 << 40)
"""What a disk, and a node, can have."""
_LARGEST = "nfsd.max_block_size"
_DEFERRED = ("client_dirty_bytes", "server_dirty_bytes")
_DIRTY_BYTES_MIN = 1 << 20
"""Below, nothing that matters waits to be written."""


class NfsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "nfs".

    Attributes:
        parameters: "expert", about ten settings, or "wide", all of the catalogue.
        disk: a preset or a file of the simulator, which says how long the server's disk takes.
        disk_size: the size of the disk.
        file_system: what is made on it: ext4, xfs or btrfs.
        link: what is between client and server: rate_mbit_per_s, delay_ms, loss_percent, queue_packets.
        server_memory: the memory of the server's node.
        client_memory: the memory of the client's node.
        directory: the directory in which one is made for the disk's data. None: /var/tmp.
    """

    parameters: Literal["expert", "wide"] = "expert"
    disk: str = "read-ahead-cliff"
    disk_size: str = "2 GiB"
    file_system: Literal["ext4", "xfs", "btrfs"] = "ext4"
    link: dict[str, Any] = msgspec.field(default_factory=lambda: {"rate_mbit_per_s": 1000, "delay_ms": 0.2})
    server_memory: str = "384 MiB"
    client_memory: str = "256 MiB"
    directory: str | None = None


class Nfs(Target):
    """A server and a client of NFS, of the study's own.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    listed = staticmethod(nfs)
    default_workload: str | None = "fio"
    workloads = frozenset({"command", "filebench", "fio"})
    initialises_lazily = False
    starter = Starter(
        target={"parameters": '"expert"', "disk": '"read-ahead-cliff"', "disk_size": '"2 GiB"'},
        space={
            "allow_cost": '#allow_cost = ["dyn-kernel", "dyn-app", "umount-mount"]',
            "weaker": "durability",
            "pinned": "nconnect = 1",
            "constraint": "rsize >= 65536",
            "forbidden": "rsize = 16384, nconnect = 8",
        },
        workload=lambda: {
            "kind": '"fio"',
            "options": '{ rw = "read", bs = "256k", size = "24m", numjobs = 16, ioengine = "psync" }',
        },
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        from ascar.simulation import open_scenario

        self.options = convert(options, NfsOptions, "target")
        link = convert(self.options.link, LinkShape, "target.link")
        try:
            open_scenario(self.options.disk)
        except InputError as error:
            raise StudyError(f"target.disk = {self.options.disk!r:.80}: {error.message}") from error
        size_bytes = size("target.disk_size", self.options.disk_size, *_DISK_BYTES)
        disk = NodeDisk(
            "data", self.options.disk, size_bytes // 4096 * 4096, file_system=self.options.file_system
        )
        server, client = (
            size(f"target.{key}", getattr(self.options, key), *_MEMORY_BYTES) >> 20
            for key in ("server_memory", "client_memory")
        )
        exported = NfsServer((NfsExport(EXPORT, CLIENTS),))
        self._parts = (
            KernelParts("server", server, disks=(disk,), nfs=exported),
            KernelParts("client", client, shape=link),
        )
        if self.options.directory is not None:
            absolute("target.directory", self.options.directory, is_there=True)
        self._settings = {one.parameter_name: one for one in chosen(self.options.parameters)}
        self.space = self._space({})
        self._current: Mapping[str, Value] = {}
        self._nodes: NfsNodes | None = None
        self._held = ExitStack()
        self._filled = False

    @classmethod
    def variant(cls, options: Mapping[str, Any]) -> type[System]:
        """A mount or a server that people use is tuned in another way."""
        if "server" not in options:
            return cls
        from ascar.systems.nfs.existing import ExistingNfs

        return ExistingNfs

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """The kernel as a process, and what server and client run in it."""
        purpose = "a server and a client of NFS, each a kernel of its own"
        missing = user_mode.missing()
        found = "yes" if missing is None else None
        packages = ("nfs-kernel-server nfs-common", "nfs-utils")
        return (
            Need("user-mode-linux", purpose, found, ("nfs",), "user-mode-linux kmod iproute2"),
            *(program_need(name, purpose, packages, ("nfs",)) for name in ("rpc.nfsd", "mount.nfs")),
            program_need("nbd-client", "the server's disk", ("nbd-client", "nbd"), ("nfs",)),
        )

    def __enter__(self) -> Nfs:
        """Boot both nodes and mount the export; what is in force then becomes the defaults.

        Raises:
            StudyError: the directory cannot be written to.
            EnvironmentLacks: what the nodes need is not installed.
            WorkError: they do not come up.
        """
        directory = self.options.directory or _DIRECTORY
        try:
            keeper = self._held.enter_context(Keeper("nfs", user=True))
            try:
                place = self._held.enter_context(scratch_directory(keeper, "ascar-nfs-", directory))
            except OSError as error:
                why = f"{error.strerror}; name a directory that you may write to"
                raise StudyError(f"target.directory = {directory!r}: {why}") from error
            folder = self._held.enter_context(scratch_directory(keeper, "ascar-nfs-"))
            self._nodes = nodes = NfsNodes(place, folder, *self._parts)
            self._held.callback(nodes.close)
            self._begin()
            self.space = self._space(nodes.values(self._settings.values()))
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End both nodes, and remove everything."""
        self._close()

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values in force."""
        wanted = {name: one for name, one in self._settings.items() if name in names}
        told = self._entered().values(wanted.values())
        return {name: told[one.name] for name, one in wanted.items() if one.name in told}

    def apply(self, configuration: Configuration) -> Change:
        """Set what differs; server and mounts are made anew only for what takes effect no earlier.

        Raises:
            StageFailed: a kernel refuses a value, or a node does not come up.
        """
        nodes, steps = self._entered(), SecondsByStep()
        before, self._current = self._current if nodes.are_up else {}, {}
        difference = self.space.change(before, configuration)
        whole = {**{one.name: one.default for one in self.space.parameters}, **configuration}
        wanted = in_order({self._settings[name].name: value for name, value in whole.items()})
        if not nodes.is_booted(words := options_of(wanted, "boot")):
            with steps.step("boot"), failing("nfs", AscarError):
                self._begin(words)
            before = {}
        different = [self._settings[name] for name in self.space.change(before, configuration).parameters]
        contexts = {one.context for one in different}
        if "restart" in contexts:
            with steps.step("server"):
                nodes.unmount()
                nodes.restart_server({**_defaults(), **wanted})
        if contexts & {"connection", "restart"}:
            with steps.step("mount"):
                nodes.unmount()
                nodes.mount(wanted)
        with steps.step("settings"):
            if any(one.where == "export" for one in different):
                nodes.export(wanted)
            nodes.set_now(wanted)
        # Where a kernel or the server has allowed something else, all of it is made anew the next time.
        if self.read(configuration).items() <= configuration.items():
            self._current = configuration
        return Change.of(difference, steps.seconds, filled=self._filled)

    def settle(self) -> Mapping[str, float]:
        """Nothing is left to be written, and no file is in a memory."""
        nodes, steps = self._entered(), SecondsByStep()
        with steps.step("write back"):
            nodes.write_back(_WRITE_BACK_S)
        with steps.step("drop caches"):
            nodes.drop_caches()
        self._filled = True
        return steps.seconds

    def health(self, limit_s: float) -> None:
        """See that the client reaches its files."""
        words = ["stat", "-f", "--", PLACE]
        self._entered().at_client.run("look at the mount", words, max(1.0, limit_s))

    def sample(self) -> Sample:
        """What the client counts of its mount, the traffic of the server's disk, and dirty pages of both."""
        nodes = self._entered()
        stats, of_client = nodes.at_client.read([MOUNTSTATS, str(MEMINFO)])
        stat, of_server = nodes.at_server.read([DISK_STAT, str(MEMINFO)])
        dirty = map(machine_dirty_bytes, (of_client, of_server))
        counters = {**counters_of(stats, PLACE), **device_totals("disk", stat)}
        return Sample(counters, deferred=dict(zip(_DEFERRED, dirty, strict=True)))

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return frozenset({*COUNTERS, *device_totals("disk", "")})

    def drain(self, limit_s: float) -> None:
        """Write back what the client and the server hold."""
        self._entered().write_back(limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The greatest age of dirty pages, where the load leaves some."""
        if max(metrics.get(f"deferred_{name}", 0.0) for name in _DEFERRED) < _DIRTY_BYTES_MIN:
            return 0.0
        return write_back_cycle_s({"vm_dirty_expire_centisecs": 3000, "vm_dirty_writeback_centisecs": 500})

    @property
    def workspace(self) -> Workspace:
        """A directory on the mount, in the client's node."""
        return Workspace(Path(PLACE) / "load", node=self._entered().client)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for: kernels and queues are real, the disk and the link are models."""
        nodes = self._entered()
        return {
            "target": "nfs",
            **describe_machine(),
            "kernel_of_nodes": nodes.client.facts().kernel,
            "device": {"name": "disk", "model": self.options.disk, "file_system": self.options.file_system},
            "link": msgspec.to_builtins(self._parts[1].shape),
            "memory_mib": {one.name: one.memory_mib for one in self._parts},
        }

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """nfs.conf, fstab, sysctl.d and udev, and commands for now."""
        return forms_of(configuration, chosen)

    def _begin(self, words: tuple[str, ...] = ()) -> None:
        """Boot, and be as a server and a client are that nobody has tuned; the disk has its files."""
        nodes = self._entered()
        nodes.boot(words)
        # Of its little memory the server would make requests small, which no server with 4 GiB does.
        nodes.restart_server(_defaults())
        nodes.mount(those(_defaults(), "connection", "mount"))

    def _space(self, present: Mapping[str, Value]) -> Space:
        return nfs_space(self._settings.values(), present, largest=int(nfs()[_LARGEST].default))

    def _close(self) -> None:
        self._nodes, self._current, self._filled = None, {}, False
        self._held.close()

    def _entered(self) -> NfsNodes:
        if self._nodes is None:
            raise StageFailed("program", "the target is entered before it is used")
        return self._nodes


def _defaults() -> dict[str, Value]:
    return {name: one.default for name, one in nfs().items()}
