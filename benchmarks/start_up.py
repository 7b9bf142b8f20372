"""Start-up: what commands take beyond a bare interpreter, before they do anything.

    python -m benchmarks.start_up --budget 5min

Each turn runs the bare interpreter and the command, one after the other, in an order that alternates. The
difference of their times is what the command costs. `ascar measure -- true` runs 20 rounds; their time does
not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from .harness import Benchmark, Piece, mean, number, table

TURNS = 20
STUDY = '[study]\nname = "x"\nobjective = "maximize operations"\nbudgt = "10 min"\n'
MEASURE = ("measure", "--json", "--quiet", "--rounds-max", "20", "--", "true")
CASES = {
    "ascar --help": (0, 0.15),
    "an error in a study file": (2, 0.4),
    "ascar measure -- true": (3, 0.6),
}


def main() -> None:
    """Measure, and print a table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "5min")
    found = benchmark.run([Piece(case, partial(_case, case)) for case in CASES])
    rows = [
        (case, number(mean(one["beyond_s"])), number(mean(one["processor_s"])), f"{CASES[case][1]:g}")
        for case, one in found.items()
    ]
    table(("command", "beyond the interpreter, s", "processor, s", "wanted, s"), rows)


def _case(case: str) -> dict[str, Any]:
    """Seconds beyond the bare interpreter's, by the clock and of the processor, one a turn."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY)
        ascar = [sys.executable, "-P", "-m", "ascar"]
        command = {
            "ascar --help": [*ascar, "--help"],
            "an error in a study file": [*ascar, "tune", str(study)],
            "ascar measure -- true": [
                *ascar,
                "measure",
                "--json",
                "--quiet",
                "--rounds-max",
                "20",
                "--",
                "true",
            ],
        }[case]
        bare = [sys.executable, "-P", "-c", "pass"]
        beyond_s: list[float] = []
        processor_s: list[float] = []
        for turn in range(-1, TURNS):  # the first one fills the caches, and does not count
            times = {}
            for one in ("bare", "command") if turn % 2 else ("command", "bare"):
                times[one] = _timed(bare, 0) if one == "bare" else _timed(command, CASES[case][0])
            if turn >= 0:
                beyond_s.append(times["command"][0] - times["bare"][0])
                processor_s.append(times["command"][1] - times["bare"][1])
    return {"beyond_s": beyond_s, "processor_s": processor_s}


def _timed(command: list[str], status: int) -> tuple[float, float]:
    """Seconds that a command takes by the clock, without its rounds, and of the processor."""
    before, start_s = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False)
    spent_s, after = time.perf_counter() - start_s, os.times()
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode()[-300:]}")
    used_s = after.children_user + after.children_system - before.children_user - before.children_system
    if "measure" in command:
        spent_s -= sum(one["seconds"] for one in json.loads(done.stdout)["rounds"])
    return spent_s, used_s


if __name__ == "__main__":
    main()
