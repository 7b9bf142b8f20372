"""What nodes that are kernels cost: how soon they are up, their memory, and the processor time of idle ones.

    python -m benchmarks.nodes --budget 10min

A cluster of six, as `ascar testbed up` makes it: an NFS server with a disk, and five clients that have it
mounted. All boot at the same time; it is up when the last mount is. Then nobody asks for anything, and the
processor time of all their processes, and of the process here that holds them, is counted for half a minute.
Memory is counted then: what processes share is divided among them. At the end all are cut.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import star
from ascar.testbed.kernel_parts import KernelParts, NfsExport, NfsMount, NfsServer, NodeDisk

from .harness import Benchmark, Piece, build, crate_sources, mean, number, percent, table

CLUSTERS, CLIENTS, IDLE_S, SETTLE_S, BOOT_S = 5, 5, 30.0, 5.0, 120.0


def main() -> None:
    """Boot each cluster, print."""
    given = Benchmark.parser(str(__doc__), "10min").parse_args()
    kernels = sorted((Path(__file__).parents[1] / "python/ascar/testbed").glob("*.py"))
    benchmark = Benchmark.of(given, build(*kernels, *crate_sources("disk")))
    found = list(benchmark.run([Piece(f"cluster {at}", _cluster) for at in range(CLUSTERS)]).values())
    if not found:
        return
    rows = [
        ("six nodes up, s", number(mean([one["up_s"] for one in found]))),
        ("the slowest node, s", number(mean([max(one["boot_s"]) for one in found]))),
        ("memory of the server, MiB", number(mean([one["memory_mib"][0] for one in found]))),
        ("memory of a client, MiB", number(mean([_of_clients(one["memory_mib"]) for one in found]))),
        ("processor time of six idle nodes, of a core", percent(mean([one["idle_share"] for one in found]))),
        ("all cut, s", number(mean([one["down_s"] for one in found]))),
    ]
    table(("cost", f"mean of {len(found)} clusters (95% interval)"), rows)


def _of_clients(values: list[float]) -> float:
    return sum(values[1:]) / len(values[1:])


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
        time.sleep(SETTLE_S)
        begun_s, before_s = time.monotonic(), _taken_s(nodes)
        time.sleep(IDLE_S)
        idle_share = (_taken_s(nodes) - before_s) / (time.monotonic() - begun_s)
        memory_mib = [node.memory_bytes() / 2**20 for node in nodes]
        begun_s = time.monotonic()
        ends.close()
        down_s = time.monotonic() - begun_s
    return {
        "up_s": up_s,
        "boot_s": boot_s,
        "idle_share": idle_share,
        "memory_mib": memory_mib,
        "down_s": down_s,
    }


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
