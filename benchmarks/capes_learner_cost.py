"""What the classic learner costs: minibatches from replay, steps of training, memory.

    python -m benchmarks.capes_learner_cost [--torch build/peers/bin/python]

Two threads at most, 5 actions, minibatches of 32, inputs of 1,760 (8 + 4 indicators of 4 servers ... of 5
clients, 10 ticks; Li et al., Table 1), hidden layers of 600 and of 1,760. The same step in PyTorch, eager,
runs by turns with ours, in a process of its own; medians.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import numpy as np

from ascar.capes.deep import first_state, make_step, sizes_of
from ascar.capes.hyperparameters import PAPER
from ascar.capes.replay import TickReplay
from ascar.learning import Transitions

from .harness import table

INPUTS, ACTIONS, BATCH, TICKS = 1_760, 5, 32, 250_000
ROUNDS = 5
PEER = Path(__file__).parent / "peers" / "torch_step.py"


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--torch", type=Path, default=Path("build/peers/bin/python"), help="a Python with torch"
    )
    given = parser.parse_args()
    _replay()
    _steps(given.torch)


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


def _steps(torch: Path) -> None:
    """Ours and PyTorch's by turns."""
    rows: list[list[str]] = []
    for hidden in (600, 1_760):
        step, peer = _Step(hidden), _peer(torch, hidden)
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(ROUNDS):
            ours.append(step.milliseconds())
            if peer is not None:
                theirs.append(_asked(peer))
        if peer is not None:
            peer.terminate()
        mine, other = median(ours), median(theirs) if theirs else float("nan")
        rows.append([f"{hidden:,}", f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.2f}"])
    print("\nStep of training, ms (median of rounds of 50)\n")
    table(("hidden layers", "JAX, compiled", "PyTorch, eager", "ratio, wanted at most 0.5"), rows)


class _Step:
    def __init__(self, hidden: int) -> None:
        rng = np.random.default_rng(1)
        hyper = msgspec.structs.replace(PAPER, hidden_size=hidden)
        self._state: Any = first_state(hyper, sizes_of(hyper, INPUTS, ACTIONS), rng)
        self._step = make_step(hyper)
        self._batch = Transitions(
            rng.random((BATCH, INPUTS), np.float32),
            rng.integers(ACTIONS, size=BATCH),
            rng.random(BATCH, np.float32),
            rng.random((BATCH, INPUTS), np.float32),
            np.ones((BATCH, ACTIONS), bool),
            np.zeros(BATCH, bool),
        )
        self.milliseconds()

    def milliseconds(self) -> float:
        spent: list[float] = []
        for _ in range(50):
            begun_s = time.perf_counter()
            self._state, error = self._step(self._state, self._batch)
            float(error)
            spent.append(time.perf_counter() - begun_s)
        return 1e3 * median(spent)


def _peer(torch: Path, hidden: int) -> subprocess.Popen[str] | None:
    if not torch.exists():
        print(f"{torch}: not there; PyTorch is left out", file=sys.stderr)
        return None
    command = [str(torch), str(PEER), str(INPUTS), str(hidden), str(ACTIONS), str(BATCH)]
    peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    _asked(peer)
    return peer


def _asked(peer: subprocess.Popen[str]) -> float:
    assert peer.stdin is not None
    assert peer.stdout is not None
    peer.stdin.write("go\n")
    peer.stdin.flush()
    return float(json.loads(peer.stdout.readline())["ms"])


if __name__ == "__main__":
    main()
