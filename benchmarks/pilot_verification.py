"""The last comparison of `ascar tune`: how often it errs, and how many pairs of runs it takes.

    python -m benchmarks.pilot_verification --budget 5min

Studies whose best and default are equal, and such as differ by so much, are verified by the always-valid test
of pairs (`ascar.pilot.turns`, level 1%, 5 to 30 pairs, margin 3%), which is asked after every pair, and by
Welch's test of a number of runs that is fixed beforehand from the gain and the scatter seen in the search
(two runs of the default and one of the best, power 95%, 3% where the scatter is not known). "Peeking" asks
Welch's test after every pair and ends at the first p below 1%, which it is not made for.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, batches, mean, number, percent, table

from ascar.pilot import compare, runs_needed
from ascar.pilot.turns import Gain
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Values = NDArray[np.float64]

STUDIES, BATCH = 2000, 200
LEVEL, MARGIN, RUNS_MIN, RUNS_MAX = 0.01, 0.03, 5, 30
SEEN_SD, POWER = 0.03, 0.95


@dataclass(frozen=True, slots=True)
class Runs:
    """How scores of runs scatter: factors of so many runs of the default and of the best, pair by pair."""

    draw: Callable[[np.random.Generator, int], tuple[Values, Values]]


def normal(default_sd: float, best_sd: float | None = None) -> Runs:
    """Normal, the two sides alike or not."""
    other = default_sd if best_sd is None else best_sd
    return Runs(lambda rng, n: (rng.normal(1, default_sd, n), rng.normal(1, other, n)))


def drifting(sd: float) -> Runs:
    """The machine grows slower, and both sides with it."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Values, Values]:
        drift = 1 - 0.01 * np.arange(n) + 0.02 * rng.standard_normal(n)
        return drift * rng.normal(1, sd, n), drift * rng.normal(1, sd, n)

    return Runs(draw)


def skewed(sigma: float) -> Runs:
    """Log-normal of mean 1."""
    return Runs(
        lambda rng, n: (
            rng.lognormal(-(sigma**2) / 2, sigma, n),
            rng.lognormal(-(sigma**2) / 2, sigma, n),
        )
    )


def outlying(sd: float) -> Runs:
    """Student's t with 3 degrees of freedom: now and then a run is far off."""
    return Runs(lambda rng, n: (1 + sd * rng.standard_t(3, n), 1 + sd * rng.standard_t(3, n)))


KINDS = {
    "normal 1.5%": normal(0.015),
    "normal 3%": normal(0.03),
    "normal 10%": normal(0.1),
    "normal 1% and 5%": normal(0.01, 0.05),
    "drifting, 3%": drifting(0.03),
    "log-normal 10%": skewed(0.1),
    "t with 3 degrees, 3%": outlying(0.03),
}
GAINS = {"none": 1.0, "5%": 1.05, "10%": 1.1, "38%": 1.38}
METHODS = ("pairs", "fixed", "peeking")


def verified(kind: str, gain: float, study: int) -> dict[str, tuple[bool, int, str]]:
    """Whether each method calls the two different, after how many pairs, and why it ended."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), round(100 * gain), study])
    default, best = KINDS[kind].draw(rng, RUNS_MAX)
    best = gain * best
    seen = KINDS[kind].draw(rng, 2)
    planned = runs_needed(list(seen[0]), [gain * float(seen[1][0])], SEEN_SD, LEVEL, POWER)
    fixed = max(RUNS_MIN, min(planned, RUNS_MAX))
    once = compare(list(default[:fixed]), list(best[:fixed]), 1 - LEVEL)
    found: dict[str, tuple[bool, int, str]] = {
        "pairs": (False, RUNS_MAX, "open"),
        "fixed": (once.p_value is not None and once.p_value < LEVEL, fixed, "fixed"),
        "peeking": (False, RUNS_MAX, "open"),
    }
    for n in range(RUNS_MIN, RUNS_MAX + 1):
        look = Gain.of(default[:n].tolist(), best[:n].tolist(), "maximize", LEVEL, MARGIN)
        if look.decision != "open":
            found["pairs"] = (look.decision != "equivalent", n, look.decision)
            break
    for n in range(RUNS_MIN, RUNS_MAX + 1):
        p_value = compare(list(default[:n]), list(best[:n]), 1 - LEVEL).p_value
        if p_value is not None and p_value < LEVEL:
            found["peeking"] = (True, n, "separated")
            break
    return found


def batch(kind: str, gain: float, first: int) -> dict[str, Any]:
    """Some studies: how many were called different, and the pairs that each took."""
    every = [verified(kind, gain, study) for study in range(first, first + BATCH)]
    ends = Counter(one["pairs"][2] for one in every)
    return {
        "different": {method: sum(one[method][0] for one in every) for method in METHODS},
        "pairs": {method: [one[method][1] for one in every] for method in METHODS},
        "ends": dict(ends),
    }


def main() -> None:
    """Simulate, and show the tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "5min")
    wanted = {
        f"{kind}, {gain}, {first}": (kind, gain, first)
        for first in range(0, STUDIES, BATCH)
        for gain in GAINS
        for kind in KINDS
        if gain == "none" or first < 400
    }
    found = benchmark.run(
        Piece(key, lambda what=what: batch(what[0], GAINS[what[1]], what[2])) for key, what in wanted.items()
    )
    for gain in GAINS:
        print(f"Gain: {gain}. Called different (and pairs of runs)\n")
        rows: list[list[str]] = []
        for kind in KINDS:
            parts = batches(found, f"{kind}, {gain}")
            row = [kind]
            for method in METHODS:
                pairs = [float(one) for part in parts for one in part["pairs"][method]]
                different = sum(part["different"][method] for part in parts)
                row.append(
                    f"{percent(share(different, len(pairs)), 2)}; {number(mean(pairs))}" if pairs else "-"
                )
            equivalent = sum(part["ends"].get("equivalent", 0) for part in parts)
            row.append(f"{equivalent / (len(parts) * BATCH):.0%}" if parts else "-")
            rows.append(row)
        table(["scores of runs", "pairs, always-valid", "fixed", "peeking", "shown equivalent"], rows)


if __name__ == "__main__":
    main()
