"""The verdicts of `ascar tune`: how often they are wrong, and how often there is one.

    python -m benchmarks.verdicts --budget 30min

Studies of 50 alternatives to the default, each tried once; the luckiest is compared with the default, pair by
pair, over 60 loads at most, by the code that decides in a study (`pair_test`, `Pairs`, `compare_in_turns`,
`conclude`). A candidate that is not better is followed by the next that looks better. What is undecided, or
found no better, goes on twice, to 120 and to 240 loads. The alternatives are either all as good
("plateau") or the best has the gain and the worst a fifth less ("slope").

Noise is between loads, or between the 30 readings of a load: these two differ by a factor of 5.5 in what a
load tells. An improvement is false if the candidate is no better than the default, "the default is fine" if
it is better by more than the margin of 3%. "Best possible" is the power of the most powerful test of 30 pairs
of normal loads whose scatter is known (Neyman and Pearson 1933), one-sided at the whole level of 1%, which
looks once and knows both gains beforehand.

Pieces of `ascar` tune `simulated` systems in virtual time with the whole loop.
"""

from __future__ import annotations

import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from math import erf, log1p, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from benchmarks.harness import Benchmark, Found, Piece, batches, build, crate_sources, percent, table
from scipy.signal import lfilter

import ascar.pilot.pairs_needed
import ascar.pilot.turns
import ascar.verification
from ascar.history import History
from ascar.loops.offline import tune
from ascar.pairs import Pairs
from ascar.pilot.turns import compare_in_turns
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.significance import share
from ascar.space import Configuration
from ascar.study import Study
from ascar.verification import conclude, pair_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ascar.pilot.turns import Scores
    from ascar.results.verdict import Verdict

    Values = NDArray[np.float64]

STUDIES, BATCH, LOOP_STUDIES, LOOP_BATCH = 1000, 250, 100, 10
ALTERNATIVES, DEFAULT_RUNS, READINGS, SPREAD = 50, 2, 30, 0.2
PARTS = (60, 120, 240)
GAINS = (0.0, 0.02, 0.03, 0.05, 0.2)
NOISES = (0.02, 0.1, 0.3)
Where = Literal["loads", "readings"]
Landscape = Literal["plateau", "slope"]

STUDY = """
[study]
name = "verdicts"
objective = "maximize throughput_ops_per_s"
budget = "{budget_s} s"
seed = {seed}
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 * if(choice == 0, 1, 1 + {gain} - {spread} * (choice - 1) / 49)" }}
noise_relative_sd = {readings_sd}
run_relative_sd = {loads_sd}
seed = {seed}
[space.parameters.choice]
kind = "integer"
low = 0
high = 50
default = 0
cost = "dyn-kernel"
[optimizer]
kind = "random"
[stop]
trials = 50
[measurement]
load_min = "30 s"
load_max = "30 s"
"""


def autocorrelated(lag_1: float) -> Callable[[np.random.Generator, int], Values]:
    """A first-order process of variance one."""

    def draw(rng: np.random.Generator, n: int) -> Values:
        fresh = rng.standard_normal(n + 200)
        return np.asarray(lfilter([sqrt(1 - lag_1**2)], [1, -lag_1], fresh)[200:], np.float64)

    return draw


def two_level(stay: float) -> Callable[[np.random.Generator, int], Values]:
    """The machine is on one of two levels, and stays there for the next with this probability."""

    def draw(rng: np.random.Generator, n: int) -> Values:
        turns = np.where(rng.random(n) < stay, 1.0, -1.0)
        return np.cumprod(turns) * rng.choice((-1.0, 1.0))

    return draw


KINDS: dict[str, Callable[[np.random.Generator, int], Values]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "log-normal": lambda rng, n: rng.standard_normal(n),
    "AR(1) 0.5": autocorrelated(0.5),
    "AR(1) 0.9": autocorrelated(0.9),
    "drifting": lambda rng, n: rng.standard_normal(n),
    "two-level": two_level(0.5),
    "two-level, lasting": two_level(0.9),
}
_LOG_NORMAL, _DRIFTING = "log-normal", "drifting"
# A drifting machine is slower by this share of the noise after each load.
_DRIFT = 0.05


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of studies.

    Attributes:
        kind: the kind of noise.
        noise: its standard deviation, as a share of the score.
        where: between which values.
        landscape: how the alternatives' gains lie.
        gain: the gain of the best of them.
    """

    kind: str
    noise: float
    where: Where
    landscape: Landscape
    gain: float

    @property
    def key(self) -> str:
        """Names its pieces."""
        return f"{self.kind}, {self.noise:g} between {self.where}, {self.landscape}, gain {self.gain:g}"

    def gains(self) -> Values:
        """The alternatives' true gains."""
        spread = 0.0 if self.landscape == "plateau" else SPREAD
        return self.gain - spread * np.linspace(0, 1, ALTERNATIVES)

    def factors(self, rng: np.random.Generator, loads: int) -> Values:
        """What the noise makes of each load's score, in the order of time."""
        readings = READINGS if self.where == "readings" else 1
        values = self.noise * KINDS[self.kind](rng, loads * readings)
        values = np.exp(values - self.noise**2 / 2) if self.kind == _LOG_NORMAL else 1 + values
        found = values.reshape(loads, readings).mean(axis=1)
        if self.kind == _DRIFTING:
            found = found * np.exp(-_DRIFT * self.noise * np.arange(loads))
        return found


@dataclass(slots=True)
class Drawn:
    """A study whose loads' scores are drawn, and that decides as `Verification` does."""

    cell: Cell
    rng: np.random.Generator
    gains: list[float] = field(init=False)
    factors: Values = field(init=False)
    compared: list[int] = field(default_factory=list[int])
    made: dict[int, Pairs] = field(default_factory=dict[int, Pairs])
    rejected: set[int] = field(default_factory=set[int])
    at: int = 0
    seen: Values = field(init=False)
    seen_default: float = field(init=False)

    def __post_init__(self) -> None:
        """Search."""
        self.gains = self.cell.gains().tolist()
        self.factors = self.cell.factors(self.rng, DEFAULT_RUNS + ALTERNATIVES + PARTS[-1])
        self.seen_default = float(np.mean([self.load(None) for _ in range(DEFAULT_RUNS)]))
        alternatives = self.rng.permutation(ALTERNATIVES)
        self.seen = np.empty(ALTERNATIVES)
        for one in alternatives:
            self.seen[one] = self.load(int(one))

    def load(self, alternative: int | None) -> float:
        """Run a load; None: of the default."""
        gain = 0.0 if alternative is None else self.gains[alternative]
        self.at += 1
        return float((1 + gain) * self.factors[self.at - 1])

    @property
    def used(self) -> int:
        """Loads of comparisons so far."""
        return self.at - DEFAULT_RUNS - ALTERNATIVES

    def candidate(self) -> int | None:
        """What is compared next: the one under way, else the best that is left, if it looks better."""
        if self.compared and self.compared[-1] not in self.rejected:
            return self.compared[-1]
        left = [one for one in range(ALTERNATIVES) if one not in self.rejected]
        best = max(left, key=lambda one: self.seen[one])
        if self.compared and self.seen[best] <= self.seen_default * (1 + _STUDY.verify.margin):
            return None
        self.compared.append(best)
        self.made[best] = Pairs(_DEFAULT, Configuration({"choice": best + 1}))
        return best

    def pairs(self, alternative: int) -> Iterator[Scores]:
        """Run pair after pair."""
        pairs = self.made[alternative]
        while True:
            for configuration in pairs.turn():
                score = self.load(None if configuration == _DEFAULT else alternative)
                pairs.take(Trial(self.at, configuration, Purpose.VERIFY, TrialState.COMPLETE, score))
            yield pairs.latest

    def part(self, loads: int) -> tuple[Verdict, int]:
        """Go on to so many loads; the verdict, and what it is about."""
        one = self.candidate()
        goes_on = one is not None
        one = self.compared[-1] if one is None else one
        pairs = self.made[one]
        found = compare_in_turns(
            self.pairs(one) if goes_on else (),
            "maximize",
            pair_test(_STUDY, 1 + self.compared.index(one)),
            known=tuple(pairs.scores),
            over=lambda _: not goes_on or self.used + 2 > loads,
        )
        verdict = conclude(_STUDY, pairs, found)
        if verdict.kind == "default-is-fine":
            self.rejected.add(one)
        return verdict, one


_STUDY = Study.parse(STUDY.format(budget_s=60, seed=0, gain=0, spread=0, readings_sd=0, loads_sd=0))
_DEFAULT = Configuration({"choice": 0})


def drawn_batch(cell: Cell, first: int) -> dict[str, Any]:
    """Some studies: what they ended with at first, and after they went on."""
    ends = [Counter[str]() for _ in PARTS]
    pairs: list[int] = []
    for number in range(first, first + BATCH):
        study = Drawn(cell, np.random.default_rng([zlib.crc32(cell.key.encode()), number]))
        for part, loads in enumerate(PARTS):
            verdict, one = study.part(loads)
            ends[part][_judged(verdict.kind, float(cell.gains()[one]))] += 1
        pairs.append(study.used // 2)
    return {"ends": [dict(one) for one in ends], "pairs": float(np.mean(pairs))}


def _judged(kind: str, gain: float) -> str:
    """The verdict, and whether it is wrong."""
    if kind == "improved" and gain <= 0:
        return "false improved"
    if kind == "default-is-fine" and gain > _STUDY.verify.margin + 1e-12:
        return "false default-is-fine"
    return kind


def loop_batch(cell: Cell, first: int) -> dict[str, Any]:
    """Some studies by the whole loop, and gone on with."""
    ends = [Counter[str]() for _ in PARTS]
    with tempfile.TemporaryDirectory() as folder, History(Path(folder) / "history.sqlite") as history:
        for number in range(first, first + LOOP_BATCH):
            text = STUDY.format(
                budget_s=0,
                seed=number,
                gain=cell.gain,
                spread=0.0 if cell.landscape == "plateau" else SPREAD,
                readings_sd=cell.noise if cell.where == "readings" else 0.001,
                loads_sd=cell.noise if cell.where == "loads" else 0.0,
            ).replace('"verdicts"', f'"verdicts-{number}"')
            for part, loads in enumerate(PARTS):
                budget_s = READINGS * (DEFAULT_RUNS + ALTERNATIVES + loads)
                study = Study.parse(text.replace('"0 s"', f'"{budget_s} s"'))
                outcome = tune(study, history, resume=part > 0)
                best = outcome.best
                choice = int(best.configuration["choice"]) if best is not None else 1
                kind = outcome.verdict.kind
                ends[part][_judged(kind, float(cell.gains()[choice - 1]))] += 1
    return {"ends": [dict(one) for one in ends]}


def best_possible(sd: float, pairs: int) -> tuple[float, float]:
    """Greatest power of showing a gain of 5%, and of showing that equal ones are within the margin."""
    error, needed = sqrt(2 / pairs) * sd, 2.3263478740408408
    gained, equal = (log1p(one) / error - needed for one in (0.05, _STUDY.verify.margin))
    return (1 + erf(gained / sqrt(2))) / 2, (1 + erf(equal / sqrt(2))) / 2


def cells() -> list[Cell]:
    """All kinds of studies, the ones that errors are likeliest in first."""
    wheres: tuple[Where, ...] = ("loads", "readings")
    landscapes: tuple[Landscape, ...] = ("plateau", "slope")
    return [
        Cell(kind, noise, where, landscape, gain)
        for where in wheres
        for landscape in landscapes
        for gain in GAINS
        for noise in NOISES
        for kind in KINDS
        if landscape == "plateau" or gain == 0.05
    ]


_LOOP_NOISES: tuple[tuple[Where, float], ...] = (("readings", 0.1), ("loads", 0.02), ("loads", 0.1))
LOOPS = [
    Cell("normal", noise, where, "plateau", gain) for gain in (0.0, 0.05) for where, noise in _LOOP_NOISES
]


def _row(cell: Cell, parts: list[dict[str, Any]]) -> list[str]:
    """A row: wrong ones at the end of all parts, and each verdict at first and at the end."""
    ends = [Counter[str]() for _ in PARTS]
    for one in parts:
        for part, counted in enumerate(one["ends"]):
            ends[part].update(counted)
    studies = sum(ends[0].values())
    row = [cell.kind, f"{cell.noise:.0%}", f"{cell.gain:.0%}", f"{studies:,}"]
    for wrong in ("false improved", "false default-is-fine"):
        row += [percent(share(found[wrong], studies), 2) for found in (ends[0], ends[-1])]
    for right in ("improved", "default-is-fine"):
        row += [f"{(found[right] + found[f'false {right}']) / studies:.0%}" for found in (ends[0], ends[-1])]
    return row


def _errors(kind: str, found: Found) -> list[str]:
    """Errors of a kind of noise, whatever its size and place: at first, and after the studies went on."""
    row = [kind]
    equal = [one for one in cells() if one.kind == kind and one.gain == 0]
    better = [one for one in cells() if one.kind == kind and one.gain > _STUDY.verify.margin]
    for wrong, chosen in (("false improved", equal), ("false default-is-fine", better)):
        ends: list[list[dict[str, int]]] = [
            part["ends"] for one in chosen for part in batches(found, one.key)
        ]
        studies = sum(sum(one[0].values()) for one in ends)
        counts = [sum(one[at].get(wrong, 0) for one in ends) for at in (0, -1)]
        row += [f"{studies:,}", *(percent(share(count, studies), 2) for count in counts)]
    return row


HEADS = [
    *("noise", "sd", "gain", "studies"),
    *("false improved", "gone on", "false default-is-fine", "gone on"),
    *("improved", "gone on", "default-is-fine", "gone on"),
]


def main() -> None:
    """Draw, tune, and show the tables."""
    given = Benchmark.parser(__doc__ or "", "30min").parse_args()
    modules = (ascar.verification, ascar.pilot.turns, ascar.pilot.pairs_needed)
    files = [Path(str(one.__file__)) for one in modules]
    benchmark = Benchmark.of(given, build(*crate_sources("python"), *files))
    drawn, loops = cells(), LOOPS
    pieces: dict[str, tuple[Callable[[Cell, int], dict[str, Any]], Cell, int]] = {}
    for at in range(max(STUDIES // BATCH, LOOP_STUDIES // LOOP_BATCH)):
        # All cells are as far as each other at any time, whenever the budget ends.
        first, first_of_loop = at * BATCH, at * LOOP_BATCH
        if first < STUDIES:
            pieces |= {f"{cell.key}, {first}": (drawn_batch, cell, first) for cell in drawn}
        if first_of_loop < LOOP_STUDIES:
            name = f"ascar, {{}}, {first_of_loop}"
            pieces |= {name.format(cell.key): (loop_batch, cell, first_of_loop) for cell in loops}
    found = benchmark.run(
        Piece(key, lambda what=what: what[0](what[1], what[2])) for key, what in pieces.items()
    )
    print("Errors\n")
    heads = [
        "noise",
        "gain 0",
        "false improved",
        "gone on",
        "gain above 3%",
        "false default-is-fine",
        "gone on",
    ]
    table(heads, (_errors(kind, found) for kind in KINDS))
    for where in ("loads", "readings"):
        for landscape in ("plateau", "slope"):
            print(f"Noise between {where}, {landscape}\n")
            chosen = [one for one in drawn if (one.where, one.landscape) == (where, landscape)]
            table(HEADS, (_row(one, parts) for one in chosen if (parts := batches(found, one.key))))
    print("The whole loop\n")
    rows = [[one.where, *_row(one, parts)] for one in loops if (parts := batches(found, f"ascar, {one.key}"))]
    table(["between", *HEADS], rows)
    print("Best possible\n")
    sds = {f"{noise:.0%} between loads": noise for noise in NOISES}
    sds |= {f"{noise:.0%} between readings": noise / sqrt(READINGS) for noise in NOISES}
    powers = ([name, *(f"{one:.0%}" for one in best_possible(sd, PARTS[0] // 2))] for name, sd in sds.items())
    table(["noise", "improved, gain of 5%", "default-is-fine, gain of 0"], powers)


if __name__ == "__main__":
    main()
