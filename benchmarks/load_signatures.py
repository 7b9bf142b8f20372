"""Signatures beside what they were made from, on an idle machine.

    python -m benchmarks.load_signatures --budget 10min

Each load of `ascard load`, which waits for nothing, is recorded while it runs, and its signature written.
Then both run in turns: without any recording, where reads and writes a second are compared, and under strace,
where all features are. Tables in Markdown: medians of the pairs' ratios, with intervals of at least 95% from
order statistics (the binomial distribution of the number of pairs below the median).
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, build, crate_sources, table
from benchmarks.load_mix import lines

from ascar.features import features_of, relative_differences, signature_workload
from ascar.program.node_binary import find_ascard
from ascar.workloads.recorder import RecorderOptions, record_process

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Generator, Sequence

DATA = frozenset(("read", "readwholefile", "write", "writewholefile", "appendfile", "appendfilerand"))
SHARE_MIN = 0.02


def interval(values: Sequence[float]) -> str:
    """Median with an interval of at least 95%; the extremes where there are too few values for that."""
    ordered, number = sorted(values), len(values)
    below, chance = 0, 2 * 0.5**number
    while chance + 2 * math.comb(number, below + 1) * 0.5**number <= 0.05:
        below += 1
        chance += 2 * math.comb(number, below) * 0.5**number
    return f"{np.median(values):.2f} ({ordered[below]:.2f} to {ordered[number - 1 - below]:.2f})"


def pace(words: Sequence[str | Path], place: Path, seconds: float) -> float:
    """Reads and writes a second of a load that nobody watches."""
    summary = lines(*words, "--dir", place, "--seconds", str(seconds), "--clean")[-1]
    operations = sum(one["ops"] for one in summary["flowops"].values() if one["type"] in DATA)
    return operations / summary["load_s"]


@contextmanager
def running(words: Sequence[str | Path], place: Path) -> Generator[subprocess.Popen[bytes]]:
    """A load that has begun."""
    place.mkdir()
    command = [find_ascard(), "load", *words, "--dir", place, "--seconds", "3600", "--reading-ms", "100"]
    with tempfile.TemporaryFile() as out, subprocess.Popen(command, stdout=out) as process:
        try:
            while b'"reading"' not in Path(f"/proc/{process.pid}/fd/1").read_bytes():
                if process.poll() is not None:
                    sys.exit(f"{command}: ended with {process.returncode}")
                time.sleep(0.02)
            yield process
        finally:
            process.kill()


def traced(
    processes: Sequence[tuple[subprocess.Popen[bytes], Path]], turns: int
) -> list[list[dict[str, float]]]:
    """Features of processes under strace, in turns, each stopped while another one is looked at."""
    found: list[list[dict[str, float]]] = [[] for _ in processes]
    for process, _ in processes:
        process.send_signal(signal.SIGSTOP)
    for number in range(turns):
        places = range(len(processes))
        for place in places if number % 2 else reversed(places):
            process, under = processes[place]
            process.send_signal(signal.SIGCONT)
            recorded = record_process(process.pid, RecorderOptions(0.5, under))
            process.send_signal(signal.SIGSTOP)
            features = features_of(recorded.trace)
            slowdown = max(1.0, recorded.slowdown or 1.0)
            found[place].append(
                {n: v * slowdown if n.endswith("gap_s_mean") else v for n, v in features.items()}
            )
    return found


def compared(name: str, given: Namespace) -> dict[str, Any]:
    """A load beside its signature: the cells of its line in the table."""
    with tempfile.TemporaryDirectory(dir=given.directory) as place:
        return {"cells": cells(name, Path(place), given)}


def cells(name: str, place: Path, given: Namespace) -> list[str]:
    """The same in a directory of its own."""
    original: list[str | Path] = ["--personality", name, "--scale", "0.2", "--threads", "2"]
    wml = place / "signature.f"
    signature: list[str | Path] = ["--wml", wml]
    with running(original, place / "original") as process:
        recorded = record_process(process.pid, RecorderOptions(2.0, place / "original"))
        wml.write_text(signature_workload(recorded.trace))
        with running(signature, place / "signature") as other:
            both = [(process, place / "original"), (other, place / "signature")]
            here, there = traced(both, given.turns)
    ratios: list[float] = []
    for number in range(given.pairs):
        paces = {0: 0.0, 1: 0.0}
        for which in (0, 1) if number % 2 else (1, 0):
            paces[which] = pace((original, signature)[which], place, given.seconds)
        ratios.append(paces[1] / paces[0])
    medians = [
        {key: float(np.nanmedian([one[key] for one in many])) for key in here[0]} for many in (here, there)
    ]
    differences = relative_differences(*medians, share_min=SHARE_MIN)
    rest = {key: value for key, value in differences.items() if "_gap_s_" not in key}
    worst = max(rest, key=rest.__getitem__)
    gaps = [key for key in differences if key.endswith("gap_s_mean")]
    slowest = max(gaps, key=lambda key: differences[key])
    gap = interval([b[slowest] / a[slowest] for a, b in zip(here, there, strict=True)])
    held_up = f"{recorded.slowdown:.1f}" if recorded.slowdown else "-"
    return [name, held_up, f"{rest[worst]:.1%} (`{worst}`)", gap, interval(ratios)]


def main() -> None:
    """Measure and print."""
    parser = Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument("--loads", nargs="+", default=["mailserver", "webserver", "fileserver"])
    parser.add_argument("--pairs", type=int, default=12, help="without recording")
    parser.add_argument("--turns", type=int, default=40, help="under strace")
    parser.add_argument("--seconds", type=float, default=0.6, help="of a run without recording")
    parser.add_argument("--directory", default="/dev/shm")
    given = parser.parse_args()
    how = f"{given.pairs} pairs of {given.seconds:g} s, {given.turns} turns"
    found = Benchmark.of(given, build(*crate_sources("ascard"))).run(
        Piece(f"{name}, {how}", partial(compared, name, given)) for name in given.loads
    )
    heads = ("load", "held up by strace, times", "mix, sizes, positions, at most", "traced gaps")
    table((*heads, "untraced pace"), [one["cells"] for one in found.values()])


if __name__ == "__main__":
    main()
