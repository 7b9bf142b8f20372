"""How many runs of the workload a search needs: ours, Li's algorithm 1, Remy's schedule (Li, 3.2.5).

    python -m benchmarks.sharp_search_cost --budget 40min

Two searches each, of at most 2,000 runs, for the workloads on which rules bring more than 1%. What a search
holds is measured on 20 seeds that none has seen, against the scenario as it is. Counted are all runs of the
search, those of its sweep and its probes included, until what it holds is worth 95% of the target: the gain
that it ends with itself, and the gain that ours ends with (mean of its two searches). For the published
schedules, which hand over the winner of a round at its end, whoever is ahead in a round at any time counts as
held: more than they can know.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np

from ascar.sharp import Plan
from ascar.sharp.plan import plan_of

from . import sharp_rows as rows
from .harness import Benchmark, Piece, mean, table

SEARCHES = 2
RUNS_MAX = 2_000
SEEDS = 20
SHARE = 0.95
_HELD_MAX = 60


@dataclass(frozen=True, slots=True)
class Case:
    """A workload with an objective."""

    row: rows.Row
    kind: str

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.row.name}, {'most throughput' if self.kind == 'most' else 'tp - stdev'}"


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
PLANS = {"sharp": Plan(), "faithful": plan_of("faithful", patience=0), "remy": plan_of("remy", patience=0)}


def main() -> None:
    """Search, measure what was held, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "40min")
    pieces = [
        Piece(f"{case.name} {schedule} {number}", lambda c=case, p=plan, n=number: course_of(c, p, n))
        for number in range(SEARCHES)
        for case in CASES
        for schedule, plan in PLANS.items()
    ]
    found = benchmark.run(pieces)
    lines = [line for case in CASES if (line := _line(case, found))]
    heads = [
        "workload, objective", "ours: gain in the end", "faithful", "remy", "runs to 95% of own gain: ours",
        "faithful", "remy", "runs to 95% of our gain: ours", "faithful", "remy", "share of the better one",
    ]  # fmt: skip
    table(heads, lines)


def course_of(case: Case, plan: Plan, number: int, runs_max: int = RUNS_MAX) -> dict[str, Any]:
    """One search: after how many runs it held rules of which gain, measured on fresh seeds."""
    row, figure = case.row, case.row.figure if case.kind == "most" else "even"
    objective = row.most if case.kind == "most" else row.even
    course = rows.searched(row, objective, plan, number, runs_max)
    held = course.steps if plan.schedule == "sharp" else course.runs
    held = [*_thinned(held), (course.evaluations, course.rules)]
    base = rows.pairs(rows.measured(row.scenario, SEEDS), figure)
    gains: dict[str, float] = {}
    for _, text in held:
        if text not in gains:
            ours = rows.pairs(rows.measured(rows.under(row.scenario, text), SEEDS), figure)
            gains[text] = rows.gain(ours, base)[0]
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


def _line(case: Case, found: dict[str, Any]) -> list[str] | None:
    searches = {
        schedule: [
            found[key] for number in range(SEARCHES) if (key := f"{case.name} {schedule} {number}") in found
        ]
        for schedule in PLANS
    }
    if not all(searches.values()):
        return None
    ends = {schedule: [one["held"][-1][1] for one in own] for schedule, own in searches.items()}
    target = SHARE * float(np.mean(ends["sharp"]))
    own = {
        schedule: [reached(one, SHARE * end) for one, end in zip(each, ends[schedule], strict=True)]
        for schedule, each in searches.items()
    }
    common = {schedule: [reached(one, target) for one in each] for schedule, each in searches.items()}
    better = min(_middle(common["faithful"]), _middle(common["remy"]))
    return [
        case.name,
        *(_gain(ends[schedule]) for schedule in PLANS),
        *(_runs(own[schedule]) for schedule in PLANS),
        *(_runs(common[schedule]) for schedule in PLANS),
        f"{_middle(common['sharp']) / better:.0%}",
    ]


def _gain(ends: list[float]) -> str:
    return rows.signed(mean(ends)) if len(ends) > 1 else f"{100 * ends[0]:+.1f}%"


def reached(search: dict[str, Any], target: float) -> int:
    """After how many runs; more than all where it was not reached."""
    for count, worth in search["held"]:
        if worth >= target:
            return count
    return RUNS_MAX + 1


def _middle(counts: list[int]) -> float:
    return float(np.median(counts))


def _runs(counts: list[int]) -> str:
    shown = [f"{one:,}" if one <= RUNS_MAX else f"> {RUNS_MAX:,}" for one in sorted(counts)]
    return ", ".join(shown)


if __name__ == "__main__":
    main()
