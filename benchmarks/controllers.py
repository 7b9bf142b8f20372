"""Windows and rules on two grounds: the simulator, and real clients whose bytes pass real sockets.

    python -m benchmarks.controllers --on simulator,testbed --budget 20min

Clients write at random to one disk, each in a part of its own. In the simulator that is a scenario; on the
testbed (`ascar.testbed`) the same disk is `ascard disk`, each client is fio's NBD engine, and one `ascard
proxy` holds their streams to a window, or to the rules that `ascar sharp deploy` has put in force. Rules are
searched in the simulator alone. On the testbed all take turns, in an order that is drawn, until each had
`TURNS` runs.

The table: throughput with its 95% interval, its gain over no control, the 99th percentile of a request's
latency, and Jain's index of the clients. Requests of a closed loop are no arrivals: who waits asks for
nothing meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ascar.sharp import objective_of
from ascar.simulation import parse_scenario, run_many, seeded, with_rule_text, with_settings
from ascar.testbed.file import testbed_of
from ascar.testbed.folder import TestbedFolder
from ascar.testbed.running import RunningTestbed

from . import sharp_rows as rows
from .harness import Benchmark, Piece, build, crate_sources, mean, number, percent, ratio, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CLIENTS, DEPTH, PART_MIB = 4, 32, 1536
SECONDS, RAMP_S = 8, 2
TURNS, SEEDS = 5, 5
WINDOWS = (1, 2, 3, 4, 8, 16)
NONE, RULES = "no control", "rules"
CONTROLS = (NONE, *(f"window {window}" for window in WINDOWS), RULES)
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


class Ground(Protocol):
    """Where controllers are compared."""

    turns: int
    """The number of runs of each control."""

    def run(self, control: str, rules: str, turn: int) -> dict[str, Any]:
        """One run: MB/s of each client, and the 99th percentile of the latency in ms."""
        ...


class Simulated:
    """The simulator; a turn is a seed."""

    turns = SEEDS

    def run(self, control: str, rules: str, turn: int) -> dict[str, Any]:
        """Run the scenario on a seed that no search had."""
        scenario = seeded(parse_scenario(f"seed = {rows.FRESH + turn}\n{SCENARIO}"), 1)[0]
        if control == RULES:
            scenario = with_rule_text(scenario, rules)
        elif control != NONE:
            scenario = with_settings(scenario, [f"control.window={control.removeprefix('window ')}"])
        (outcome,) = run_many([scenario])
        clients = [sum(series) / len(series) for series in outcome.clients_mb_per_s]
        return {"clients": clients, "p99_ms": outcome.latency.latency_ms_p99}


class Testbed:
    """A testbed of one disk, and one node whose clients of fio reach it through a proxy."""

    turns = TURNS

    def run(self, control: str, rules: str, turn: int) -> dict[str, Any]:
        """Start all of it, run the load, end all of it."""
        del turn
        with tempfile.TemporaryDirectory(prefix="ascar-") as name:
            folder = Path(name)
            (folder / "disk.toml").write_text(SCENARIO, "utf-8")
            wanted = testbed_of(self._wanted(control), folder)
            with TestbedFolder(folder / "up") as place, RunningTestbed(wanted, place) as testbed:
                if control == RULES:
                    self._deploy(folder, rules, testbed.proxies()[0].connection)
                node = testbed.machine("clients")
                clients = [node.open(self._load(at), sys.stderr.buffer) for at in range(CLIENTS)]
                said = [client.communicate()[0].decode() for client in clients]
        if any(client.returncode for client in clients):
            raise RuntimeError("fio failed")
        reports = [json.loads(one[one.index("{") :])["jobs"][0]["write"] for one in said]
        return {
            "clients": [one["bw_bytes"] / 1e6 for one in reports],
            "p99_ms": max(one["clat_ns"]["percentile"]["99.000000"] for one in reports) / 1e6,
        }

    def _wanted(self, control: str) -> dict[str, Any]:
        size = f"{CLIENTS * PART_MIB}MiB"
        window = {"window": int(control.removeprefix("window "))} if control.startswith("window") else {}
        return {
            "testbed": {"name": "writers"},
            "node": [{"name": "server"}, {"name": "clients"}],
            "disk": [{"name": "disk", "node": "server", "scenario": "disk.toml", "size": size}],
            "proxy": [{"node": "clients", "disks": ["disk"], "workload": "writers", **window}],
        }

    def _deploy(self, folder: Path, rules: str, connection: str) -> None:
        (folder / "rules.txt").write_text(rules)
        words = ("deploy", "rules.txt", "--floor", "0%", "--quiet", "--connection", connection)
        own = {**os.environ, "ASCAR_RUNTIME_DIR": str(folder / "run")}
        done = subprocess.run(
            [sys.executable, "-m", "ascar", "sharp", *words],
            cwd=folder, env=own, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())

    def _load(self, client: int) -> list[str]:
        return [
            "fio", "--name=load", "--ioengine=nbd", "--uri=nbd+unix:///disk?socket=disk.sock",
            "--rw=randwrite", "--bs=1M", f"--iodepth={DEPTH}", f"--offset={client * PART_MIB}M",
            f"--size={PART_MIB}M", "--time_based", f"--runtime={SECONDS}", f"--ramp_time={RAMP_S}",
            "--randrepeat=0", "--norandommap", "--output-format=json",
        ]  # fmt: skip


GROUNDS: dict[str, Callable[[], Ground]] = {"simulator": Simulated, "testbed": Testbed}


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
        Piece(_key(name, control, turn), partial(GROUNDS[name]().run, control, rules, turn))
        for name in chosen
        for turn in range(GROUNDS[name]().turns)
        for control in random.Random(turn).sample(CONTROLS, len(CONTROLS))
    )
    print(f"rules of {searched['rules']['runs']} simulated runs:\n{rules}")
    for name in chosen:
        _print(name, found)


def _key(ground: str, control: str, turn: int) -> str:
    return f"{ground}, {control}, {turn}"


def _searched() -> dict[str, Any]:
    """Rules for the scenario, found in simulation."""
    rules, runs, stopped = rows.bound([parse_scenario(SCENARIO)], objective_of("throughput"), 600)
    return {"rules": rules, "runs": runs, "stopped": stopped}


def _print(ground: str, found: dict[str, dict[str, Any]]) -> None:
    runs = {
        control: [
            found[key]
            for turn in range(GROUNDS[ground]().turns)
            if (key := _key(ground, control, turn)) in found
        ]
        for control in CONTROLS
    }
    print(f"\n{ground}: {CLIENTS} clients, {DEPTH} requests of 1 MiB each, {SECONDS} s\n")
    heads = ["control", "MB/s", "over no control", "p99, ms (closed loop)", "Jain's index"]
    usual = [sum(one["clients"]) for one in runs[NONE]]
    table(
        heads,
        [
            [
                control,
                number(mean([sum(one["clients"]) for one in several])),
                percent(ratio([sum(one["clients"]) for one in several], usual)) if control != NONE else "",
                number(mean([one["p99_ms"] for one in several])),
                number(mean([_jain(one["clients"]) for one in several])),
            ]
            for control, several in runs.items()
            if several
        ],
    )


def _jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


if __name__ == "__main__":
    main()
