"""What the load generator itself costs, on an otherwise idle machine.

    python -m benchmarks.load_overhead --budget 5min

On tmpfs, with two threads, it measures statfile and reads of 4 KiB, and takes from the time of an operation
what the operation itself took: the rest is the generator's (choosing, reading the clock, counting). Where a
program `filebench` is in PATH it runs the same files, and its own operations a second stand beside.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, build, crate_sources, table
from benchmarks.load_mix import lines

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 3
RUNS = 5
THREADS = 2

WORKLOADS = {
    "statfile": (
        "define fileset name=f,entries=1000,dirwidth=20,size=4k,prealloc\n"
        "define process name=p {{ thread name=t,instances={threads} {{\n"
        "flowop statfile name=op,filesetname=f }} }}\n",
        1_000_000,
    ),
    "read 4 KiB": (
        "define fileset name=f,size=64m,prealloc\n"
        "define process name=p {{ thread name=t,instances={threads} {{\n"
        "flowop read name=op,filesetname=f,iosize=4k,random }} }}\n",
        300_000,
    ),
}


def measure(text: str) -> dict[str, Any]:
    """Operations a second of all threads, ours and filebench's, and nanoseconds of our own an operation."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        place = Path(directory)
        wml = place / "load.f"
        wml.write_text(text.format(threads=THREADS))
        summary = lines("--wml", wml, "--dir", place, "--seconds", str(SECONDS), "--clean")[-1]
        rate = summary["throughput_ops_per_s"]
        own_ns = THREADS * 1e9 / rate - summary["latency_ms_mean"] * 1e6
        return {"rate": rate, "own_ns": own_ns, "filebench": filebench(text, place)}


def filebench(text: str, place: Path) -> float | None:
    """Filebench's operations a second of the same workload; None where it is missing, fails or hangs."""
    program = shutil.which("filebench")
    if program is None:
        return None
    wml = place / "filebench.f"
    sets = text.format(threads=THREADS).replace("define fileset ", f"define fileset path={place},")
    wml.write_text(f"{sets}run {SECONDS}\n")
    try:
        done = subprocess.run(
            [program, "-f", wml], capture_output=True, text=True, timeout=SECONDS + 60, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    found = re.search(r"IO Summary:\s+\d+ ops,?\s+([0-9.]+) ops/s", done.stdout + done.stderr)
    return float(found[1]) if found else None


def main() -> None:
    """Measure and print a table."""
    given = Benchmark.parser(__doc__ or "", "5min").parse_args()
    found = Benchmark.of(given, build(*crate_sources("ascard"))).run(
        Piece(f"{name}, run {run + 1}", partial(measure, text))
        for run in range(RUNS)
        for name, (text, _) in WORKLOADS.items()
    )
    print(f"median (lowest to highest) of {RUNS} runs of {SECONDS} s, {THREADS} threads\n")
    rows: list[list[str]] = []
    for name, (_, required) in WORKLOADS.items():
        runs = [one for key, one in found.items() if key.startswith(name)]
        spreads = [
            spread([one[what] for one in runs if one[what] is not None])
            for what in ("rate", "own_ns", "filebench")
        ]
        rows.append([name, spreads[0], f"{required:,}", *spreads[1:]])
    heads = ["flowop", "operations a second", "required", "own ns an operation"]
    table([*heads, "filebench's operations a second"], rows)


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest; a dash where nothing was measured."""
    if not values:
        return "-"
    return f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


if __name__ == "__main__":
    main()
