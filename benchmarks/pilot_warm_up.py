"""How often Pilot's 95% intervals cover the truth after warm-ups of many shapes, some of them slow.

    python -m benchmarks.pilot_warm_up --budget 10min

1. Series of 300, 1,000 and 3,000 readings in AR(1) noise of 0, 0.6 and 0.9 that warm up from 3 or 10
standard deviations below. Time constants are 1/50 to 1/4 of the record: that of the exponential, of the
slower of two exponentials (its height 30%), of a logistic curve and of powers; half the length of the ramp
and of the steps. A steady half exists where what is left moves the mean of the second half by at most a
quarter of its standard error. Coverage is the share of the intervals given that hold the steady mean;
"given" the share of the series. The
analysis was designed on all families but the power of -3, the steps that double and the late step (*), which
were not looked at while its constants were chosen; sessions with a warm-up of two stages and a logistic one
were not either.

2. Sessions that stop at their goal (preset "normal", rounds of 50 unit readings with 30% noise) while a
warm-up spans their rounds: coverage, and the readings taken.
"""

from __future__ import annotations

import math
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Found, Piece, mean, number, percent, present, table
from benchmarks.pilot_stopping import NOISE, ROUND, ROUNDS_MAX, pilot
from benchmarks.synthetic import DEVIATION, LEVEL, autoregressive, worth

from ascar import _core
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Decay = Callable[[NDArray[np.float64]], NDArray[np.float64]]

SESSIONS = 600
STOPPED, BATCH = 600, 50
READINGS = (300, 1000, 3000)
CORRELATIONS = (0.0, 0.6, 0.9)
HEIGHTS = (3.0, 10.0)
PARTS = (50, 30, 16, 8, 4)
STEADY = 0.25

FAMILIES: dict[str, Decay] = {
    "none": np.zeros_like,
    "exponential": lambda u: np.exp(-u),
    "linear": lambda u: np.clip(1 - u / 2, 0, None),
    "stepped": lambda u: np.select([u < 0.7, u < 1.4, u < 2], [1.0, 0.6, 0.25], 0.0),
    "steps that double": lambda u: np.select(
        [u < 0.15, u < 0.45, u < 1.05, u < 2.25], [1.0, 0.6, 0.35, 0.15], 0.0
    ),
    "a late step": lambda u: np.select([u < 0.6, u < 1.2, u < 3], [1.0, 0.5, 0.2], 0.0),
    "two-stage": lambda u: 0.7 * np.exp(-4 * u) + 0.3 * np.exp(-u),
    "logistic": lambda u: (1 + math.exp(-3)) / (1 + np.exp(3 * (u - 1))),
    "power -3": lambda u: (1 + u) ** -3,
    "power -2": lambda u: (1 + u) ** -2,
    "power -1": lambda u: 1 / (1 + u),
}
UNSEEN = ("power -3", "steps that double", "a late step")

SPANNING: dict[str, tuple[float, Decay, float]] = {
    "none": (0.0, np.zeros_like, 1.0),
    "exponential of a round": (0.0, FAMILIES["exponential"], 50.0),
    "exponential of two rounds": (0.0, FAMILIES["exponential"], 100.0),
    "none, AR(1) 0.6": (0.6, np.zeros_like, 1.0),
    "exponential of two rounds, AR(1) 0.6": (0.6, FAMILIES["exponential"], 100.0),
    "exponential of six rounds, AR(1) 0.6": (0.6, FAMILIES["exponential"], 300.0),
    "ramp of four rounds": (0.0, FAMILIES["linear"], 100.0),
    "steps in three rounds": (0.0, FAMILIES["stepped"], 75.0),
    "two-stage of two rounds": (0.0, FAMILIES["two-stage"], 100.0),
    "logistic of two rounds": (0.0, FAMILIES["logistic"], 100.0),
}


def warmed(family: str, part: int, sessions: int) -> dict[str, Any]:
    """Counts over all series of one family and time constant, with a steady half and without."""
    found = {half: {"sessions": 0, "given": 0, "covered": 0, "widths": 0.0} for half in ("half", "rest")}
    for n in READINGS:
        decay = FAMILIES[family](np.arange(n) * part / n)
        for rho in CORRELATIONS:
            independent = worth(n, rho)
            for height in HEIGHTS:
                rng = np.random.default_rng(
                    [zlib.crc32(family.encode()), part, n, int(10 * rho), int(height)]
                )
                steady = height * decay[n // 2 :].mean() <= STEADY * math.sqrt(2 / independent)
                counts = found["half" if steady else "rest"]
                for _ in range(sessions):
                    noise = autoregressive(rng, n, rho)
                    one = _core.analyze(LEVEL + DEVIATION * (noise - height * decay))
                    counts["sessions"] += 1
                    if one.ci_low is None or one.ci_high is None:
                        continue
                    counts["given"] += 1
                    counts["covered"] += one.ci_low <= LEVEL <= one.ci_high
                    counts["widths"] += (one.ci_high - one.ci_low) / DEVIATION / 3.92 * math.sqrt(independent)
    return found


def spanning(kind: str, first: int) -> dict[str, Any]:
    """Sessions that stop at their goal."""
    rho, decay, time = SPANNING[kind]
    readings: list[int] = []
    given = covered = 0
    for index in range(first, first + BATCH):
        rng = np.random.default_rng([zlib.crc32(f"spanning {kind}".encode()), index])
        n = ROUND * ROUNDS_MAX
        noise = autoregressive(rng, n, rho) if rho else rng.standard_normal(n)
        values = LEVEL * (1 + NOISE * noise - 0.9 * decay(np.arange(n) / time))
        taken, low, high = pilot(values)
        readings.append(taken)
        if low is not None and high is not None:
            given += 1
            covered += low <= LEVEL <= high
    return {"readings": readings, "given": given, "covered": covered}


def pieces(sessions: int) -> list[Piece]:
    """All of them, in batches."""
    found = [
        Piece(f"{family}, 1/{part}, {sessions}", partial(warmed, family, part, sessions))
        for part in PARTS
        for family in FAMILIES
    ]
    for first in range(0, STOPPED, BATCH):
        found += [Piece(f"spanning {kind}, {first}", partial(spanning, kind, first)) for kind in SPANNING]
    return found


def show_families(found: Found, sessions: int) -> None:
    """The first two tables."""
    rows: list[list[str]] = []
    parts: list[list[str]] = []
    for family in FAMILIES:
        keys = [f"{family}, 1/{part}, {sessions}" for part in PARTS]
        done = present(found, keys)
        if not done:
            continue
        name = f"{family} *" if family in UNSEEN else family
        half, rest = (
            {
                what: sum(one[which][what] for one in done)
                for what in ("sessions", "given", "covered", "widths")
            }
            for which in ("half", "rest")
        )
        cells = [percent(covered(half)), given(half), percent(covered(rest)), given(rest)]
        rows.append(
            [
                name,
                f"{half['sessions'] + rest['sessions']:,}",
                *cells,
                f"{half['widths'] / max(half['given'], 1):.2f}",
            ]
        )
        line = [name]
        for key in keys:
            one = found.get(key)
            both = (
                {
                    what: sum(one[half][what] for half in ("half", "rest"))
                    for what in ("sessions", "given", "covered")
                }
                if one
                else {}
            )
            line.append(f"{both['covered'] / max(both['given'], 1):.1%} of {given(both)}" if both else "-")
        parts.append(line)
    heads = [
        "warm-up",
        "series",
        "steady half: covered",
        "given",
        "no steady half: covered",
        "given",
        "width",
    ]
    table(heads, rows)
    table(["covered, of given, by time constant", *(f"1/{part}" for part in PARTS)], parts)


def covered(counts: dict[str, Any]) -> tuple[float, float, float]:
    """Coverage with its interval; nan where no interval was given."""
    return share(counts["covered"], counts["given"]) if counts["given"] else (math.nan, math.nan, math.nan)


def given(counts: dict[str, Any]) -> str:
    """The share of the series for which there is an interval."""
    return f"{counts['given'] / counts['sessions']:.0%}" if counts["sessions"] else "-"


def show_spanning(found: Found) -> None:
    """The third table."""
    rows: list[list[str]] = []
    for kind in SPANNING:
        done = present(found, (f"spanning {kind}, {first}" for first in range(0, STOPPED, BATCH)))
        if done:
            readings = [float(count) for one in done for count in one["readings"]]
            held = share(sum(one["covered"] for one in done), sum(one["given"] for one in done))
            rows.append([kind, f"{len(readings):,}", percent(held), number(mean(readings))])
    table(["warm-up across rounds", "sessions", "covered", "readings"], rows)


def main() -> None:
    """Run and print the tables."""
    assert __doc__
    parser = Benchmark.parser(__doc__, "10min")
    parser.add_argument(
        "--sessions", type=int, default=SESSIONS, help=f"series of each kind (default {SESSIONS})"
    )
    arguments = parser.parse_args()
    found = Benchmark.of(arguments).run(pieces(arguments.sessions))
    show_families(found, arguments.sessions)
    show_spanning(found)


if __name__ == "__main__":
    main()
