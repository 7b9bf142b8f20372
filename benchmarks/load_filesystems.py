"""Cao's four workloads on default ext4, xfs and btrfs.

    sudo python benchmarks/load_filesystems.py --runs 10

As in chapter 6 of his thesis, each run formats a device (here a loop device on an image file), fills it, and
runs the workload; the table gives the mean throughput with its 95% interval, and the relative range (largest
minus smallest, over the mean) of the runs. Scale the data set to more than the memory to measure the device
rather than the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scipy.stats import t

from ascar.workloads.filebench import find_ascard

WORKLOADS = ("fileserver-def", "mailserver-def", "webserver-def", "dbserver-def")
FILE_SYSTEMS = {
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}


def run(words: list[str | Path]) -> str:
    """A command that must succeed; what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def one_run(image: Path, make: list[str], load: list[str]) -> float:
    """Format, fill, run; operations a second."""
    run([*make, image])
    mount = image.with_name("mount")
    mount.mkdir(exist_ok=True)
    run(["mount", "-o", "loop", image, mount])
    try:
        words = [find_ascard(), "load", *load, "--dir", mount]
        return float(json.loads(run(words).splitlines()[-1])["throughput_ops_per_s"])
    finally:
        run(["umount", mount])


def row(name: str, values: list[float]) -> str:
    """A line of the table."""
    mean = statistics.mean(values)
    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    spread = (max(values) - min(values)) / mean
    return (
        f"| {name} | {mean:,.0f} | {mean - half:,.0f} to {mean + half:,.0f} | {spread:.1%} | {len(values)} |"
    )


def main() -> None:
    """Run all and print a table in Markdown."""
    parser = argparse.ArgumentParser(description="Cao's four workloads on three file systems")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--size-gb", type=float, default=8)
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("needs root, to format and mount a loop device")
    print("| workload, file system | ops/s | 95% interval | relative range | runs |")
    print("|---|---|---|---|---|")
    for workload in given.workloads:
        load = ["--personality", workload, "--scale", str(given.scale), "--seconds", str(given.seconds)]
        for name, make in FILE_SYSTEMS.items():
            with tempfile.TemporaryDirectory(dir=given.directory) as directory:
                image = Path(directory) / "image"
                run(["truncate", "-s", str(int(given.size_gb * 1e9)), image])
                values = [one_run(image, make, load) for _ in range(given.runs)]
            print(row(f"{workload}, {name}", values), flush=True)


if __name__ == "__main__":
    main()
