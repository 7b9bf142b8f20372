"""What `ascard agent` and `ascard interface` cost: memory, processor time, frames lost.

    python -m benchmarks.capes_daemons --seconds 60 --agents 10000 --budget 5min

First one agent with 44 indicators once a second and its interface; then an interface with so many simulated
agents (`cargo build --release -p ascar-interface --example many_agents`), half of whose indicators change
each second. Prints one JSON object. Processor time is what the kernel counted, so it holds on a busy machine
too; lost are frames that were sent and are not on disk.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.harness import Benchmark, Piece, build, crate_sources

BIN = Path(sys.executable).parent
EXAMPLE = Path(__file__).parents[1] / "target/release/examples/many_agents"
AGENT = """
session = "test"
node = "cost"
calendar = true
indicators = ["block.vd*", "cpu.*_share", "cpu.load", "cpu.switches_per_s", "vm.*", "memory.*",
    "knob.*", "calendar.*"]
without = ["vm.scanned*", "vm.swapped*", "vm.reclaimed*", "cpu.steal*"]
[[collector]]
kind = "block"
[[collector]]
kind = "vm"
[[collector]]
kind = "memory"
[[collector]]
kind = "cpu"
[[knob]]
name = "vm.page-cluster"
"""
INTERFACE = """
session = "test"
database = "replay.sqlite"
[[metric]]
name = "bytes_per_s"
indicators = ["simulated.indicator1_per_s", "block.*.write_bytes_per_s"]
"""


class Processes:
    """What was started, and its end."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
        self.start("server", BIN / "nats-server", "-a", "127.0.0.1", "-p", self.port)
        time.sleep(1)

    def start(self, name: str, *command: object) -> int:
        """Starts a program; its number."""
        log = self._stack.enter_context((self._folder / f"{name}.log").open("wb"))
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return process.pid

    def daemon(self, name: str, text: str, before: tuple[str, ...] = ()) -> int:
        """Starts `ascard NAME`, by another command if need be; its number."""
        path = self._folder / f"{name}.toml"
        path.write_text(f"{text}\n[messaging]\nurl = 'nats://127.0.0.1:{self.port}'\n")
        return self.start(name, *before, BIN / "ascard", name, "--config", path)


def cpu_s(pid: int) -> float:
    """Processor seconds of all threads so far."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident_bytes(pid: int) -> int:
    """The most that was resident."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def one_agent(seconds: int) -> dict[str, float]:
    """An agent and its interface."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        processes = Processes(Path(folder), stack)
        interface = processes.daemon("interface", INTERFACE)
        agent = processes.daemon("agent", AGENT)
        time.sleep(5)
        before = cpu_s(agent), cpu_s(interface)
        time.sleep(seconds)
        after = cpu_s(agent), cpu_s(interface)
        return {
            "agent_core_share": (after[0] - before[0]) / seconds,
            "agent_resident_bytes": resident_bytes(agent),
            "interface_core_share": (after[1] - before[1]) / seconds,
            "interface_resident_bytes": resident_bytes(interface),
        }


def many_agents(agents: int, seconds: int) -> dict[str, float]:
    """An interface with many."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        processes = Processes(Path(folder), stack)
        interface = processes.daemon("interface", INTERFACE)
        time.sleep(1)
        words = [EXAMPLE, processes.port, agents, seconds]
        batch = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
        # Half of the time with all of them there.
        time.sleep(3 + seconds / 4)
        before, at = cpu_s(interface), time.monotonic()
        time.sleep(seconds / 2)
        share = (cpu_s(interface) - before) / (time.monotonic() - at)
        output, _ = batch.communicate(timeout=seconds + 60)
        found = json.loads(output)
        counters = found["counters"]
        database = sum(path.stat().st_size for path in Path(folder).glob("replay.sqlite*"))
        return {
            "agents": agents,
            "frames_sent": found["frames_sent"],
            "frames_lost": found["frames_sent"] - counters["rows_stored"],
            "frames_late": counters["late"],
            "frame_bytes_mean": found["bytes_a_frame"],
            "interface_core_share": share,
            "interface_resident_bytes": resident_bytes(interface),
            "database_bytes_a_row": database / max(counters["rows_stored"], 1),
        }


def main() -> None:
    """Run and print."""
    parser = Benchmark.parser(__doc__ or "", "5min")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--agents", type=int, default=10_000)
    given = parser.parse_args()
    pieces = {f"one, {given.seconds} s": partial(one_agent, given.seconds)}
    if EXAMPLE.exists():
        pieces[f"{given.agents}, {given.seconds} s"] = partial(many_agents, given.agents, given.seconds)
    else:
        print(f"{EXAMPLE} is not built: see --help", file=sys.stderr)
    benchmark = Benchmark.of(given, build(*crate_sources("ascard")))
    print(json.dumps(benchmark.run(Piece(key, run) for key, run in pieces.items()), indent=2))


if __name__ == "__main__":
    main()
