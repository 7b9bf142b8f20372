"""How often Pilot's 95% intervals cover the truth.

    python -m benchmarks.pilot_coverage --budget 10min

Of each kind of series 2,000 synthetic sessions of 500 to 6,000 readings (`benchmarks/synthetic.py`) are
analysed by the default method, by the published subsession rule ("faithful", after E-Divisive with Medians,
with the autocorrelation limits 0.1 and 0.8 of the published presets), and by the t interval that takes all
readings as independent. Coverage is the share of the intervals given that hold the true steady mean. A
session for which no interval is given is a refusal, allowed to at most 10% of the sessions worth 30 or more
independent readings. The width is the default's, over that of an interval for which the steady phase, its
variance and its correlation are known: the price of not knowing them.

The second table is about work per second: sessions of 10 to 60 rounds whose work amounts follow the
schedule of `ascar.pilot.WorkAmounts`, with durations of different noise.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, percent, table
from benchmarks.synthetic import KINDS, autoregressive

from ascar import _core
from ascar.pilot import Goal, Limits, MeasurementPlan, Round, WorkAmounts, run_session
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ascar.pilot import Runner

SESSIONS = 2000
BATCH = 100
INDEPENDENT_MIN = 30
METHODS = ("default", "faithful", "faithful, 0.8", "naive")
NORMAL = 1.959964


def generator(kind: str, session: int) -> np.random.Generator:
    """The random numbers of one session, always the same."""
    return np.random.default_rng([zlib.crc32(kind.encode()), session])


Limits95 = tuple[float | None, float | None]


def limits_of(values: NDArray[np.float64]) -> dict[str, Limits95]:
    """The interval that each method gives; None where it gives none."""
    corrected = _core.analyze(values)
    faithful = _core.analyze(values, method="faithful")
    stable = values[faithful.stable_start : faithful.stable_end]
    # A segment as long as the series: the stable phase is found already.
    loose = _core.analyze(stable, method="faithful", autocorrelation_limit=0.8, min_segment=len(values))
    known = "no stable phase" not in (faithful.reason or "")
    _, low, high = _core.mean_interval(values)
    return {
        "default": (corrected.ci_low, corrected.ci_high),
        "faithful": (faithful.ci_low, faithful.ci_high),
        "faithful, 0.8": (loose.ci_low, loose.ci_high) if known else (None, None),
        "naive": (low, high),
    }


def batch(kind: str, first: int) -> dict[str, Any]:
    """Counts over some sessions of one kind."""
    counts = {f"{method} {what}": 0 for method in METHODS for what in ("given", "covered", "refused")}
    counts["worthy"] = 0
    widths: list[float] = []
    for session in range(first, first + BATCH):
        made = KINDS[kind](generator(kind, session))
        worthy = made.independent >= INDEPENDENT_MIN
        counts["worthy"] += worthy
        for method, (low, high) in limits_of(made.values).items():
            if low is None or high is None:
                counts[f"{method} refused"] += worthy
                continue
            counts[f"{method} given"] += 1
            counts[f"{method} covered"] += low <= made.mean <= high
            if method == "default":
                known = 2 * NORMAL * made.deviation / math.sqrt(made.independent)
                widths.append((high - low) / known)
    return {**counts, "width": float(np.median(widths)) if widths else math.nan}


@dataclass(slots=True)
class Machine:
    """A made-up benchmark of adjustable work: 50 units a second after a set-up.

    Attributes:
        rng: random numbers.
        noise: standard deviation of a round of so many seconds of work, in seconds.
        correlation: of one round's deviation with the next one's.
        setup_s: what a round takes beyond its work.
        setup_sd_s: by how much that varies.
        rounds: how many are planned at most, for the noise.
    """

    rng: np.random.Generator
    noise: Callable[[float], float]
    correlation: float = 0.0
    setup_s: float = 0.5
    setup_sd_s: float = 0.0
    rounds: int = 200

    def runner(self) -> tuple[Runner, float]:
        """What runs its rounds, and its true speed."""
        deviations = autoregressive(self.rng, self.rounds, self.correlation).tolist()
        speed = 50.0

        def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
            assert work_amount is not None
            work_s = work_amount / speed
            setup_s = max(0.0, self.setup_s + self.setup_sd_s * self.rng.standard_normal())
            taken_s = work_s + setup_s + self.noise(work_s) * deviations.pop()
            return Round(max(taken_s, 0.05 * work_s), work_amount)

        return run, speed

    def session(self) -> tuple[float, float | None, float | None]:
        """The true speed and the interval after a number of rounds drawn at random."""
        run, speed = self.runner()
        wanted = int(self.rng.integers(10, 61))
        plan = MeasurementPlan((), Goal(1e-9, 1), WorkAmounts(10, 1e6), Limits(rounds_max=wanted))
        found = run_session(run, plan).speed
        return (speed, None, None) if found is None else (speed, found.ci_low, found.ci_high)


MACHINES: dict[str, Callable[[np.random.Generator], Machine]] = {
    "constant noise": lambda rng: Machine(rng, lambda _: 0.2),
    "noise of independent units": lambda rng: Machine(rng, lambda work_s: 0.1 * math.sqrt(work_s)),
    "noise proportional to work": lambda rng: Machine(rng, lambda work_s: 0.05 * work_s),
    "long set-up": lambda rng: Machine(rng, lambda work_s: 0.05 * work_s, setup_s=10, setup_sd_s=1),
    "set-up that varies": lambda rng: Machine(rng, lambda _: 0.0, setup_s=2, setup_sd_s=0.5),
    "speed that drifts, AR(1) 0.5": lambda rng: Machine(rng, lambda work_s: 0.05 * work_s, correlation=0.5),
}


def speed_batch(kind: str, first: int) -> dict[str, Any]:
    """Counts over some sessions of one kind."""
    given = covered = 0
    for session in range(first, first + BATCH):
        true, low, high = MACHINES[kind](generator(kind, session)).session()
        if low is not None and high is not None:
            given += 1
            covered += low <= true <= high
    return {"given": given, "covered": covered}


def pieces() -> list[Piece]:
    """Batches in turn, so that a run cut short has something of every kind."""
    found: list[Piece] = []
    for first in range(0, SESSIONS, BATCH):
        found += [Piece(f"{kind} {first}", partial(batch, kind, first)) for kind in KINDS]
        found += [Piece(f"speed, {kind} {first}", partial(speed_batch, kind, first)) for kind in MACHINES]
    return found


@dataclass(frozen=True, slots=True)
class Totals:
    """The batches of one kind.

    Attributes:
        batches: what each found.
    """

    batches: list[dict[str, Any]]

    @classmethod
    def of(cls, found: dict[str, dict[str, Any]], kind: str) -> Totals:
        """Those whose key is the kind and a number."""
        return cls([counts for key, counts in found.items() if key.rpartition(" ")[0] == kind])

    @property
    def sessions(self) -> int:
        return BATCH * len(self.batches)

    def count(self, what: str) -> int:
        """A count over all of them."""
        return sum(counts[what] for counts in self.batches)

    def covered(self, prefix: str = "") -> str:
        """Coverage with its interval."""
        return percent(share(self.count(f"{prefix}covered"), self.count(f"{prefix}given")))

    def row(self, kind: str) -> list[str]:
        """A line of the first table."""
        worthy = max(self.count("worthy"), 1)
        width = np.mean([counts["width"] for counts in self.batches])
        return [
            kind,
            f"{self.sessions:,}",
            *(self.covered(f"{method} ") for method in METHODS),
            *(f"{self.count(f'{method} refused') / worthy:.1%}" for method in METHODS[:2]),
            f"{width:.2f}",
        ]


def main() -> None:
    """Run and print both tables."""
    assert __doc__
    found = Benchmark.from_arguments(__doc__, "10min").run(pieces())
    heads = ["series", "sessions", *METHODS, "default refuses", "faithful refuses", "width of default"]
    kinds = {kind: Totals.of(found, kind) for kind in KINDS}
    table(heads, (totals.row(kind) for kind, totals in kinds.items() if totals.batches))
    speeds = {kind: Totals.of(found, f"speed, {kind}") for kind in MACHINES}
    table(
        ["durations of rounds", "sessions", "work per second", "refused"],
        (
            [kind, f"{done.sessions:,}", done.covered(), f"{1 - done.count('given') / done.sessions:.1%}"]
            for kind, done in speeds.items()
            if done.batches
        ),
    )


if __name__ == "__main__":
    main()
