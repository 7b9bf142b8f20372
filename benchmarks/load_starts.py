"""Starts and stops of each built-in workload.

    python -m benchmarks.load_starts --budget 15min

Half of the runs end by their time, the others by SIGTERM at a random moment: during the fill, while threads
start, or while they run. A run that has not ended after 20 s counts as hung. The table gives the longest
time from SIGTERM to the process's end, removal of the files included, and what was left in the directory.
Exit status 1 when a run hung, failed, took more than a second to end, or left a file.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, build, crate_sources, table
from benchmarks.load_mix import lines, scale_for

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from argparse import Namespace

PATIENCE_S = 20.0
END_S_MAX = 1.0
STATUS_OK = 0
STATUS_STOPPED = (3, -signal.SIGTERM)
"""Ended by the signal with a summary; or before it could take a signal, with nothing made."""


@dataclass
class Account:
    """What a workload's runs came to."""

    start_s: list[float] = field(default_factory=list[float])
    end_s: list[float] = field(default_factory=list[float])
    hung: int = 0
    failed: list[str] = field(default_factory=list[str])
    left: int = 0

    @property
    def good(self) -> bool:
        """Nothing went wrong."""
        return not (self.hung or self.failed or self.left) and max(self.end_s, default=0.0) <= END_S_MAX


def one_run(words: list[str], directory: Path, stop_after_s: float | None, account: Account) -> None:
    """Start, end, look what is left."""
    time_s = "0.02" if stop_after_s is None else "60"
    command = [find_ascard(), "load", *words, "--dir", directory, "--seconds", time_s, "--clean"]
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if stop_after_s is not None:
        time.sleep(stop_after_s)
        begun = time.monotonic()
        process.terminate()
    try:
        _, errors = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        account.hung += 1
        return
    took_s = time.monotonic() - begun
    (account.start_s if stop_after_s is None else account.end_s).append(took_s)
    allowed = (STATUS_OK,) if stop_after_s is None else STATUS_STOPPED
    if process.returncode not in allowed:
        account.failed.append(f"status {process.returncode}: {errors.strip()}")
    account.left += len(list(directory.iterdir()))


def runs(name: str, given: Namespace) -> dict[str, Any]:
    """All runs of a workload."""
    chance = random.Random(f"{given.seed} {name}")
    words = ["--personality", name, "--scale", scale_for(name, given.data_mb)]
    account = Account()
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        for run in range(given.runs):
            stop_after_s = chance.random() * given.stop_within_ms / 1000 if run % 2 else None
            one_run(words, Path(directory), stop_after_s, account)
    return asdict(account)


def main() -> None:
    """Run all and print a table in Markdown."""
    parser = Benchmark.parser(__doc__ or "", "15min")
    parser.add_argument("--runs", type=int, default=100, help="of each workload")
    parser.add_argument("--workloads", nargs="+", help="by name; all that are built in where not given")
    parser.add_argument("--data-mb", type=float, default=2, help="size of the data sets")
    parser.add_argument("--stop-within-ms", type=float, default=100, help="SIGTERM comes within this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", default="/dev/shm")
    given = parser.parse_args()
    names = given.workloads or [line["name"] for line in lines("--list")]
    how = f"{given.runs} runs of {given.data_mb:g} MB, within {given.stop_within_ms:g} ms, seed {given.seed}"
    found = Benchmark.of(given, build(*crate_sources("ascard"))).run(
        Piece(f"{name}, {how}", partial(runs, name, given)) for name in names
    )
    accounts = {key.partition(",")[0]: Account(**one) for key, one in found.items()}
    rows: list[list[str]] = []
    for name, account in accounts.items():
        longest = [f"{max(times, default=0.0):.3f} s" for times in (account.start_s, account.end_s)]
        faults = [f"{given.runs}", f"{account.hung}", f"{len(account.failed)}"]
        rows.append([name, *faults, *longest, f"{account.left}"])
    heads = ["workload", "runs", "hung", "failed", "whole run of 20 ms, longest"]
    table([*heads, "SIGTERM to end, longest", "left"], rows)
    bad = [word for name, one in accounts.items() if not one.good for word in (name, *one.failed[:1])]
    if bad:
        sys.exit(f"not as it should be: {'; '.join(bad)}")


if __name__ == "__main__":
    main()
