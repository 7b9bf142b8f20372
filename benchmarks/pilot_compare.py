"""Whether the sequential comparison keeps its error rate, finds the order, and stops when there is none.

    python -m benchmarks.pilot_compare --budget 5min

Two sides are read side by side and looked at after every reading from the 6th on, with readings of 5%
noise: independent, AR(1) 0.6, log-normal.

Errors: both sides have the same mean; a repetition is false when any look up to 500 readings a side calls
them different. Beside it stands "stop when Welch separates": the same looks with Welch's t-test at the same
level.

Order: the means are 2% apart. The share of repetitions that end with the right order, with the wrong one,
with none within the limit of readings, and how many readings a side it took.

Equal: the means are equal, and a difference of 2% does not matter. The share that ends with "no difference
above 2%".
"""

from __future__ import annotations

import math
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, batches, mean, number, percent, table
from benchmarks.synthetic import autoregressive
from scipy.special import stdtr

from ascar import _core
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

LEVEL, NOISE = 100.0, 0.05
DIFFERENCE = MARGIN = 0.02
FIRST = 6
HORIZON = 500
LIMIT = {"independent": 2000, "AR(1) 0.6": 6000, "log-normal": 2000}
LEVELS = (0.05, 0.01)
ERRORS, FINDINGS, BATCH = 2000, 300, 50
SIGMA = math.sqrt(math.log1p(NOISE * NOISE))

KINDS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "independent": lambda rng, n: LEVEL * (1 + NOISE * rng.standard_normal(n)),
    "AR(1) 0.6": lambda rng, n: LEVEL * (1 + NOISE * autoregressive(rng, n, 0.6)),
    "log-normal": lambda rng, n: LEVEL * rng.lognormal(-SIGMA * SIGMA / 2, SIGMA, n),
}


def sides(what: str, kind: str, index: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two series of the same mean, always the same for the same arguments."""
    rng = np.random.default_rng([zlib.crc32(f"{what} {kind}".encode()), index])
    return KINDS[kind](rng, n), KINDS[kind](rng, n)


def welch_separates(a: NDArray[np.float64], b: NDArray[np.float64], level: float) -> bool:
    """Whether Welch's test is below the level at any look."""
    n = np.arange(1, len(a) + 1)[FIRST - 1 :]

    def moments(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        centered = values - values.mean()
        total, squares = np.cumsum(centered)[FIRST - 1 :], np.cumsum(centered**2)[FIRST - 1 :]
        return total / n + values.mean(), (squares - total**2 / n) / (n - 1) / n

    (mean_a, error_a), (mean_b, error_b) = moments(a), moments(b)
    dof = (error_a + error_b) ** 2 * (n - 1) / (error_a**2 + error_b**2)
    t = np.abs(mean_a - mean_b) / np.sqrt(error_a + error_b)
    return bool((2 * stdtr(dof, -t) < level).any())


def errors(kind: str, level: float, first: int) -> dict[str, Any]:
    """False findings of both rules."""
    ours = welch = 0
    for index in range(first, first + BATCH):
        a, b = sides("errors", kind, index, HORIZON)
        ours += _core.sequential_first_decision(a, b, first=FIRST, every=1, alpha=level) is not None
        welch += welch_separates(a, b, level)
    return {"ours": ours, "welch": welch}


def decisions(kind: str, level: float, first: int, *, apart: bool) -> dict[str, Any]:
    """Verdicts, and readings a side until them."""
    verdicts: list[str] = []
    readings: list[int] = []
    for index in range(first, first + BATCH):
        a, b = sides("order" if apart else "equal", kind, index, LIMIT[kind])
        if apart:
            b = b * (1 + DIFFERENCE)
        found = _core.sequential_first_decision(
            a, b, first=FIRST, every=1, alpha=level, margin=None if apart else MARGIN
        )
        verdicts.append("undecided" if found is None else found[1])
        readings.append(LIMIT[kind] if found is None else found[0])
    return {"verdicts": verdicts, "readings": readings}


def pieces() -> list[Piece]:
    """Batches in turn, so that a run cut short has something of every kind."""
    found: list[Piece] = []
    for first in range(0, ERRORS, BATCH):
        for kind in KINDS:
            for level in LEVELS:
                found.append(Piece(f"errors {kind} {level} {first}", partial(errors, kind, level, first)))
                if first < FINDINGS:
                    for name, apart in (("order", True), ("equal", False)):
                        run = partial(decisions, kind, level, first, apart=apart)
                        found.append(Piece(f"{name} {kind} {level} {first}", run))
    return found


def error_rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """The first table."""
    rows: list[list[str]] = []
    for level in LEVELS:
        for kind in KINDS:
            done = batches(found, f"errors {kind} {level}")
            count = BATCH * len(done)
            rates = [percent(share(sum(part[who] for part in done), count)) for who in ("ours", "welch")]
            rows.append([kind, f"{level:.0%}", f"{count:,}", *rates])
    return rows


def finding_rows(found: dict[str, dict[str, Any]]) -> list[list[str]]:
    """The second table."""
    rows: list[list[str]] = []
    for name, right, what in (("order", "less", "2% apart"), ("equal", "equivalent", "equal, margin 2%")):
        for level in LEVELS:
            for kind in KINDS:
                done = batches(found, f"{name} {kind} {level}")
                verdicts = [verdict for part in done for verdict in part["verdicts"]]
                readings = [float(count) for part in done for count in part["readings"]]
                if not verdicts:
                    continue
                wrong = sum(verdict not in (right, "undecided") for verdict in verdicts)
                rows.append(
                    [
                        f"{what}, {kind}",
                        f"{level:.0%}",
                        str(len(verdicts)),
                        percent(share(verdicts.count(right), len(verdicts))),
                        percent(share(wrong, len(verdicts))),
                        percent(share(verdicts.count("undecided"), len(verdicts))),
                        number(mean(readings)),
                        f"{np.median(readings):.0f}",
                    ]
                )
    return rows


def main() -> None:
    """Run and print both tables."""
    assert __doc__
    found = Benchmark.from_arguments(__doc__, "5min").run(pieces())
    heads = ["readings", "level", "repetitions", "called different", "stop when Welch separates"]
    table(heads, error_rows(found))
    heads = [
        "sides",
        "level",
        "repetitions",
        "right",
        "wrong",
        "undecided",
        "readings a side, mean",
        "median",
    ]
    table(heads, finding_rows(found))


if __name__ == "__main__":
    main()
