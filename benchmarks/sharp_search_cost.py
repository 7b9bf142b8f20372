"""How many runs of the workload a search needs: ours, Li's algorithm 1, Remy's schedule (Li, 3.2.5).

    python -m benchmarks.sharp_search_cost --budget 60min

Ten searches by our schedule and five by each published one, of at most 2,000 runs, for the workloads on
which rules bring more than 1%. What a search holds is measured on 20 seeds that none has seen, against the
scenario as it is. Counted are all runs of the search, those of its sweep and its probes included, until
what it holds is worth 95% of the target: the gain that ours ends with, the mean of its searches. Some
searches never get there, ours because they end: expected runs are those of all searches of a schedule, each
until it gets there or ends, over the number of those that get there (Price 1997; Hansen and others 2009),
as if one that fails were followed by another. For the published schedules, which hand over the winner of a
round at its end, whoever is ahead in a round at any time counts as held: more than they can know.
Intervals: 95%; t of means, bootstrap over searches of ratios.
`python -m benchmarks.sharp_search_figure` draws gain over runs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np

from ascar.sharp import SearchPlan
from ascar.sharp.plan import plan_of

from . import sharp_rows as rows
from .harness import Benchmark, Piece, gain, mean, present, signed, table

if TYPE_CHECKING:
    from collections.abc import Sequence

SEARCHES = {"sharp": 10, "faithful": 5, "remy": 5}
RUNS_MAX = 2_000
SEEDS = 20
SHARE = 0.95
_HELD_MAX = 60
_RESAMPLED = 4_000


@dataclass(frozen=True, slots=True)
class Case:
    """A workload with an objective."""

    row: rows.Row
    kind: str

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.row.name}, {'most throughput' if self.kind == 'most' else 'tp - stdev'}"

    @property
    def objective(self) -> str:
        """Of its searches."""
        return self.row.most if self.kind == "most" else self.row.even


_BY_NAME = {row.name: row for row in rows.ROWS}
CASES = tuple(
    Case(_BY_NAME[name], kind)
    for name, kind in (
        ("random-write", "most"),
        ("fileserver", "most"),
        ("sequential-write", "most"),
        ("sequential-read", "most"),
        ("random-write", "even"),
        ("fileserver", "even"),
        ("sequential-write", "even"),
        ("sequential-read", "even"),
    )
)
PLANS = {
    "sharp": SearchPlan(),
    "faithful": plan_of("faithful", patience=0),
    "remy": plan_of("remy", patience=0),
}


def main() -> None:
    """Search, measure what was held, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "40min")
    benchmark.build = rows.behaviour()
    pieces = [
        Piece(f"{case.name} {schedule} {number}", lambda c=case, p=plan, n=number: course_of(c, p, n))
        for number in range(max(SEARCHES.values()))
        for case in CASES
        for schedule, plan in PLANS.items()
        if number < SEARCHES[schedule]
    ]
    found = benchmark.run(pieces)
    lines = [line for case in CASES if (line := _line(case, found))]
    heads = ["workload, objective", *(f"{schedule}: gain in the end" for schedule in PLANS)]
    heads += [f"{schedule}: expected runs to 95% of ours (there of all)" for schedule in PLANS]
    heads += ["ours over the better one"]
    table(heads, lines)
    shares = _shares({case.name: _all(case, found) for case in CASES if _line(case, found)})
    print(f"geometric mean of the last column: {_interval(shares)}")


def course_of(case: Case, plan: SearchPlan, number: int, runs_max: int = RUNS_MAX) -> dict[str, Any]:
    """One search: after how many runs it held rules of which gain, measured on fresh seeds."""
    row, figure = case.row, case.row.figure if case.kind == "most" else "even"
    course = rows.searched(row, case.objective, plan, number, runs_max)
    held = course.steps if plan.schedule == "sharp" else course.runs
    held = [*_thinned(held), (course.evaluations, course.rules)]
    base = rows.pairs(rows.measured(row.scenario, SEEDS), figure)
    gains: dict[str, float] = {}
    for _, text in held:
        if text not in gains:
            ours = rows.pairs(rows.measured(rows.under(row.scenario, text), SEEDS), figure)
            gains[text] = gain(ours, base)[0]
    return {
        "evaluations": course.evaluations,
        "stopped": course.stopped,
        "held": [(count, gains[text]) for count, text in held],
    }


def _thinned(held: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """At most so many, evenly on a logarithmic scale of runs."""
    if len(held) <= _HELD_MAX:
        return held
    places = np.unique(np.geomspace(1, len(held), _HELD_MAX).astype(int)) - 1
    return [held[place] for place in places]


def searches_of(case: Case, found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By schedule, in their order."""
    return {
        schedule: present(found, (f"{case.name} {schedule} {number}" for number in range(SEARCHES[schedule])))
        for schedule in PLANS
    }


def _all(case: Case, found: dict[str, Any]) -> dict[str, list[tuple[int, bool]]]:
    """By schedule: how many runs each search took, and whether it got to the target."""
    searches = searches_of(case, found)
    target = SHARE * float(np.mean([one["held"][-1][1] for one in searches["sharp"]]))
    return {schedule: [taken_by(one, target) for one in own] for schedule, own in searches.items()}


def taken_by(search: dict[str, Any], target: float) -> tuple[int, bool]:
    """How many runs a search took until it held the target, or all; and whether it got there."""
    count = reached(search, target)
    return (count, True) if count <= RUNS_MAX else (search["evaluations"], False)


def expected(taken: Sequence[tuple[int, bool]]) -> float:
    """Runs until one search gets there, others following those that do not."""
    there = sum(one for _, one in taken)
    return sum(count for count, _ in taken) / there if there else float("inf")


def _line(case: Case, found: dict[str, Any]) -> list[str] | None:
    searches = searches_of(case, found)
    if not all(len(own) > 1 for own in searches.values()):
        return None
    taken = _all(case, found)
    return [
        case.name,
        *(signed(mean([one["held"][-1][1] for one in own])) for own in searches.values()),
        *(
            f"{_runs(expected(own))} ({sum(there for _, there in own)} of {len(own)})"
            for own in taken.values()
        ),
        _interval(_shares({case.name: taken})),
    ]


def _shares(cases: dict[str, dict[str, list[tuple[int, bool]]]]) -> list[float]:
    """Ours over the better of the others, the geometric mean over cases: as it is, then resampled."""
    rng = np.random.default_rng(1)
    found: list[float] = []
    for again in range(_RESAMPLED + 1):
        logs: list[float] = []
        for taken in cases.values():
            runs = {
                schedule: expected(
                    own
                    if not again
                    else [own[int(at)] for at in rng.integers(len(own), size=len(own)).tolist()]
                )
                for schedule, own in taken.items()
            }
            # Where nobody else gets there, ours is held against all the runs that they were given.
            others = min(runs["faithful"], runs["remy"], _given(taken))
            logs.append(float(np.log(runs["sharp"] / others)))
        found.append(float(np.exp(np.mean(logs))))
    return found


def _given(taken: dict[str, list[tuple[int, bool]]]) -> float:
    return max(sum(count for count, _ in taken[schedule]) for schedule in ("faithful", "remy"))


def _interval(shares: list[float]) -> str:
    low, high = np.quantile(shares[1:], [0.025, 0.975], method="nearest")
    return f"{shares[0]:.0%} ({low:.0%} to {'no limit' if np.isinf(high) else f'{high:.0%}'})"


def reached(search: dict[str, Any], target: float) -> int:
    """After how many runs; more than all where it was not reached."""
    for count, worth in search["held"]:
        if worth >= target:
            return count
    return RUNS_MAX + 1


def _runs(count: float) -> str:
    return f"{count:,.0f}" if np.isfinite(count) else "never"


if __name__ == "__main__":
    main()
