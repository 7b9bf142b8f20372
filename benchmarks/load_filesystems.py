"""Cao's four workloads on default ext4, xfs and btrfs, each run on a new file system.

    sudo .venv/bin/python -m benchmarks.load_filesystems --budget 30min

As in chapter 6 of his thesis the data set is 2.5 times the memory (here that of a control group), and what
he found to make runs differ is left out: ext4 is made without lazy initialisation and with a fixed hash
seed, the file system is mounted anew after filling, and caches are dropped. The loop device goes around
the host's cache. The runs of the file systems are interleaved. The table gives the mean throughput with
its 95% interval, and the relative range (largest minus smallest, over the mean, section 6.2).
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, build, called, crate_sources, mean, number, table

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Generator

RUNS = 10
SECONDS = 6
SCALE = 0.05
DATA_OVER_MEMORY = 2.5  # section 6.2
IMAGE_BYTES = 4 * 10**9
WORKLOADS = ("fileserver-heavy", "mailserver-heavy", "webserver-heavy", "dbserver-heavy")
HASH_SEED = "01234567-89ab-cdef-0123-456789abcdef"
FILE_SYSTEMS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", f"lazy_itable_init=0,lazy_journal_init=0,hash_seed={HASH_SEED}"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "btrfs": ["mkfs.btrfs", "-q", "-f"],
}
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")


@contextmanager
def memory_group(limit_bytes: int) -> Generator[Path]:
    """A control group (v1) of this much memory; it is given up at the end, with the cache that it holds."""
    group = MEMORY_GROUPS / f"ascar-benchmark-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield group
    finally:
        (group / "memory.force_empty").write_text("0")
        group.rmdir()


@contextmanager
def mounted(image: Path) -> Generator[Path]:
    """The file system of an image, mounted beside it; its loop device reads and writes around the cache."""
    place = image.with_name("mount")
    place.mkdir(exist_ok=True)
    device = called("losetup", "--find", "--show", "--direct-io=on", image).strip()
    try:
        called("mount", device, place)
        try:
            yield place
        finally:
            called("umount", place)
    finally:
        called("losetup", "--detach", device)


def one_run(workload: str, file_system: str, seed: int) -> dict[str, Any]:
    """Format, fill, mount anew, run; operations a second."""
    words = [find_ascard(), "load", "--personality", workload, "--scale", str(SCALE), "--seed", str(seed)]
    expected_bytes = json.loads(called(*words[:6], "--describe"))["expected_bytes"]
    with tempfile.TemporaryDirectory() as directory:
        image = Path(directory) / "image"
        called("truncate", "-s", str(IMAGE_BYTES), image)
        called(*FILE_SYSTEMS[file_system], image)
        with mounted(image) as place:
            called(*words, "--dir", place, "--fill-only")
        called("sync")
        Path("/proc/sys/vm/drop_caches").write_text("3")
        with memory_group(int(expected_bytes / DATA_OVER_MEMORY)) as group, mounted(image) as place:
            enter = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', group / "cgroup.procs"]
            printed = called(*enter, *words, "--dir", place, "--seconds", str(SECONDS), "--no-fill")
    return {"ops_per_s": json.loads(printed.splitlines()[-1])["throughput_ops_per_s"]}


def row(workload: str, file_system: str, values: list[float]) -> list[str]:
    """A line of the table."""
    spread = (max(values) - min(values)) / statistics.mean(values)
    return [workload, file_system, number(mean(values)), f"{spread:.1%}", str(len(values))]


def main() -> None:
    """Carry out the runs that are missing, and print the table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "30min")
    if os.geteuid() != 0:
        sys.exit("needs root, to format and mount a loop device")
    if not (MEMORY_GROUPS / "memory.limit_in_bytes").exists():
        sys.exit(f"needs the memory controller of cgroup v1 at {MEMORY_GROUPS}")
    benchmark.build = build(*crate_sources("ascard"))
    pieces = {
        (workload, file_system, run): Piece(
            f"{workload}/{file_system}/{run}", partial(one_run, workload, file_system, run)
        )
        for workload in WORKLOADS
        for run in range(1, RUNS + 1)
        for file_system in FILE_SYSTEMS
    }
    found = benchmark.run(pieces.values())
    values: dict[tuple[str, str], list[float]] = {}
    for (workload, file_system, _), piece in pieces.items():
        if piece.key in found:
            values.setdefault((workload, file_system), []).append(found[piece.key]["ops_per_s"])
    heads = ["workload", "file system", "ops/s (95% interval)", "relative range", "runs"]
    table(heads, (row(*key, runs) for key, runs in values.items()))


if __name__ == "__main__":
    main()
