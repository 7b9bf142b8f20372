"""What each part of our search brings: the search without it, on the same workloads and seeds.

    python -m benchmarks.sharp_ablation --budget 60min

Without racing every candidate gets three runs; without common numbers each rule set has random numbers of its
own; without the surrogate a round tries all 539 candidates of Table 3.2; without one-axis splits the hottest
rule is split in 8 and the hottest part improved; without the sweep a search begins with Table 3.2's first
rule alone. Two go the other way: the search after a first phase in a simulation, whose runs do not count, of
the same load with a client less, slower disks and a slower network ("near"), or of another load ("far").
Up to nine searches each, of at most 1,000 runs; gains on 20 fresh seeds, against the scenario as it is.
Expected runs to 95% of what the whole search ends with: see `benchmarks.sharp_search_cost`; "over" where no
search got there. Intervals: 95%; t of means, bootstrap over searches in the last table, which holds the
geometric means over workloads of ratios to the whole search, and the mean difference of gains.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np

from ascar.sharp import PARTS, SearchPlan
from ascar.simulation import with_settings

from . import sharp_rows as rows
from .harness import Benchmark, Piece, mean, present, signed, table
from .sharp_search_cost import CASES, SHARE, Case, course_of, taken_by

if TYPE_CHECKING:
    from ascar.simulation import Scenario

SEARCHES = 9
RUNS_MAX = 1_000
WHOLE = "the whole"
NEAR, FAR = "first in a near model", "first in a far model"
WITHOUT = {f"without {part}": SearchPlan(without=frozenset([cast("Any", part)])) for part in PARTS}
VARIANTS = (WHOLE, *WITHOUT, NEAR, FAR)
ERRING = (
    "clients.count=4",
    "servers.device.rpm=5400",
    "servers.device.seek_full_ms=26",
    "servers.device.read_mb_per_s=90",
    "servers.device.write_mb_per_s=85",
    "network.latency_us=150",
)
"""In what the near model errs."""
_RESAMPLED = 2_000


@dataclass(frozen=True, slots=True)
class Search:
    """What counts of one.

    Attributes:
        gain: of what it ended with.
        evaluations: runs in all.
        held: after how many runs it held what is worth how much.
    """

    gain: float
    evaluations: int
    held: list[tuple[int, float]]


def main() -> None:
    """Search, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "60min")
    benchmark.build = rows.behaviour()
    pieces = [
        Piece(f"{case.name} {name} {number}", lambda c=case, w=name, n=number: _course(c, w, n))
        for number in range(SEARCHES)
        for case in CASES
        for name in VARIANTS
    ]
    found = benchmark.run(pieces)
    for title, show in (
        ("Gain in the end", _gain),
        ("Runs in all", _all),
        ("Expected runs to 95%", _expected),
    ):
        print(f"\n{title}\n")
        table(
            ["workload, objective", *VARIANTS],
            [[case.name, *(show(found, case.name, name) for name in VARIANTS)] for case in CASES],
        )
    cases = [case for case in CASES if all(_of(found, case.name, name) for name in VARIANTS)]
    print(f"\nOver {len(cases)} workloads and objectives, against the whole search\n")
    table(
        ["", "runs in all", "expected runs to 95%", "gain in the end, points"],
        [[name, *_overall(found, cases, name)] for name in VARIANTS[1:]] if cases else [],
    )


def _course(case: Case, name: str, number: int) -> dict[str, Any]:
    if name in (NEAR, FAR):
        model = _near(case) if name == NEAR else _far(case)
        return course_of(case, rows.planned(model, case.objective, number, RUNS_MAX), number, RUNS_MAX)
    return course_of(case, WITHOUT.get(name, SearchPlan()), number, RUNS_MAX)


def _near(case: Case) -> Scenario:
    return with_settings(case.row.scenario, ERRING)


def _far(case: Case) -> Scenario:
    """The next workload of the same objective."""
    alike = [one for one in CASES if one.kind == case.kind]
    return alike[(alike.index(case) + 1) % len(alike)].row.scenario


def _of(found: dict[str, Any], case: str, name: str) -> list[Search]:
    keys = [f"{case} {name} {number}" for number in range(SEARCHES)]
    searches = present(found, keys)
    return [Search(one["held"][-1][1], one["evaluations"], one["held"]) for one in searches]


def _gain(found: dict[str, Any], case: str, name: str) -> str:
    ends = [one.gain for one in _of(found, case, name)]
    return signed(mean(ends)) if ends else "-"


def _all(found: dict[str, Any], case: str, name: str) -> str:
    counts = [one.evaluations for one in _of(found, case, name)]
    return f"{np.mean(counts):,.0f}" if counts else "-"


def _expected(found: dict[str, Any], case: str, name: str) -> str:
    own, whole = _of(found, case, name), _of(found, case, WHOLE)
    if not own or not whole:
        return "-"
    there = sum(taken_by(_entry(one), _target(whole))[1] for one in own)
    over = "" if there else "over "
    return f"{over}{_runs(own, _target(whole)):,.0f} ({there} of {len(own)})"


def _entry(search: Search) -> dict[str, Any]:
    """As results have it."""
    return {"evaluations": search.evaluations, "held": search.held}


def _target(whole: list[Search]) -> float:
    return SHARE * float(np.mean([one.gain for one in whole]))


def _runs(searches: list[Search], target: float) -> float:
    """Expected runs; where no search got there all of them, as if one had at the end."""
    taken = [taken_by(_entry(one), target) for one in searches]
    return sum(count for count, _ in taken) / max(1, sum(there for _, there in taken))


def _overall(found: dict[str, Any], cases: list[Case], name: str) -> list[str]:
    """Ratios and differences to the whole search: as they are, then resampled."""
    rng = np.random.default_rng(1)
    drawn: list[list[float]] = []
    for again in range(_RESAMPLED + 1):
        terms: list[list[float]] = []
        for case in cases:
            own, whole = (_drawn(rng, _of(found, case.name, who), again) for who in (name, WHOLE))
            target = _target(whole)
            terms.append(
                [
                    float(np.log(_evaluations(own) / _evaluations(whole))),
                    float(np.log(_runs(own, target) / _runs(whole, target))),
                    float(np.mean([one.gain for one in own]) - np.mean([one.gain for one in whole])),
                ]
            )
        drawn.append(np.mean(terms, axis=0).tolist())
    low, high = np.quantile(drawn[1:], [0.025, 0.975], axis=0)
    factors = [tuple(np.exp([drawn[0][at], low[at], high[at]])) for at in (0, 1)]
    points = 100 * np.array([drawn[0][2], low[2], high[2]])
    return [
        *(f"x {one:.2f} ({least:.2f} to {most:.2f})" for one, least, most in factors),
        f"{points[0]:+.1f} ({points[1]:+.1f} to {points[2]:+.1f})",
    ]


def _drawn(rng: np.random.Generator, searches: list[Search], again: int) -> list[Search]:
    return (
        searches
        if not again
        else [searches[int(at)] for at in rng.integers(len(searches), size=len(searches))]
    )


def _evaluations(searches: list[Search]) -> float:
    return float(np.mean([one.evaluations for one in searches]))


if __name__ == "__main__":
    main()
