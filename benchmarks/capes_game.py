"""Learners at StorageGameSim: Li's Table 5.1 and Fig. 5.3 again, and the harder game.

    python -m benchmarks.capes_game --budget 20min

The thesis' game, with its criterion: deep Q-learning with three forms of reward at 1, 10 and 50% noise, as
many runs as published; a sweep and chance beside it. The harder game: the modern learner 50 times at each
noise, delay 3, and the others, on seeds that nothing was tuned on. Results are kept, and the same command
goes on.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.capes.classic.hyperparameters import GAME, SEARCHED, RewardForm
from ascar.capes.environments.contest import Algorithm, LearnerContest, play
from ascar.capes.environments.game import GameKind
from ascar.capes.environments.records import record_of
from ascar.render import compact

from .harness import Benchmark, Piece, percent, sources, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.results.contest import LearnerRecord

NOISES = (0.01, 0.1, 0.5)
PUBLISHED: dict[RewardForm, tuple[int, int, int]] = {
    "difference": (100, 76, 94),
    "difference-of-means": (100, 100, 56),
    "difference-of-ewma": (97, 94, 82),
}
"""Success in percent at each noise: Li, Table 5.1."""
SAMPLES = {0.01: 36, 0.1: 17, 0.5: 18}
SLICE, RUNS = 10, 50
# The learners were tuned on seeds from 1 and from 20,001 on.
FIRST_SEEDS: dict[GameKind, int] = {"hard": 11_001, "thesis": 1}
_PLAIN: tuple[Algorithm, ...] = ("modern", "sweep", "random")
_LEARNERS: dict[Algorithm, str] = {
    "modern": "ascar.capes.modern.learner",
    "classic": "ascar.capes.classic.learner",
    "sweep": "ascar.capes.environments.open_loop",
    "random": "ascar.capes.environments.open_loop",
}


def main() -> None:
    """Play, as far as the budget reaches, and print tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "20min")
    found = benchmark.run(list(_pieces()))
    _thesis(found)
    _hard(found)


def _pieces() -> Iterator[Piece]:
    for algorithm in _PLAIN:
        for noise in NOISES:
            for first in range(0, RUNS, SLICE):
                yield _piece(("hard", algorithm), noise, first, SLICE)
    for algorithm in _PLAIN:
        for noise in NOISES:
            yield _piece(("thesis", algorithm), noise, 0, SAMPLES[noise])
    for form in (*PUBLISHED, "level"):
        for noise in NOISES:
            yield _piece(("thesis", "classic"), noise, 0, SAMPLES[noise], form)
    for noise in NOISES:
        yield _piece(("hard", "classic"), noise, 0, SAMPLES[noise], "difference")
        yield _piece(("hard", "classic"), noise, 0, SAMPLES[noise])


def _piece(
    who: tuple[GameKind, Algorithm], noise: float, first: int, runs: int, form: RewardForm | None = None
) -> Piece:
    hyper = SEARCHED if form is None else msgspec.structs.replace(GAME, reward=form)
    contest = LearnerContest(*who, noise, 3, runs, FIRST_SEEDS[who[0]] + first, hyper)

    def run() -> dict[str, Any]:
        played = play(contest)
        return {"ticks": [one.ticks for one in played], "near": [one.near_share for one in played]}

    return Piece(_key(*who, noise, first, form), run, _build(who[1]))


@cache
def _build(algorithm: Algorithm) -> str:
    names = (_LEARNERS[algorithm], "ascar.capes.environments.game", "ascar.capes.environments.convergence")
    return sources(*names, within=("ascar.capes", "ascar.learning"))


def _key(game: GameKind, algorithm: str, noise: float, first: int, form: str | None) -> str:
    return f"{game}/{algorithm}{'' if form is None else '-' + form}/{noise:g}/{FIRST_SEEDS[game] - 1 + first}"


def _thesis(found: dict[str, dict[str, Any]]) -> None:
    print("\nThe thesis' game: share of runs that won within 3,600 ticks, median ticks of those\n")
    rows: list[list[str]] = []
    for form, published in PUBLISHED.items():
        rows.append([f"published, {form}", *(f"{one}%" for one in published)])
        rows.append([f"classic, {form}", *(_cell(found, "classic", one, form) for one in NOISES)])
    rows.append(["classic, level", *(_cell(found, "classic", one, "level") for one in NOISES)])
    rows += [[name, *(_cell(found, name, one) for one in NOISES)] for name in ("modern", "sweep", "random")]
    table(("reward", *(f"noise {one:.0%}" for one in NOISES)), rows)


def _hard(found: dict[str, dict[str, Any]]) -> None:
    print(
        "\nThe harder game: converged (95% interval); ticks, median and most; near the ideal, of all ticks\n"
    )
    rows: list[list[str]] = []
    for name, form in (
        ("modern", None),
        ("classic", None),
        ("classic", "difference"),
        ("sweep", None),
        ("random", None),
    ):
        for noise in NOISES:
            ticks, near = _collected(found, ("hard", name), noise, form)
            if not ticks:
                continue
            record = record_of(name, ticks)
            rows.append(
                [
                    name if form is None else f"{name}, {form}",
                    f"{noise:.0%}",
                    str(len(ticks)),
                    percent(_rate(record), 0),
                    compact(record.ticks_median),
                    compact(record.ticks_max),
                    f"{sum(near) / len(near):.0%}",
                ]
            )
    table(("learner", "noise", "runs", "converged", "median", "most", "near"), rows)


def _cell(found: dict[str, dict[str, Any]], name: str, noise: float, form: str | None = None) -> str:
    ticks, _ = _collected(found, ("thesis", name), noise, form)
    if not ticks:
        return "-"
    record = record_of(name, ticks)
    return percent(_rate(record), 0) + ("" if record.ticks_median is None else f", {record.ticks_median:g}")


def _rate(record: LearnerRecord) -> tuple[float, float, float]:
    return record.success_rate, record.success_low, record.success_high


def _collected(
    found: dict[str, dict[str, Any]], who: tuple[GameKind, str], noise: float, form: str | None
) -> tuple[list[int | None], list[float]]:
    pieces = [found.get(_key(*who, noise, first, form)) for first in range(0, RUNS, SLICE)]
    known = [one for one in pieces if one is not None]
    return [one for piece in known for one in piece["ticks"]], [
        one for piece in known for one in piece["near"]
    ]


if __name__ == "__main__":
    main()
