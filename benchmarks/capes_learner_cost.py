"""What the classic learner costs: minibatches from replay, steps of training, memory.

    python -m benchmarks.capes_learner_cost [--torch build/peers/bin/python]

5 actions, minibatches of 32, inputs of 1,760 (10 ticks of 176 indicators; Li et al., Table 1), hidden layers
of 600 and of 1,760. The same step in PyTorch, eager, runs by turns with ours, each in a process of its own.
Time of the processor on one core says the same on a busy machine as on a quiet one; on several cores the
processor's time has waiting threads in it, and the clock's counts.

PyTorch is installed beside the project, from its registry's ordinary wheel:

    python3 -m venv build/peers && build/peers/bin/pip install torch
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from ascar.capes.deep.replay import TickReplay

from .harness import number, ratio, table

INPUTS, ACTIONS, BATCH, TICKS = 1_760, 5, 32, 250_000
ROUNDS = 15
PEER = Path(__file__).parent / "peers" / "torch_step.py"


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--torch", type=Path, default=Path("build/peers/bin/python"), help="a Python with torch"
    )
    parser.add_argument("--only", choices=("replay", "step"), help="one of the two")
    parser.add_argument("--cores", type=int, default=0, help="for the step (default: one, then all)")
    given = parser.parse_args()
    if given.only != "step":
        _replay()
    if given.only != "replay":
        every = sorted({1, len(os.sched_getaffinity(0))})
        _steps(given.torch, [given.cores] if given.cores else every)


def _replay() -> None:
    """A full replay, and minibatches of it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rng = np.random.default_rng(1)
    replay = TickReplay(INPUTS // 10, 10, 0.2, TICKS)
    for tick in range(TICKS):
        replay.add(tick, rng.random(INPUTS // 10, np.float32), 1.0)
        replay.act(tick, tick % ACTIONS)
    spent: list[float] = []
    for _ in range(500):
        begun_s = time.perf_counter()
        replay.sample(rng, BATCH, ACTIONS)
        spent.append(time.perf_counter() - begun_s)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(f"\nReplay of {TICKS:,} ticks of {INPUTS // 10} indicators\n")
    table(
        ("what", "measured", "wanted"),
        [
            ["arrays", f"{replay.nbytes / 1e6:.0f} MB", ""],
            ["resident, with the copy while it grew", f"{grown / 1e6:.0f} MB", "at most 1,500 MB"],
            [f"minibatch of {BATCH} x {INPUTS}, median", f"{median(spent) * 1e3:.3f} ms", "at most 1 ms"],
            ["the same, 99th percentile", f"{np.quantile(spent, 0.99) * 1e3:.3f} ms", ""],
        ],
    )


def _steps(torch: Path, counts: list[int]) -> None:
    """Ours and PyTorch's by turns, each in a process of its own, on one core and on all."""
    if not torch.exists():
        print(f"{torch}: not there; PyTorch is left out", file=sys.stderr)
        return
    rows: list[list[str]] = []
    for cores in counts:
        for hidden in (600, 1_760):
            sizes = [str(one) for one in (INPUTS, hidden, ACTIONS, BATCH, cores)]
            ours = _Stepper([sys.executable, "-m", "benchmarks.jax_step", *sizes])
            theirs = _Stepper([str(torch), str(PEER), *sizes])
            found = [(ours.ask(), theirs.ask()) for _ in range(ROUNDS + 1)][1:]  # the first one compiles
            ours.end()
            theirs.end()
            for what in ("processor_ms", "clock_ms"):
                mine, other = ([one[what] for one in side] for side in zip(*found, strict=True))
                row = [f"{hidden:,}", str(cores), what.removesuffix("_ms")]
                rows.append([*row, f"{median(mine):.2f}", f"{median(other):.2f}", number(ratio(mine, other))])
    print(f"\nStep of training, ms: medians over {ROUNDS} rounds of 5; ratio with its 95% interval\n")
    table(("hidden layers", "cores", "time", "JAX, compiled", "PyTorch, eager", "ratio, wanted: 0.5"), rows)


class _Stepper:
    """A process that steps when it is asked."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self) -> dict[str, float]:
        """What a step took."""
        asked, told = self._process.stdin, self._process.stdout
        assert asked is not None, "a pipe"
        assert told is not None, "a pipe"
        asked.write("go\n")
        asked.flush()
        return json.loads(told.readline())

    def end(self) -> None:
        """It ends with its standard input."""
        self._process.communicate()


if __name__ == "__main__":
    main()
