"""The paper's step of training, compiled: `python -m benchmarks.jax_step INPUTS HIDDEN ACTIONS BATCH CORES`.

For each line on stdin some steps, and their medians in milliseconds, by the clock and of the processor, on
stdout: as `peers/torch_step.py` does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from statistics import median
from typing import Any

import msgspec
import numpy as np


def main() -> None:
    """Step when asked."""
    inputs, hidden, actions, batch, cores = (int(one) for one in sys.argv[1:6])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    from ascar.capes.classic.hyperparameters import PAPER
    from ascar.capes.classic.steps import (  # JAX counts the cores that it may use
        first_state,
        make_step,
        sizes_of,
    )
    from ascar.learning import Transitions

    rng = np.random.default_rng(1)
    hyper = msgspec.structs.replace(PAPER, hidden_size=hidden)
    state: Any = first_state(hyper, sizes_of(hyper, inputs, actions), rng)
    step = make_step(hyper)
    drawn = Transitions(
        rng.random((batch, inputs), np.float32),
        rng.integers(actions, size=batch),
        rng.random(batch, np.float32),
        rng.random((batch, inputs), np.float32),
        np.ones((batch, actions), bool),
        np.zeros(batch, bool),
    )
    for _line in sys.stdin:
        spent: list[float] = []
        used: list[float] = []
        for _ in range(5):
            begun_s, worked_s = time.perf_counter(), time.process_time()
            state, error = step(state, drawn)
            float(error)
            spent.append(time.perf_counter() - begun_s)
            used.append(time.process_time() - worked_s)
        found = {"clock_ms": 1e3 * median(spent), "processor_ms": 1e3 * median(used)}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
