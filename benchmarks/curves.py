"""Throughput and latency against what clients ask for at once, on a testbed, and what the simulator predicts.

    python -m benchmarks.curves --on process --budget 30min
    python -m benchmarks.curves --on nbd,nfs --budget 2h

Two loads, from one client and several, each with so much in flight: "streams" read files in sequence from a
disk that reads ahead for 8 of them (the preset read-ahead-cliff), "writers" write 1 MiB at random to the disk
of the preset random-write, whose queue has 128 slots. The grounds: "process" and "namespace", where clients
are fio's NBD engine behind an `ascard proxy` that limits nothing; "nbd", where each client is a kernel with
the disk as a block device; "nfs", where each is a kernel with a mount of a kernel's NFS server on that disk
("streams" alone, whose files are written first). The disk is a model in all of them; the queues before it and
the kernels are real. The simulator runs the same scenario.

The points of a ground take turns, in an order that is drawn, `TURNS` times each. Tables: MB/s and the 99th
percentile of a request's latency from when it was asked for, with 95% intervals; and whether there is a
maximum and then a fall: what is left of the best point's throughput at the one with most in flight, where the
runs that chose the best point are not those that it is compared by.
"""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.sharp import RuleTrial, SimulatedBench, objective_of
from ascar.sharp.trials.testbed_bench import TestbedBench
from ascar.sharp.trials.testbed_places import WINDOW_ANY
from ascar.simulation import preset, with_settings
from ascar.testbed.file import testbed_of

from .harness import Benchmark, Piece, build, crate_sources, mean, number, percent, ratio, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascar.simulation import Scenario

CLIENTS = (1, 3, 6)
DEPTHS_OF = {"streams": (1, 2, 4, 8), "writers": (1, 4, 16, 32)}
PRESETS = {"streams": "read-ahead-cliff", "writers": "random-write"}
GROUNDS = ("process", "namespace", "nbd", "nfs")
SIMULATOR = "simulator"
TURNS, SECONDS, RAMP_S = 3, 6, 2
TOTAL_MIB = 384
"""Of all files of "streams": what an NFS server's memory does not hold, and a run does not read twice."""
PORT = 10_809
FIGURES = ("throughput_mb_per_s", "latency_ms_p99")
SEED = 7_000_000
OBJECTIVE = objective_of("throughput")

Point = tuple[str, int, int]
"""A load, the number of clients, and what each has in flight."""


def main() -> None:
    """Run in turns, print."""
    parser = Benchmark.parser(str(__doc__), "30min")
    parser.add_argument("--on", default="process", help=f"grounds, of {', '.join(GROUNDS)}")
    given = parser.parse_args()
    chosen = given.on.split(",")
    if unknown := [name for name in chosen if name not in GROUNDS]:
        parser.error(f"--on {unknown[0]}: allowed: {', '.join(GROUNDS)}")
    benchmark = Benchmark.of(given, build(*crate_sources("proxy", "disk", "python")))
    found = benchmark.run({piece.key: piece for piece in _pieces(chosen)}.values())
    for ground in chosen:
        for load in PRESETS:
            _print(ground, load, found)


def _pieces(grounds: Sequence[str]) -> Iterator[Piece]:
    """Each run there with that in simulation."""
    for turn in range(TURNS):
        for ground in grounds:
            points = list(_points(ground))
            for point in random.Random(turn).sample(points, len(points)):
                for where in (ground, SIMULATOR):
                    yield Piece(_key(where, point, turn), partial(_run, where, point, turn))


def _points(ground: str) -> Iterator[Point]:
    for load, depths in DEPTHS_OF.items():
        if ground != "nfs" or load == "streams":
            yield from ((load, clients, depth) for clients in CLIENTS for depth in depths)


def _key(ground: str, point: Point, turn: int) -> str:
    load, clients, depth = point
    return f"{ground}, {load}, {clients} x {depth}, {turn}"


def _run(ground: str, point: Point, turn: int) -> dict[str, Any]:
    """One run on one ground."""
    scenario, trial = _scenario(point), RuleTrial(None, turn)
    if ground == SIMULATOR:
        (found,) = SimulatedBench(scenario, OBJECTIVE, 1).run([trial])
    else:
        with tempfile.TemporaryDirectory(prefix="ascar-") as name:
            wanted = testbed_of(_testbed(ground, point), Path(name))
            (found,) = TestbedBench(wanted, scenario, OBJECTIVE).run([trial])
    if found.failed:
        raise RuntimeError(found.failed)
    return {name: found.metrics[name] for name in FIGURES}


def _scenario(point: Point) -> Scenario:
    load, clients, depth = point
    settings = [
        f"seed={SEED}", f"warmup_s={RAMP_S}", f"duration_s={SECONDS}", f"clients.count={clients}",
        f"workloads.threads.instances={depth}", f"control.window={WINDOW_ANY}", "control.tau_us=0",
        "servers.count=1", "striping.count=1",
    ]  # fmt: skip
    if load == "streams":
        settings += [
            f"workloads.filesets.entries={depth}",
            f"workloads.filesets.size_mib={TOTAL_MIB // (clients * depth)}",
        ]
    return with_settings(preset(PRESETS[load]), settings)


def _testbed(ground: str, point: Point) -> dict[str, Any]:
    load, clients, _ = point
    disk = {"name": "disk", "node": "server", "scenario": PRESETS[load]}
    named = {"testbed": {"name": f"curve-{ground}"}}
    if ground in ("process", "namespace"):
        return {
            **named,
            "node": [{"name": "server", "kind": ground}, {"name": "clients", "kind": ground}],
            "disk": [{**disk, "size": "8GiB"}],
            "proxy": [{"node": "clients", "disks": ["disk"]}],
        }
    kernel = {"kind": "kernel", "memory_mib": 256}
    if ground == "nbd":
        there = {"attach": [{"server": "server", "port": PORT}]}
        return {
            **named,
            "node": [{"name": "server", **kernel}, *_kernels(clients, there)],
            "disk": [{**disk, "size": "8GiB"}],
        }
    there = {"mounts": [{"server": "server", "export": "disk"}]}
    return {
        **named,
        "node": [
            {"name": "server", **kernel, "nfs": {"exports": [{"name": "disk"}]}},
            *_kernels(clients, there),
        ],
        "disk": [{**disk, "size": "2GiB", "file_system": "ext4"}],
    }


def _kernels(clients: int, there: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"client{number}", "kind": "kernel", **there} for number in range(1, clients + 1)]


def _print(ground: str, load: str, found: dict[str, dict[str, Any]]) -> None:
    points = [point for point in _points(ground) if point[0] == load]
    runs = {point: _both(ground, point, found) for point in points}
    known = {point: both for point, both in runs.items() if both[0]}
    if not known:
        return
    print(f"\n{load} on {ground}, {SECONDS} s a run\n")
    heads = ["clients", "in flight of each", "MB/s", "simulated", "p99, ms", "simulated"]
    table(
        heads,
        [
            [
                str(point[1]),
                str(point[2]),
                *(
                    number(mean([one[name] for one in several])) if several else ""
                    for name in FIGURES
                    for several in both
                ),
            ]
            for point, both in known.items()
        ],
    )
    for at, where in enumerate((ground, SIMULATOR)):
        print(f"{where}: {_fall({point: both[at] for point, both in known.items() if both[at]})}")


def _both(
    ground: str, point: Point, found: dict[str, dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The runs of a point there and in simulation, of the turns that both have."""
    turns = [turn for turn in range(TURNS) if _key(ground, point, turn) in found]
    ours = [found[_key(ground, point, turn)] for turn in turns]
    return ours, [found[key] for turn in turns if (key := _key(SIMULATOR, point, turn)) in found]


def _fall(runs: dict[Point, list[dict[str, Any]]]) -> str:
    """The maximum, and what is left of it where most is in flight.

    The best of many points is also the luckiest. So that it is none of the fall, the maximum of each turn is
    taken at the point that was the best in the other turns.
    """
    if not runs:
        return "no runs"
    rates = {point: [one[FIGURES[0]] for one in several] for point, several in runs.items()}
    best = _best(rates)
    last = max(rates, key=lambda point: (point[1] * point[2], point[1]))
    text = f"the maximum is at {best[1]} x {best[2]}"
    if best == last:
        return f"{text}, where most is in flight: there is no fall up to there"
    turns = min(map(len, rates.values()))
    if turns < 2:
        return f"{text}; too few turns tell how much of it is left"
    others = [{point: own[:at] + own[at + 1 : turns] for point, own in rates.items()} for at in range(turns)]
    left = ratio(rates[last][:turns], [rates[_best(other)][at] for at, other in enumerate(others)])
    return f"{text}; at {last[1]} x {last[2]} {percent(left)} of it are left"


def _best(rates: dict[Point, list[float]]) -> Point:
    return max(rates, key=lambda point: mean(rates[point])[0])


if __name__ == "__main__":
    main()
