"""What a node that is a kernel is made of: links, disks, exports, mounts, as values that tables give."""

from __future__ import annotations

import re
from ipaddress import IPv4Interface

import msgspec

from ascar.errors import StudyError
from ascar.study import within

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
VERSIONS = ("3", "4.2")
FILE_SYSTEMS = ("ext4", "xfs", "btrfs")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,60}[a-z0-9])?")
LINKS_MAX, DISKS_MAX = 10, 8
_OPTIONS = re.compile(r"[A-Za-z0-9_=.:,@/-]{0,400}")
_PLACE = re.compile(r"/(srv|mnt)/[A-Za-z0-9._-]{1,100}")


def named(key: str, name: str) -> None:
    """Refuse what cannot name a part.

    Raises:
        StudyError: it cannot.
    """
    if not NAME.fullmatch(name):
        raise StudyError(f"{key} = {name!r:.80}: must be of lower-case letters, digits and hyphens")


def _address(key: str, text: str) -> None:
    try:
        IPv4Interface(text)
    except ValueError as error:
        raise StudyError(f"{key} = {text!r:.80}: must be an IPv4 address such as 10.9.0.1/24") from error


def _host(key: str, text: str) -> None:
    _matches(key, _HOST, text, "an address or the name of a node")


def _matches(key: str, form: re.Pattern[str], text: str, allowed: str) -> None:
    if not form.fullmatch(text):
        raise StudyError(f"{key} = {text!r:.80}: must be {allowed}")


class LinkShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is between a node and all others, the same each way (the qdisc `netem`).

    Attributes:
        rate_mbit_per_s: so much passes at most, in 10^6 bits a second; None: as fast as it goes.
        delay_ms: packets come so much later.
        loss_percent: of 100 packets so many are lost.
        queue_packets: so many are under way at most; others are lost.
    """

    rate_mbit_per_s: float | None = None
    delay_ms: float = 0.0
    loss_percent: float = 0.0
    queue_packets: int = 1000

    def __post_init__(self) -> None:
        if self.rate_mbit_per_s is not None:
            within("link.rate_mbit_per_s", self.rate_mbit_per_s, 0.001, 1e6)
        within("link.delay_ms", self.delay_ms, 0, 60_000)
        within("link.loss_percent", self.loss_percent, 0, 100)
        within("link.queue_packets", self.queue_packets, 1, 1_000_000)


class LinkEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An end of a line to another node; `kernel_links` makes both.

    Attributes:
        port: the UDP port on 127.0.0.1 that it receives by.
        peer_port: the other end's.
        key: what packets to this end begin with: who does not know it is not heard.
        peer_key: what packets to the other end begin with.
    """

    port: int
    peer_port: int
    key: int
    peer_key: int

    def __post_init__(self) -> None:
        within("link.port", self.port, 1024, 65_535)
        within("link.peer_port", self.peer_port, 1024, 65_535)


class NodeDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[disk]]`: a disk of the node, `ascard disk`, whose data lies on this machine.

    Attributes:
        name: what the file with its data is called.
        scenario: a file or a preset of the simulator, which says how long its requests take.
        size_bytes: the size.
        file_system: what is made on it at first; None: nothing.
        place: the directory where it is mounted, below /srv or /mnt; None: /srv/NAME.
        raid: makes an array of it: 0, 1 or 5; None: one disk.
        port: other nodes attach it by this TCP port, and the node itself does not; None: the node does.
    """

    name: str
    scenario: str
    size_bytes: int = 1 << 30
    file_system: str | None = "ext4"
    place: str | None = None
    raid: int | None = None
    port: int | None = None

    def __post_init__(self) -> None:
        named("disk.name", self.name)
        within("disk.size_bytes", self.size_bytes, 1 << 20, 1 << 46)
        if self.size_bytes % 4096:
            raise StudyError(f"disk.size_bytes = {self.size_bytes}: must be a multiple of 4096")
        if self.file_system is not None and self.file_system not in FILE_SYSTEMS:
            raise StudyError(
                f"disk.file_system = {self.file_system!r:.80}: must be one of {', '.join(FILE_SYSTEMS)}"
            )
        if self.raid not in (None, 0, 1, 5):
            raise StudyError(f"disk.raid = {self.raid}: must be 0, 1 or 5")
        if self.place is not None:
            _matches("disk.place", _PLACE, self.place, "a directory of /srv or /mnt, such as /srv/data")
        if self.port is not None:
            within("disk.port", self.port, 1, 65_535)


class RemoteDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[attach]]`: another node's disk with a port, as a block device of this node (NBD).

    Attributes:
        server: the node that has it, by address or name.
        port: its port.
        device: the block device that it becomes.
        connections: TCP connections to it.
    """

    server: str
    port: int
    device: str = "/dev/nbd15"
    connections: int = 1

    def __post_init__(self) -> None:
        _host("attach.server", self.server)
        within("attach.port", self.port, 1, 65_535)
        _matches(
            "attach.device", re.compile(r"/dev/nbd([0-9]|1[0-5])"), self.device, "/dev/nbd0 to /dev/nbd15"
        )
        within("attach.connections", self.connections, 1, 16)


class NfsExport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[export]]`: a directory of the node that clients mount.

    Attributes:
        name: the directory, below /srv.
        clients: who may mount it, as exports(5) has it.
        options: options of exports(5) but for fsid, which is given.
    """

    name: str
    clients: str = "*"
    options: str = "rw,sync,no_root_squash,no_subtree_check"

    def __post_init__(self) -> None:
        named("export.name", self.name)
        _matches(
            "export.clients", re.compile(r"[A-Za-z0-9.*/:@-]{1,200}"), self.clients, "a host or a network"
        )
        _matches("export.options", _OPTIONS, self.options, "options of exports(5), separated by commas")


class NfsServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[nfs]`: the kernel's NFS server of a node.

    Attributes:
        exports: what it exports.
        threads: so many requests it serves at a time.
        versions: of the protocol.
        grace_s: after a boot it waits so long for clients of before, and clients are given up so long after
            their last word (the kernel's own default is 90 s).
    """

    exports: tuple[NfsExport, ...]
    threads: int = 8
    versions: tuple[str, ...] = VERSIONS
    grace_s: int = 10

    def __post_init__(self) -> None:
        within("nfs.threads", self.threads, 1, 4096)
        within("nfs.grace_s", self.grace_s, 10, 3600)
        _versions("nfs.versions", self.versions)


class NfsMount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[mount]]`: an export of another node that this one mounts.

    Attributes:
        server: the node that exports it, by address or name.
        export: the export's name.
        place: the directory where it is mounted, below /mnt; None: /mnt/NAME.
        version: of the protocol.
        options: further options of nfs(5).
        wait_s: the server may take so long until it answers.
    """

    server: str
    export: str
    place: str | None = None
    version: str = "4.2"
    options: str = "hard"
    wait_s: int = 60

    def __post_init__(self) -> None:
        _host("mount.server", self.server)
        named("mount.export", self.export)
        _versions("mount.version", (self.version,))
        _matches("mount.options", _OPTIONS, self.options, "options of nfs(5), separated by commas")
        within("mount.wait_s", self.wait_s, 0, 3600)
        if self.place is not None:
            _matches("mount.place", _PLACE, self.place, "a directory of /mnt, such as /mnt/data")


class KernelParts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a node that is a kernel is.

    Attributes:
        name: what it is called, also by itself.
        memory_mib: its memory, in MiB.
        kernel_words: further words of the kernel's command line.
        visible: directories of this machine that it sees although they lie below /tmp, /run, /mnt or /srv.
        address: its address with the length of the network's, such as 10.9.0.1/24; None: it has no network.
        links: the lines to the nodes that it reaches, at most 10.
        shape: what is between it and all of them.
        hosts: names that it knows, with their addresses.
        disks: disks.
        attach: disks of other nodes.
        nfs: its NFS server.
        mounts: what it mounts from other nodes.
    """

    name: str
    memory_mib: int = 192
    kernel_words: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    address: str | None = None
    links: tuple[LinkEnd, ...] = ()
    shape: LinkShape = LinkShape()
    hosts: dict[str, str] = {}
    disks: tuple[NodeDisk, ...] = ()
    attach: tuple[RemoteDisk, ...] = ()
    nfs: NfsServer | None = None
    mounts: tuple[NfsMount, ...] = ()

    def __post_init__(self) -> None:
        named("node.name", self.name)
        within("node.memory_mib", self.memory_mib, 64, 1 << 20)
        for word in self.kernel_words:
            _matches("node.kernel_words", re.compile(r"[!-~]{1,200}"), word, "one word of a command line")
        if self.address is not None:
            _address("node.address", self.address)
        elif self.links:
            raise StudyError("node.links: need an address; set node.address, such as 10.9.0.1/24")
        within("node.links, their number", len(self.links), 0, LINKS_MAX)
        for name, address in self.hosts.items():
            _host("node.hosts", name)
            _address(f"node.hosts.{name}", address)
        within("node.disks, their number", len(self.disks), 0, DISKS_MAX)
        names = [disk.name for disk in self.disks]
        if len(set(names)) < len(names):
            raise StudyError(f"node.disks = {', '.join(names)}: names must differ")


def _versions(key: str, versions: tuple[str, ...]) -> None:
    wrong = [one for one in versions if one not in VERSIONS]
    if wrong or not versions:
        raise StudyError(f"{key} = {', '.join(wrong)}: must be of {', '.join(VERSIONS)}")
