"""What `ascard proxy` costs: fio's NBD engine through it, a bare copier, nbdkit's own proxy, and nothing.

    python -m benchmarks.proxy_overhead --budget 10min

Random reads of 4 KiB from memory, over unix sockets, at several depths. The four take turns, so that what
drifts takes all of them along. The cost of what stands between is the time that it adds to a read. The proxy
holds its streams to a window above the depth: every request is counted, none waits. A server that takes
0.5 ms for each request shows what is left of it in use; 64 streams at once show what memory one takes.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import (
    ROOT,
    Benchmark,
    Piece,
    batches,
    build,
    called,
    crate_sources,
    mean,
    number,
    percent,
    ratio,
    share_of,
    table,
)

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTHS = (1, 16, 64)
TURNS = 8
SECONDS = 3
WINDOW = 200
STREAMS = 64
WAYS = ("direct", "copier", "ascard proxy", "nbdkit's nbd plugin")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(command: list[Any], path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program, from when its socket is there to the end, which it comes to with all that it has started."""
    process = subprocess.Popen(command)
    try:
        end_s = time.monotonic() + 20
        while not path.exists():
            if process.poll() is not None or time.monotonic() > end_s:
                raise RuntimeError(f"{command[0]}: does not listen on {path}")
            time.sleep(0.01)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def proxy(folder: Path, route: str) -> list[Any]:
    """The command of `ascard proxy` with a route; its control socket is `control.sock` in the folder."""
    config = folder / "proxy.toml"
    config.write_text(f'controller = "a"\ncontrol = "control.sock"\nwindow = {WINDOW}\n[[route]]\n{route}')
    return [find_ascard(), "proxy", "--config", config]


def nbdkit(*words: Any) -> list[Any]:
    """The command of a server of nbdkit."""
    if shutil.which("nbdkit") is None:
        raise RuntimeError("nbdkit is missing: apt-get install nbdkit")
    return ["nbdkit", "-f", *words]


@cache
def example(name: str) -> Path:
    """A program of `crates/proxy/examples`."""
    words = ("--release", "--quiet", "--package", "ascar-proxy", "--example", name)
    called("cargo", "build", "--manifest-path", ROOT / "Cargo.toml", *words)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / name


@contextlib.contextmanager
def between(way: str, folder: Path, server: Path) -> Iterator[tuple[Path, int | None]]:
    """What stands before the server: where clients connect to, and its process."""
    path = folder / "between.sock"
    if way == "direct":
        yield server, None
        return
    if way == "ascard proxy":
        command = proxy(folder, f'listen = "unix:between.sock"\nserver = "unix:{server}"\n')
    elif way == "copier":
        command = [example("copier"), path, server]
    else:
        command = nbdkit("-U", path, "nbd", f"socket={server}")
    with running(command, path) as process:
        yield path, process.pid
    path.unlink(missing_ok=True)


def load(path: Path, depth: int) -> float:
    """Reads a second of fio's NBD engine."""
    words = (
        "--name=load", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={path}", "--rw=randread",
        "--bs=4k", f"--iodepth={depth}", "--time_based", f"--runtime={SECONDS}", "--ramp_time=0.3",
        "--output-format=json",
    )  # fmt: skip
    said = called("fio", *words)  # a word of the engine comes before the JSON
    return json.loads(said[said.index("{") :])["jobs"][0]["read"]["iops"]


def processor_s(process: int | None) -> float:
    """What a process has used so far."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def turn(depth: int, at: int, delay_us: int, ways: tuple[str, ...]) -> dict[str, Any]:
    """Reads a second by each way, and microseconds of processor that what stands between takes for one."""
    found: dict[str, Any] = {}
    order = ways[at % len(ways) :] + ways[: at % len(ways)]
    with tempfile.TemporaryDirectory(prefix="ascar-") as name:
        folder = Path(name)
        path = folder / "server.sock"
        memory_server = nbdkit("-U", path, "memory", "64M")
        with running([example("slow"), path, str(delay_us)] if delay_us else memory_server, path):
            for way in order:
                with between(way, folder, path) as (clients, process):
                    before_s = processor_s(process)
                    iops = load(clients, depth)
                    used_s = processor_s(process) - before_s
                found[way] = {"iops": iops, "processor_us": used_s * 1e6 / (iops * (SECONDS + 0.3))}
    return found


def memory() -> dict[str, Any]:
    """KiB that each of many streams at work adds to the proxy."""
    greeting = struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">IIIH", 7, 6, 0, 0)
    read = struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, 0, 1 << 20)

    def resident_kib(process: int) -> int:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])

    with tempfile.TemporaryDirectory(prefix="ascar-") as name:
        folder = Path(name)
        path = folder / "server.sock"
        with (
            running(nbdkit("-U", path, "memory", "64M"), path),
            between("ascard proxy", folder, path) as (clients, process),
            contextlib.ExitStack() as stack,
        ):
            assert process is not None
            before_kib = resident_kib(process)
            for _ in range(STREAMS):
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.connect(str(clients))
                client.sendall(greeting + read)
                left = (1 << 20) + 18
                while left > 0:
                    left -= len(client.recv(left))
            return {"kib": (resident_kib(process) - before_kib) / STREAMS}


def pieces() -> list[Piece]:
    """Everything that is measured."""
    ways = ("direct", "ascard proxy")
    return [
        Piece("memory", memory),
        *(
            Piece(f"depth {depth}, {at}", partial(turn, depth, at, 0, WAYS))
            for at in range(TURNS)
            for depth in DEPTHS
        ),
        *(
            Piece(f"0.5 ms, depth {depth}, {at}", partial(turn, depth, at, 500, ways))
            for at in range(TURNS)
            for depth in DEPTHS
        ),
    ]


def main() -> None:
    """Measure and print tables."""
    given = Benchmark.parser(__doc__ or "", "10min").parse_args()
    found = Benchmark.of(given, build(*crate_sources("proxy"))).run(pieces())

    def rates(turns: list[dict[str, Any]], way: str) -> list[float]:
        return [one[way]["iops"] for one in turns]

    def added_us(turns: list[dict[str, Any]], way: str) -> list[float]:
        """What a way adds to the time of a read."""
        return [1e6 / one[way]["iops"] - 1e6 / one["direct"]["iops"] for one in turns]

    rows: list[list[str]] = []
    for depth in DEPTHS:
        if turns := batches(found, f"depth {depth}"):
            ours = added_us(turns, "ascard proxy")
            for way in WAYS:
                cells = [str(depth), way, number(mean(rates(turns, way)))]
                if way != "direct":
                    used = mean([one[way]["processor_us"] for one in turns])
                    theirs = added_us(turns, way)
                    over = "1" if way == "ascard proxy" else number(share_of(ours, theirs))
                    cells += [number(mean(theirs)), over, number(used)]
                rows.append(cells + [""] * (6 - len(cells)))
    heads = (
        "depth",
        "way",
        "reads a second",
        "cost, us a read",
        "cost of the proxy over it",
        "processor, us a read",
    )
    table(heads, rows)
    rows = [
        [str(depth), percent(ratio(rates(turns, "ascard proxy"), rates(turns, "direct")))]
        for depth in DEPTHS
        if (turns := batches(found, f"0.5 ms, depth {depth}"))
    ]
    table(["depth", "of the direct rate, at 0.5 ms a request"], rows)
    if "memory" in found:
        print(f"Memory a stream: {found['memory']['kib']:.0f} KiB")


if __name__ == "__main__":
    main()
