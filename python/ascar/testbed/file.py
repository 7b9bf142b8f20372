"""The testbed file: nodes, disks, proxies and links as values; every mistake is named by its key.

version = 1

[testbed]
name = "contended-disk"

[[node]]
name = "server1"
kind = "namespace"      # or "process", which needs no root and has no links

[[node]]
name = "client1"
kind = "namespace"
link = { rate_mbit_per_s = 1000, delay_ms = 0.1, loss_percent = 0 }

[[disk]]
name = "disk1"
node = "server1"
scenario = "random-write"
size = "4GiB"

[[proxy]]
node = "client1"
disks = ["disk1"]
window = 8

Nodes of kind "kernel" may have an agent, [[agent]], see `AgentTable`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from ascar.errors import StudyError
from ascar.small_file import SmallFile
from ascar.study import convert, size, within
from ascar.testbed.agents import AgentTable, check_agents, check_workload
from ascar.testbed.kernel_checks import check_kernels, check_once
from ascar.testbed.kernel_parts import LinkShape, NfsMount, NfsServer, RemoteDisk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_T = TypeVar("_T")
VERSION = 1
NODES_MAX, DISKS_MAX = 64, 64
_EXPORTS_MAX = 256
_FILE_BYTES_MAX = 1 << 20
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_RESERVED = frozenset({"localhost", "switch"})
_EXPORT = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FIRST_PORT = 10_809  # which is NBD's own
_WINDOW_MAX, _GAP_US_MAX = 256, 60_000_000


class TestbedSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[testbed]`.

    Attributes:
        name: what commands call it: lower-case letters, digits and -.
    """

    name: str


class NodeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[node]]`.

    Attributes:
        name: what the file and commands call it; nodes other than processes know each other by it.
        kind: "process": processes of this machine, which ends them together. "namespace": with a network and
            process numbers of its own, as root. "kernel": with a kernel of its own (user-mode Linux).
        link: what is between it and all others, of nodes of kind "namespace" and "kernel".
        memory_mib: of kind "kernel": its memory.
        kernel_words: of kind "kernel": further words of the kernel's command line.
        visible: of kind "kernel": directories of this machine that it sees although they lie below /tmp,
            /run, /mnt or /srv, which are its own; relative paths start at the folder of the testbed file.
        kept: of kind "kernel": the directory that keeps what its disks hold, and stays afterwards; left out:
            one that ends with the testbed.
        nfs: of kind "kernel": its NFS server.
        mounts: of kind "kernel": what it mounts from the NFS servers of others.
        attach: of kind "kernel": disks of others that become block devices.
    """

    name: str
    kind: Literal["process", "namespace", "kernel"] = "process"
    link: LinkShape = LinkShape()
    memory_mib: int = 192
    kernel_words: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    kept: str | None = None
    nfs: NfsServer | None = None
    mounts: tuple[NfsMount, ...] = ()
    attach: tuple[RemoteDisk, ...] = ()


_OF_KERNELS = ("memory_mib", "kernel_words", "visible", "kept", "nfs", "mounts", "attach")


class DiskTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[disk]]`: an `ascard disk`, which serves network block devices.

    Attributes:
        name: what the file and commands call it.
        node: the node that it runs on.
        scenario: the disk is that of this scenario's first server: a preset of `ascar sim`, or a file (.toml)
            whose path starts at the folder of the testbed file.
        size: the size of each export, such as "4GiB"; left out: the model's capacity, in equal
            parts; of nodes of kind "kernel": 1 GiB.
        exports: names of the parts in which it is offered; left out: one, of the disk's name.
        raid: an array of the server group's disks: 0, 1 or 5; left out: one disk.
        file: keep the data in this file, which is made where it is missing and stays afterwards; left out: in
            memory, where a cut of the node loses all of it. Nodes of kind "kernel" keep data by `kept`.
        file_system: of nodes of kind "kernel": the node itself attaches the disk, with this file system
            (ext4, xfs or btrfs); left out: it is served to others.
        place: of nodes of kind "kernel": where that is mounted, below /srv or /mnt; left out: /srv/NAME.
    """

    name: str
    node: str
    scenario: str
    size: str | None = None
    exports: tuple[str, ...] = ()
    raid: Literal[0, 1, 5] | None = None
    file: str | None = None
    file_system: str | None = None
    place: str | None = None

    @property
    def exported(self) -> tuple[str, ...]:
        """The names of its exports."""
        return self.exports or (self.name,)


class ProxyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[proxy]]`: an `ascard proxy` on a client's node, one a node.

    Attributes:
        node: the node that it runs on, which is also the name of its controller.
        disks: disks that its clients reach through it; each is DISK.sock in the node's folder.
        window: requests in flight a stream while no rules are in force, from 1 to 256; left out: any number.
        gap_us: the least time between two requests of a stream while no rules are in force, in microseconds.
        workload: the workload by which rules are deployed on it.
    """

    node: str
    disks: tuple[str, ...]
    window: int | None = None
    gap_us: int = 0
    workload: str = "blocks"


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A testbed file whose tables are still to be read."""

    testbed: TestbedSection
    node: list[dict[str, Any]]
    disk: list[dict[str, Any]] = []
    proxy: list[dict[str, Any]] = []
    agent: list[dict[str, Any]] = []
    version: int = VERSION


class TestbedFile(msgspec.Struct, frozen=True):
    """A testbed file.

    Attributes:
        testbed: its name.
        node: its nodes.
        disk: its disks.
        proxy: its proxies.
        agent: its agents.
    """

    testbed: TestbedSection
    node: tuple[NodeTable, ...]
    disk: tuple[DiskTable, ...] = ()
    proxy: tuple[ProxyTable, ...] = ()
    agent: tuple[AgentTable, ...] = ()

    @property
    def name(self) -> str:
        """The name of the testbed."""
        return self.testbed.name

    def number_of(self, node: str) -> int:
        """The number of a node, from 1 on, of which its address is made."""
        return [one.name for one in self.node].index(node) + 1

    def port_of(self, disk: DiskTable) -> int:
        """The port of a disk that listens on one, by its place among those of its node."""
        return _FIRST_PORT + [one.name for one in self.disk if one.node == disk.node].index(disk.name)


def read_testbed(path: Path) -> TestbedFile:
    """The testbed of a file.

    Raises:
        StudyError: it cannot be read, or a key is wrong.
    """
    file = SmallFile(path, f"testbed file {str(path)!r:.300}", _FILE_BYTES_MAX, error=StudyError)
    return testbed_of(file.toml(), path.absolute().parent)


def is_testbed_file(path: Path) -> bool:
    """Whether a file (.toml) has the table of a testbed; what cannot be read has not."""
    if path.suffix != ".toml":
        return False
    try:
        return "testbed" in SmallFile(path, "testbed file", _FILE_BYTES_MAX, error=StudyError).toml()
    except StudyError:
        return False


def testbed_of(table: dict[str, Any], folder: Path) -> TestbedFile:
    """The testbed of a file's table.

    Args:
        table: what TOML gave.
        folder: where relative paths start.

    Raises:
        StudyError: a key is wrong.
    """
    version = table.get("version", VERSION)
    if version != VERSION:
        raise StudyError(f"version = {version!r:.80}: must be {VERSION}, the format that this ascar reads")
    found = convert(table, _Tables)
    wanted = TestbedFile(
        found.testbed,
        _each(found.node, NodeTable, "node"),
        _each(found.disk, DiskTable, "disk"),
        _each(found.proxy, ProxyTable, "proxy"),
        _each(found.agent, AgentTable, "agent"),
    )
    checked_name("testbed.name", wanted.name)
    kinds = _checked_nodes(wanted.node)
    _check_disks(wanted.disk, kinds)
    check_kernels(wanted)
    _check_proxies(wanted, kinds)
    check_agents(wanted.agent, kinds, [proxy.node for proxy in wanted.proxy])
    nodes = tuple(_seen(node, folder) for node in wanted.node)
    disks = tuple(_placed(disk, folder) for disk in wanted.disk)
    return msgspec.structs.replace(wanted, node=nodes, disk=disks)


def _each(tables: Sequence[dict[str, Any]], kind: type[_T], key: str) -> tuple[_T, ...]:
    def one(at: int, table: dict[str, Any]) -> _T:
        try:
            return convert(table, kind, f"{key}[{at}]")
        except StudyError as error:
            if error.message.startswith(key):
                raise
            raise StudyError(f"{key}[{at}].{error.message}") from None  # a value checked itself

    return tuple(one(at, table) for at, table in enumerate(tables))


def _checked_nodes(nodes: Sequence[NodeTable]) -> dict[str, str]:
    """The kind of each node by its name."""
    if not 1 <= len(nodes) <= NODES_MAX:
        raise StudyError(f"node: there are {len(nodes)} tables; from 1 to {NODES_MAX} are allowed")
    for at, node in enumerate(nodes):
        key = f"node[{at}]"
        checked_name(f"{key}.name", node.name)
        if node.name in _RESERVED:
            raise StudyError(f"{key}.name = {node.name!r}: must not be one of {', '.join(sorted(_RESERVED))}")
        if node.link != LinkShape() and node.kind == "process":
            raise StudyError(f"{key}.link: applies only to kind = 'namespace' and 'kernel', not to 'process'")
        plain = NodeTable(node.name)
        for name in _OF_KERNELS:
            if node.kind != "kernel" and getattr(node, name) != getattr(plain, name):
                raise StudyError(f"{key}.{name}: applies only to kind = 'kernel', not to {node.kind!r}")
    _check_once("node", [node.name for node in nodes])
    return {node.name: node.kind for node in nodes}


def _check_disks(disks: Sequence[DiskTable], kinds: dict[str, str]) -> None:
    if len(disks) > DISKS_MAX:
        raise StudyError(f"disk: there are {len(disks)} tables; at most {DISKS_MAX} are allowed")
    for at, disk in enumerate(disks):
        key = f"disk[{at}]"
        checked_name(f"{key}.name", disk.name)
        _check_there(f"{key}.node", disk.node, "node", kinds)
        _check_keys_of_kernels(key, disk, kinds[disk.node])
        if len(disk.exports) > _EXPORTS_MAX:
            raise StudyError(
                f"{key}.exports: there are {len(disk.exports)}; at most {_EXPORTS_MAX} are allowed"
            )
        for export in disk.exports:
            if not _EXPORT.fullmatch(export):
                raise StudyError(
                    f"{key}.exports = {export!r:.80}: must be 1 to 64 letters, digits, '.', '_' or '-'"
                )
        check_once(f"{key}.exports", disk.exports)
        if disk.size is not None:
            size(f"{key}.size", disk.size, 1)
        for name, path in (("scenario", disk.scenario), ("file", disk.file)):
            if path is not None and (not path or "\0" in path):
                raise StudyError(f"{key}.{name} = {path!r:.80}: must be the path of a file")
    _check_once("disk", [disk.name for disk in disks])
    files = [disk.file for disk in disks if disk.file is not None]
    if len(set(files)) < len(files):
        raise StudyError("disk: two have the same file; give each its own")


def _check_keys_of_kernels(key: str, disk: DiskTable, kind: str) -> None:
    """Some keys are of disks of nodes that are kernels, some of the others."""
    for name, value, wanted in (
        ("file_system", disk.file_system, True),
        ("place", disk.place, True),
        ("exports", disk.exports or None, False),
        ("file", disk.file, False),
    ):
        if value is not None and (kind == "kernel") != wanted:
            of = "'kernel'" if wanted else "'process' and 'namespace'"
            raise StudyError(f"{key}.{name}: applies only to nodes of kind {of}, not to {kind!r}")


def _check_proxies(wanted: TestbedFile, kinds: dict[str, str]) -> None:
    disks = {disk.name: disk for disk in wanted.disk}
    for at, proxy in enumerate(wanted.proxy):
        key = f"proxy[{at}]"
        _check_there(f"{key}.node", proxy.node, "node", kinds)
        if any(other.node == proxy.node for other in wanted.proxy[:at]):
            raise StudyError(f"{key}.node = {proxy.node!r}: has a proxy already; name all of its disks there")
        if not proxy.disks:
            raise StudyError(f"{key}.disks = []: must name at least one [[disk]]")
        for name in proxy.disks:
            _check_there(f"{key}.disks", name, "disk", disks)
            kind, own = kinds[disks[name].node], kinds[proxy.node]
            if kind != own:
                raise StudyError(
                    f"{key}.disks = {name!r}: is on a node of kind {kind!r}, "
                    f"must be on one of kind {own!r} like the proxy"
                )
            if disks[name].file_system is not None:
                raise StudyError(f"{key}.disks = {name!r}: its node attaches it; leave out its file_system")
        check_once(f"{key}.disks", proxy.disks)
        if proxy.window is not None:
            within(f"{key}.window", proxy.window, 1, _WINDOW_MAX)
        within(f"{key}.gap_us", proxy.gap_us, 0, _GAP_US_MAX)
        check_workload(f"{key}.workload", proxy.workload)


def checked_name(key: str, name: str) -> str:
    """A name of a testbed, a node or a disk.

    Raises:
        StudyError: it has other signs, or too many.
    """
    if not _NAME.fullmatch(name):
        raise StudyError(f"{key} = {name!r:.80}: must be 1 to 32 lower-case letters, digits or '-'")
    return name


def _check_there(key: str, name: str, kind: str, known: dict[str, Any]) -> None:
    if name not in known:
        there = ", ".join(known) or f"none; add a [[{kind}]] table"
        raise StudyError(f"{key} = {name!r:.80}: must be the name of a [[{kind}]]; there are {there}")


def _check_once(table: str, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise StudyError(f"{table}[{at}].name = {name!r}: is another {table}'s; give each its own")


def _seen(node: NodeTable, folder: Path) -> NodeTable:
    """The node with whole paths."""
    kept = None if node.kept is None else str(folder / node.kept)
    return msgspec.structs.replace(node, kept=kept, visible=tuple(str(folder / one) for one in node.visible))


def _placed(disk: DiskTable, folder: Path) -> DiskTable:
    """The disk with whole paths."""
    scenario = str(folder / disk.scenario) if disk.scenario.endswith(".toml") else disk.scenario
    file = None if disk.file is None else str(folder / disk.file)
    return msgspec.structs.replace(disk, scenario=scenario, file=file)
