"""What the interface bears: 10,000 agents with 32 streams each on one core, also while nodes attack it.

    python -m benchmarks.capes_limits --seconds 60 --budget 10min

The interface runs on one core; the message server, the simulated agents and whoever listens are not bound
to one (`cargo build --release -p ascar-interface --example many_agents`). Each attacker sends two hellos a
second with a stream name of 900 kB. Ticks are heard by one subscriber: one is missing if it does not come,
or not with all of its parts. A kill takes from the operator's request until the order is at the nodes.
Processor time is what the kernel counted; gaps are longer on a machine that does other work.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.capes_daemons import EXAMPLE, Processes, cpu_s, resident_bytes
from benchmarks.harness import Benchmark, Piece, build, crate_sources, digits, table

from ascar.capes.messages.bus import Bus
from ascar.messaging import Link, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

INTERFACE = """
session = "test"
database = "replay.sqlite"
mode = "automatic"
[[metric]]
name = "bytes_per_s"
indicators = ["simulated.indicator1_per_s"]
[[knob]]
name = "osc.*.max_rpcs_in_flight"
scope = "stream"
minimum = 1
maximum = 256
"""
PREFIX = "ascar.capes.test"
ATTACKERS = 40
_KILLS = 5
_PATIENCE_S = 120.0


class Ticks:
    """The ticks that were heard.

    Attributes:
        seen: by tick, its parts so far and when the last of them came.
    """

    def __init__(self) -> None:
        self.seen: dict[int, tuple[set[int], float]] = {}
        self._parts: dict[int, int] = {}

    async def take(self, _: str, payload: bytes) -> None:
        """Of a part only its numbers are read."""
        tick, part, parts = (
            int(found[1]) if (found := re.search(rb'"%s":(\d+)' % name, payload)) else -1
            for name in (b"tick", b"part", b"parts")
        )
        self._parts[tick] = parts
        self.seen[tick] = (self.seen.get(tick, (set[int](), 0.0))[0] | {part}, time.monotonic())

    def whole(self, first: int, last: int) -> list[float]:
        """When each of these ticks was there with all of its parts."""
        return [
            at
            for tick, (parts, at) in sorted(self.seen.items())
            if first <= tick <= last and len(parts) == self._parts[tick]
        ]


def attack(port: int, stop: threading.Event, attackers: int) -> None:
    """Send what no node may say, two times a second of each attacker, until it is to stop."""
    knob = {"name": "osc.*.max_rpcs_in_flight", "value": 8, "streams": {"x" * 900_000: 8}}
    hello = json.dumps({"version": 1, "layout": "00000007", "names": ["x"], "knobs": [knob]}).encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b'CONNECT {"verbose": false}\r\n')
        while not stop.is_set():
            start_s = time.monotonic()
            for at in range(attackers):
                head = f"PUB {PREFIX}.agents.attacker{at}.hello {len(hello)}\r\n".encode()
                connection.sendall(head + hello + b"\r\n")
            if select.select([connection], [], [], 0)[0]:
                connection.recv(1 << 16)
                connection.sendall(b"PONG\r\n")
            stop.wait(max(0.0, 0.5 - (time.monotonic() - start_s)))


async def measured(
    port: int, agents: int, seconds: int, start: Callable[[], None], share: Callable[[], float]
) -> dict[str, Any]:
    """What is heard of an interface with all of its agents, which are started once it is there."""
    settings = Settings(url=f"nats://127.0.0.1:{port}")
    ticks, restored = Ticks(), asyncio.Event()
    async with (
        await Bus.open(settings, "test", name="operator") as bus,
        await Link.open(settings, name="listener") as link,
        await Link.open(settings, name="node") as node,
    ):
        await link.hear(f"{PREFIX}.ticks", ticks.take)

        async def order(_: str, payload: bytes) -> None:
            if b'"restore"' in payload:
                restored.set()

        await node.hear(f"{PREFIX}.nodes.all", order)
        due_s, here = time.monotonic() + _PATIENCE_S, 0
        while not ticks.seen and time.monotonic() < due_s:
            await asyncio.sleep(0.1)
        start()
        while here < agents:
            if time.monotonic() > due_s:
                raise RuntimeError(f"after {_PATIENCE_S:g} s {here} of {agents} agents are there")
            await asyncio.sleep(1)
            start_s = time.monotonic()
            status = await bus.control("status", why="to see")
            status_s = time.monotonic() - start_s
            here = sum(one["here"] for one in status["nodes"])
        first, start_s, before_s = status["tick"] + 1, time.monotonic(), share()
        await asyncio.sleep(seconds)
        last = max(ticks.seen) - 1
        core_share = (share() - before_s) / (time.monotonic() - start_s)
        kills_s: list[float] = []
        for _ in range(_KILLS):
            restored.clear()
            start_s = time.monotonic()
            asked = asyncio.create_task(bus.control("kill", why="to see"))
            await asyncio.wait_for(restored.wait(), _PATIENCE_S)
            kills_s.append(time.monotonic() - start_s)
            await asked
            await bus.control("revive", why="to see")
            await asyncio.sleep(0.7)
        whole = ticks.whole(first, last)
        return {
            "ticks": last - first + 1,
            "ticks_missing": last - first + 1 - len(whole),
            "gap_s_max": max(after - before for before, after in itertools.pairwise(whole)),
            "core_share": core_share,
            "status_s": status_s,
            "status_keys": len(status["setting"]),
            "kill_s_median": statistics.median(kills_s),
            "kill_s_max": max(kills_s),
        }


def run(agents: int, streams: int, seconds: int, attackers: int) -> dict[str, Any]:
    """One interface with all of its agents, and some attackers."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        processes = Processes(Path(folder), stack)
        core = min(os.sched_getaffinity(0))
        interface = processes.daemon("interface", INTERFACE, before=("taskset", "-c", str(core)))
        words = [EXAMPLE, processes.port, agents, int(seconds + 3 * _PATIENCE_S), 44, streams]

        def start() -> None:
            batch = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
            stack.callback(batch.wait)
            stack.callback(batch.kill)
            if attackers:
                stop = threading.Event()
                attacking = threading.Thread(target=attack, args=(processes.port, stop, attackers))
                attacking.start()
                stack.callback(attacking.join)
                stack.callback(stop.set)

        found = asyncio.run(measured(processes.port, agents, seconds, start, partial(cpu_s, interface)))
        load = os.getloadavg()[0]
        of = {"agents": agents, "streams": streams, "attackers": attackers}
        return {**of, **found, "resident_bytes": resident_bytes(interface), "machine_load": load}


def main() -> None:
    """Run and print."""
    parser = Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=32)
    given = parser.parse_args()
    if not EXAMPLE.exists():
        sys.exit(f"{EXAMPLE} is not built: see --help")
    pieces = [
        Piece(
            f"{given.agents} x {given.streams}, {attackers} attackers, {given.seconds} s",
            partial(run, given.agents, given.streams, given.seconds, attackers),
        )
        for attackers in (0, ATTACKERS)
    ]
    found = Benchmark.of(given, build(*crate_sources("ascard"))).run(pieces)
    heads = ("attackers", "ticks", "missing", "longest gap, s", "share of a core", "memory, MB")
    table(
        (*heads, "status, s", "kill, ms: median", "most", "load of the machine"),
        [
            (
                str(one["attackers"]),
                str(one["ticks"]),
                str(one["ticks_missing"]),
                digits(one["gap_s_max"]),
                digits(one["core_share"]),
                digits(one["resident_bytes"] / 1e6),
                digits(one["status_s"]),
                digits(one["kill_s_median"] * 1e3),
                digits(one["kill_s_max"] * 1e3),
                digits(one["machine_load"]),
            )
            for one in found.values()
        ],
    )


if __name__ == "__main__":
    main()
