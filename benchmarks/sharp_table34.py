"""Li's Table 3.4 again: what rules made by machine bring to eight workloads, and to their evenness.

    python -m benchmarks.sharp_table34 --budget 30min

For each workload, rules are searched five times with the objective of most throughput and five times with
eq. 3.1 and alpha = 1 (tp - stdev), on seeds of their own, and measured on 40 seeds that no search has seen,
as are the scenario as it is (window 8) and the best of 77 static windows and gaps. The column "one search" is
the mean over searches with its interval; "best search" the one of the five that was best on 10 further seeds,
measured on the 40. Of BTIO, for which eq. 3.1 has no meaning (note below Table 3.4), the second column is the
deviation of its own speed over runs, of that rule set among those met whose 10 runs deviated least.

    python -m benchmarks.sharp_table34 --budget 0s --ship    write the best rule sets into the package
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np
from scipy.stats import f as f_distribution

from ascar.sharp import SearchPlan
from ascar.simulation import with_control

from . import sharp_rows as rows
from .harness import Benchmark, Piece, gain, mean, present, signed, table

SEARCHES = 5
RUNS = 40
CHOICE_SEEDS, CHOICE_FIRST = 10, 4_000_000
BTIO_RUNS = 10
SHIPPED = Path(__file__).parents[1] / "python" / "ascar" / "sharp" / "rulesets"


def main() -> None:
    """Search, measure, print."""
    ship = "--ship" in sys.argv
    sys.argv = [one for one in sys.argv if one != "--ship"]
    benchmark = Benchmark.from_arguments(str(__doc__), "30min")
    benchmark.build = rows.behaviour()
    pieces = [Piece(f"{row.name} as it is", lambda row=row: _as_it_is(row)) for row in rows.ROWS]
    for number in range(SEARCHES):
        for row in rows.ROWS:
            pieces.append(Piece(f"{row.name} most {number}", lambda r=row, n=number: _search(r, "most", n)))
            if row.figure == rows.TOTAL:
                pieces.append(
                    Piece(f"{row.name} even {number}", lambda r=row, n=number: _search(r, "even", n))
                )
    found = benchmark.run(pieces)
    found |= benchmark.run(
        [
            *pieces,
            *(
                Piece(f"{row.name} deviation", lambda r=row: _deviation(r, found))
                for row in rows.ROWS
                if row.figure != rows.TOTAL and f"{row.name} most {SEARCHES - 1}" in found
            ),
        ]
    )
    _print(found)
    if ship:
        _ship(found)


def _as_it_is(row: rows.Row) -> dict[str, Any]:
    """The scenario as it is, and under its best static window and gap."""
    window, tau_us = rows.static(row)
    own = rows.measured(row.scenario, RUNS)
    best = rows.measured(with_control(row.scenario, window=window, tau_us=tau_us), RUNS)
    return {
        "window": window,
        "tau_us": tau_us,
        "own": _figures(row, own),
        "static": _figures(row, best),
    }


def _search(row: rows.Row, kind: str, number: int) -> dict[str, Any]:
    """One search, and its rules on fresh seeds."""
    course = rows.searched(row, row.most if kind == "most" else row.even, SearchPlan(), number)
    scenario = rows.under(row.scenario, course.rules)
    chosen = rows.measured(scenario, CHOICE_SEEDS, CHOICE_FIRST)
    figure = row.figure if kind == "most" else "even"
    return {
        **asdict(course),
        "runs": [],
        "choice": float(np.mean(rows.pairs(chosen, figure))),
        "figures": _figures(row, rows.measured(scenario, RUNS)),
    }


def _deviation(row: rows.Row, found: dict[str, Any]) -> dict[str, Any]:
    """BTIO: of the rule sets met, the one whose speed deviates least over 10 runs."""
    texts: dict[str, None] = {}
    for number in range(SEARCHES):
        texts |= dict.fromkeys(text for _, text in found[f"{row.name} most {number}"]["steps"])
    texts |= dict.fromkeys(one.text() for one in _static_sets())

    def spread(text: str) -> float:
        runs = rows.measured(rows.under(row.scenario, text), BTIO_RUNS, CHOICE_FIRST)
        return float(np.std(rows.pairs(runs, row.figure), ddof=1))

    best = min(texts, key=spread)
    return {
        "rules": best,
        "tried": len(texts),
        "figures": _figures(row, rows.measured(rows.under(row.scenario, best), RUNS)),
    }


def _static_sets() -> list[Any]:
    from ascar.sharp import Action, RuleSet

    return [
        RuleSet.uniform(Action(0, round(100 * window), round(tau_us)))
        for window in rows.WINDOWS
        for tau_us in rows.TAUS_US
    ]


def _figures(row: rows.Row, outcomes: list[Any]) -> dict[str, list[float]]:
    names = (row.figure, "tp", "stdev", "even")
    return {("total" if name == row.figure else name): rows.pairs(outcomes, name) for name in names}


def _print(found: dict[str, Any]) -> None:
    heads = [
        "workload", "MB/s as it is", "published gain", "one search (95%)", "best search (95%)",
        "best static (95%)", "its window, gap (ms)", "against it (95%)", "runs a search",
        "published deviation, alpha = 1", "deviation (95%)", "its throughput (95%)",
    ]  # fmt: skip
    lines: list[list[str]] = []
    for row in rows.ROWS:
        own = found.get(f"{row.name} as it is")
        searches = _of(found, row, "most")
        if own is None or not searches:
            continue
        base, static = own["own"], own["static"]
        best = max(searches, key=lambda one: one["choice"])
        single = _over_searches([gain(one["figures"]["total"], base["total"]) for one in searches])
        runs = mean([one["evaluations"] for one in searches])
        lines.append(
            [
                row.name,
                f"{np.mean(base['total']):.0f}",
                f"{row.gain_percent:+d}%",
                signed(single),
                signed(gain(best["figures"]["total"], base["total"])),
                signed(gain(static["total"], base["total"])),
                f"{own['window']:g}, {own['tau_us'] / 1e3:g}",
                signed(gain(best["figures"]["total"], static["total"])),
                f"{runs[0]:.0f}",
                f"{row.deviation_percent:+d}%",
                *_even(found, row, base),
            ]
        )
    table(heads, lines)


def _even(found: dict[str, Any], row: rows.Row, base: dict[str, list[float]]) -> list[str]:
    if row.figure == rows.TOTAL:
        searches = _of(found, row, "even")
        if not searches:
            return ["-", "-"]
        best = max(searches, key=lambda one: one["choice"])["figures"]
        return [signed(gain(best[name], base[name]), 0) for name in ("stdev", "total")]
    best = found.get(f"{row.name} deviation")
    if best is None:
        return ["-", "-"]
    ours, theirs = (np.var(one["total"], ddof=1) for one in (best["figures"], base))
    if theirs == 0 or ours == 0:
        return ["both 0" if ours == theirs else "-", "-"]
    tail = float(f_distribution.ppf(0.975, RUNS - 1, RUNS - 1))
    ratio = float(ours / theirs)
    center, low, high = (float(np.sqrt(one)) - 1 for one in (ratio, ratio / tail, ratio * tail))
    return [
        signed((center, low, high), 0),
        signed(gain(best["figures"]["total"], base["total"]), 0),
    ]


def _of(found: dict[str, Any], row: rows.Row, kind: str) -> list[dict[str, Any]]:
    return present(found, (f"{row.name} {kind} {number}" for number in range(SEARCHES)))


def _over_searches(gains: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    return gains[0] if len(gains) == 1 else mean([one[0] for one in gains])


def _ship(found: dict[str, Any]) -> None:
    """The best rule sets as files; what is not better than the scenario as it is is left out."""
    SHIPPED.mkdir(exist_ok=True)
    for row in rows.ROWS:
        for kind, figure in (("most", "total"), ("even", "even")):
            searches = _of(found, row, kind)
            base = found.get(f"{row.name} as it is")
            if not searches or base is None:
                continue
            best = max(searches, key=lambda one: one["choice"])
            path = SHIPPED / f"{row.name}{'' if kind == 'most' else '-even'}.rules"
            if gain(best["figures"][figure], base["own"][figure])[1] > 0:
                path.write_text(best["rules"])
            else:
                path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
