"""How often a candidate as good as the best so far is abandoned, and what abandoning worse ones saves.

    python -m benchmarks.pilot_abandonment --budget 10min

Each simulated study holds two runs of the default and some trials, all exactly as good: the worst case, for
the best of them is the luckiest. Every trial is ended as `ascar tune` ends it (by the goal of the preset
"quick", or "normal" for long loads), its level differs from run to run, and the candidate is looked at as
`ascar tune` looks at it (`ascar.abandonment`, level 1%). The first table gives the share of equally good
candidates that are abandoned, over all looks of their whole load. Warm-ups are those of all trials, unless
the row says that the candidate alone has one. The second table gives, for candidates that are worse, how
many are abandoned, and the share of the readings that they would have taken otherwise that is saved.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, batches, mean, percent, table
from benchmarks.synthetic import autoregressive

from ascar.abandonment import AbandonmentRule, BestTrial
from ascar.objective import Objective
from ascar.pilot import PRESETS, analyze, verdict_on
from ascar.results.measurement import Series
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.significance import share
from ascar.space import Configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ascar.pilot import Goal

    Values = NDArray[np.float64]

STUDIES, BATCH = 2000, 100
LEVEL = 0.01
OBJECTIVE = Objective.parse("maximize throughput")


@dataclass(frozen=True, slots=True)
class Load:
    """A load as its readings behave.

    Attributes:
        readings: that its longest run has.
        goal: what ends a run before.
        noise: deviations of so many readings, over the level.
        run_sd: of a run's level, over the level.
        warm_up: readings of a ramp from half the level; 0: none.
        step: the warm-up is a step instead.
        alone: only the candidate warms up.
    """

    readings: int
    goal: Goal
    noise: Callable[[np.random.Generator, int], Values]
    run_sd: float = 0.03
    warm_up: int = 0
    step: bool = False
    alone: bool = False

    def run(self, rng: np.random.Generator, *, candidate: bool = False) -> Values:
        """All readings of a run of level 1."""
        values = (1 + self.run_sd * rng.standard_normal()) * (1 + self.noise(rng, self.readings))
        if self.warm_up and (candidate or not self.alone):
            at = np.arange(1, self.readings + 1)
            low = np.where(at <= self.warm_up, 0.0, 1.0) if self.step else np.minimum(1, at / self.warm_up)
            values = values * (0.5 + 0.5 * low)
        return values

    def end(self, values: Values) -> int:
        """After how many readings a run is enough."""
        for n in range(self.goal.readings_min, len(values)):
            if verdict_on(analyze(values[:n]), self.goal).word == "reached":
                return n
        return len(values)


def gaussian(sd: float, rho: float = 0.0) -> Callable[[np.random.Generator, int], Values]:
    """AR(1) noise of this standard deviation."""
    return lambda rng, n: sd * autoregressive(rng, n, rho)


def lognormal(sigma: float) -> Callable[[np.random.Generator, int], Values]:
    """Independent log-normal noise of mean 0."""
    return lambda rng, n: rng.lognormal(-0.5 * sigma * sigma, sigma, n) - 1


QUICK, NORMAL = PRESETS["quick"], PRESETS["normal"]
LOADS = {
    "independent 5%": Load(40, QUICK, gaussian(0.05)),
    "independent 15%": Load(40, QUICK, gaussian(0.15)),
    "independent 5%, runs 1%": Load(40, QUICK, gaussian(0.05), run_sd=0.01),
    "independent 5%, runs 5%": Load(40, QUICK, gaussian(0.05), run_sd=0.05),
    "AR(1) 0.3, 10%": Load(40, QUICK, gaussian(0.1, 0.3)),
    "AR(1) 0.6, 10%": Load(40, QUICK, gaussian(0.1, 0.6)),
    "AR(1) 0.9, 10%": Load(40, QUICK, gaussian(0.1, 0.9)),
    "log-normal 0.5": Load(40, QUICK, lognormal(0.5)),
    "ramp of a fifth": Load(40, QUICK, gaussian(0.05), warm_up=8),
    "step of a fifth": Load(40, QUICK, gaussian(0.05), warm_up=8, step=True),
    "ramp of a fifth, the candidate's alone": Load(40, QUICK, gaussian(0.05), warm_up=8, alone=True),
    "step of an eighth, the candidate's alone": Load(
        40, QUICK, gaussian(0.05), warm_up=5, step=True, alone=True
    ),
    "long, independent 10%": Load(240, NORMAL, gaussian(0.1)),
    "long, AR(1) 0.6, 10%": Load(240, NORMAL, gaussian(0.1, 0.6)),
    "long, AR(1) 0.9, 20%": Load(240, NORMAL, gaussian(0.2, 0.9)),
    "long, ramp of a fifth": Load(240, NORMAL, gaussian(0.1), warm_up=48),
    "long, step of a fifth": Load(240, NORMAL, gaussian(0.1), warm_up=48, step=True),
    "long, ramp of a fifth, the candidate's alone": Load(240, NORMAL, gaussian(0.1), warm_up=48, alone=True),
}
WORSE = {"10% worse": 0.9, "20% worse": 0.8, "30% worse": 0.7, "half as good": 0.5}
TRIALS = {"1 trial": 1, "10 trials": 10, "30 trials": 30}


def series(values: Values) -> Series:
    """Readings four times a second."""
    return Series(0.25 * np.arange(1, len(values) + 1), np.ascontiguousarray(values))


def trial(number: int, configuration: int, values: Values) -> Trial:
    """A complete trial with these readings."""
    measured = analyze(values)
    return Trial(
        number=number,
        configuration=Configuration({"which": configuration}),
        purpose=Purpose.DEFAULT if configuration == 0 else Purpose.SEARCH,
        state=TrialState.COMPLETE,
        score=measured.mean,
        measurement=measured,
        series={"throughput": series(values)},
    )


def rival_of(load: Load, rng: np.random.Generator, trials: int) -> BestTrial | None:
    """The best of two runs of the default and so many trials, all as good; None where it has no interval."""
    done: list[Trial] = []
    for number in range(trials + 2):
        values = load.run(rng)
        done.append(trial(number + 1, max(0, number - 1), values[: load.end(values)]))
    return BestTrial.of(done, OBJECTIVE, LEVEL)


def fate(load: Load, rival: BestTrial | None, values: Values) -> tuple[bool, float]:
    """Whether a candidate is abandoned, and the share of its readings that this saves."""
    whole = load.end(values)
    if rival is None:
        return False, 0.0
    rule, readings = AbandonmentRule(rival), series(values)
    for n in range(1, whole):
        if rule.look(Series(readings.seconds[:n], readings.values[:n])) is not None:
            return True, 1 - n / whole
    return False, 0.0


def equal(name: str, trials: int, first: int) -> dict[str, Any]:
    """A batch of studies with one equally good candidate each."""
    load, abandoned = LOADS[name], 0
    for study in range(first, first + BATCH):
        rng = np.random.default_rng([zlib.crc32(name.encode()), trials, study])
        rival = rival_of(load, rng, trials)
        abandoned += fate(load, rival, load.run(rng, candidate=True))[0]
    return {"studies": BATCH, "abandoned": abandoned}


def worse(name: str, ratio: float, first: int) -> dict[str, Any]:
    """A batch of studies after ten trials with one worse candidate each."""
    load = LOADS[name]
    fates: list[tuple[bool, float]] = []
    for study in range(first, first + BATCH):
        rng = np.random.default_rng([zlib.crc32(name.encode()), round(100 * ratio), study, 1])
        rival = rival_of(load, rng, 10)
        fates.append(fate(load, rival, ratio * load.run(rng, candidate=True)))
    return {"abandoned": sum(one for one, _ in fates), "saved": [saved for _, saved in fates]}


def main() -> None:
    """Simulate, and show the tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "10min")
    false = {
        f"equal, {name}, {trials}, {first}": (name, trials, first)
        for first in range(0, STUDIES, BATCH)
        for name in LOADS
        for trials in TRIALS
    }
    true = {
        f"worse, {name}, {size}, {first}": (name, size, first)
        for first in range(0, 200, BATCH)
        for name in LOADS
        for size in WORSE
    }
    pieces = [
        *(
            Piece(key, lambda what=what: worse(what[0], WORSE[what[1]], what[2]))
            for key, what in true.items()
        ),
        *(
            Piece(key, lambda what=what: equal(what[0], TRIALS[what[1]], what[2]))
            for key, what in false.items()
        ),
    ]
    found = benchmark.run(pieces)
    print(f"Equally good candidates abandoned; at most {LEVEL:.0%} is stated\n")
    rows: list[list[str]] = []
    for name in LOADS:
        row = [name]
        for trials in TRIALS:
            done = batches(found, f"equal, {name}, {trials}")
            studies = sum(one["studies"] for one in done)
            row.append(f"{percent(share(sum(one['abandoned'] for one in done), studies), 2)} of {studies}")
        rows.append(row)
    table(["readings", *TRIALS], rows)
    print("Worse candidates: share abandoned, and share of all their readings saved\n")
    rows = []
    for name in LOADS:
        row = [name]
        for size in WORSE:
            done = batches(found, f"worse, {name}, {size}")
            saved = [one for batch in done for one in batch["saved"]]
            caught = sum(one["abandoned"] for one in done)
            row.append(f"{caught / len(saved):.0%}, {mean(saved)[0]:.0%}" if saved else "-")
        rows.append(row)
    table(["readings", *WORSE], rows)


if __name__ == "__main__":
    main()
