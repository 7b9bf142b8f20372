"""ruptures on recorded series: change points for each of several penalties, and the seconds they took.

Run by `benchmarks/pilot_speed.py` where ruptures can be imported (`uv run --with ruptures`); it is no
dependency of the project. Takes a directory with `tasks.json` (a list of {file, penalties, method, repeats})
and the series as .npy files; prints one JSON line a task. Memory is limited to 6 GB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import ruptures

MEMORY_BYTES = 6 * 10**9
METHODS = {
    # With a linear kernel the penalised problem is Pelt's with l2, solved in C.
    "KernelCPD": lambda least: ruptures.KernelCPD(kernel="linear", min_size=least),
    "Pelt": lambda least: ruptures.Pelt(model="l2", min_size=least, jump=5),
}


def main() -> None:
    """Carry out the tasks."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    place = Path(sys.argv[1])
    for task in json.loads((place / "tasks.json").read_text()):
        values = np.load(place / task["file"])
        found = []
        for penalty in task["penalties"]:
            taken = []
            for _ in range(task["repeats"]):
                start_s = time.perf_counter()
                ends = METHODS[task["method"]](task["least"]).fit(values).predict(pen=penalty)
                taken.append(time.perf_counter() - start_s)
            found.append({"changes": [int(end) for end in ends[:-1]], "seconds": min(taken)})
        print(json.dumps({"file": task["file"], "method": task["method"], "found": found}), flush=True)


if __name__ == "__main__":
    main()
