"""Incast: Redis servers that answer at once overflow a switch port, and what a window does about it.

    python -m benchmarks.incast --budget 20min        (root: network namespaces)

A client asks servers for values, all of them at once, and asks again when all have answered
(`benchmarks/fan_out.py`). What they answer goes through a router whose port to the client passes
`RATE_MBIT_PER_S` (HTB) and keeps `QUEUE_PACKETS` packets at most; what comes beyond is lost. A server whose
last packets are lost hears nothing that tells it so, and sends them again when a timer of TCP ends (a loss
probe or the time-out of retransmission), after 0.2 s and more, while the port is idle (Phanishayee et al.,
FAST'08). With `ascard proxy` on the client's node, a window bounds the commands in flight to each server, as
clients of Memcached have one (Nishtala et al., NSDI'13, section 3.1).

Servers, router and client are nodes of a testbed. The congestion control is Reno, which every kernel has; a
packet is one segment, as a switch sees it. For each number of servers the ways take turns in an order that
moves on: no proxy, a proxy that limits nothing, and windows. Tables: MB/s of values with 95% intervals, the
share of the link, the 99th percentile of a round, packets lost and timers that ended a second; and what the
windows gain against the proxy that limits nothing.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError
from ascar.testbed.file import testbed_of
from ascar.testbed.folder import TestbedFolder
from ascar.testbed.running import RunningTestbed
from ascar.testbed.service import Served, proxy_serves

from . import fan_out
from .harness import (
    ROOT,
    Benchmark,
    Piece,
    batches,
    build,
    crate_sources,
    mean,
    number,
    percent,
    ratio,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVERS = (1, 2, 4, 8, 16)
RATE_MBIT_PER_S, QUEUE_PACKETS, BURST_BYTES = 200, 64, 16_000
VALUES, VALUE_BYTES = 8, 4096
"""A server is asked for so many values of so many bytes in a round: 32 KiB, 24 packets."""
TURNS, SECONDS = 6, 4.0
DIRECT, UNLIMITED = "direct", "no window"
WINDOWS = (1, 2, 4)
WAYS = (DIRECT, UNLIMITED, *(f"window {window}" for window in WINDOWS))
NODES = ("servers", "router", "client")
FIRST_PORT = 7000
LIMIT_S = 60.0
_FORWARD = """
set -e
for key in send_redirects rp_filter; do
    for device in all eth0; do echo 0 > /proc/sys/net/ipv4/conf/$device/$key; done
done
echo 1 > /proc/sys/net/ipv4/ip_forward
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate {rate}mbit burst {burst} quantum 60000
tc qdisc add dev eth0 parent 1:1 handle 2: pfifo limit {queue}
"""
_SERVE = """
set -e
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save
ip link set dev eth0 gso_max_segs 1
ip route add {client}/32 via {router} dev eth0
"""


def main() -> None:
    """Measure in turns, and print tables."""
    given = Benchmark.parser(str(__doc__), "20min").parse_args()
    sources = [Path(__file__), Path(fan_out.__file__)]
    found = Benchmark.of(given, build(*crate_sources("proxy"), *sources)).run(_pieces())
    runs = {count: turns for count in SERVERS if (turns := batches(found, f"{count} servers"))}
    asked = f"{VALUES} values of {VALUE_BYTES} bytes"
    print(f"\n{asked} of each server; {RATE_MBIT_PER_S} Mbit/s, {QUEUE_PACKETS} packets\n")
    heads = ("servers", "way", "MB/s", "of the link", "p99 of a round, ms", "lost/s", "timers/s")
    table(heads, [_row(count, way, turns) for count, turns in runs.items() for way in WAYS])
    heads = ("servers", *(f"window {window} over none" for window in WINDOWS), "proxy without over direct")
    table(heads, [_gains(count, turns) for count, turns in runs.items()])


def _pieces() -> list[Piece]:
    return [
        Piece(f"{count} servers, {at}", partial(turn, count, at)) for at in range(TURNS) for count in SERVERS
    ]


def turn(count: int, at: int, seconds: float = SECONDS) -> dict[str, Any]:
    """What a client gets of so many servers by each way, the first of which depends on the turn.

    Raises:
        RuntimeError: it cannot be done here.
    """
    first = at % len(WAYS)
    try:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ascar-")))
            place = stack.enter_context(TestbedFolder(folder / "up"))
            nodes = [{"name": name, "kind": "namespace"} for name in NODES]
            wanted = testbed_of({"testbed": {"name": "incast"}, "node": nodes}, folder)
            up = stack.enter_context(RunningTestbed(wanted, place))
            bench = _Bench(up, count)
            stack.callback(bench.end)
            bench.begin()
            return {way: bench.measured(way, seconds) for way in WAYS[first:] + WAYS[:first]}
    except AscarError as error:
        raise RuntimeError(str(error)) from error


class _Bench:
    """Servers behind a port, and a client before it.

    Args:
        up: the testbed.
        count: how many servers.
    """

    def __init__(self, up: RunningTestbed, count: int) -> None:
        self._up, self._count = up, count
        self._served: list[Served] = []
        self._addresses = {node.name: str(node.address) for node in up.nodes()}

    def begin(self) -> None:
        """Shape the port, and start the servers, each with its value."""
        if shutil.which("redis-server") is None:
            raise RuntimeError("redis-server is missing: apt-get install redis-server")
        shape = {"rate": RATE_MBIT_PER_S, "burst": BURST_BYTES, "queue": QUEUE_PACKETS}
        self._run("router", "sh", "-c", _FORWARD.format(**shape))
        self._run("servers", "sh", "-c", _SERVE.format(**self._addresses))
        for port in self._ports():
            own = ("--port", str(port), "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "")
            log = self._up.folder_of("servers") / f"{port}.log"
            words = ("redis-server", *own)
            machine = self._up.machine("servers")
            self._start(Served(f"server {port}", machine, log, words, partial(self._serves, port)))
            self._run("servers", *_cli(port), "SET", fan_out.KEY, "v" * VALUE_BYTES)

    def measured(self, way: str, seconds: float) -> dict[str, float]:
        """What the client gets by one way."""
        places = [f"{self._addresses['servers']}:{port}" for port in self._ports()]
        proxies = len(self._served)
        if way != DIRECT:
            places = self._behind_a_proxy(way, places)
        lost, late = self._lost(), self._late()
        begun_s = time.monotonic()
        code = ("-S", "-c", "from benchmarks.fan_out import main; main()")
        asked = (str(seconds), str(VALUES), str(VALUE_BYTES), *places)
        said = self._run("client", "env", f"PYTHONPATH={ROOT}", sys.executable, *code, *asked)
        whole_s = time.monotonic() - begun_s
        for served in self._served[proxies:]:
            served.end()
        del self._served[proxies:]
        found = json.loads(said)
        rounds = sorted(found["rounds_ms"])
        return {
            "mb_per_s": found["bytes"] / found["seconds"] / 1e6,
            "round_ms_p99": rounds[math.ceil(0.99 * len(rounds)) - 1],
            "rounds": len(rounds),
            "lost_per_s": (self._lost() - lost) / whole_s,
            "timers_per_s": (self._late() - late) / whole_s,
        }

    def end(self) -> None:
        """End what serves."""
        for served in self._served:
            served.end()

    def _ports(self) -> range:
        return range(FIRST_PORT, FIRST_PORT + self._count)

    def _behind_a_proxy(self, way: str, places: Sequence[str]) -> list[str]:
        """Start a proxy on the client's node; where its clients connect to."""
        folder = self._up.folder_of("client")
        sockets = [folder / f"{at}.sock" for at in range(len(places))]
        text = 'controller = "client"\ncontrol = "control.sock"\n'
        if way != UNLIMITED:
            text += f"window = {way.rpartition(' ')[2]}\n"
        for path, place in zip(sockets, places, strict=True):
            text += f'[[route]]\nprotocol = "resp"\nlisten = "unix:{path.name}"\nserver = "tcp:{place}"\n'
        control, config = folder / "control.sock", folder / "proxy.toml"
        machine, there = self._up.machine("client"), [*sockets, control]
        words = (machine.ascard, "proxy", "--config", str(config))
        proxy = Served("proxy", machine, folder / "proxy.log", words, proxy_serves(there))
        proxy.files, proxy.sockets = {config: text}, there
        self._start(proxy)
        return list(map(str, sockets))

    def _start(self, served: Served) -> None:
        self._served.append(served)
        served.start()

    def _serves(self, port: int, _: Served) -> bool:
        return self._up.machine("servers").run([*_cli(port), "PING"], LIMIT_S).out == b"PONG\n"

    def _run(self, node: str, *words: str) -> str:
        """What a program of a node prints.

        Raises:
            RuntimeError: it fails.
        """
        done = self._up.machine(node).run(words, LIMIT_S)
        if done.status != 0:
            raise RuntimeError(f"{node}: {' '.join(words[:4])}: {done.err.strip()[-300:]}")
        return done.out.decode()

    def _lost(self) -> int:
        """Packets that the port has dropped so far."""
        shown = self._run("router", "tc", "-s", "qdisc", "show", "dev", "eth0")
        return int(re.findall(r"dropped (\d+)", shown.partition("qdisc pfifo")[2])[0])

    def _late(self) -> int:
        """Timers of the servers that have ended so far, upon which they send again."""
        names, values = (
            line.split()
            for line in self._run("servers", "cat", "/proc/net/netstat").splitlines()
            if line.startswith("TcpExt:")
        )
        return sum(int(values[names.index(name)]) for name in ("TCPTimeouts", "TCPLossProbes"))


def _cli(port: int) -> tuple[str, ...]:
    return ("redis-cli", "-p", str(port))


def _row(count: int, way: str, turns: list[dict[str, Any]]) -> list[str]:
    def values(name: str) -> list[float]:
        return [one[way][name] for one in turns]

    rates = values("mb_per_s")
    of_link = [rate * 8 / RATE_MBIT_PER_S for rate in rates]
    rest = [number(mean(values(name))) for name in ("round_ms_p99", "lost_per_s", "timers_per_s")]
    return [str(count), way, number(mean(rates)), percent(mean(of_link)), *rest]


def _gains(count: int, turns: list[dict[str, Any]]) -> list[str]:
    def over(above: str, below: str) -> str:
        return number(ratio(*([one[way]["mb_per_s"] for one in turns] for way in (above, below))))

    windows = (over(f"window {window}", UNLIMITED) for window in WINDOWS)
    return [str(count), *windows, over(UNLIMITED, DIRECT)]


if __name__ == "__main__":
    main()
