"""Links between nodes that are kernels: Ethernet in L2TPv3 over UDP on 127.0.0.1, and nothing beyond."""

from __future__ import annotations

import random
import secrets
import socket
from contextlib import ExitStack
from itertools import combinations
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks
from ascar.testbed.kernel_parts import LinkEnd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.testbed.kernel_parts import LinkShape

# Below those that the kernel gives to connections.
_PORTS = range(20_000, 32_000)
_TRIES = 1000
_HEARD = "127.0.0.1"
_given: set[int] = set()
"""Ports of this process's links, which are free until their nodes boot."""

DEVICE = "net0"
"""The network device of a node, behind which are its links."""
# Nothing passes from one link to another: any number of nodes can be linked in pairs, and there is no loop.
_UP = """
modprobe -d /run/modules bridge
printf '%s' "$1" | ip -batch -
"""
# What comes in by any link waits in one queue, as before a port of a switch.
_SHAPE = """
set -e
if [ ! -e /sys/class/net/ifb0 ]; then
    modprobe -d /run/modules -a sch_netem sch_ingress cls_matchall act_mirred
    modprobe -d /run/modules ifb numifbs=1
    ip link set ifb0 up
    printf '%s' "$1" | tc -batch -
fi
printf '%s' "$2" | tc -batch -
"""


def link() -> tuple[LinkEnd, LinkEnd]:
    """Both ends of a new line.

    Raises:
        EnvironmentLacks: no ports are free.
    """
    (port, peer_port), (key, peer_key) = _free_ports(), (secrets.randbits(62), secrets.randbits(62))
    return LinkEnd(port, peer_port, key, peer_key), LinkEnd(peer_port, port, peer_key, key)


def star(center: str, others: Sequence[str]) -> dict[str, tuple[LinkEnd, ...]]:
    """Links between one node and each other; the others do not reach each other.

    Raises:
        EnvironmentLacks: no ports are free.
    """
    pairs = {name: link() for name in others}
    ends = {name: (there,) for name, (_, there) in pairs.items()}
    return {center: tuple(here for here, _ in pairs.values()), **ends}


def mesh(names: Sequence[str]) -> dict[str, tuple[LinkEnd, ...]]:
    """Links between all nodes, in pairs.

    Raises:
        EnvironmentLacks: no ports are free.
    """
    ends: dict[str, list[LinkEnd]] = {name: [] for name in names}
    for one, other in combinations(names, 2):
        here, there = link()
        ends[one].append(here)
        ends[other].append(there)
    return {name: tuple(them) for name, them in ends.items()}


def kernel_word(number: int, end: LinkEnd) -> str:
    """What the kernel's command line says of a link."""
    options = {
        "transport": "l2tpv3",
        "udp": 1,
        "src": _HEARD,
        "dst": _HEARD,
        "srcport": end.port,
        "dstport": end.peer_port,
        "rx_session": 1,
        "tx_session": 1,
        "cookie64": 1,
        "rx_cookie": end.key,
        "tx_cookie": end.peer_key,
        "mac": _mac(end.port),
    }
    return f"vec{number}:{','.join(f'{name}={value}' for name, value in options.items())}"


def up_words(address: str, links: int) -> list[str]:
    """The program of a node that gives it its network."""
    lines = [f"link add {DEVICE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"]
    for number in range(links):
        lines += [f"link set vec{number} master {DEVICE}"]
        lines += [f"link set vec{number} type bridge_slave isolated on", f"link set vec{number} up"]
    lines += [f"address add {address} dev {DEVICE}", f"link set {DEVICE} up"]
    return ["sh", "-c", _UP, "links", _batch(lines)]


def shape_words(links: int, shape: LinkShape) -> list[str]:
    """The program of a node that puts this between it and all others, also while packets flow."""
    lines: list[str] = []
    for number in range(links):
        lines += [f"qdisc add dev vec{number} ingress"]
        lines += [f"filter add dev vec{number} ingress matchall action mirred egress redirect dev ifb0"]
    what = f"limit {shape.queue_packets}"
    if shape.delay_ms:
        what += f" delay {shape.delay_ms:.6f}ms"
    if shape.loss_percent:
        what += f" loss {shape.loss_percent:.6f}%"
    # Without it a rate of before would stay.
    what += f" rate {(shape.rate_mbit_per_s or 0.0) * 1e6:.0f}bit"
    replace = [f"qdisc replace dev {device} root netem {what}" for device in (DEVICE, "ifb0")]
    return ["sh", "-c", _SHAPE, "shape", _batch(lines), _batch(replace)]


def _batch(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _mac(port: int) -> str:
    """An address that the user's own devices may have, and no other link has."""
    return f"fe:fd:00:00:{port >> 8:02x}:{port & 255:02x}"


def _free_ports() -> tuple[int, int]:
    found: list[int] = []
    with ExitStack() as held:
        for port in random.SystemRandom().sample(_PORTS, _TRIES):
            if port in _given:
                continue
            one = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            try:
                one.bind((_HEARD, port))
            except OSError:
                continue
            found.append(port)
            if len(found) == 2:
                _given.update(found)
                return found[0], found[1]
    raise EnvironmentLacks(f"link: no two of {_TRIES} UDP ports on {_HEARD} are free")
