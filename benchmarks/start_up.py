"""Start-up: what commands take beyond a bare interpreter, before they do anything.

    python -m benchmarks.start_up --budget 5min

Each turn runs the bare interpreter and the command, one after the other, in an order that alternates. The
difference of their times is what the command costs. `ascar measure -- true` runs 20 rounds; their time does
not count.
"""

from __future__ import annotations

import json
import resource
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
ASCAR = ("-m", "ascar")
# The interpreter's arguments, the exit status, and at most how many seconds beyond the bare one are wanted.
CASES = {
    "import ascar": (("-c", "import ascar"), 0, 0.2),
    "ascar --help": ((*ASCAR, "--help"), 0, 0.15),
    "ascar tune --help": ((*ASCAR, "tune", "--help"), 0, None),
    "an error in a study file": ((*ASCAR, "tune", "study.toml"), 2, 0.4),
    "ascar measure -- true": (
        (*ASCAR, "measure", "--json", "--quiet", "--rounds-max", "20", "--", "true"),
        3,
        0.6,
    ),
}


def main() -> None:
    """Measure, and print a table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "5min")
    found = benchmark.run([Piece(case, partial(_case, case)) for case in CASES])
    rows = [
        (case, number(mean(one["beyond_s"])), number(mean(one["processor_s"])), _wanted(CASES[case][2]))
        for case, one in found.items()
    ]
    table(("command", "beyond the interpreter, s", "processor, s", "wanted, s"), rows)


def _wanted(limit_s: float | None) -> str:
    return "-" if limit_s is None else f"{limit_s:g}"


def _case(case: str) -> dict[str, Any]:
    """Seconds beyond the bare interpreter's, by the clock and of the processor, one a turn."""
    interpreter = (sys.executable, "-P")
    arguments, status, _ = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "study.toml").write_text(STUDY)
        beyond_s: list[float] = []
        processor_s: list[float] = []
        for turn in range(-1, TURNS):  # the first one fills the caches, and does not count
            times = {}
            for one in ("bare", "command") if turn % 2 else ("command", "bare"):
                words, wanted = (("-c", "pass"), 0) if one == "bare" else (arguments, status)
                times[one] = _timed([*interpreter, *words], wanted, folder)
            if turn >= 0:
                beyond_s.append(times["command"][0] - times["bare"][0])
                processor_s.append(times["command"][1] - times["bare"][1])
    return {"beyond_s": beyond_s, "processor_s": processor_s}


def _timed(command: list[str], status: int, folder: str) -> tuple[float, float]:
    """Seconds that a command takes by the clock, without its rounds, and of the processor."""
    before_s, start_s = _children_s(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    spent_s = time.perf_counter() - start_s
    if done.returncode != status:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode()[-300:]}")
    used_s = _children_s() - before_s
    if "measure" in command:
        spent_s -= sum(one["seconds"] for one in json.loads(done.stdout)["rounds"])
    return spent_s, used_s


def _children_s() -> float:
    """Seconds of the processor that children which have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
