"""The numeric library of a tuning process uses one thread, and leaves no trace in the environment."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import os
before = dict(os.environ)
from ascar.threads import compute_on_one_thread
compute_on_one_thread()
import numpy as np
matrix = np.random.default_rng(1).normal(size=(700, 700))
np.linalg.cholesky(matrix @ matrix.T + 700 * np.eye(700))
assert dict(os.environ) == before
print(len(os.listdir("/proc/self/task")))
"""


PUBLIC = """
import os
import ascar
space = ascar.Space((ascar.integer("depth", (1, 400), default=4),))
ascar.tune(lambda c: c["depth"], space, budget="2 s", stop={"trials": 2}, history=ascar.History("sqlite://"))
import numpy as np
matrix = np.random.default_rng(1).normal(size=(700, 700))
np.linalg.cholesky(matrix @ matrix.T + 700 * np.eye(700))
print(len(os.listdir("/proc/self/task")))
"""


def threads(program: str = PROGRAM, **environment: str) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**clean, **environment}, capture_output=True, text=True, timeout=400, check=True,
    )  # fmt: skip
    return int(done.stdout)


def test_one_thread_unless_the_environment_says_otherwise():
    assert threads() == 1
    if len(os.sched_getaffinity(0)) > 1:  # on one processor they start none
        assert threads(OPENBLAS_NUM_THREADS="2") > 1


def test_the_public_surface_computes_on_one_thread_too():
    assert threads(PUBLIC) == 1
