"""What the classic learner costs: minibatches from replay, steps of training, memory.

    python -m benchmarks.capes_learner_cost --budget 10min [--torch build/peers/bin/python]

5 actions, minibatches of 32, inputs of 1,760 (10 ticks of 176 indicators; Li et al., Table 1), hidden layers
of 600 and of 1,760. The same step in PyTorch, eager, runs by turns with ours, each in a process of its own.
Time of the processor on one core says the same on a busy machine as on a quiet one; on several cores the
processor's time has waiting threads in it, and the clock's counts.

PyTorch is installed beside the project, from its registry's ordinary wheel:

    python3 -m venv build/peers && build/peers/bin/pip install torch
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ascar.capes.classic.replay_memory import TickReplay

from .harness import Benchmark, Piece, number, ratio, sources, table

INPUTS, ACTIONS, BATCH, TICKS = 1_760, 5, 32, 250_000
ROUNDS = 15
PEER = Path(__file__).parent / "peers" / "torch_step.py"


def main() -> None:
    """Measure, and print tables."""
    parser = Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument(
        "--torch", type=Path, default=Path("build/peers/bin/python"), help="a Python with torch"
    )
    given = parser.parse_args()
    pieces = [Piece("replay", _replay)]
    if given.torch.exists():
        pieces += [
            Piece(f"step, {hidden} hidden, {cores} cores", partial(_step, given.torch, hidden, cores))
            for cores in sorted({1, len(os.sched_getaffinity(0))})
            for hidden in (600, 1_760)
        ]
    else:
        print(f"{given.torch}: not there; PyTorch is left out", file=sys.stderr)
    code = sources("ascar.capes.classic.steps", "ascar.capes.classic.replay_memory", within=("ascar",))
    found = Benchmark.of(given, code).run(pieces)
    if "replay" in found:
        _show_replay(found["replay"])
    rows = [row for key, one in found.items() if key.startswith("step") for row in _rows(key, one)]
    if rows:
        print(f"\nStep of training, ms: medians over {ROUNDS} rounds of 5; ratio with its 95% interval\n")
        heads = ("step", "time", "JAX, compiled", "PyTorch, eager", "ratio, wanted: 0.5")
        table(heads, rows)


def _replay() -> dict[str, Any]:
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
    return {"arrays": replay.nbytes, "resident": grown, "sample_s": spent}


def _show_replay(found: dict[str, Any]) -> None:
    spent = found["sample_s"]
    print(f"\nReplay of {TICKS:,} ticks of {INPUTS // 10} indicators\n")
    table(
        ("what", "measured", "wanted"),
        [
            ["arrays", f"{found['arrays'] / 1e6:.0f} MB", ""],
            [
                "resident, with the copy while it grew",
                f"{found['resident'] / 1e6:.0f} MB",
                "at most 1,500 MB",
            ],
            [f"minibatch of {BATCH} x {INPUTS}, median", f"{median(spent) * 1e3:.3f} ms", "at most 1 ms"],
            ["the same, 99th percentile", f"{np.quantile(spent, 0.99) * 1e3:.3f} ms", ""],
        ],
    )


def _step(torch: Path, hidden: int, cores: int) -> dict[str, Any]:
    """Ours and PyTorch's by turns, each in a process of its own."""
    sizes = [str(one) for one in (INPUTS, hidden, ACTIONS, BATCH, cores)]
    ours = _Stepper([sys.executable, "-m", "benchmarks.jax_step", *sizes])
    theirs = _Stepper([str(torch), str(PEER), *sizes])
    found = [(ours.ask(), theirs.ask()) for _ in range(ROUNDS + 1)][1:]  # the first one compiles
    ours.end()
    theirs.end()
    return {"ours": [one[0] for one in found], "theirs": [one[1] for one in found]}


def _rows(key: str, found: dict[str, Any]) -> list[list[str]]:
    rows: list[list[str]] = []
    for what in ("processor_ms", "clock_ms"):
        mine, other = ([one[what] for one in found[side]] for side in ("ours", "theirs"))
        row = [key.partition(", ")[2], what.removesuffix("_ms")]
        rows.append([*row, f"{median(mine):.2f}", f"{median(other):.2f}", number(ratio(mine, other))])
    return rows


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
