"""What nodes that are kernels cost: how soon they are up, their memory, and the processor time of idle ones.

    python -m benchmarks.nodes --budget 10min

A cluster of six, as `ascar testbed up` makes it: an NFS server with a disk, and five clients that have it
mounted. All boot at the same time; it is up when the last mount is. Then nobody asks for anything, and the
processor time of all their processes, and of the process here that holds them, is counted for half a minute.
Memory is counted then: what processes share is divided among them. Then each client gets an agent, which
samples its block devices, NFS mount, memory and processor once a second and sends them to a message server
here, and the same is counted once more. At the end all are cut at the same time.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ascar.messaging import MessageServer
from ascar.testbed.agent_service import ServedAgent
from ascar.testbed.agents import AgentTable, agent_text, user_of, users
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import star
from ascar.testbed.kernel_parts import KernelParts, NfsExport, NfsMount, NfsServer, NodeDisk
from ascar.testbed.machine import close_all

from .harness import Benchmark, Piece, build, crate_sources, mean, number, percent, table

CLUSTERS, CLIENTS, IDLE_S, SETTLE_S, BOOT_S = 5, 5, 30.0, 5.0, 120.0

# But for the shell itself, whose command line has the pattern too.
_MEMORY = """
for pid in $(pgrep -f "$1"); do
    [ "$pid" = $$ ] || ! exe=$(readlink "/proc/$pid/exe") || case $exe in
        */ascard | */python*) grep -h '^Pss:' "/proc/$pid/smaps_rollup" ;;
    esac
done
"""


def main() -> None:
    """Boot each cluster, print."""
    given = Benchmark.parser(str(__doc__), "10min").parse_args()
    kernels = sorted((Path(__file__).parents[1] / "python/ascar/testbed").glob("*.py"))
    benchmark = Benchmark.of(given, build(*kernels, *crate_sources("disk"), *crate_sources("agent")))
    found = list(benchmark.run([Piece(f"cluster {at}", _cluster) for at in range(CLUSTERS)]).values())
    if not found:
        return
    rows = [
        ("six nodes up, s", number(mean([one["up_s"] for one in found]))),
        ("the slowest node, s", number(mean([max(one["boot_s"]) for one in found]))),
        ("memory of the server, MiB", number(mean([one["memory_mib"][0] for one in found]))),
        ("memory of a client, MiB", number(mean([_mean(one["memory_mib"][1:]) for one in found]))),
        ("processor time of six idle nodes, of a core", percent(mean([one["idle_share"] for one in found]))),
        ("processor time of five agents, of a core", percent(mean([_agents_share(one) for one in found]))),
        ("memory of an agent there, MiB", number(mean([_mean(one["agent_mib"]) for one in found]))),
        ("memory of its tunnel there, MiB", number(mean([_mean(one["tunnel_mib"]) for one in found]))),
        ("all cut, s", number(mean([one["down_s"] for one in found]))),
    ]
    table(("cost", f"mean of {len(found)} clusters (95% interval)"), rows)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _agents_share(found: dict[str, Any]) -> float:
    """What agents take of a core, with what carries their messages."""
    return float(found["watched_share"] - found["idle_share"])


def _memory_mib(node: KernelNode, pattern: str) -> float:
    """The memory of programs of a node, by their command lines; what they share is divided among them."""
    done = node.run(["sh", "-c", _MEMORY, "memory", pattern], BOOT_S)
    return sum(int(line.split()[1]) for line in done.out.decode().splitlines()) / 1024


def _cluster() -> dict[str, Any]:
    """One cluster, from nothing to nothing."""
    parts = _parts()
    if lack := next(filter(None, map(KernelNode.missing, parts)), None):
        raise RuntimeError(lack)
    with tempfile.TemporaryDirectory(prefix="ascar-") as place, ExitStack() as ends:
        nodes = [ends.enter_context(KernelNode(one, Path(place) / one.name, Path(place))) for one in parts]
        begun_s = time.monotonic()
        with ThreadPoolExecutor(len(nodes)) as pool:
            boot_s = list(pool.map(_booted_s, nodes))
        up_s = time.monotonic() - begun_s
        idle_share, memory_mib = _idle(nodes)
        clients = nodes[1:]
        with MessageServer(Path(place) / "messages", users("bench", [one.name for one in clients])) as server:
            agents = [_agent(one, Path(place), server) for one in clients]
            for agent in agents:
                agent.start()
            watched_share, _ = _idle(nodes)
            agent_mib = [_memory_mib(one, "ascard agent") for one in clients]
            tunnel_mib = [_memory_mib(one, "tunnel.py") for one in clients]
            for agent in agents:
                agent.end()
        begun_s = time.monotonic()
        close_all(nodes)
        down_s = time.monotonic() - begun_s
    return {
        "up_s": up_s,
        "boot_s": boot_s,
        "idle_share": idle_share,
        "memory_mib": memory_mib,
        "watched_share": watched_share,
        "agent_mib": agent_mib,
        "tunnel_mib": tunnel_mib,
        "down_s": down_s,
    }


def _idle(nodes: list[KernelNode]) -> tuple[float, list[float]]:
    """What nodes take of a core while nobody asks for anything, and the memory of each in MiB."""
    time.sleep(SETTLE_S)
    begun_s, before_s = time.monotonic(), _taken_s(nodes)
    time.sleep(IDLE_S)
    share = (_taken_s(nodes) - before_s) / (time.monotonic() - begun_s)
    return share, [node.memory_bytes() / 2**20 for node in nodes]


def _agent(node: KernelNode, place: Path, server: MessageServer) -> ServedAgent:
    """An agent of a node, which is not started yet."""
    config = Path("/tmp/agent.toml")  # of the node
    password = server.settings(user_of(node.name)).password or ""
    log = place / f"{node.name}.log"
    agent = ServedAgent(f"agent of {node.name}", node, log, config, server, follows_rules=False)
    agent.files = {config: agent_text(AgentTable(node.name), "bench", password, None)}
    return agent


def _parts() -> list[KernelParts]:
    """The server first, then its clients."""
    names = [f"client{at}" for at in range(1, CLIENTS + 1)]
    addresses = {name: f"10.9.0.{at}" for at, name in enumerate(["server", *names], start=1)}
    links = star("server", names)
    common = {name: {"address": f"{addresses[name]}/24", "links": links[name]} for name in addresses}
    server = KernelParts(
        "server",
        memory_mib=256,
        hosts=addresses,
        disks=(NodeDisk("data", "read-ahead-cliff", size_bytes=1 << 30),),
        nfs=NfsServer((NfsExport("data"),), threads=8),
        **common["server"],
    )
    mounts = (NfsMount("server", "data"),)
    return [server, *(KernelParts(name, hosts=addresses, mounts=mounts, **common[name]) for name in names)]


def _booted_s(node: KernelNode) -> float:
    """Boot it; seconds until all of it was up."""
    begun_s = time.monotonic()
    node.boot(BOOT_S)
    return time.monotonic() - begun_s


def _taken_s(nodes: list[KernelNode]) -> float:
    """The processor time of the nodes, and of the process that holds them."""
    own = os.times()
    return own.user + own.system + sum(node.processor_s() for node in nodes)


if __name__ == "__main__":
    main()
