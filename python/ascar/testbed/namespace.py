"""A node with a network and processes of its own: namespaces without names, gone with their processes.

Nothing of it outlives its first process, which ends when its input does: whoever dies, no namespace, no
network device and no process is left. Its network is behind a switch, which is a namespace too; nothing leads
from there to the network of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.testbed.kernel_parts import LinkShape
from ascar.testbed.process import ProcessNode, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


_TOOLS = ("unshare", "nsenter", "ip", "tc")
_ADDRESSES = "10.77"
_PREFIX = 16
# The hosts of the testbed take the place of those of this machine, in the view of this node alone.
_OWN = 'echo "$1" >/proc/sys/kernel/hostname; mount --bind "$2" /etc/hosts; shift 2; exec "$@"'


class NamespaceNode(ProcessNode):
    """A node of kind "namespace".

    Args:
        name: what messages call it.
        folder: its folder.
        mark: what its processes carry in their environment.
        hosts: the file of the names and addresses that it knows; None: those of this machine.
    """

    def __init__(self, name: str, folder: Path, mark: str, hosts: Path | None = None) -> None:
        super().__init__(name, folder, mark)
        self._hosts = hosts
        self._inner: int | None = None

    @property
    def pid(self) -> int:
        """Its first process, as this machine numbers it."""
        assert self._inner is not None, "it is on"
        return self._inner

    def boot(self, limit_s: float) -> None:
        """See `TestbedMachine.boot`."""
        if self.alive:
            return
        missing = lacks()
        if missing is not None:
            raise EnvironmentLacks(missing)
        super().boot(limit_s)
        assert self._first is not None
        self._inner = wait_for(self._first.pid, limit_s)
        if self._inner is None:
            self.cut()
            raise EnvironmentLacks(f"node {self._name}: has no process of its own")

    def _surroundings(self, words: Sequence[str]) -> list[str]:
        apart = ["unshare", "--net", "--pid", "--uts", "--mount-proc", "--fork", "--kill-child=KILL", "--"]
        own = [] if self._hosts is None else ["sh", "-c", _OWN, "sh", self._name, str(self._hosts)]
        return [*apart, *own, *words]

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill the first process: all of the namespace is killed before anybody hears of its end."""
        inner = self._inner or wait_for(process.pid, 0.1)
        if inner is not None:
            try:
                os.kill(inner, 9)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
        process.kill()
        self._inner = None


class Switch:
    """What connects the namespaces of a testbed: a bridge in a namespace of its own.

    Args:
        folder: the folder of its namespace.
        mark: what its processes carry.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self._node = NamespaceNode("switch", folder, mark)
        self._ports = 0

    def boot(self, limit_s: float) -> None:
        """Turn it on."""
        self._node.boot(limit_s)
        _within(
            self._node, "ip", ["link add name bridge type bridge", "link set bridge up", "link set lo up"]
        )

    def connect(self, node: NamespaceNode, number: int, link: LinkShape) -> str:
        """Give a node that has booted its device, its address and its link; the name of its port.

        Args:
            node: the node, which has no device yet.
            number: of the node; its address is made from it.
            link: the rate, delay and loss, each way.

        Raises:
            EnvironmentLacks: the kernel has no such device or queue.
        """
        self._ports += 1
        port, hardware = f"port{self._ports}", f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"
        made = (
            f"link add name {port} type veth peer name eth0 address {hardware} netns {node.pid}",
            f"link set {port} master bridge up",
        )
        _within(self._node, "ip", made)
        own = (
            "link set lo up",
            f"address add {address_of(number)}/{_PREFIX} dev eth0",
            "link set eth0 up",
        )
        _within(node, "ip", own)
        for place, device in ((self._node, port), (node, "eth0")):
            if link != LinkShape():
                _within(place, "tc", _shape(device, link))
        return port

    def disconnect(self, port: str) -> None:
        """Take away a port, and with it the device of its node; one that is gone is no matter."""
        with suppress(EnvironmentLacks):
            _within(self._node, "ip", [f"link delete {port}"])

    def close(self) -> None:
        """End it."""
        self._node.close()


def address_of(number: int) -> str:
    """The address of a node of kind "namespace" by its number from 1 on."""
    return f"{_ADDRESSES}.{number >> 8}.{number & 255}"


def lacks() -> str | None:
    """What is missing for nodes of this kind; None: nothing is."""
    if os.geteuid() != 0:
        return "needs root: nodes of kind 'namespace'; run this as root, or set kind = 'process'"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"nodes of kind 'namespace' need {', '.join(missing)}; install iproute2 and util-linux"
    return None


def _shape(device: str, link: LinkShape) -> list[str]:
    lines: list[str] = []
    parent = "root"
    if link.rate_mbit_per_s is not None:
        rate = f"{link.rate_mbit_per_s:.6f}mbit"
        # A quantum is what one class sends before the next: there is one class.
        burst = max(16_000, int(link.rate_mbit_per_s * 1e6 / 8 / 250))
        lines = [
            f"qdisc add dev {device} root handle 1: htb default 1",
            f"class add dev {device} parent 1: classid 1:1 htb rate {rate} burst {burst} quantum 60000",
        ]
        parent = "parent 1:1"
    queue = f"pfifo limit {link.queue_packets}"
    if link.delay_ms or link.loss_percent:
        loss = f" loss {link.loss_percent:.6f}%" if link.loss_percent else ""
        queue = f"netem delay {link.delay_ms:.6f}ms{loss} limit {link.queue_packets}"
    lines.append(f"qdisc add dev {device} {parent} {queue}")
    return lines


def _within(node: NamespaceNode, tool: str, lines: Sequence[str]) -> None:
    """Run lines of `ip` or `tc` in the network of a node.

    Raises:
        EnvironmentLacks: one is refused.
    """
    words = ["nsenter", f"--net=/proc/{node.pid}/ns/net", tool, "-batch", "-"]
    try:
        done = subprocess.run(
            words, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        raise StageFailed("link", f"node {node.name}: {tool} does not end within 60 s") from None
    if done.returncode != 0:
        said = [one for one in done.stderr.splitlines() if not one.startswith(("Warning", "Command failed"))]
        why = (said or ["no message"])[0].strip()[:300]
        raise EnvironmentLacks(
            f"node {node.name}: {tool}: {why}; links need a kernel with veth, bridge, sch_htb and sch_netem"
        )
