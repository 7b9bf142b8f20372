"""Windows and rules on two grounds: the simulator, and real clients whose bytes pass real sockets.

    python -m benchmarks.controllers --on simulator,testbed --budget 20min

Clients write at random to one disk, each in a part of its own. In the simulator that is a scenario; on the
testbed the same disk is `ascard disk`, each client is fio's NBD engine, and one `ascard proxy` holds their
streams to a window or to rules, which the messages of the rule manager have put in force. Rules are
searched in the simulator alone. Both are an `ascar.sharp.Bench`. On the testbed all take turns, in an order
that is drawn, until each had `TURNS` runs.

The table: throughput with its 95% interval, its gain over no control, the 99th percentile of a request's
latency, and Jain's index of the clients. Requests of a closed loop are no arrivals: who waits asks for
nothing meanwhile.
"""

from __future__ import annotations

import random
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.rules import RuleSet
from ascar.sharp import RuleTrial, SimulatedBench, objective_of
from ascar.sharp.trials.testbed_bench import TestbedBench, fixed
from ascar.simulation import parse_scenario, seeded
from ascar.testbed.file import testbed_of

from . import sharp_rows as rows
from .harness import Benchmark, Piece, build, crate_sources, mean, number, percent, ratio, table

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from ascar.sharp import Bench
    from ascar.simulation import Scenario

CLIENTS, DEPTH, PART_MIB = 4, 32, 1536
SECONDS, RAMP_S = 8, 2
TURNS = 5
WINDOWS = (1, 2, 3, 4, 8, 16)
NONE, RULES = "no control", "rules"
CONTROLS = (NONE, *(f"window {window}" for window in WINDOWS), RULES)
THROUGHPUT = objective_of("throughput")
TOTAL = "throughput_mb_per_s"
FIGURES = (TOTAL, "latency_ms_p99", "jain_index")
SCENARIO = f"""
name = "writers-of-one-disk"
warmup_s = {RAMP_S}
duration_s = {SECONDS}
control = {{ window = 256 }}
striping = {{ count = 1 }}
[[servers]]
count = 1
layout = {{ used_percent = 0 }}
[[clients]]
count = {CLIENTS}
workload = "writers"
[[workloads]]
name = "writers"
filesets = [{{ name = "part", size_mib = {PART_MIB} }}]
threads = [{{ instances = {DEPTH}, flowops = [{{ op = "write", random = true, directio = true }}] }}]
"""


@contextmanager
def _simulator() -> Generator[Bench]:
    yield SimulatedBench(seeded(_scenario(), 1)[0], THROUGHPUT, 1)


@contextmanager
def _testbed() -> Generator[Bench]:
    """One disk, and one node whose clients reach it through a proxy."""
    with tempfile.TemporaryDirectory(prefix="ascar-") as name:
        (Path(name) / "disk.toml").write_text(SCENARIO, "utf-8")
        table = {
            "testbed": {"name": "writers"},
            "node": [{"name": "server"}, {"name": "clients"}],
            "disk": [
                {
                    "name": "disk",
                    "node": "server",
                    "scenario": "disk.toml",
                    "size": f"{CLIENTS * PART_MIB}MiB",
                }
            ],
            "proxy": [{"node": "clients", "disks": ["disk"], "workload": "writers"}],
        }
        yield TestbedBench(testbed_of(table, Path(name)), _scenario(), THROUGHPUT)


GROUNDS: dict[str, Callable[[], AbstractContextManager[Bench]]] = {
    "simulator": _simulator,
    "testbed": _testbed,
}


def _scenario() -> Scenario:
    return parse_scenario(f"seed = {rows.FRESH}\n{SCENARIO}")


def _run(ground: str, control: str, rules: str, turn: int) -> dict[str, Any]:
    """One run; a turn is a seed, which no search had."""
    wanted = None
    if control == RULES:
        wanted = RuleSet.parse(rules)
    elif control != NONE:
        wanted = fixed(int(control.removeprefix("window ")))
    with GROUNDS[ground]() as bench:
        (found,) = bench.run([RuleTrial(wanted, turn)])
    if found.failed:
        raise RuntimeError(found.failed)
    return {name: found.metrics[name] for name in FIGURES}


def main() -> None:
    """Search, run in turns, print."""
    parser = Benchmark.parser(str(__doc__), "20min")
    parser.add_argument("--on", default=",".join(GROUNDS), help=f"grounds, of {', '.join(GROUNDS)}")
    given = parser.parse_args()
    chosen = given.on.split(",")
    if unknown := [name for name in chosen if name not in GROUNDS]:
        parser.error(f"--on {unknown[0]}: allowed: {', '.join(GROUNDS)}")
    benchmark = Benchmark.of(given, build(*crate_sources("proxy", "disk", "python")))
    searched = benchmark.run([Piece("rules", _searched)])
    if "rules" not in searched:
        return
    rules = searched["rules"]["rules"]
    found = benchmark.run(
        Piece(_key(name, control, turn), partial(_run, name, control, rules, turn))
        for name in chosen
        for turn in range(TURNS)
        for control in random.Random(turn).sample(CONTROLS, len(CONTROLS))
    )
    print(f"rules of {searched['rules']['runs']} simulated runs:\n{rules}")
    for name in chosen:
        _print(name, found)


def _key(ground: str, control: str, turn: int) -> str:
    return f"{ground}, {control}, {turn}"


def _searched() -> dict[str, Any]:
    """Rules for the scenario, found in simulation."""
    rules, runs, stopped = rows.bound([parse_scenario(SCENARIO)], THROUGHPUT, 600)
    return {"rules": rules, "runs": runs, "stopped": stopped}


def _print(ground: str, found: dict[str, dict[str, Any]]) -> None:
    runs = {
        control: [found[key] for turn in range(TURNS) if (key := _key(ground, control, turn)) in found]
        for control in CONTROLS
    }
    print(f"\n{ground}: {CLIENTS} clients, {DEPTH} requests of 1 MiB each, {SECONDS} s\n")
    heads = ["control", "MB/s", "over no control", "p99, ms (closed loop)", "Jain's index"]
    usual = [one[TOTAL] for one in runs[NONE]]
    table(
        heads,
        [
            [
                control,
                number(mean([one[TOTAL] for one in several])),
                percent(ratio([one[TOTAL] for one in several], usual)) if control != NONE else "",
                number(mean([one["latency_ms_p99"] for one in several])),
                number(mean([one["jain_index"] for one in several])),
            ]
            for control, several in runs.items()
            if several
        ],
    )


if __name__ == "__main__":
    main()
