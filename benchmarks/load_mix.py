"""The mix of each built-in workload, executed and defined.

    python -m benchmarks.load_mix --budget 10min

Each workload runs for ten seconds on tmpfs, scaled to a data set that fits there. Within each kind of
thread the operations on files are counted; a flowop's share of them is compared with its share in the
definition (its `iters` over the sum). Where semaphores couple kinds of threads (the database), their ratio
is compared too. Exit status 1 when one of them lies further off than the limit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, build, crate_sources, table

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

OPERATIONS = frozenset(
    (
        *("createfile", "openfile", "closefile", "deletefile", "statfile", "fsync", "fsyncset"),
        *("read", "readwholefile", "write", "writewholefile", "appendfile", "appendfilerand", "aiowrite"),
    )
)
COUPLED = {"dbserver": (("dbread", "dbwrite", 10.0), ("dbread", "logwrite", 3200.0))}
"""Ratios between kinds of threads: 100 reads let 10 writes go, 3,200 a write of the log."""


def lines(*words: str | Path) -> list[dict[str, Any]]:
    """What `ascard load` prints; it must succeed."""
    done = subprocess.run(
        [find_ascard(), "load", *words], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        sys.exit(f"ascard load {' '.join(map(str, words))}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def scale_for(name: str, data_mb: float) -> str:
    """The factor that makes the data set so large, at most 1."""
    whole = lines("--personality", name, "--describe")[0]["expected_bytes"]
    return f"{min(1.0, data_mb * 1e6 / whole):.9f}"


def deviations(description: dict[str, Any], counts: dict[str, int]) -> tuple[float, float]:
    """How far shares lie from the definition at most: as differences, and relatively."""
    absolute, relative = [0.0], [0.0]
    for group in description["groups"]:
        flowops = [flowop for flowop in group["flowops"] if flowop["type"] in OPERATIONS]
        whole = sum(flowop["iters"] for flowop in flowops)
        total = sum(counts[flowop["name"]] for flowop in flowops)
        for flowop in flowops:
            defined = flowop["iters"] / whole
            executed = counts[flowop["name"]] / total if total else 0.0
            absolute.append(abs(executed - defined))
            relative.append(abs(executed / defined - 1))
    for name, ratios in COUPLED.items():
        for above, below, ratio in ratios:
            if description["workload"].startswith(name) and counts[below]:
                relative.append(abs(counts[above] / counts[below] / ratio - 1))
    return max(absolute), max(relative)


def mix(name: str, given: Namespace) -> dict[str, Any]:
    """What one run of a workload comes to."""
    words = ["--personality", name, "--scale", scale_for(name, given.data_mb)]
    description = lines(*words, "--describe")[0]
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        summary = lines(*words, "--dir", directory, "--seconds", str(given.seconds), "--clean")[-1]
    counts = {key: value["ops"] for key, value in summary["flowops"].items()}
    absolute, relative = deviations(description, counts)
    return {
        "operations": summary["ops"],
        "absolute": absolute,
        "relative": relative,
        "starved": summary["starved"],
    }


def main() -> None:
    """Run all and print a table in Markdown."""
    parser = Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--workloads", nargs="+", help="by name; all that are built in where not given")
    parser.add_argument("--data-mb", type=float, default=200, help="size of the data sets")
    parser.add_argument("--limit", type=float, default=0.01, help="how far shares may lie off")
    parser.add_argument("--directory", default="/dev/shm")
    given = parser.parse_args()
    names = given.workloads or [line["name"] for line in lines("--list")]
    how = f"{given.seconds:g} s, {given.data_mb:g} MB"
    found = Benchmark.of(given, build(*crate_sources("ascard"))).run(
        Piece(f"{name}, {how}", partial(mix, name, given)) for name in names
    )
    table(
        ("workload", "operations", "largest deviation of a share", "relative", "starved"),
        [
            [
                key.partition(",")[0],
                f"{one['operations']:,}",
                f"{one['absolute']:.4%}",
                f"{one['relative']:.3%}",
                f"{one['starved']}",
            ]
            for key, one in found.items()
        ],
    )
    far = [key for key, one in found.items() if one["absolute"] > given.limit]
    if far:
        sys.exit(f"further off than {given.limit:.1%}: {'; '.join(far)}")


if __name__ == "__main__":
    main()
