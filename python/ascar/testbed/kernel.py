"""A node that is a kernel of its own on this machine, and whose power can be cut."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from ascar.errors import EnvironmentLacks, Refused, StageFailed, StudyError
from ascar.nodes import Finished
from ascar.nodes.process import facts_by_shell, output_of, put_by_shell, start
from ascar.program.found import find_program
from ascar.program.node_binary import find_ascard
from ascar.testbed import kernel_disks, kernel_links, kernel_nfs, user_mode
from ascar.testbed.kernel_parts import LinkShape
from ascar.testbed.process import SOCKET_BYTES_MAX
from ascar.testbed.relay import Relay
from ascar.testbed.remote import LOAD, LOAD_GROUP, RemoteNode, run_there
from ascar.testbed.user_mode import UserModeKernel, below_own, init_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from ascar.nodes import NodeFacts
    from ascar.testbed.kernel_parts import KernelParts, NodeDisk

_OWN = (*user_mode.OWN, "/srv")
# What runs inside, or without the packages of this Python, and finds its modules beside itself.
_MODULES = (
    "errors.py",
    "testbed/frames.py",
    "testbed/process_one.py",
    "testbed/remote.py",
    "testbed/io_flusher.py",
    "testbed/tunnel.py",
)
_PACKAGE = Path(__file__).resolve().parents[1]
_LINE = "/dev/ttyS0"
# As much as a user may ask for.
_PIPE_BYTES = 1 << 20
_END_LOAD = """
tries=0
while [ $tries -lt 100 ] && found=$(grep -lzxF "$1" /proc/[0-9]*/environ 2>/dev/null); do
    for file in $found; do pid=${file#/proc/}; kill -KILL "${pid%/environ}" 2>/dev/null; done
    tries=$((tries + 1))
    sleep 0.02
done
"""
_END_LOAD_S, _LAST_WORDS = 30.0, 2000


class KernelNode:
    """A node that is a user-mode Linux kernel; it satisfies `Node`.

    Its root is this machine's file system, read-only, seen with the rights of the user who boots it; `/tmp`,
    `/run`, `/mnt`, `/srv`, `/var/tmp` and `/dev/shm` are its own. Programs are root's there, several at once,
    and are asked for through a socket, so that other processes can run some too (`words`). Links to other
    nodes are its only network. It ends with the process that booted it, however that ends.

    Args:
        parts: what it is.
        kept: the directory of this machine that keeps what the node's disks hold; it is made if need be.
        place: the directory in which the node's own folder is made; None: that of temporary files.

    Raises:
        EnvironmentLacks: the folder for temporary files has a path that a kernel's command line cannot hold.

    Attributes:
        parts: what it is.
        socket: where programs of it are asked for.
    """

    def __init__(self, parts: KernelParts, kept: Path, place: Path | None = None) -> None:
        self.parts = parts
        self._kept = kept.resolve()
        self._folder = Path(tempfile.mkdtemp(prefix="ascar-node-", dir=place))
        self.socket = self._folder / "socket"
        self._lock: int | None = None
        if why := _unfit(self.socket):
            self._folder.rmdir()
            raise EnvironmentLacks(
                f"folder {str(self._folder.parent)!r}: {why}; set ASCAR_RUNTIME_DIR or TMPDIR to another"
            )
        self._kernel = UserModeKernel(self._folder, parts.memory_mib, f"node {parts.name}")
        self._relay: Relay | None = None

    @staticmethod
    def missing(parts: KernelParts) -> str | None:
        """What has to be installed before such a node can run; None where nothing has."""
        has_disks = bool(parts.attach) or any(disk.port is None for disk in parts.disks)
        needs = {
            "nbd-client": ("nbd-client",) if has_disks else (),
            "nfs-kernel-server and nfs-common": kernel_nfs.PROGRAMS if parts.nfs or parts.mounts else (),
            "iproute2": ("tc",) if parts.links else (),
        }
        lacks = [
            package
            for package, programs in needs.items()
            if any(find_program(one) is None for one in programs)
        ]
        if lacks:
            return f"node {parts.name} needs the Debian packages {', '.join(lacks)}; install them"
        return user_mode.missing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """See `Node.name`."""
        return self.parts.name

    @property
    def ascard(self) -> str:
        """See `Node.ascard`."""
        return str(find_ascard())

    @property
    def alive(self) -> bool:
        """Whether its kernel runs."""
        relay = self._relay  # which another thread may take away
        return relay is not None and not relay.has_ended.is_set()

    @property
    def console(self) -> str:
        """Everything that its console has shown since it was booted."""
        return self._kernel.console

    def boot(self, limit_s: float = 60.0) -> None:
        """Boot it: kernel, links, disks, exports, mounts; one that is up stays as it is.

        Args:
            limit_s: seconds that all of it may take.

        Raises:
            EnvironmentLacks: something that it needs is not installed.
            StudyError: a disk's scenario is wrong.
            Refused: another node that is on keeps what its disks hold in the same directory.
            WorkError: it does not come up in time; it is cut then.
        """
        if self.alive:
            return
        lack = self.missing(self.parts)
        if lack is not None:
            raise EnvironmentLacks(lack)
        self.cut()
        end_s = time.monotonic() + limit_s
        self._kept.mkdir(parents=True, exist_ok=True)
        try:
            self._hold_kept()
            for disk in self.parts.disks:
                self._check(disk)
                kernel_disks.make_data(self._kept, disk)
            self._put_inside()
            self._begin(end_s)
            self._set_up(end_s)
        except BaseException:
            self.cut()
            raise

    def cut(self) -> None:
        """Cut its power: all its processes are killed, and what is on no disk is lost."""
        self._kernel.kill()
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def close(self) -> None:
        """Cut its power and remove what it had on this machine, but for the data of its disks."""
        self.cut()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, argv: Sequence[str], limit_s: float, stdin: bytes = b"") -> Finished:
        """See `Node.run`."""
        return Finished(*run_there(self._there, list(argv), limit_s, stdin))

    def words(self, argv: Sequence[str]) -> list[str]:
        """See `Node.words`."""
        return [*self._python("remote"), self.name, str(self.socket), *argv]

    def load_words(self, argv: Sequence[str], *, group: bool) -> list[str]:
        """The words of the program here that runs a load there: it is killed with the program here.

        Args:
            argv: the program and its arguments.
            group: whether a SIGINT is for the program's process group, or for the program alone.
        """
        remote, words = self._python("remote"), self.words(argv)
        return [*remote, LOAD_GROUP if group else LOAD, *words[len(remote) :]]

    def tunnel_words(self, port: int) -> list[str]:
        """The program of the node that listens on a port of its loopback, and speaks as a `TunnelEnd`."""
        return [*self._python("tunnel"), str(port)]

    def end_load(self, mark: str) -> None:
        """Kill whatever a load has left; one that is not up has nothing left.

        Args:
            mark: what each of its processes has in its environment, `NAME=VALUE`.
        """
        with suppress(EnvironmentLacks, StageFailed):
            self.run(["sh", "-c", _END_LOAD, "end", mark], _END_LOAD_S)

    @property
    def last_words(self) -> str | None:
        """The end of what its console has shown, once it is gone; None while it is up."""
        return None if self.alive else self.console[-_LAST_WORDS:]

    def open(self, argv: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        """See `Node.open`."""
        if not self.alive:
            raise EnvironmentLacks(f"node {self.name}: cannot be reached; boot it first")
        return start(self.name, self.words(argv), stderr)

    def put(self, content: bytes, path: str, mode: int = 0o600) -> None:
        """See `Node.put`."""
        put_by_shell(self, content, path, mode)

    def facts(self) -> NodeFacts:
        """See `Node.facts`."""
        return facts_by_shell(self)

    def shape(self, shape: LinkShape) -> None:
        """Put this between the node and all others, until it is cut.

        Raises:
            EnvironmentLacks: the node is not up.
            StageFailed: the kernel refuses it.
        """
        self._do("shape links", kernel_links.shape_words(len(self.parts.links), shape), time.monotonic() + 30)

    def set_nfs_threads(self, threads: int) -> None:
        """Give its running NFS server so many threads.

        Raises:
            EnvironmentLacks: the node is not up.
            StageFailed: the kernel refuses it, or there is no server.
        """
        self._do("set threads", kernel_nfs.threads_words(threads), time.monotonic() + 30)

    def write_out(self, limit_s: float) -> None:
        """Have it write what its file systems, and those that it mounts, have in memory.

        Raises:
            EnvironmentLacks: the node is not up.
            StageFailed: it fails, or takes longer.
        """
        output_of(self, "settle", "sync", ["sync"], limit_s)

    def end_disks(self, limit_s: float) -> None:
        """End its disks in good order: they write their caches.

        Raises:
            EnvironmentLacks: the node is not up.
            StageFailed: one had ended before, whose cache is lost, or it takes longer.
        """
        output_of(self, "settle", "end disks", kernel_disks.end_words(), limit_s)

    def memory_bytes(self) -> int:
        """What it takes of this machine's memory; what processes share is counted once.

        Raises:
            EnvironmentLacks: the node is not up.
        """
        if not self.alive:
            raise EnvironmentLacks(f"node {self.name}: is not up")
        return sum(_proportional_bytes(one) for one in _members(self._kernel.process.pid))

    def processor_s(self) -> float:
        """The processor time that its processes have taken so far; 0 where it is not up."""
        return sum(map(_processor_s, _members(self._kernel.process.pid))) if self.alive else 0.0

    @property
    def _there(self) -> RemoteNode:
        return RemoteNode(self.name, str(self.socket))

    def _python(self, module: str) -> list[str]:
        """The words before the arguments of a module that runs without packages."""
        return [os.path.realpath(sys.executable), "-SsEB", str(self._folder / "inside" / f"{module}.py")]

    def _check(self, disk: NodeDisk) -> None:
        """Refuse a disk that its server would refuse."""
        words = [self.ascard, "disk", "--check", "--scenario", disk.scenario, "--size", str(disk.size_bytes)]
        words += [
            "--socket",
            f"{self._folder}/none",
            *([] if disk.raid is None else ["--raid", str(disk.raid)]),
        ]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            raise StudyError(f"disk.{disk.name}: {done.stderr.strip()[-300:]}")

    def _hold_kept(self) -> None:
        """Keep other nodes from the same data: a lock of a server inside a node does not reach out of it."""
        self._lock = os.open(self._kept / "node.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"node {self.name}: directory {str(self._kept)!r} is another's already; give each its own"
            ) from None

    def _put_inside(self) -> None:
        """Copy what runs in the node, and the scenarios, to where it sees them."""
        inside = self._folder / "inside"
        package = inside / "ascar"
        (package / "testbed").mkdir(parents=True, exist_ok=True)
        for folder in (package, package / "testbed"):
            (folder / "__init__.py").touch()
        for module in _MODULES:
            shutil.copyfile(_PACKAGE / module, package / module)
        for name in ("process_one", "remote", "io_flusher", "tunnel"):
            (inside / f"{name}.py").write_text(f"from ascar.testbed.{name} import main\n\nmain()\n")
        names = {"localhost": "127.0.0.1", self.name: "127.0.1.1", **self.parts.hosts}
        lines = (f"{address.partition('/')[0]} {name}\n" for name, address in names.items())
        (inside / "hosts").write_text("".join(lines))
        for disk in self.parts.disks:
            with suppress(FileNotFoundError):
                shutil.copyfile(disk.scenario, inside / f"{disk.name}.toml")

    def _begin(self, end_s: float) -> None:
        """Start the kernel and wait until process 1 answers."""
        node_reads, to_node = os.pipe()
        from_node, node_writes = os.pipe()
        # So that the line hardly ever has to wait for room.
        fcntl.fcntl(node_writes, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        try:
            ours = [
                Path(sys.base_prefix),
                Path(self.ascard).parent,
                self._folder,
                *map(Path, self.parts.visible),
            ]
            init = init_text(self._init_lines(), list(dict.fromkeys(below_own(ours, _OWN))), _OWN)
            words = ["ssl=null", f"ssl0=fd:{node_reads},fd:{node_writes}"]
            words += [kernel_links.kernel_word(*one) for one in enumerate(self.parts.links)]
            self._kernel.begin(init, [*words, *self.parts.kernel_words], (node_reads, node_writes))
            self._relay = relay = Relay(self.socket, to_node, from_node, self._kernel.process.pid)
        except BaseException:
            os.close(to_node)
            os.close(from_node)
            raise
        finally:
            os.close(node_reads)
            os.close(node_writes)
        self._kernel.wait(relay.is_up.is_set, "it boots", end_s - time.monotonic())

    def _init_lines(self) -> list[str]:
        return [
            f"echo {self.name} > /proc/sys/kernel/hostname",
            f"mount --bind {shlex.quote(str(self._folder / 'inside' / 'hosts'))} /etc/hosts",
            f"mkdir -p {kernel_disks.KEPT}",
            f"mount -t hostfs none {kernel_disks.KEPT} -o {shlex.quote(str(self._kept))}",
            "export HOME=/tmp",
            "cd /",
            f"exec {shlex.join([*self._python('process_one'), _LINE])}",
        ]

    def _set_up(self, end_s: float) -> None:
        """Bring up what it is made of."""
        parts = self.parts
        for disk in parts.disks:
            scenario = self._folder / "inside" / f"{disk.name}.toml"
            named = str(scenario) if scenario.exists() else disk.scenario
            words = kernel_disks.start_words(disk, named, self._python("io_flusher"), self.ascard)
            self._do(f"start disk {disk.name}", words, end_s)
        if parts.address is not None:
            self._do("bring up links", kernel_links.up_words(parts.address, len(parts.links)), end_s)
        if parts.shape != LinkShape():
            self._do("shape links", kernel_links.shape_words(len(parts.links), parts.shape), end_s)
        for number, disk in enumerate(parts.disks):
            if disk.port is None:
                self._do(f"attach disk {disk.name}", kernel_disks.attach_words(disk, number), end_s)
        if parts.nfs is not None:
            self._do("start the NFS server", kernel_nfs.server_words(parts.nfs), end_s)
        elif any(mount.version == "3" for mount in parts.mounts):
            self._do("start what locks need", kernel_nfs.daemons_words(), end_s)
        for remote in parts.attach:
            self._do(f"attach {remote.device}", kernel_disks.attach_remote_words(remote), end_s)
        for mount in parts.mounts:
            self._do(f"mount {mount.export}", kernel_nfs.mount_words(mount), end_s)

    def _do(self, what: str, words: Sequence[str], end_s: float) -> None:
        output_of(self, "boot", what, words, max(0.0, end_s - time.monotonic()))


def _unfit(socket: Path) -> str | None:
    """Why a node cannot have its files beside this one; None: it can."""
    if re.search(r"[\s\"']", str(socket)):
        return "has spaces or quotes, which end a word of a kernel's command line"
    if len(os.fsencode(socket)) > SOCKET_BYTES_MAX:
        return "is too long for the path of a socket"
    return None


def _members(group: int) -> list[int]:
    """The processes of a group."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name before may have spaces and parentheses.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == group:
                found.append(int(stat.parent.name))
    return found


def _processor_s(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # with children that have ended
    return 0.0


def _proportional_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
